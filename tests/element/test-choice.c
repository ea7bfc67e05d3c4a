/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which frames are described when it is not the interval alone that says so, and what of them. */

#include <string.h>

#include "tests/element/element-helpers.h"
#include "tests/element/scripted-engine.h"

GST_PLUGIN_STATIC_DECLARE (vlmcaption);

/* The largest interval: nothing is described unless somebody asks. */
#define NEVER "18446744073709551615"

static guint64
trigger (GstElement *element)
{
  guint64 id = 0;

  g_signal_emit_by_name (element, "trigger", &id);
  return id;
}

/* Waits for the next caption's message and checks it. */
static void
expect_caption (Fixture *f, guint64 id, const gchar *text)
{
  GstMessage *message = fixture_pop_message (f, GST_MESSAGE_ELEMENT);
  const GstStructure *s = gst_message_get_structure (message);
  guint64 found;

  g_assert_cmpstr (gst_structure_get_string (s, "text"), ==, text);
  g_assert_true (gst_structure_get_uint64 (s, "id", &found));
  g_assert_cmpuint (found, ==, id);
  gst_message_unref (message);
}

static GstFlowReturn
push_value (Fixture *f, guint n, guint8 value)
{
  return gst_harness_push (f->h, fixture_make_frame (n * FRAME_DURATION, value));
}

/* ---- On demand ---------------------------------------------------------------------------- */

static void
test_trigger (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", NEVER, "prompt", "P", NULL);
  GstBuffer *out;
  guint64 id;
  guint i;

  for (i = 0; i < 3; i++)
    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
  g_assert_cmpuint (scripted_count_begun (), ==, 0);

  id = trigger (f->element);
  g_assert_cmpuint (id, >, 0);
  g_assert_cmpuint (trigger (f->element), ==, id);
  for (i = 3; i < 6; i++)
    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
  expect_caption (f, id, "P 3");
  g_assert_cmpuint (scripted_count_begun (), ==, 1);
  for (i = 0; i < 6; i++) {
    out = gst_harness_pull (f->h);
    g_assert_cmpstr (get_caption (out), ==, i < 3 ? NULL : "P 3");
    gst_buffer_unref (out);
  }
  g_assert_cmpuint (trigger (f->element), >, id);

  fixture_free (f);
}

/* Nothing runs: nobody would ever answer. */
static void
test_trigger_stopped (void)
{
  GstElement *element = gst_element_factory_make ("vlmcaption", NULL);

  g_assert_cmpuint (trigger (element), ==, 0);
  gst_element_set_state (element, GST_STATE_READY);
  g_assert_cmpuint (trigger (element), ==, 0);
  gst_element_set_state (element, GST_STATE_PAUSED);
  g_assert_cmpuint (trigger (element), >, 0);
  gst_element_set_state (element, GST_STATE_NULL);
  g_assert_cmpuint (trigger (element), ==, 0);
  gst_object_unref (element);
}

/* A frame that was asked for waits until it is described, whatever comes after it. */
static void
test_trigger_stays (void)
{
  Fixture *f = fixture_new ("mode", "async", "interval", "0", "prompt", "P", NULL);
  guint64 id;
  guint i;

  scripted_hold_captions ();
  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  wait_until (scripted_count_begun () == 1);
  g_assert_cmpint (fixture_push (f, 1), ==, GST_FLOW_OK);
  id = trigger (f->element);
  for (i = 2; i < 6; i++)
    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
  g_assert_cmpuint (fixture_get_stat (f, "dropped"), ==, 4);
  scripted_permit (2);
  expect_caption (f, 1, "P 0");
  expect_caption (f, id, "P 2");

  fixture_free (f);
}

/* The picture that gave way to one that was asked for is described when the next like it comes. */
static void
test_trigger_and_scene (void)
{
  Fixture *f =
      fixture_new ("mode", "async", "interval", "0", "scene-threshold", "0.1", "prompt", "P", NULL);
  guint64 id;

  scripted_hold_captions ();
  g_assert_cmpint (push_value (f, 0, 0), ==, GST_FLOW_OK);
  wait_until (scripted_count_begun () == 1);
  id = trigger (f->element);
  g_assert_cmpint (push_value (f, 1, 100), ==, GST_FLOW_OK);
  g_assert_cmpint (push_value (f, 2, 200), ==, GST_FLOW_OK);
  scripted_permit (3);
  expect_caption (f, 1, "P 0");
  expect_caption (f, id, "P 100");
  g_assert_cmpint (push_value (f, 3, 200), ==, GST_FLOW_OK);
  expect_caption (f, 4, "P 200");

  fixture_free (f);
}

/* ---- Changes of the scene ----------------------------------------------------------------- */

