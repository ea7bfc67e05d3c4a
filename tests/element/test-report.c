/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What is told of captions, and what they may cost. */

#include <string.h>
#include <time.h>

#include "tests/element/element-helpers.h"
#include "tests/element/scripted-engine.h"

GST_PLUGIN_STATIC_DECLARE (vlmcaption);

static const gchar *const two_sentences[] = { "A ", "cat. ", "It ", "sits ", "on", NULL };
static const gchar *const one_sentence[] = { "A ", "cat ", "sits ", "on ", "a ma", NULL };

static guint64
get_uint64 (GstMessage *message, const gchar *field)
{
  guint64 value = 0;

  g_assert_true (gst_structure_get_uint64 (gst_message_get_structure (message), field, &value));
  return value;
}

static const gchar *
get_string (GstMessage *message, const gchar *field)
{
  return gst_structure_get_string (gst_message_get_structure (message), field);
}

static gboolean
is_partial (GstMessage *message)
{
  gboolean partial = TRUE;

  g_assert_true (
      gst_structure_get_boolean (gst_message_get_structure (message), "partial", &partial));
  return partial;
}

/* ---- When it was taken -------------------------------------------------------------------- */

static GstMessage *
caption_frame (Fixture *f, GstBuffer *buffer)
{
  g_assert_cmpint (gst_harness_push (f->h, buffer), ==, GST_FLOW_OK);
  return fixture_pop_message (f, GST_MESSAGE_ELEMENT);
}

/* A reference time on the buffer is believed, whichever year its clock starts in. */
static void
test_utc_reference (void)
{
  static const GstClockTime taken = 1700000000 * GST_SECOND + 123456789;
  static const GstClockTime ntp_offset = G_GUINT64_CONSTANT (2208988800) * GST_SECOND;
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", NULL);
  guint i;

  for (i = 0; i < 2; i++) {
    GstCaps *caps = gst_caps_from_string (i == 0 ? "timestamp/x-unix" : "timestamp/x-ntp");
    GstBuffer *buffer = fixture_make_frame (i * FRAME_DURATION, i);
    GstMessage *message;
    GstBuffer *out;
    guint64 utc;

    gst_buffer_add_reference_timestamp_meta (
        buffer, caps, i == 0 ? taken : taken + ntp_offset, GST_CLOCK_TIME_NONE);
    message = caption_frame (f, buffer);
    g_assert_cmpuint (get_uint64 (message, "utc-time"), ==, taken);
    gst_message_unref (message);
    gst_caps_unref (caps);

    out = gst_harness_pull (f->h);
    g_assert_true (gst_structure_get_uint64 (
        gst_custom_meta_get_structure (gst_buffer_get_custom_meta (out, "GstVlmCaptionMeta")),
        "utc-time", &utc));
    g_assert_cmpuint (utc, ==, taken);
    gst_buffer_unref (out);
  }

  fixture_free (f);
}

/* Else it is the system clock's time; of a live frame that when it was taken, not when it came. */
static void
test_utc_clock (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", NULL);
  guint64 before = g_get_real_time () * GST_USECOND;
  GstMessage *message = caption_frame (f, fixture_make_frame (0, 0));
  guint64 utc = get_uint64 (message, "utc-time");

  g_assert_cmpuint (utc, >=, before);
  g_assert_cmpuint (utc, <=, g_get_real_time () * GST_USECOND);
  gst_message_unref (message);
  fixture_free (f);

  f = fixture_new ("mode", "async", "interval", "0", NULL);
  gst_harness_set_upstream_latency (f->h, 0);
  gst_harness_use_testclock (f->h);
  /* Clock 5 s, base time 0, a frame of 2 s: it is 3 s old. */
  gst_harness_set_time (f->h, 5 * GST_SECOND);
  before = g_get_real_time () * GST_USECOND;
  message = caption_frame (f, fixture_make_frame (2 * GST_SECOND, 0));
  utc = get_uint64 (message, "utc-time");
  g_assert_cmpuint (utc, >=, before - 3 * GST_SECOND);
  g_assert_cmpuint (utc, <=, g_get_real_time () * GST_USECOND - 3 * GST_SECOND);
  gst_message_unref (message);
  fixture_free (f);
}

/* ---- Texts -------------------------------------------------------------------------------- */

