/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Ends of a run that no file brings about. */

#include <glib/gstdio.h>
#include <string.h>

#include "tools/caption/graph.h"
#include "tools/caption/remux.h"

static gchar *folder, *input, *output, *uri;

static void
write_input (void)
{
  g_autofree gchar *text =
      g_strdup_printf ("videotestsrc num-buffers=25 ! video/x-raw,width=64,height=48,framerate=25/1"
                       " ! vp8enc deadline=1 ! webmmux ! filesink location=%s",
          input);
  g_autoptr (GstElement) pipeline = gst_parse_launch (text, NULL);
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  g_autoptr (GstMessage) message = NULL;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message =
      gst_bus_timed_pop_filtered (bus, GST_CLOCK_TIME_NONE, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  g_assert_cmpint (GST_MESSAGE_TYPE (message), ==, GST_MESSAGE_EOS);
  gst_element_set_state (pipeline, GST_STATE_NULL);
}

static GstPadProbeReturn
hold (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  return GST_PAD_PROBE_OK;
}

/* Nothing gets beyond this. */
static gboolean
stop_video (VlmGraph *graph, GError **error)
{
  gst_pad_add_probe (graph->video, GST_PAD_PROBE_TYPE_BLOCK_DOWNSTREAM, hold, NULL, NULL);
  return TRUE;
}

static gboolean
refuse (VlmGraph *graph, GError **error)
{
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "not now");
  return FALSE;
}

/* Runs a copy with these functions; it fails when nothing moves for so many seconds. */
static gboolean
run (VlmGraphFunc prepare, VlmGraphFunc seek, gint patience, GError **error)
{
  g_autoptr (VlmGraph) graph = vlm_graph_new (uri, "matroskamux", output, error);

  g_assert_nonnull (graph);
  graph->add_stream = vlm_graph_copy;
  graph->prepare = prepare;
  graph->seek = seek;
  graph->patience = patience;
  return vlm_graph_run (graph, NULL, error);
}

static void
test_standstill (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (run (NULL, NULL, 30, &error));
  g_assert_no_error (error);
  g_assert_false (run (stop_video, NULL, 1, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
  g_assert_nonnull (strstr (error->message, uri));
}

/* A flush that begins just when the multiqueue's thread has taken something out of its queue. */
static struct
{
  GMutex lock;
  GCond cond;
  guint number;   /* what it has taken: 1 the start of the stream, 2 its caps, ... */
  gboolean armed; /* with the lock: the flush may begin */
  gboolean taken; /* with the lock: its thread has that */
} race;

static gboolean
race_begins (const gchar *taken)
{
  gboolean begins;

  g_mutex_lock (&race.lock);
  begins = race.armed && !race.taken && g_ascii_strtoull (taken, NULL, 10) >= race.number;
  race.taken |= begins;
  g_cond_broadcast (&race.cond);
  g_mutex_unlock (&race.lock);
  return begins;
}

/* That thread cannot be stopped there but where it logs what it has. */
static void
log_slowly (GstDebugCategory *category, GstDebugLevel level, const gchar *file,
    const gchar *function, gint line, GObject *object, GstDebugMessage *message, gpointer data)
{
  const gchar *text = gst_debug_message_get (message);

  /* Until the multiqueue knows of the flush. */
  if (g_str_equal (function, "gst_multi_queue_loop") && g_str_has_prefix (text, "newid:")
      && race_begins (text + strlen ("newid:")))
    g_usleep (300000);
}

static GstPadProbeReturn
wait_until_taken (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  gint64 until = g_get_monotonic_time () + 10 * G_TIME_SPAN_SECOND;

  if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) != GST_EVENT_FLUSH_START)
    return GST_PAD_PROBE_OK;
  g_mutex_lock (&race.lock);
  while (!race.taken && g_cond_wait_until (&race.cond, &race.lock, until))
    ;
  g_mutex_unlock (&race.lock);
  return GST_PAD_PROBE_OK;
}

static gboolean
flush_slowly (VlmGraph *graph, GError **error)
{
  gst_pad_add_probe (graph->video, GST_PAD_PROBE_TYPE_EVENT_FLUSH, wait_until_taken, NULL, NULL);
  return TRUE;
}

