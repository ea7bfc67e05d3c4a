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

/* Runs a copy with these functions. */
static gboolean
run (VlmGraphFunc prepare, VlmGraphFunc seek, GError **error)
{
  g_autoptr (VlmGraph) graph = vlm_graph_new (uri, "matroskamux", output, error);

  g_assert_nonnull (graph);
  graph->add_stream = vlm_graph_copy;
  graph->prepare = prepare;
  graph->seek = seek;
  graph->patience = 1;
  return vlm_graph_run (graph, NULL, error);
}

static void
test_standstill (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (run (NULL, NULL, &error));
  g_assert_no_error (error);
  g_assert_false (run (stop_video, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
  g_assert_nonnull (strstr (error->message, uri));
}

static void
test_refusal (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (run (refuse, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_BUSY);
  g_clear_error (&error);
  g_assert_false (run (NULL, refuse, &error));
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
  g_assert_false (vlm_mux_mkv (uri, cues, path, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_false (g_file_test (path, G_FILE_TEST_EXISTS));
}

/*
 * Nothing is left of a cancelled output, and nobody waits for ever. Which error there is does not
 * matter: another one may come before the cancellation does.
 */
static void
check_cancelled (gboolean good, const gchar *path, GError **error)
{
  if (!good) {
    g_assert_nonnull (*error);
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

/*
 * Elements that are stopped while they are still being linked complain at times: urisourcebin that a
 * pad is gone already, multiqueue that data come before a stream-start. That does not end the test.
 */
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
      check_cancelled (vlm_mux_mkv (uri, cues, path, cancellable, &error), path, &error);
    else if (i % 3 == 1)
      check_cancelled (vlm_burn (uri, cues, path, cancellable, &error), path, &error);
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