static void
check_shown (
    const gchar *const *words, VlmFinishReason reason, const gchar *name, const gchar *shown)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", NULL);
  GstMessage *message;
  GstBuffer *out;

  scripted_say (words, 0, reason);
  message = caption_frame (f, fixture_make_frame (0, 0));
  g_assert_cmpstr (get_string (message, "text"), ==, shown);
  g_assert_cmpstr (get_string (message, "finish-reason"), ==, name);
  g_assert_false (is_partial (message));
  gst_message_unref (message);
  out = gst_harness_pull (f->h);
  g_assert_cmpstr (get_caption (out), ==, shown);
  gst_buffer_unref (out);
  fixture_free (f);
}

/* A caption that broke off ends with a whole sentence or a whole word, one that ended is as it is. */
static void
test_cut (void)
{
  check_shown (two_sentences, VLM_FINISH_STOP, "stop", "A cat. It sits on");
  check_shown (two_sentences, VLM_FINISH_LENGTH, "length", "A cat.");
  check_shown (one_sentence, VLM_FINISH_LENGTH, "length", "A cat sits on a\xe2\x80\xa6");
  check_shown (one_sentence, VLM_FINISH_CONTEXT, "context", "A cat sits on a\xe2\x80\xa6");
  check_shown (two_sentences, VLM_FINISH_REPETITION, "repetition", "A cat.");
}

/* The text is told as it grows, a few times a second, and then as a whole. */
static void
test_partial (void)
{
  Fixture *f = fixture_new ("mode", "sync", "partial-captions", "true", NULL);
  gint64 since = g_get_monotonic_time ();
  GstMessage *message;
  guint n_partial = 0;
  gsize length = 0;

  scripted_say (two_sentences, 110 * G_TIME_SPAN_MILLISECOND, VLM_FINISH_STOP);
  message = caption_frame (f, fixture_make_frame (0, 0));
  while (is_partial (message)) {
    const gchar *text = get_string (message, "text");

    g_assert_true (g_str_has_prefix ("A cat. It sits on", text));
    g_assert_cmpuint (strlen (text), >, length);
    g_assert_cmpuint (get_uint64 (message, "id"), ==, 1);
    g_assert_null (get_string (message, "finish-reason"));
    length = strlen (text);
    n_partial++;
    gst_message_unref (message);
    message = fixture_pop_message (f, GST_MESSAGE_ELEMENT);
  }
  g_assert_cmpstr (get_string (message, "text"), ==, "A cat. It sits on");
  gst_message_unref (message);
  /* Five words, 110 ms each, told at most every 200 ms. */
  g_assert_cmpuint (n_partial, >=, 2);
  g_assert_cmpint (
      n_partial, <=, 1 + (g_get_monotonic_time () - since) / (200 * G_TIME_SPAN_MILLISECOND));

  fixture_free (f);
}

/* By default nothing of it. */
static void
test_no_partial (void)
{
  Fixture *f = fixture_new ("mode", "sync", NULL);

  scripted_say (two_sentences, 50 * G_TIME_SPAN_MILLISECOND, VLM_FINISH_STOP);
  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  g_assert_cmpuint (fixture_count_messages (f, GST_MESSAGE_ELEMENT), ==, 1);

  fixture_free (f);
}

/* Without messages there are none of a caption that grows, either. */
static void
test_no_messages (void)
{
  Fixture *f =
      fixture_new ("mode", "sync", "partial-captions", "true", "post-messages", "none", NULL);

  scripted_say (two_sentences, 50 * G_TIME_SPAN_MILLISECOND, VLM_FINISH_STOP);
  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  g_assert_cmpuint (fixture_count_messages (f, GST_MESSAGE_ELEMENT), ==, 0);

  fixture_free (f);
}

/* ---- Frames that were given up ------------------------------------------------------------ */

static void
test_drops (void)
{
  Fixture *f = fixture_new ("mode", "async", "interval", "0", "prompt", "P", NULL);
  guint64 processed, dropped;
  GstMessage *message;
  GstFormat format;
  guint i;

  scripted_hold_captions ();
  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  wait_until (scripted_count_begun () == 1);
  for (i = 1; i < 8; i++)
    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
  scripted_permit (1);

  message = fixture_pop_message (f, GST_MESSAGE_QOS);
  gst_message_parse_qos_stats (message, &format, &processed, &dropped);
  g_assert_cmpint (format, ==, GST_FORMAT_BUFFERS);
  g_assert_cmpuint (processed, ==, 1);
  g_assert_cmpuint (dropped, ==, 6);
  gst_message_unref (message);
  message = fixture_pop_message (f, GST_MESSAGE_ELEMENT);
  g_assert_cmpuint (get_uint64 (message, "dropped"), ==, 6);
  gst_message_unref (message);

  fixture_free (f);
}