static guint64
pull_age (Fixture *f, const gchar *expected)
{
  GstBuffer *out = gst_harness_pull (f->h);
  GstCustomMeta *meta = gst_buffer_get_custom_meta (out, "GstVlmCaptionMeta");
  guint64 age = 0;

  g_assert_nonnull (meta);
  g_assert_cmpstr (get_caption (out), ==, expected);
  g_assert_true (gst_structure_get_uint64 (gst_custom_meta_get_structure (meta), "age", &age));
  gst_buffer_unref (out);

  return age;
}

/* What looks the same is not described again: the caption stays and grows old. */
static void
test_scene (void)
{
  static const guint8 values[] = { 100, 101, 102, 150, 150, 152, 100 };
  static const guint described[] = { 0, 0, 0, 3, 3, 3, 6 };
  Fixture *f =
      fixture_new ("mode", "sync", "interval", "0", "scene-threshold", "0.05", "prompt", "P", NULL);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (values); i++) {
    g_autofree gchar *expected = g_strdup_printf ("P %u", values[described[i]]);

    g_assert_cmpint (push_value (f, i, values[i]), ==, GST_FLOW_OK);
    g_assert_cmpuint (pull_age (f, expected), ==, (i - described[i]) * FRAME_DURATION);
  }
  g_assert_cmpuint (fixture_get_stat (f, "completed"), ==, 3);
  g_assert_cmpuint (fixture_get_stat (f, "unchanged"), ==, 4);

  fixture_free (f);
}

/* What changes slowly is compared with what was described, not with the frame before. */
static void
test_scene_drift (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", "scene-threshold", "0.1", NULL);
  guint i;

  for (i = 0; i < 60; i++)
    g_assert_cmpint (push_value (f, i, 50 + 2 * i), ==, GST_FLOW_OK);
  /* 0.1 of 255 is reached in 13 steps of 2. */
  g_assert_cmpuint (fixture_get_stat (f, "completed"), ==, 5);

  fixture_free (f);
}

/* Another question, a failure, a trigger or a seek: then the same picture is described again. */
static void
test_scene_again (void)
{
  Fixture *f =
      fixture_new ("mode", "sync", "interval", "0", "scene-threshold", "0.05", "prompt", "P", NULL);
  GstSegment segment;
  guint i = 0;

#define PUSH_EXPECTING(n)                                                                          \
  G_STMT_START                                                                                     \
  {                                                                                                \
    g_assert_cmpint (push_value (f, i++, 100), ==, GST_FLOW_OK);                                   \
    g_assert_cmpuint (scripted_count_begun (), ==, n);                                             \
  }                                                                                                \
  G_STMT_END

  PUSH_EXPECTING (1);
  PUSH_EXPECTING (1);
  g_object_set (f->element, "prompt", "Q", NULL);
  PUSH_EXPECTING (2);
  PUSH_EXPECTING (2);
  g_assert_cmpuint (trigger (f->element), >, 0);
  PUSH_EXPECTING (3);
  PUSH_EXPECTING (3);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (f->h, gst_event_new_segment (&segment));
  scripted_fail_next (1);
  PUSH_EXPECTING (4);
  PUSH_EXPECTING (5);
  PUSH_EXPECTING (5);
#undef PUSH_EXPECTING

  fixture_free (f);
}

/* ---- Which part, and which way up --------------------------------------------------------- */

/* A GRAY8 frame of these bytes; (transfer full). Rows of 4 bytes. */
static GstBuffer *
make_gray (GstClockTime pts, const guint8 *bytes, gsize size)
{
  GstBuffer *buffer = gst_buffer_new_memdup (bytes, size);

  GST_BUFFER_PTS (buffer) = pts;
  return buffer;
}

/* Checks the last picture: its size, and the gray values of its pixels. */
static void
expect_picture (guint width, guint height, const guint8 *grays)
{
  guint found_width, found_height, i;
  g_autoptr (GBytes) picture = scripted_get_picture (&found_width, &found_height);
  const guint8 *pixels = g_bytes_get_data (picture, NULL);

  g_assert_cmpuint (found_width, ==, width);
  g_assert_cmpuint (found_height, ==, height);
  for (i = 0; i < width * height; i++)
    g_assert_cmpuint (pixels[3 * i], ==, grays[i]);
}

static const guint8 grid[] = { 0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33 };

