/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The element in time: modes, flushes, states, errors, messages. The engine is scripted. */

#include "tests/element/element-helpers.h"
#include "tests/element/scripted-engine.h"

GST_PLUGIN_STATIC_DECLARE (vlmcaption);

/* ---- Video passes ------------------------------------------------------------------------- */

static void
test_pass_through (void)
{
  Fixture *f = fixture_new ("mode", "async", NULL);
  GstBuffer *in, *out;
  GstMemory *memory;
  guint i;

  scripted_hold_captions ();

  /* Without a caption the buffer itself passes. */
  in = fixture_make_frame (0, 7);
  GST_BUFFER_FLAG_SET (in, GST_BUFFER_FLAG_MARKER);
  g_assert_cmpint (gst_harness_push (f->h, gst_buffer_ref (in)), ==, GST_FLOW_OK);
  out = gst_harness_pull (f->h);
  g_assert_true (in == out);
  gst_buffer_unref (in);
  gst_buffer_unref (out);

  /* With one, its memory does; also of a buffer that somebody else holds. */
  wait_until (scripted_count_begun () == 1);
  scripted_permit (100);
  wait_until (fixture_get_stat (f, "completed") == 1);
  for (i = 1; i < 3; i++) {
    in = fixture_make_frame (i * FRAME_DURATION, i);
    memory = gst_buffer_peek_memory (in, 0);
    if (i == 1)
      gst_buffer_ref (in);
    g_assert_cmpint (gst_harness_push (f->h, in), ==, GST_FLOW_OK);
    out = gst_harness_pull (f->h);
    g_assert_true (gst_buffer_peek_memory (out, 0) == memory);
    g_assert_cmpuint (GST_BUFFER_PTS (out), ==, i * FRAME_DURATION);
    g_assert_cmpstr (get_caption (out), ==, "Describe this picture in one sentence. 7");
    if (i == 1) {
      g_assert_null (get_caption (in));
      gst_buffer_unref (in);
    }
    gst_buffer_unref (out);
  }

  fixture_free (f);
}

/* The meta has every field, and describes the frame, not the buffer that it is on. */
static void
test_meta_fields (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "300000000", NULL);
  const GstStructure *s;
  GstBuffer *out;
  guint64 u64;
  guint u;
  guint i;

  for (i = 0; i < 6; i++)
    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
  for (i = 0; i < 6; i++) {
    out = gst_harness_pull (f->h);
    if (i < 5)
      gst_buffer_unref (out);
  }

  s = gst_custom_meta_get_structure (gst_buffer_get_custom_meta (out, "GstVlmCaptionMeta"));
  g_assert_cmpstr (
      gst_structure_get_string (s, "text"), ==, "Describe this picture in one sentence. 3");
  g_assert_cmpstr (gst_structure_get_string (s, "finish-reason"), ==, "stop");
  g_assert_true (gst_structure_get_uint64 (s, "id", &u64) && u64 == 2);
  g_assert_true (gst_structure_get_uint64 (s, "pts", &u64) && u64 == 3 * FRAME_DURATION);
  g_assert_true (gst_structure_get_uint64 (s, "stream-time", &u64) && u64 == 3 * FRAME_DURATION);
  g_assert_true (gst_structure_get_uint64 (s, "running-time", &u64) && u64 == 3 * FRAME_DURATION);
  g_assert_true (gst_structure_get_uint64 (s, "age", &u64) && u64 == 2 * FRAME_DURATION);
  g_assert_true (gst_structure_get_uint64 (s, "latency", &u64) && u64 < 60 * GST_SECOND);
  g_assert_true (gst_structure_get_uint (s, "prompt-tokens", &u) && u == 70);
  g_assert_true (gst_structure_get_uint (s, "image-tokens", &u) && u == 64);
  g_assert_true (gst_structure_get_uint (s, "tokens", &u) && u == 3);
  gst_buffer_unref (out);

  fixture_free (f);
}

