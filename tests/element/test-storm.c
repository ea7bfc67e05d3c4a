/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Flushes, ends, new caps and changes of state at every moment of a caption. VLM_TEST_STORM is how
 * many random changes are made: by default 200, long.sh asks for more.
 */

#include "tests/element/element-helpers.h"
#include "tests/element/scripted-engine.h"

GST_PLUGIN_STATIC_DECLARE (vlmcaption);

static guint
get_n_changes (void)
{
  const gchar *text = g_getenv ("VLM_TEST_STORM");

  return text != NULL ? MAX (atoi (text), 1) : 200;
}

static void
push_segment (Fixture *f)
{
  GstSegment segment;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (f->h, gst_event_new_segment (&segment));
}

/* ---- Flushes ------------------------------------------------------------------------------ */

/*
 * A flush this long after a frame was pushed; how long it took, with the streaming thread's return.
 */
static gint64
flush_after (const gchar *mode, gint64 pause_us)
{
  Push push = { fixture_new ("mode", mode, "interval", "0", "prompt", "P", NULL), 1 };
  Fixture *f = push.f;
  gint64 since, taken;
  GstFlowReturn flow;
  GThread *thread;

  scripted_take_time (40 * G_TIME_SPAN_MILLISECOND, FALSE);
  thread = g_thread_new ("push", push_in_thread, &push);
  g_usleep (pause_us);
  since = g_get_monotonic_time ();
  gst_harness_push_event (f->h, gst_event_new_flush_start ());
  flow = GPOINTER_TO_INT (g_thread_join (thread));
  gst_harness_push_event (f->h, gst_event_new_flush_stop (TRUE));
  taken = g_get_monotonic_time () - since;
  g_assert_true (flow == GST_FLOW_OK || flow == GST_FLOW_FLUSHING);

  /* And the next frame is described. */
  push_segment (f);
  gst_harness_set_drop_buffers (f->h, TRUE);
  scripted_take_time (0, FALSE);
  g_assert_cmpint (fixture_push (f, 2), ==, GST_FLOW_OK);
  wait_until (fixture_get_stat (f, "completed") + fixture_get_stat (f, "cancelled")
      == fixture_get_stat (f, "submitted"));
  g_assert_cmpuint (fixture_get_stat (f, "completed"), >, 0);

  fixture_free (f);
  return taken;
}

/* It returns at once; a machine that had no time for us gets further chances. */
static void
check_flush_after (const gchar *mode, gint64 pause_us)
{
  gint64 taken;
  guint tries = 0;

  do {
    scripted_reset ();
    taken = flush_after (mode, pause_us);
  } while (taken >= 100 * G_TIME_SPAN_MILLISECOND && ++tries < 5);
  g_assert_cmpint (taken, <, 100 * G_TIME_SPAN_MILLISECOND);
}

static void
test_flush_moments (void)
{
  gint64 pause;

  for (pause = 0; pause <= 60; pause += 4) {
    check_flush_after ("sync", pause * G_TIME_SPAN_MILLISECOND);
    check_flush_after ("async", pause * G_TIME_SPAN_MILLISECOND);
  }
}

/* Also while the model is loaded for the first time. */
static void
test_flush_while_loading (void)
{
  Push push = { NULL, 1 };
  gint64 since;
  GThread *thread;

  scripted_hold_loading (TRUE);
  push.f = fixture_new ("mode", "sync", NULL);
  thread = g_thread_new ("push", push_in_thread, &push);
  wait_until (fixture_get_stat (push.f, "submitted") == 1);
  since = g_get_monotonic_time ();
  gst_harness_push_event (push.f->h, gst_event_new_flush_start ());
  g_assert_cmpint (GPOINTER_TO_INT (g_thread_join (thread)), ==, GST_FLOW_FLUSHING);
  g_assert_cmpint (g_get_monotonic_time () - since, <, PATIENCE);
  gst_harness_push_event (push.f->h, gst_event_new_flush_stop (TRUE));
  scripted_hold_loading (FALSE);

  fixture_free (push.f);
}

/* ---- New caps, gaps, the end -------------------------------------------------------------- */