static gboolean
count_event (GstPad *pad, GstEvent **event, gpointer count)
{
  *(guint *) count +=
      GST_EVENT_TYPE (*event) == GST_EVENT_CAPS || GST_EVENT_TYPE (*event) == GST_EVENT_TAG;
  return TRUE;
}

/* How many caps and tags are known there. */
static guint
count_events (GstPad *pad)
{
  guint count = 0;

  gst_pad_sticky_events_foreach (pad, count_event, &count);
  return count;
}

static gboolean
seek_to_start (VlmGraph *graph, GError **error)
{
  g_autoptr (GstIterator) inside = gst_pad_iterate_internal_links (graph->video);
  GValue sink = G_VALUE_INIT;
  guint count;

  g_assert_cmpint (gst_iterator_next (inside, &sink), ==, GST_ITERATOR_OK);
  count = count_events (g_value_get_object (&sink));
  g_value_unset (&sink);
  g_assert_cmpuint (count, >=, 2);
  g_mutex_lock (&race.lock);
  race.armed = TRUE;
  g_mutex_unlock (&race.lock);
  g_assert_true (gst_pad_send_event (graph->video,
      gst_event_new_seek (1.0, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_KEY_UNIT,
          GST_SEEK_TYPE_SET, 0, GST_SEEK_TYPE_NONE, -1)));
  g_assert_cmpuint (count_events (graph->video), ==, count);
  return TRUE;
}

/* What a stream begins with, its caps above all, survives a flush whoever is faster. */
static void
test_flush_race (void)
{
  gst_debug_remove_log_function (gst_debug_log_default);
  gst_debug_add_log_function (log_slowly, NULL, NULL);
  gst_debug_set_threshold_for_name ("multiqueue", GST_LEVEL_LOG);
  for (race.number = 1; race.number == 1 || (race.number <= 5 && race.taken); race.number++) {
    g_autoptr (GError) error = NULL;

    race.armed = race.taken = FALSE;
    run (flush_slowly, seek_to_start, 30, &error);
    g_assert_no_error (error);
  }
  gst_debug_unset_threshold_for_name ("multiqueue");
  gst_debug_remove_log_function (log_slowly);
  gst_debug_add_log_function (gst_debug_log_default, NULL, NULL);
  if (!race.taken)
    g_test_skip ("this GStreamer does not log what its multiqueue takes");
}

/* How far a copy was when it was last told, and how far it was to go. */
typedef struct
{
  gint64 position, duration;
} Told;

static void
take_progress (gint64 position, gint64 duration, gpointer data)
{
  Told *told = data;

  g_assert_cmpint (position, >=, told->position);
  told->position = position;
  told->duration = duration;
}

static void
test_progress (void)
{
  g_autoptr (GPtrArray) cues = g_ptr_array_new ();
  guint i;

  for (i = 0; i < 2; i++) {
    Told told = { -1, -1 };
    g_autoptr (GError) error = NULL;

    if (i == 0)
      vlm_mux_mkv (uri, cues, output, NULL, take_progress, &told, &error);
    else
      vlm_burn (uri, cues, output, NULL, take_progress, &told, &error);
    g_assert_no_error (error);
    /* The last of 25 frames, in whole ms. */
    g_assert_cmpint (told.position, ==, 960 * GST_MSECOND);
    g_assert_cmpint (told.duration, ==, GST_SECOND);
  }
}