/* Nothing is told as long as nothing is given up. */
static void
test_no_drops (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", NULL);
  guint i;

  for (i = 0; i < 5; i++)
    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
  g_assert_cmpuint (fixture_count_messages (f, GST_MESSAGE_QOS), ==, 0);

  fixture_free (f);
}

/*
 * In live sync mode the time of a caption is told when it has changed, and not when it has not. A
 * machine that has no time makes any caption longer, and then what is expected of it is not.
 */
static void
test_latency (void)
{
  static const gint64 times[] = { 100, 100, 20, 21 };
  static const guint expected[] = { 1, 0, 1, 0 };
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", NULL);
  GstClockTime before = 0;
  gboolean prompt = TRUE;
  guint i;

  gst_harness_set_upstream_latency (f->h, 0);
  for (i = 0; i < G_N_ELEMENTS (times); i++) {
    GstClockTime least;
    guint told;

    scripted_take_time (times[i] * G_TIME_SPAN_MILLISECOND, FALSE);
    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
    least = gst_harness_query_latency (f->h);
    g_assert_cmpuint (least, >=, times[i] * GST_MSECOND);
    told = fixture_count_messages (f, GST_MESSAGE_LATENCY);
    g_assert_cmpuint (told, ==, least != before);
    prompt = prompt && least < times[i] * GST_MSECOND * 5 / 4;
    if (prompt)
      g_assert_cmpuint (told, ==, expected[i]);
    before = least;
  }

  fixture_free (f);
}

/* ---- Lost captions ------------------------------------------------------------------------ */

/* Who takes text, once it may: all atomic but the last. */
typedef struct
{
  gint open;
  gint n_texts, n_gaps;
  GstClockTime last; /* the text that came last */
} Reader;

static GstFlowReturn
read_text (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  Reader *reader = gst_pad_get_element_private (pad);

  wait_until (g_atomic_int_get (&reader->open));
  reader->last = GST_BUFFER_PTS (buffer);
  g_atomic_int_inc (&reader->n_texts);
  gst_buffer_unref (buffer);
  return GST_FLOW_OK;
}

static gboolean
read_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  Reader *reader = gst_pad_get_element_private (pad);

  if (GST_EVENT_TYPE (event) == GST_EVENT_GAP)
    g_atomic_int_inc (&reader->n_gaps);
  gst_event_unref (event);
  return TRUE;
}

#define MOST_QUEUED 4096
#define MANY 3000

/* A text and a gap for each frame, and nobody takes any: the oldest go, which is told once. */
static void
test_lost_text (void)
{
  Fixture *f = fixture_new (
      "mode", "sync", "interval", "0", "text-timing", "display", "post-messages", "none", NULL);
  GstPad *text = gst_element_request_pad_simple (f->element, "text");
  GstPad *sink = gst_pad_new ("sink", GST_PAD_SINK);
  Reader reader = { 0 };
  guint i;

  gst_pad_set_element_private (sink, &reader);
  gst_pad_set_chain_function (sink, read_text);
  gst_pad_set_event_function (sink, read_event);
  gst_pad_set_active (sink, TRUE);
  g_assert_cmpint (gst_pad_link (text, sink), ==, GST_PAD_LINK_OK);
  gst_harness_set_drop_buffers (f->h, TRUE);
  for (i = 0; i < MANY; i++)
    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
  g_assert_cmpuint (fixture_count_messages (f, GST_MESSAGE_WARNING), ==, 1);

  /* What is left is the newest. One text was on its way. */
  g_atomic_int_set (&reader.open, TRUE);
  wait_until (
      g_atomic_int_get (&reader.n_texts) + g_atomic_int_get (&reader.n_gaps) == MOST_QUEUED + 1);
  g_assert_cmpint (reader.n_texts, >=, MOST_QUEUED / 2);
  g_assert_cmpuint (reader.last, ==, (MANY - 1) * FRAME_DURATION);

  gst_element_release_request_pad (f->element, text);
  gst_object_unref (text);
  gst_object_unref (sink);
  fixture_free (f);
}

