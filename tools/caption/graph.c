/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "graph.h"

#include <gst/pbutils/pbutils.h>

#include "patience.h"

/* How long nothing may move, and how often that is looked at. */
#define PATIENCE 30
#define LOOK_INTERVAL (100 * GST_MSECOND)

#define TELL_INTERVAL (200 * G_TIME_SPAN_MILLISECOND)

/* The Debian package of each element that may be missing. */
static const struct
{
  const gchar *factory, *package;
} packages[] = {
  { "mp4mux", "gstreamer1.0-plugins-good" },
  { "matroskamux", "gstreamer1.0-plugins-good" },
  { "deinterlace", "gstreamer1.0-plugins-good" },
  { "videoflip", "gstreamer1.0-plugins-good" },
  { "textoverlay", "gstreamer1.0-x" },
  { "h264parse", "gstreamer1.0-plugins-bad" },
};

static const gchar *
package_of (const gchar *factory)
{
  for (guint i = 0; i < G_N_ELEMENTS (packages); i++) {
    if (g_str_equal (packages[i].factory, factory))
      return packages[i].package;
  }
  return "gstreamer1.0-plugins-base";
}

GstElement *
vlm_graph_add (VlmGraph *graph, const gchar *factory, GError **error)
{
  GstElement *element = gst_element_factory_make (factory, NULL);

  if (element == NULL) {
    g_set_error (error, GST_CORE_ERROR, GST_CORE_ERROR_MISSING_PLUGIN,
        "the GStreamer element %s is not installed (Debian package %s)", factory,
        package_of (factory));
    return NULL;
  }
  gst_bin_add (GST_BIN (graph->pipeline), element);
  return element;
}

gboolean
vlm_graph_link (VlmGraph *graph, GstPad *from, GstPad *to, GError **error)
{
  GstPadLinkReturn result = gst_pad_link (from, to);

  if (result == GST_PAD_LINK_OK)
    return TRUE;
  g_set_error (error, GST_CORE_ERROR, GST_CORE_ERROR_NEGOTIATION, "cannot link %s to %s: %s",
      GST_PAD_NAME (from), GST_PAD_NAME (to), gst_pad_link_get_name (result));
  return FALSE;
}

gboolean
vlm_graph_link_element (VlmGraph *graph, GstPad *from, GstElement *to, GError **error)
{
  g_autoptr (GstPad) sink = gst_element_get_static_pad (to, "sink");

  return vlm_graph_link (graph, from, sink, error);
}

void
vlm_graph_fail (VlmGraph *graph, GError *error)
{
  g_atomic_int_set (&graph->failed, TRUE);
  gst_element_post_message (
      graph->pipeline, gst_message_new_error (GST_OBJECT (graph->pipeline), error, NULL));
  g_error_free (error);
}

static GstPadProbeReturn
count_passing (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  VlmGraph *graph = user_data;

  g_atomic_int_inc (&graph->passed);
  return GST_PAD_PROBE_OK;
}

void
vlm_graph_watch (VlmGraph *graph, GstPad *pad)
{
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_DATA_DOWNSTREAM, count_passing, graph, NULL);
}

gboolean
vlm_graph_is_stopping (VlmGraph *graph)
{
  return g_atomic_int_get (&graph->stopping) != 0;
}

gboolean
vlm_graph_begin_change (VlmGraph *graph)
{
  g_rec_mutex_lock (&graph->lock);
  if (!vlm_graph_is_stopping (graph))
    return TRUE;
  g_rec_mutex_unlock (&graph->lock);
  return FALSE;
}

void
vlm_graph_end_change (VlmGraph *graph)
{
  g_rec_mutex_unlock (&graph->lock);
}

static void
let_go (VlmGraph *graph)
{
  g_rec_mutex_lock (&graph->lock);
  for (guint i = 0; i < graph->waiting->len; i++) {
    GstPad *stream = g_ptr_array_index (graph->waiting, i);

    gst_pad_remove_probe (
        stream, GPOINTER_TO_SIZE (g_object_get_data (G_OBJECT (stream), "vlm-hold")));
  }
  g_ptr_array_set_size (graph->waiting, 0);
  g_rec_mutex_unlock (&graph->lock);
}

/*
 * Stopping an element waits for its threads. One that is starting another element meanwhile would in
 * turn wait for the lock of that one's state: such changes have to end first, and no more may begin.
 */
static void
stop (VlmGraph *graph)
{
  g_rec_mutex_lock (&graph->lock);
  g_atomic_int_set (&graph->stopping, TRUE);
  g_rec_mutex_unlock (&graph->lock);
  let_go (graph);
  gst_element_set_state (graph->pipeline, GST_STATE_NULL);
}

void
vlm_graph_all_there (VlmGraph *graph)
{
  GError *error = NULL;

  if (!g_atomic_int_compare_and_exchange (&graph->ready, FALSE, TRUE)
      || g_atomic_int_get (&graph->failed))
    return;
  if (graph->video == NULL)
    g_set_error (&error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "there is no video in it");
  else if (graph->prepare != NULL)
    graph->prepare (graph, &error);

  if (error != NULL)
    vlm_graph_fail (graph, error);
  else if (graph->seek == NULL)
    let_go (graph);
}

void
vlm_graph_link_first (GstElement *from, GstPad *pad, gpointer to)
{
  g_autoptr (GstPad) sink = gst_element_get_static_pad (to, "sink");

  if (!gst_pad_is_linked (sink))
    gst_pad_link (pad, sink);
}