static void
test_refusal (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (run (refuse, NULL, 30, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
  g_clear_error (&error);
  g_assert_false (run (NULL, refuse, 30, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
}

static void
test_missing_muxer (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (vlm_graph_new (uri, "no-such-muxer", output, &error));
  g_assert_error (error, GST_CORE_ERROR, GST_CORE_ERROR_MISSING_PLUGIN);
}

static void
test_cancelled (void)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GPtrArray) cues = g_ptr_array_new ();
  g_autofree gchar *path = g_build_filename (folder, "cancelled.mkv", NULL);
  g_autoptr (GError) error = NULL;

  g_cancellable_cancel (cancellable);
  g_assert_false (vlm_mux_mkv (uri, cues, path, cancellable, NULL, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_false (g_file_test (path, G_FILE_TEST_EXISTS));
}

/* Nothing is left of a cancelled output, nobody waits for ever, and only that it is cancelled is said. */
static void
check_cancelled (gboolean good, const gchar *path, GError **error)
{
  if (good) {
    g_assert_no_error (*error);
  } else {
    g_assert_error (*error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    g_clear_error (error);
  }
  g_assert_cmpint (good, ==, g_remove (path) == 0);
}

static gpointer
cancel_soon (gpointer cancellable)
{
  g_usleep ((gulong) g_test_rand_int_range (0, 60000));
  g_cancellable_cancel (cancellable);
  return NULL;
}

/* urisourcebin complains at times that a pad is gone already, which does not end the test. */
static void
test_cancelled_early (void)
{
  VlmCaption cue = { .end = GST_SECOND, .text = (gchar *) "A text" };
  g_autoptr (GPtrArray) cues = g_ptr_array_new ();
  g_autofree gchar *outputs = g_build_filename (folder, "outputs", NULL);
  g_autofree gchar *path = g_build_filename (outputs, "cancelled.mkv", NULL);
  GLogLevelFlags fatal;

  g_ptr_array_add (cues, &cue);
  g_assert_cmpint (g_mkdir (outputs, 0777), ==, 0);
  fatal = g_log_set_always_fatal (G_LOG_FATAL_MASK);
  for (guint i = 0; i < 60; i++) {
    g_autoptr (GCancellable) cancellable = g_cancellable_new ();
    GThread *thread = g_thread_new ("cancel", cancel_soon, cancellable);
    g_autoptr (GError) error = NULL;

    if (i % 3 == 0)
      check_cancelled (
          vlm_mux_mkv (uri, cues, path, cancellable, NULL, NULL, &error), path, &error);
    else if (i % 3 == 1)
      check_cancelled (vlm_burn (uri, cues, path, cancellable, NULL, NULL, &error), path, &error);
    else
      check_cancelled (vlm_cut_clip (uri, 0, GST_SECOND, path, cancellable, &error), path, &error);
    g_thread_join (thread);
  }
  g_log_set_always_fatal (fatal);
  /* No temporary files either: the folder is empty. */
  g_assert_cmpint (g_rmdir (outputs), ==, 0);
}

/* Takes its time when the run is over already. */
static gboolean
cancel_and_copy (VlmGraph *graph, GstPad *stream, const GstCaps *caps, GError **error)
{
  gboolean good;

  g_cancellable_cancel (graph->user_data);
  g_usleep (500000);
  good = vlm_graph_copy (graph, stream, caps, error);
  g_assert_cmpint (GST_STATE_TARGET (graph->pipeline), ==, GST_STATE_PLAYING);
  return good;
}

/* A stream that is being linked is linked before anything stops; no other one begins to be. */
static void
test_cancelled_while_linking (void)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmGraph) graph = vlm_graph_new (uri, "matroskamux", output, &error);

  g_assert_no_error (error);
  graph->add_stream = cancel_and_copy;
  graph->user_data = cancellable;
  g_assert_false (vlm_graph_run (graph, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_true (vlm_graph_is_stopping (graph));
  g_assert_false (vlm_graph_begin_change (graph));
}

int
main (int argc, char **argv)
{
  int result;

  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);
  folder = g_dir_make_tmp ("vlm-graph-XXXXXX", NULL);
  input = g_build_filename (folder, "in.webm", NULL);
  output = g_build_filename (folder, "out.mkv", NULL);
  uri = g_filename_to_uri (input, NULL, NULL);
  write_input ();
  g_test_add_func ("/caption/graph/standstill", test_standstill);
  g_test_add_func ("/caption/graph/flush-race", test_flush_race);
  g_test_add_func ("/caption/graph/progress", test_progress);
  g_test_add_func ("/caption/graph/refusal", test_refusal);
  g_test_add_func ("/caption/graph/missing-muxer", test_missing_muxer);
  g_test_add_func ("/caption/graph/cancelled", test_cancelled);
  g_test_add_func ("/caption/graph/cancelled-early", test_cancelled_early);
  g_test_add_func ("/caption/graph/cancelled-while-linking", test_cancelled_while_linking);
  result = g_test_run ();
  g_remove (input);
  g_remove (output);
  g_rmdir (folder);
  g_free (uri);
  g_free (output);
  g_free (input);
  g_free (folder);
  return result;
}