static void
test_roi (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", "roi", "1,2,3,1", NULL);
  GstBuffer *buffer;
  GstVideoCropMeta *crop;

  gst_harness_set_src_caps_str (
      f->h, "video/x-raw, format=GRAY8, width=4, height=4, framerate=0/1");
  g_assert_cmpint (gst_harness_push (f->h, make_gray (0, grid, 16)), ==, GST_FLOW_OK);
  expect_picture (3, 1, (const guint8[]){ 21, 22, 23 });

  /* Fractions, changed while playing. */
  g_object_set (f->element, "roi", "0.5,0,0.5,0.5", NULL);
  g_assert_cmpint (gst_harness_push (f->h, make_gray (1, grid, 16)), ==, GST_FLOW_OK);
  expect_picture (2, 2, (const guint8[]){ 2, 3, 12, 13 });

  /* Of the part that the source wants to be seen. */
  buffer = make_gray (2, grid, 16);
  crop = gst_buffer_add_video_crop_meta (buffer);
  crop->x = crop->y = 0;
  crop->width = crop->height = 2;
  g_assert_cmpint (gst_harness_push (f->h, buffer), ==, GST_FLOW_OK);
  expect_picture (1, 1, (const guint8[]){ 1 });

  /* Outside: the frame passes with a warning. */
  g_object_set (f->element, "roi", "4,4,2,2", NULL);
  g_assert_cmpint (gst_harness_push (f->h, make_gray (3, grid, 16)), ==, GST_FLOW_OK);
  gst_message_unref (fixture_pop_message (f, GST_MESSAGE_WARNING));
  g_assert_cmpuint (gst_harness_buffers_received (f->h), ==, 4);
  g_assert_cmpuint (scripted_count_begun (), ==, 3);

  fixture_free (f);
}

static void
send_orientation (Fixture *f, const gchar *orientation, GstTagScope scope)
{
  GstTagList *tags = gst_tag_list_new (GST_TAG_IMAGE_ORIENTATION, orientation, NULL);

  gst_tag_list_set_scope (tags, scope);
  gst_harness_push_event (f->h, gst_event_new_tag (tags));
}

/* The picture is described upright; the video passes as it is. */
static void
test_orientation (void)
{
  static const struct
  {
    const gchar *tag;
    gboolean on_its_side;
    guint8 grays[8];
  } cases[] = {
    { "rotate-0", FALSE, { 0, 1, 2, 3, 10, 11, 12, 13 } },
    { "rotate-90", TRUE, { 10, 0, 11, 1, 12, 2, 13, 3 } },
    { "rotate-180", FALSE, { 13, 12, 11, 10, 3, 2, 1, 0 } },
    { "rotate-270", TRUE, { 3, 13, 2, 12, 1, 11, 0, 10 } },
    { "flip-rotate-0", FALSE, { 3, 2, 1, 0, 13, 12, 11, 10 } },
    { "flip-rotate-180", FALSE, { 10, 11, 12, 13, 0, 1, 2, 3 } },
  };
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", NULL);
  guint i;

  gst_harness_set_src_caps_str (
      f->h, "video/x-raw, format=GRAY8, width=4, height=2, framerate=0/1");
  for (i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstBuffer *buffer = make_gray (i, grid, 8);
    GstMemory *memory = gst_buffer_peek_memory (buffer, 0);
    GstBuffer *out;

    send_orientation (f, cases[i].tag, GST_TAG_SCOPE_STREAM);
    /* What the stream says itself counts more than what is said of the whole file. */
    send_orientation (f, "rotate-90", GST_TAG_SCOPE_GLOBAL);
    g_assert_cmpint (gst_harness_push (f->h, buffer), ==, GST_FLOW_OK);
    expect_picture (cases[i].on_its_side ? 2 : 4, cases[i].on_its_side ? 4 : 2, cases[i].grays);
    out = gst_harness_pull (f->h);
    g_assert_true (gst_buffer_peek_memory (out, 0) == memory);
    gst_buffer_unref (out);
  }

  fixture_free (f);
}

/* The two diagonal flips, which no two programs name alike, and a region of a turned picture. */
static void
test_diagonals (void)
{
  static const guint8 transposed[] = { 0, 10, 1, 11, 2, 12, 3, 13 };
  static const guint8 anti[] = { 13, 3, 12, 2, 11, 1, 10, 0 };
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", NULL);
  guint i;

  gst_harness_set_src_caps_str (
      f->h, "video/x-raw, format=GRAY8, width=4, height=2, framerate=0/1");
  for (i = 0; i < 2; i++) {
    const gchar *tag = i == 0 ? "flip-rotate-90" : "flip-rotate-270";
    GstTagList *tags = gst_tag_list_new (GST_TAG_IMAGE_ORIENTATION, tag, NULL);
    GstVideoOrientationMethod method = GST_VIDEO_ORIENTATION_IDENTITY;

    gst_video_orientation_from_tag (tags, &method);
    gst_tag_list_unref (tags);
    send_orientation (f, tag, GST_TAG_SCOPE_STREAM);
    g_assert_cmpint (gst_harness_push (f->h, make_gray (i, grid, 8)), ==, GST_FLOW_OK);
    expect_picture (2, 4, method == GST_VIDEO_ORIENTATION_UL_LR ? transposed : anti);
  }

  g_object_set (f->element, "roi", "0,0,1,0.5", NULL);
  send_orientation (f, "rotate-90", GST_TAG_SCOPE_STREAM);
  g_assert_cmpint (gst_harness_push (f->h, make_gray (9, grid, 8)), ==, GST_FLOW_OK);
  expect_picture (1, 4, (const guint8[]){ 0, 1, 2, 3 });

  fixture_free (f);
}