static gboolean
build (VlmGraph *graph, const gchar *muxer, const gchar *location, GError **error)
{
  GstElement *source, *typefind, *sink;
  g_autoptr (GstPad) pad = NULL;

  if ((source = vlm_graph_add (graph, "urisourcebin", error)) == NULL
      || (typefind = vlm_graph_add_demuxers (graph, error)) == NULL
      || (graph->muxer = vlm_graph_add (graph, muxer, error)) == NULL
      || (sink = vlm_graph_add (graph, "filesink", error)) == NULL)
    return FALSE;
  g_object_set (source, "uri", graph->uri, NULL);
  g_object_set (sink, "location", location, NULL);
  g_signal_connect (source, "pad-added", G_CALLBACK (vlm_graph_link_first), typefind);
  pad = gst_element_get_static_pad (graph->muxer, "src");
  vlm_graph_watch (graph, pad);
  return gst_element_link (graph->muxer, sink);
}

VlmGraph *
vlm_graph_new (const gchar *uri, const gchar *muxer, const gchar *location, GError **error)
{
  VlmGraph *graph = g_new0 (VlmGraph, 1);

  graph->uri = g_strdup (uri);
  graph->patience = PATIENCE;
  graph->pipeline = gst_pipeline_new (NULL);
  graph->waiting = g_ptr_array_new_with_free_func (gst_object_unref);
  g_rec_mutex_init (&graph->lock);
  if (build (graph, muxer, location, error))
    return graph;
  vlm_graph_free (graph);
  return NULL;
}

void
vlm_graph_free (VlmGraph *graph)
{
  stop (graph);
  gst_clear_object (&graph->video);
  gst_object_unref (graph->pipeline);
  g_ptr_array_unref (graph->waiting);
  g_rec_mutex_clear (&graph->lock);
  g_free (graph->missing);
  g_free (graph->uri);
  g_free (graph);
}

/* What a message means for the run. */
static gboolean
handle_message (VlmGraph *graph, GstMessage *message, gboolean *ended, GError **error)
{
  switch (GST_MESSAGE_TYPE (message)) {
    case GST_MESSAGE_EOS:
      *ended = TRUE;
      return TRUE;
    case GST_MESSAGE_ERROR:
      gst_message_parse_error (message, error, NULL);
      if (graph->missing != NULL)
        g_prefix_error (error, "there is no %s: ", graph->missing);
      return FALSE;
    case GST_MESSAGE_ELEMENT:
      if (graph->missing == NULL && gst_is_missing_plugin_message (message))
        graph->missing = gst_missing_plugin_message_get_description (message);
      return TRUE;
    default:
      return TRUE;
  }
}

/* Seeks as soon as that is possible. */
static gboolean
try_seek (VlmGraph *graph, GError **error)
{
  if (!g_atomic_int_get (&graph->ready) || !g_atomic_int_get (&graph->begun))
    return TRUE;
  if (!graph->seek (graph, error))
    return FALSE;
  g_atomic_int_set (&graph->sought, TRUE);
  let_go (graph);
  return TRUE;
}

/* Once there are frames, so that video is set, and not too often. */
static void
tell_progress (VlmGraph *graph, gboolean ended)
{
  gint64 now = g_get_monotonic_time (), duration = -1;

  if (graph->progress == NULL || g_atomic_int_get (&graph->frames) == 0
      || (!ended && now - graph->told < TELL_INTERVAL))
    return;
  graph->told = now;
  gst_pad_query_duration (graph->video, GST_FORMAT_TIME, &duration);
  graph->progress (
      g_atomic_int_get (&graph->position) * (gint64) GST_MSECOND, duration, graph->progress_data);
}

static gboolean
wait_for_end (VlmGraph *graph, GCancellable *cancellable, GError **error)
{
  g_autoptr (GstBus) bus = gst_element_get_bus (graph->pipeline);
  VlmPatience patience;
  gint passed = 0;
  gboolean ended = FALSE;

  vlm_patience_begin (&patience, (guint) graph->patience, g_get_monotonic_time ());
  while (!ended) {
    g_autoptr (GstMessage) message = gst_bus_timed_pop (bus, LOOK_INTERVAL);
    gint before = passed;

    if (g_cancellable_set_error_if_cancelled (cancellable, error))
      return FALSE;
    if (message != NULL && !handle_message (graph, message, &ended, error))
      return FALSE;
    if (graph->seek != NULL && !graph->sought && !try_seek (graph, error))
      return FALSE;
    tell_progress (graph, ended);
    passed = g_atomic_int_get (&graph->passed);
    if (!vlm_patience_look (&patience, passed != before, g_get_monotonic_time ()) && !ended) {
      g_set_error (
          error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT, "nothing came for %d seconds", graph->patience);
      return FALSE;
    }
  }
  if (g_atomic_int_get (&graph->frames) > 0)
    return TRUE;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "no frame of its video is there");
  return FALSE;
}

gboolean
vlm_graph_run (VlmGraph *graph, GCancellable *cancellable, GError **error)
{
  g_autoptr (GError) fault = NULL;
  gboolean good;

  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  /*
   * An element that refuses posts why. Nothing is added meanwhile: it would be started from here too,
   * and its pad's activation waits for the very thread that adds it and waits for its state.
   */
  g_rec_mutex_lock (&graph->lock);
  gst_element_set_state (graph->pipeline, GST_STATE_PLAYING);
  g_rec_mutex_unlock (&graph->lock);
  good = wait_for_end (graph, cancellable, &fault);
  /* Once it is cancelled, nothing else counts. */
  if (!good && !g_cancellable_set_error_if_cancelled (cancellable, error))
    g_propagate_prefixed_error (error, g_steal_pointer (&fault), "%s: ", graph->uri);
  /* Closes the file. */
  stop (graph);
  return good;
}