/* A copy of the buffer, as scalers and encoders make, keeps the caption. */
static void
test_meta_copied (void)
{
  Fixture *f = fixture_new ("mode", "sync", NULL);
  GstBuffer *out, *copy = gst_buffer_new ();
  const gchar *const *tags;

  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  out = gst_harness_pull (f->h);
  gst_buffer_copy_into (copy, out, GST_BUFFER_COPY_METADATA, 0, -1);
  g_assert_cmpstr (get_caption (copy), ==, get_caption (out));
  tags = (const gchar *const *) gst_meta_api_type_get_tags (
      gst_meta_get_info ("GstVlmCaptionMeta")->api);
  g_assert_true (tags == NULL || tags[0] == NULL);
  gst_buffer_unref (copy);
  gst_buffer_unref (out);

  fixture_free (f);
}

/* ---- Async -------------------------------------------------------------------------------- */

static void
test_async_newest_wins (void)
{
  Fixture *f = fixture_new ("mode", "async", "interval", "0", "prompt", "P", NULL);
  GstMessage *message;
  guint i;

  scripted_hold_captions ();
  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  wait_until (scripted_count_begun () == 1);
  for (i = 1; i < 5; i++)
    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
  g_assert_cmpuint (gst_harness_buffers_received (f->h), ==, 5);
  g_assert_cmpuint (fixture_get_stat (f, "dropped"), ==, 3);

  scripted_permit (2);
  message = fixture_pop_message (f, GST_MESSAGE_ELEMENT);
  g_assert_cmpstr (
      gst_structure_get_string (gst_message_get_structure (message), "text"), ==, "P 0");
  gst_message_unref (message);
  message = fixture_pop_message (f, GST_MESSAGE_ELEMENT);
  g_assert_cmpstr (
      gst_structure_get_string (gst_message_get_structure (message), "text"), ==, "P 4");
  gst_message_unref (message);
  wait_until (fixture_get_stat (f, "completed") == 2);
  g_assert_cmpuint (fixture_get_stat (f, "submitted"), ==, 5);

  fixture_free (f);
}

/* Video does not wait for the model either; the newest frame is described once it is there. */
static void
test_async_while_loading (void)
{
  Fixture *f;
  GstMessage *message;
  guint i;

  scripted_hold_loading (TRUE);
  f = fixture_new ("mode", "async", "interval", "0", "prompt", "P", NULL);
  for (i = 0; i < 5; i++)
    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
  g_assert_cmpuint (gst_harness_buffers_received (f->h), ==, 5);
  g_assert_cmpuint (scripted_count_begun (), ==, 0);

  scripted_hold_loading (FALSE);
  message = fixture_pop_message (f, GST_MESSAGE_ELEMENT);
  g_assert_cmpstr (
      gst_structure_get_string (gst_message_get_structure (message), "text"), ==, "P 4");
  gst_message_unref (message);

  fixture_free (f);
}

/* The source may reuse its memory as soon as the frame has passed. */
static void
test_async_copies (void)
{
  Fixture *f = fixture_new ("mode", "async", "prompt", "P", NULL);
  GstBuffer *out;
  GstMessage *message;

  scripted_hold_loading (TRUE);
  g_assert_cmpint (fixture_push (f, 5), ==, GST_FLOW_OK);
  out = gst_harness_pull (f->h);
  g_assert_true (gst_buffer_is_all_memory_writable (out));
  gst_buffer_memset (out, 0, 99, 16 * 16 * 3);
  gst_buffer_unref (out);
  scripted_hold_loading (FALSE);

  message = fixture_pop_message (f, GST_MESSAGE_ELEMENT);
  g_assert_cmpstr (
      gst_structure_get_string (gst_message_get_structure (message), "text"), ==, "P 5");
  gst_message_unref (message);

  fixture_free (f);
}

/* ---- Sync --------------------------------------------------------------------------------- */