/* ---- What it may cost --------------------------------------------------------------------- */

static gdouble
get_cpu_seconds (void)
{
  return clock () / (gdouble) CLOCKS_PER_SEC;
}

/* Shares of two CPUs; the scripted engine says that there are two. */
typedef struct
{
  gdouble of_all;  /* of all the time that has passed */
  gdouble of_ours; /* of the time that the machine did not keep from the captions' thread */
  guint completed;
} Load;

/* Pushes 30 frames a second for four seconds while each caption computes for that time. */
static Load
measure_load (const gchar *max_load, gint64 caption_us)
{
  Fixture *f =
      fixture_new ("mode", "async", "interval", "0", "threads", "1", "max-load", max_load, NULL);
  gint64 start = g_get_monotonic_time ();
  gdouble cpu = get_cpu_seconds ();
  gdouble elapsed;
  Load load;
  guint i;

  scripted_take_time (caption_us, TRUE);
  for (i = 0; i < 4 * 30; i++) {
    gint64 due = start + i * G_TIME_SPAN_SECOND / 30;
    gint64 now = g_get_monotonic_time ();

    if (now < due)
      g_usleep (due - now);
    g_assert_cmpint (
        gst_harness_push (f->h, fixture_make_frame (i * GST_SECOND / 30, i)), ==, GST_FLOW_OK);
    gst_buffer_unref (gst_harness_pull (f->h));
  }
  cpu = get_cpu_seconds () - cpu;
  elapsed = (g_get_monotonic_time () - start) / (gdouble) G_TIME_SPAN_SECOND;
  load.completed = fixture_get_stat (f, "completed");
  g_assert_cmpuint (fixture_get_stat (f, "submitted"), ==, i);
  fixture_free (f);

  load.of_all = cpu / elapsed / 2;
  load.of_ours =
      cpu / MAX (elapsed - scripted_get_starved () / (gdouble) G_TIME_SPAN_SECOND, 0.1) / 2;
  return load;
}

/*
 * A limit of 25 % holds within three points either way, be captions longer or shorter than a frame. What the
 * machine gives to others does not count against the lower one, and if that was nearly all it is tried
 * again; an element that rests too long falls below it each time.
 */
static void
test_max_load (void)
{
  static const gint64 durations[] = { 120 * G_TIME_SPAN_MILLISECOND, 25 * G_TIME_SPAN_MILLISECOND };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (durations); i++) {
    guint tries = 0;
    Load load;

    do {
      scripted_reset ();
      load = measure_load ("25", durations[i]);
      g_test_message ("captions of %d ms: %.1f %% of two CPUs, %.1f %% of what was to be had, %u "
                      "captions",
          (gint) (durations[i] / 1000), load.of_all * 100, load.of_ours * 100, load.completed);
      g_assert_cmpfloat (load.of_all, <, 0.28);
    } while ((load.of_ours < 0.22 || load.completed == 0) && ++tries < 6);
    g_assert_cmpfloat (load.of_ours, >=, 0.22);
    g_assert_cmpuint (load.completed, >, 0);
  }
}

/* A limit that is lifted does not leave the element resting for the old one's sake. */
static void
test_max_load_lifted (void)
{
  Fixture *f = fixture_new ("mode", "async", "interval", "0", "max-load", "1", NULL);
  GstMessage *message;

  scripted_take_time (100 * G_TIME_SPAN_MILLISECOND, TRUE);
  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  gst_message_unref (fixture_pop_message (f, GST_MESSAGE_ELEMENT));
  wait_until (fixture_get_stat (f, "completed") == 1);
  g_object_set (f->element, "max-load", 100, NULL);
  g_assert_cmpint (fixture_push (f, 1), ==, GST_FLOW_OK);
  message = gst_bus_timed_pop_filtered (f->bus, 5 * GST_SECOND, GST_MESSAGE_ELEMENT);
  g_assert_nonnull (message);
  gst_message_unref (message);

  fixture_free (f);
}