/* The size and the format change with every frame, also while one is described. */
static void
test_caps_storm (void)
{
  static const gchar *const formats[] = { "RGB", "NV12", "GRAY8", "P010_10LE", "BGRA", "I420" };
  Fixture *f = fixture_new ("mode", "async", "interval", "0", "scene-threshold", "0.01", NULL);
  guint i;

  gst_harness_set_drop_buffers (f->h, TRUE);
  scripted_take_time (3 * G_TIME_SPAN_MILLISECOND, FALSE);
  for (i = 0; i < 60; i++) {
    GstVideoFormat format = gst_video_format_from_string (formats[i % G_N_ELEMENTS (formats)]);
    gint width = 16 + i % 7, height = 16 + i % 5;
    g_autofree gchar *caps =
        g_strdup_printf ("video/x-raw, format=%s, width=%d, height=%d, framerate=%u/1",
            gst_video_format_to_string (format), width, height, i % 3 * 10);
    GstVideoInfo info;
    GstBuffer *buffer;

    gst_video_info_set_format (&info, format, width, height);
    buffer = gst_buffer_new_allocate (NULL, info.size, NULL);
    gst_buffer_memset (buffer, 0, 4 * i, info.size);
    GST_BUFFER_PTS (buffer) = i * FRAME_DURATION;
    gst_harness_set_src_caps_str (f->h, caps);
    g_assert_cmpint (gst_harness_push (f->h, buffer), ==, GST_FLOW_OK);
    gst_harness_push_event (f->h, gst_event_new_gap (i * FRAME_DURATION, FRAME_DURATION));
  }
  g_assert_cmpuint (gst_harness_buffers_received (f->h), ==, 60);
  wait_until (fixture_get_stat (f, "completed") > 0);
  g_assert_cmpuint (fixture_count_messages (f, GST_MESSAGE_WARNING), ==, 0);

  fixture_free (f);
}

/* The caption that is being made when video ends is still told of, and video's end does not wait. */
static void
test_eos_drains (void)
{
  Fixture *f = fixture_new ("mode", "async", "interval", "0", "prompt", "P", NULL);
  GstMessage *message;

  scripted_hold_captions ();
  g_assert_cmpint (fixture_push (f, 7), ==, GST_FLOW_OK);
  wait_until (scripted_count_begun () == 1);
  g_assert_true (gst_harness_push_event (f->h, gst_event_new_eos ()));
  scripted_permit (1);
  message = fixture_pop_message (f, GST_MESSAGE_ELEMENT);
  g_assert_cmpstr (
      gst_structure_get_string (gst_message_get_structure (message), "text"), ==, "P 7");
  gst_message_unref (message);

  fixture_free (f);
}

/* Played faster, slower and backwards: every frame passes, the selected ones are described. */
static void
test_rates (void)
{
  static const gdouble rates[] = { 2, 0.5, -1 };
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", NULL);
  guint i, j;

  for (i = 0; i < G_N_ELEMENTS (rates); i++) {
    GstSegment segment;

    gst_segment_init (&segment, GST_FORMAT_TIME);
    gst_segment_do_seek (&segment, rates[i], GST_FORMAT_TIME, GST_SEEK_FLAG_NONE, GST_SEEK_TYPE_SET,
        0, GST_SEEK_TYPE_SET, GST_SECOND, NULL);
    gst_harness_push_event (f->h, gst_event_new_segment (&segment));
    for (j = 0; j < 5; j++)
      g_assert_cmpint (fixture_push (f, rates[i] > 0 ? j : 4 - j), ==, GST_FLOW_OK);
  }
  g_assert_cmpuint (gst_harness_buffers_received (f->h), ==, 15);
  g_assert_cmpuint (scripted_count_done (), ==, 15);

  fixture_free (f);
}

/* ---- Anything at any time ----------------------------------------------------------------- */

static void
seek_somewhere (GstElement *pipeline, GRand *random)
{
  static const gdouble rates[] = { 1, 1, 1, 2, 0.5, -1 };
  GstSeekFlags flags = GST_SEEK_FLAG_NONE;
  GstState state = GST_STATE_NULL;

  gdouble rate = rates[g_rand_int_range (random, 0, G_N_ELEMENTS (rates))];
  gint64 at = g_rand_int_range (random, 1, 5000) * GST_MSECOND;

  /* Without a flush a source waits for its streaming thread, which in PAUSED waits for us. */
  if (gst_element_get_state (pipeline, &state, NULL, 0) != GST_STATE_CHANGE_SUCCESS
      || state != GST_STATE_PLAYING || g_rand_boolean (random))
    flags |= GST_SEEK_FLAG_FLUSH;
  if (g_rand_boolean (random))
    flags |= GST_SEEK_FLAG_ACCURATE;
  if (rate > 0)
    gst_element_seek (pipeline, rate, GST_FORMAT_TIME, flags, GST_SEEK_TYPE_SET, at,
        GST_SEEK_TYPE_SET, 20 * GST_SECOND);
  else
    gst_element_seek (
        pipeline, rate, GST_FORMAT_TIME, flags, GST_SEEK_TYPE_SET, 0, GST_SEEK_TYPE_SET, at);
}

static void
change_setting (GstElement *element, GRand *random)
{
  guint64 id;

  switch (g_rand_int_range (random, 0, 6)) {
    case 0:
      g_object_set (
          element, "interval", (guint64) g_rand_int_range (random, 0, 200) * GST_MSECOND, NULL);
      break;
    case 1:
      g_object_set (element, "scene-threshold", g_rand_double_range (random, 0, 0.1), NULL);
      break;
    case 2:
      g_object_set (element, "max-load", g_rand_int_range (random, 5, 101), NULL);
      break;
    case 3:
      g_object_set (
          element, "idle-unload", (guint64) g_rand_int_range (random, 0, 30) * GST_MSECOND, NULL);
      break;
    case 4:
      g_object_set (element, "roi", g_rand_boolean (random) ? "0,0,0.5,0.5" : NULL, NULL);
      break;
    default:
      g_signal_emit_by_name (element, "trigger", &id);
      break;
  }
}