static void
test_sync_every_frame (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "300000000", "prompt", "P", NULL);
  guint i;

  for (i = 0; i < 20; i++) {
    g_autofree gchar *expected = g_strdup_printf ("P %u", i / 3 * 3);
    GstBuffer *out;

    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
    out = gst_harness_pull (f->h);
    g_assert_cmpstr (get_caption (out), ==, expected);
    gst_buffer_unref (out);
  }
  g_assert_cmpuint (fixture_get_stat (f, "completed"), ==, 7);
  g_assert_cmpuint (fixture_get_stat (f, "dropped"), ==, 0);

  fixture_free (f);
}

/* The first selected frame waits for the model, and leaves with its caption. */
static void
test_sync_waits_for_model (void)
{
  Push push = { NULL, 3 };
  GThread *thread;
  GstBuffer *out;

  scripted_hold_loading (TRUE);
  push.f = fixture_new ("mode", "sync", "prompt", "P", NULL);
  thread = g_thread_new ("push", push_in_thread, &push);
  wait_until (fixture_get_stat (push.f, "submitted") == 1);
  g_assert_null (gst_harness_try_pull (push.f->h));

  scripted_hold_loading (FALSE);
  g_assert_cmpint (GPOINTER_TO_INT (g_thread_join (thread)), ==, GST_FLOW_OK);
  out = gst_harness_pull (push.f->h);
  g_assert_cmpstr (get_caption (out), ==, "P 3");
  gst_buffer_unref (out);

  fixture_free (push.f);
}

/* ---- Flush, end, segments ----------------------------------------------------------------- */

static void
flush (Fixture *f)
{
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (f->h, gst_event_new_flush_start ());
  gst_harness_push_event (f->h, gst_event_new_flush_stop (TRUE));
  gst_harness_push_event (f->h, gst_event_new_segment (&segment));
}

static void
test_flush_sync (void)
{
  Push push = { fixture_new ("mode", "sync", "prompt", "P", NULL), 1 };
  Fixture *f = push.f;
  GThread *thread;
  GstBuffer *out;

  scripted_hold_captions ();
  thread = g_thread_new ("push", push_in_thread, &push);
  wait_until (scripted_count_begun () == 1);
  gst_harness_push_event (f->h, gst_event_new_flush_start ());
  g_assert_cmpint (GPOINTER_TO_INT (g_thread_join (thread)), ==, GST_FLOW_FLUSHING);
  wait_until (scripted_count_cancelled () == 1);
  wait_until (fixture_get_stat (f, "cancelled") == 1);

  flush (f);
  scripted_permit (1);
  g_assert_cmpint (fixture_push (f, 2), ==, GST_FLOW_OK);
  out = gst_harness_pull (f->h);
  g_assert_cmpstr (get_caption (out), ==, "P 2");
  gst_buffer_unref (out);
  g_assert_cmpuint (fixture_count_messages (f, GST_MESSAGE_WARNING), ==, 0);

  fixture_free (f);
}

/* Nothing from before the flush is seen after it: no caption in force, none that was running. */
static void
test_flush_async (void)
{
  Fixture *f = fixture_new ("mode", "async", "interval", "0", "prompt", "P", NULL);
  GstBuffer *out;
  guint i;

  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  wait_until (fixture_get_stat (f, "completed") == 1);
  scripted_hold_captions ();
  g_assert_cmpint (fixture_push (f, 1), ==, GST_FLOW_OK);
  wait_until (scripted_count_begun () == 2);
  g_assert_cmpint (fixture_push (f, 2), ==, GST_FLOW_OK);

  flush (f);
  for (i = 0; i < 3; i++)
    gst_buffer_unref (gst_harness_pull (f->h));
  wait_until (fixture_get_stat (f, "cancelled") == 2);
  g_assert_cmpint (fixture_push (f, 9), ==, GST_FLOW_OK);
  out = gst_harness_pull (f->h);
  g_assert_null (get_caption (out));
  gst_buffer_unref (out);

  wait_until (scripted_count_begun () == 3);
  scripted_permit (1);
  wait_until (fixture_get_stat (f, "completed") == 2);
  g_assert_cmpint (fixture_push (f, 10), ==, GST_FLOW_OK);
  out = gst_harness_pull (f->h);
  g_assert_cmpstr (get_caption (out), ==, "P 9");
  gst_buffer_unref (out);

  fixture_free (f);
}