/* A frame that was asked for does not wait for the load's sake. */
static void
test_max_load_trigger (void)
{
  Fixture *f = fixture_new ("mode", "async", "interval", "0", "max-load", "1", NULL);
  guint64 id = 0;
  GstMessage *message;

  scripted_take_time (100 * G_TIME_SPAN_MILLISECOND, TRUE);
  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  gst_message_unref (fixture_pop_message (f, GST_MESSAGE_ELEMENT));
  wait_until (fixture_get_stat (f, "completed") == 1);
  g_assert_cmpint (fixture_push (f, 1), ==, GST_FLOW_OK);
  g_assert_cmpuint (fixture_get_stat (f, "dropped"), ==, 1);
  g_signal_emit_by_name (f->element, "trigger", &id);
  g_assert_cmpint (fixture_push (f, 2), ==, GST_FLOW_OK);
  /* At 1 % the next caption would be due in ten seconds. */
  message = gst_bus_timed_pop_filtered (f->bus, 5 * GST_SECOND, GST_MESSAGE_ELEMENT);
  g_assert_nonnull (message);
  g_assert_cmpuint (get_uint64 (message, "id"), ==, id);
  gst_message_unref (message);

  fixture_free (f);
}

/* ---- The model goes when nobody needs it -------------------------------------------------- */

static gboolean
is_loaded (Fixture *f)
{
  GstStructure *stats;
  gboolean loaded = FALSE;

  g_object_get (f->element, "stats", &stats, NULL);
  g_assert_true (gst_structure_get_boolean (stats, "loaded", &loaded));
  gst_structure_free (stats);

  return loaded;
}

static void
test_idle_unload (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", "idle-unload", "50000000", NULL);

  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  wait_until (scripted_count_alive () == 0);
  g_assert_false (is_loaded (f));

  /* It comes back for the next frame, says so, and introduces itself only once. */
  g_assert_cmpint (fixture_push (f, 1), ==, GST_FLOW_OK);
  g_assert_cmpuint (scripted_count_loaded (), ==, 2);
  g_assert_cmpuint (fixture_get_stat (f, "completed"), ==, 2);
  g_assert_cmpuint (fixture_count_messages (f, GST_MESSAGE_INFO), ==, 1);

  fixture_free (f);
}

/* A model that is kept for those who ask goes before anybody has, and comes when somebody does. */
static void
test_unload_unused (void)
{
  Fixture *f = fixture_new (
      "mode", "sync", "interval", "18446744073709551615", "idle-unload", "50000000", NULL);
  guint64 id;

  wait_until (scripted_count_loaded () == 1);
  wait_until (scripted_count_alive () == 0);
  g_signal_emit_by_name (f->element, "trigger", &id);
  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  g_assert_cmpuint (fixture_get_stat (f, "completed"), ==, 1);

  fixture_free (f);
}

/* The property counts from when it is set, not from the next caption on. */
static void
test_unload_changed (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", NULL);

  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  g_object_set (f->element, "idle-unload", (guint64) 1, NULL);
  wait_until (scripted_count_alive () == 0);

  fixture_free (f);
}

/* The second model takes a second. */
static gpointer
let_load (gpointer user_data)
{
  wait_until (scripted_count_loads_begun () == 2);
  g_usleep (G_USEC_PER_SEC);
  scripted_hold_loading (FALSE);
  return NULL;
}

/* In live sync mode the model that has to come back is not part of the latency that is told. */
static void
test_unload_latency (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", "idle-unload", "50000000", NULL);
  GThread *thread;

  gst_harness_set_upstream_latency (f->h, 0);
  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  wait_until (scripted_count_alive () == 0);
  scripted_hold_loading (TRUE);
  thread = g_thread_new ("load", let_load, NULL);
  g_assert_cmpint (fixture_push (f, 1), ==, GST_FLOW_OK);
  g_thread_join (thread);
  g_assert_cmpuint (fixture_get_stat (f, "last-latency"), >=, GST_SECOND);
  g_assert_cmpuint (gst_harness_query_latency (f->h), <, GST_SECOND);

  fixture_free (f);
}

/* Without the property it stays. */
static void
test_no_unload (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", NULL);

  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  g_usleep (100 * G_TIME_SPAN_MILLISECOND);
  g_assert_true (is_loaded (f));
  g_assert_cmpuint (scripted_count_alive (), ==, 2);

  fixture_free (f);
}