/* ---- Unusual video ------------------------------------------------------------------------ */

/* Both fields of an interlaced frame are seen as they lie. */
static void
test_interlaced (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", NULL);
  GstBuffer *buffer = make_gray (0, grid, 16);

  gst_harness_set_src_caps_str (f->h,
      "video/x-raw, format=GRAY8, width=4, height=4, framerate=25/1, interlace-mode=interleaved, "
      "field-order=top-field-first");
  GST_BUFFER_FLAG_SET (buffer, GST_VIDEO_BUFFER_FLAG_INTERLACED | GST_VIDEO_BUFFER_FLAG_TFF);
  g_assert_cmpint (gst_harness_push (f->h, buffer), ==, GST_FLOW_OK);
  expect_picture (4, 4, grid);
  g_assert_cmpuint (fixture_count_messages (f, GST_MESSAGE_WARNING), ==, 0);

  fixture_free (f);
}

/* Memory that no CPU reads is refused at negotiation, so that a download is put before us. */
static void
test_memory (void)
{
  static const gchar *const refused[] = { "GLMemory", "DMABuf", "VAMemory", "VASurface",
    "CUDAMemory", "D3D11Memory" };
  GstElement *element = gst_element_factory_make ("vlmcaption", NULL);
  GstPad *pad = gst_element_get_static_pad (element, "sink");
  guint i;

  for (i = 0; i < G_N_ELEMENTS (refused); i++) {
    g_autofree gchar *line = g_strdup_printf (
        "video/x-raw(memory:%s), format=RGBA, width=64, height=64, framerate=30/1", refused[i]);
    GstCaps *caps = gst_caps_from_string (line);

    g_assert_nonnull (caps);
    g_assert_false (gst_pad_query_accept_caps (pad, caps));
    gst_caps_unref (caps);
  }
  gst_object_unref (pad);
  gst_object_unref (element);
}

/* No frame rate, and timestamps that stand still, jump and go missing: nothing is lost. */
static void
test_odd_times (void)
{
  static const GstClockTime times[] = { 0, 0, GST_CLOCK_TIME_NONE, 5 * GST_SECOND, 5 * GST_SECOND,
    1 * GST_SECOND, 3600 * GST_SECOND, GST_CLOCK_TIME_NONE, 3600 * GST_SECOND + 1 };
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", NULL);
  guint i;

  gst_harness_set_src_caps_str (
      f->h, "video/x-raw, format=RGB, width=16, height=16, framerate=0/1, max-framerate=60/1");
  for (i = 0; i < G_N_ELEMENTS (times); i++) {
    GstBuffer *buffer = fixture_make_frame (times[i], i);

    GST_BUFFER_DURATION (buffer) = GST_CLOCK_TIME_NONE;
    g_assert_cmpint (gst_harness_push (f->h, buffer), ==, GST_FLOW_OK);
  }
  g_assert_cmpuint (scripted_count_done (), ==, G_N_ELEMENTS (times));
  g_assert_cmpuint (gst_harness_buffers_received (f->h), ==, G_N_ELEMENTS (times));

  fixture_free (f);
}

/* ---- Main --------------------------------------------------------------------------------- */

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);
  GST_PLUGIN_STATIC_REGISTER (vlmcaption);

  scripted_add_test ("/choice/trigger", test_trigger);
  scripted_add_test ("/choice/trigger/stopped", test_trigger_stopped);
  scripted_add_test ("/choice/trigger/stays", test_trigger_stays);
  scripted_add_test ("/choice/trigger/scene", test_trigger_and_scene);
  scripted_add_test ("/choice/scene", test_scene);
  scripted_add_test ("/choice/scene/drift", test_scene_drift);
  scripted_add_test ("/choice/scene/again", test_scene_again);
  scripted_add_test ("/choice/roi", test_roi);
  scripted_add_test ("/choice/orientation", test_orientation);
  scripted_add_test ("/choice/diagonals", test_diagonals);
  scripted_add_test ("/choice/interlaced", test_interlaced);
  scripted_add_test ("/choice/memory", test_memory);
  scripted_add_test ("/choice/odd-times", test_odd_times);

  return g_test_run ();
}