/* Without a text pad nothing holds the end of the stream up. */
static void
test_eos (void)
{
  Fixture *f = fixture_new ("mode", "async", NULL);
  GstEvent *event;
  GstEventType type;

  scripted_hold_captions ();
  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  g_assert_true (gst_harness_push_event (f->h, gst_event_new_eos ()));
  do {
    event = gst_harness_pull_event (f->h);
    type = GST_EVENT_TYPE (event);
    gst_event_unref (event);
  } while (type != GST_EVENT_EOS);

  fixture_free (f);
}

/* A new segment starts the interval again; frames outside of it are passed but not described. */
static void
test_segment (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "10000000000", "prompt", "P", NULL);
  GstSegment segment;
  GstBuffer *out;
  guint i;

  for (i = 0; i < 3; i++)
    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
  g_assert_cmpuint (scripted_count_done (), ==, 1);

  gst_segment_init (&segment, GST_FORMAT_TIME);
  segment.start = segment.time = 5 * FRAME_DURATION;
  gst_harness_push_event (f->h, gst_event_new_segment (&segment));
  for (i = 3; i < 7; i++)
    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
  g_assert_cmpuint (scripted_count_done (), ==, 2);
  for (i = 0; i < 7; i++) {
    out = gst_harness_pull (f->h);
    g_assert_cmpstr (get_caption (out), ==, i < 5 ? "P 0" : "P 5");
    gst_buffer_unref (out);
  }

  fixture_free (f);
}

/* The caps say 10 frames a second, the timestamps 20: the timestamps count. */
static void
test_wrong_rate (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "300000000", "prompt", "P", NULL);
  GstBuffer *out;
  guint i;

  for (i = 0; i < 13; i++)
    g_assert_cmpint (
        gst_harness_push (f->h, fixture_make_frame (i * FRAME_DURATION / 2, i)), ==, GST_FLOW_OK);
  g_assert_cmpuint (scripted_count_done (), ==, 3);
  for (i = 0; i < 13; i++) {
    out = gst_harness_pull (f->h);
    g_assert_cmpuint (GST_BUFFER_PTS (out), ==, i * FRAME_DURATION / 2);
    g_assert_cmpstr (get_caption (out), ==, i < 6 ? "P 0" : i < 12 ? "P 6" : "P 12");
    gst_buffer_unref (out);
  }

  fixture_free (f);
}

/* Size and format may change between a frame that waits and the next. */
static void
test_caps_change (void)
{
  Fixture *f = fixture_new ("mode", "async", "interval", "0", "prompt", "P", NULL);
  g_autoptr (GBytes) picture = NULL;
  GstBuffer *buffer;
  guint width, height;

  scripted_hold_captions ();
  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  wait_until (scripted_count_begun () == 1);
  g_assert_cmpint (fixture_push (f, 1), ==, GST_FLOW_OK);
  gst_harness_set_src_caps_str (
      f->h, "video/x-raw, format=GRAY8, width=8, height=4, framerate=10/1");
  scripted_permit (2);
  wait_until (fixture_get_stat (f, "completed") == 2);
  g_bytes_unref (scripted_get_picture (&width, &height));
  g_assert_cmpuint (width, ==, 16);

  buffer = gst_buffer_new_allocate (NULL, 8 * 4, NULL);
  gst_buffer_memset (buffer, 0, 77, 8 * 4);
  GST_BUFFER_PTS (buffer) = 2 * FRAME_DURATION;
  scripted_permit (1);
  g_assert_cmpint (gst_harness_push (f->h, buffer), ==, GST_FLOW_OK);
  wait_until (fixture_get_stat (f, "completed") == 3);
  picture = scripted_get_picture (&width, &height);
  g_assert_cmpuint (width, ==, 8);
  g_assert_cmpuint (height, ==, 4);
  g_assert_cmpuint (((const guint8 *) g_bytes_get_data (picture, NULL))[8 * 4 * 3 - 1], ==, 77);

  fixture_free (f);
}