/* In async mode video flows while the model comes back; a flush does not wait for it either. */
static void
test_unload_async (void)
{
  Fixture *f = fixture_new (
      "mode", "async", "interval", "0", "idle-unload", "50000000", "prompt", "P", NULL);
  GstSegment segment;
  GstMessage *message;
  guint i;

  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  gst_message_unref (fixture_pop_message (f, GST_MESSAGE_ELEMENT));
  wait_until (scripted_count_alive () == 0);
  scripted_hold_loading (TRUE);
  for (i = 1; i < 4; i++)
    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
  g_assert_cmpuint (gst_harness_buffers_received (f->h), ==, 4);
  gst_harness_push_event (f->h, gst_event_new_flush_start ());
  gst_harness_push_event (f->h, gst_event_new_flush_stop (FALSE));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (f->h, gst_event_new_segment (&segment));
  g_assert_cmpint (fixture_push (f, 4), ==, GST_FLOW_OK);
  scripted_hold_loading (FALSE);
  message = fixture_pop_message (f, GST_MESSAGE_ELEMENT);
  g_assert_cmpstr (get_string (message, "text"), ==, "P 4");
  gst_message_unref (message);

  fixture_free (f);
}

/* ---- Settings reach the engine ------------------------------------------------------------ */

static void
test_request (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", "nice", "3", NULL);
  VlmRequest request;

  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  request = scripted_get_request ();
  g_assert_cmpint (request.nice, ==, 3);
  g_assert_true (request.end_loops);

  fixture_free (f);
}

/* An interval that is changed while playing counts from the next frame on. */
static void
test_live_interval (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "1000000000", NULL);
  guint i;

  for (i = 0; i < 5; i++)
    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
  g_assert_cmpuint (scripted_count_done (), ==, 1);
  g_object_set (f->element, "interval", (guint64) 200 * GST_MSECOND, NULL);
  for (i = 5; i < 9; i++)
    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
  g_assert_cmpuint (scripted_count_done (), ==, 3);

  fixture_free (f);
}

/* Another model, set in READY, makes the next captions; the old one goes. */
static void
test_live_model (void)
{
  Fixture *f = fixture_new ("mode", "sync", "model", "first", NULL);
  GstMessage *message = caption_frame (f, fixture_make_frame (0, 0));

  g_assert_cmpstr (get_string (message, "model"), ==, "first");
  gst_message_unref (message);
  gst_element_set_state (f->element, GST_STATE_READY);
  g_object_set (f->element, "model", "second", NULL);
  gst_element_set_state (f->element, GST_STATE_PLAYING);
  gst_harness_set_src_caps_str (
      f->h, "video/x-raw, format=RGB, width=16, height=16, framerate=10/1");
  message = caption_frame (f, fixture_make_frame (0, 0));
  g_assert_cmpstr (get_string (message, "model"), ==, "second");
  gst_message_unref (message);
  g_assert_cmpuint (scripted_count_alive (), ==, 2);

  fixture_free (f);
}

/* ---- Main --------------------------------------------------------------------------------- */

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);
  GST_PLUGIN_STATIC_REGISTER (vlmcaption);

  scripted_add_test ("/report/utc/reference", test_utc_reference);
  scripted_add_test ("/report/utc/clock", test_utc_clock);
  scripted_add_test ("/report/cut", test_cut);
  scripted_add_test ("/report/partial", test_partial);
  scripted_add_test ("/report/partial/off", test_no_partial);
  scripted_add_test ("/report/partial/no-messages", test_no_messages);
  scripted_add_test ("/report/drops", test_drops);
  scripted_add_test ("/report/drops/none", test_no_drops);
  scripted_add_test ("/report/lost-text", test_lost_text);
  scripted_add_test ("/budget/max-load", test_max_load);
  scripted_add_test ("/budget/max-load/trigger", test_max_load_trigger);
  scripted_add_test ("/budget/max-load/lifted", test_max_load_lifted);
  scripted_add_test ("/report/latency", test_latency);
  scripted_add_test ("/budget/idle-unload", test_idle_unload);
  scripted_add_test ("/budget/idle-unload/unused", test_unload_unused);
  scripted_add_test ("/budget/idle-unload/changed", test_unload_changed);
  scripted_add_test ("/budget/idle-unload/latency", test_unload_latency);
  scripted_add_test ("/budget/idle-unload/off", test_no_unload);
  scripted_add_test ("/budget/idle-unload/async", test_unload_async);
  scripted_add_test ("/budget/request", test_request);
  scripted_add_test ("/budget/live-interval", test_live_interval);
  scripted_add_test ("/budget/live-model", test_live_model);

  return g_test_run ();
}