/* Textpad comes and goes while anything happens. */
static void
toggle_text (GstElement *element, GstElement *sink)
{
  GstPad *text = gst_element_get_static_pad (element, "text");
  GstPad *peer = gst_element_get_static_pad (sink, "sink");

  if (text != NULL) {
    gst_element_release_request_pad (element, text);
  } else {
    text = gst_element_request_pad_simple (element, "text");
    gst_pad_link (text, peer);
  }
  gst_object_unref (text);
  gst_object_unref (peer);
}

typedef struct
{
  GstElement *element;
  gint over; /* atomic */
} Onlooker;

/* An application's other thread, which looks at the element at any time. */
static gpointer
look_on (gpointer user_data)
{
  Onlooker *onlooker = user_data;

  while (!g_atomic_int_get (&onlooker->over)) {
    GstStructure *stats = NULL;
    gchar *prompt = NULL;

    g_object_get (onlooker->element, "stats", &stats, "prompt", &prompt, NULL);
    g_assert_true (gst_structure_has_field (stats, "loaded"));
    gst_structure_free (stats);
    g_free (prompt);
    g_usleep (500);
  }

  return NULL;
}

static void
storm (const gchar *line, guint32 seed)
{
  GRand *random = g_rand_new_with_seed (seed);
  GstElement *pipeline = gst_parse_launch (line, NULL);
  GstElement *element = gst_bin_get_by_name (GST_BIN (pipeline), "v");
  GstElement *text = gst_bin_get_by_name (GST_BIN (pipeline), "t");
  Onlooker onlooker = { element, FALSE };
  GThread *thread = g_thread_new ("look-on", look_on, &onlooker);
  guint n_changes = get_n_changes ();
  guint i;

  for (i = 0; i < n_changes; i++) {
    gint choice = g_rand_int_range (random, 0, 12);

    if (choice < 6)
      gst_element_set_state (pipeline, g_rand_int_range (random, GST_STATE_NULL, 5));
    else if (choice < 9)
      seek_somewhere (pipeline, random);
    else if (choice < 11)
      change_setting (element, random);
    else
      toggle_text (element, text);
    /* Some changes are waited for, most come on top of each other. */
    if (g_rand_int_range (random, 0, 4) == 0)
      gst_element_get_state (pipeline, NULL, NULL, 200 * GST_MSECOND);
    g_usleep (g_rand_int_range (random, 0, 8) * 1000);
  }

  g_atomic_int_set (&onlooker.over, TRUE);
  g_thread_join (thread);
  g_assert_cmpint (gst_element_set_state (pipeline, GST_STATE_NULL), !=, GST_STATE_CHANGE_FAILURE);
  gst_object_unref (text);
  gst_object_unref (element);
  gst_object_unref (pipeline);
  g_rand_free (random);
}

static void
test_storm (void)
{
  scripted_take_time (4 * G_TIME_SPAN_MILLISECOND, FALSE);
  storm ("videotestsrc num-buffers=2000 ! video/x-raw,width=64,height=48,framerate=100/1 ! "
         "vlmcaption name=v interval=50000000 mode=async auto-overlay=false ! "
         "fakesink sync=true fakesink name=t async=false sync=false",
      g_test_rand_int ());
  storm ("videotestsrc num-buffers=2000 ! video/x-raw,width=64,height=48,framerate=100/1 ! "
         "vlmcaption name=v interval=50000000 mode=sync auto-overlay=false ! queue ! "
         "fakesink sync=true fakesink name=t async=false sync=false",
      g_test_rand_int ());
  /* An overlay is linked and lost again, too. */
  storm ("videotestsrc num-buffers=2000 ! video/x-raw,width=64,height=48,framerate=100/1 ! "
         "vlmcaption name=v interval=50000000 mode=async ! textoverlay ! "
         "fakesink sync=true fakesink name=t async=false sync=false",
      g_test_rand_int ());
  /* The same where text has a thread of its own, and the element goes down after the overlay. */
  storm ("videotestsrc num-buffers=2000 ! video/x-raw,width=64,height=48,framerate=100/1 ! "
         "bin.( vlmcaption name=v interval=50000000 mode=sync ! queue ) ! textoverlay ! "
         "fakesink sync=true fakesink name=t async=false sync=false",
      g_test_rand_int ());
}

/* ---- Main --------------------------------------------------------------------------------- */

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);
  GST_PLUGIN_STATIC_REGISTER (vlmcaption);

  scripted_add_test ("/storm/flush/moments", test_flush_moments);
  scripted_add_test ("/storm/flush/loading", test_flush_while_loading);
  scripted_add_test ("/storm/caps", test_caps_storm);
  scripted_add_test ("/storm/eos-drains", test_eos_drains);
  scripted_add_test ("/storm/rates", test_rates);
  scripted_add_test ("/storm/anything", test_storm);

  return g_test_run ();
}