/* Frames without a timestamp pass and are described once an interval all the same. */
static void
test_no_timestamps (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "300000000", NULL);
  guint i;

  for (i = 0; i < 7; i++) {
    GstBuffer *buffer = fixture_make_frame (GST_CLOCK_TIME_NONE, i);

    g_assert_cmpint (gst_harness_push (f->h, buffer), ==, GST_FLOW_OK);
  }
  g_assert_cmpuint (gst_harness_buffers_received (f->h), ==, 7);
  g_assert_cmpuint (scripted_count_done (), ==, 3);

  fixture_free (f);
}

/* A buffer that is too small for its caps is a warning, and passes. */
static void
test_short_buffer (void)
{
  Fixture *f = fixture_new ("mode", "sync", NULL);

  g_assert_cmpint (
      gst_harness_push (f->h, gst_buffer_new_allocate (NULL, 10, NULL)), ==, GST_FLOW_OK);
  g_assert_cmpuint (gst_harness_buffers_received (f->h), ==, 1);
  gst_message_unref (fixture_pop_message (f, GST_MESSAGE_WARNING));

  fixture_free (f);
}

/* ---- Latency ------------------------------------------------------------------------------ */

static void
test_latency (void)
{
  Fixture *f = fixture_new ("mode", "async", NULL);

  gst_harness_set_upstream_latency (f->h, 20 * GST_MSECOND);
  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  wait_until (fixture_get_stat (f, "completed") == 1);
  g_assert_cmpuint (gst_harness_query_latency (f->h), ==, 20 * GST_MSECOND);
  fixture_free (f);

  /* Live and sync: the time of a caption is added, and announced. */
  f = fixture_new ("mode", "sync", NULL);
  gst_harness_set_upstream_latency (f->h, 20 * GST_MSECOND);
  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  gst_message_unref (fixture_pop_message (f, GST_MESSAGE_LATENCY));
  g_assert_cmpuint (gst_harness_query_latency (f->h), >, 20 * GST_MSECOND);
  fixture_free (f);
}

/* ---- Main --------------------------------------------------------------------------------- */

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);
  GST_PLUGIN_STATIC_REGISTER (vlmcaption);

  scripted_add_test ("/element/pass-through", test_pass_through);
  scripted_add_test ("/element/meta/fields", test_meta_fields);
  scripted_add_test ("/element/meta/copied", test_meta_copied);
  scripted_add_test ("/element/async/newest-wins", test_async_newest_wins);
  scripted_add_test ("/element/async/while-loading", test_async_while_loading);
  scripted_add_test ("/element/async/copies", test_async_copies);
  scripted_add_test ("/element/sync/every-frame", test_sync_every_frame);
  scripted_add_test ("/element/sync/waits-for-model", test_sync_waits_for_model);
  scripted_add_test ("/element/flush/sync", test_flush_sync);
  scripted_add_test ("/element/flush/async", test_flush_async);
  scripted_add_test ("/element/eos", test_eos);
  scripted_add_test ("/element/segment", test_segment);
  scripted_add_test ("/element/wrong-rate", test_wrong_rate);
  scripted_add_test ("/element/caps-change", test_caps_change);
  scripted_add_test ("/element/no-timestamps", test_no_timestamps);
  scripted_add_test ("/element/short-buffer", test_short_buffer);
  scripted_add_test ("/element/latency", test_latency);

  return g_test_run ();
}
