/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The input taken apart into its streams, each with a pad of the multiqueue where it waits. */

#include "graph.h"

/*
 * How far a stream may be ahead of the others. Only bytes: times jump when an input is sought, and a
 * queue that is full by its times is not made larger when another one runs empty.
 */
#define MAX_BYTES (64 << 20)

static void open_pad (VlmGraph *graph, GstPad *pad, const GstCaps *caps);

/* Holds back whatever comes until the probe is removed. */
static GstPadProbeReturn
hold (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  return GST_PAD_PROBE_OK;
}

static void
make_wait (VlmGraph *graph, GstPad *stream)
{
  gulong id = gst_pad_add_probe (stream, GST_PAD_PROBE_TYPE_BLOCK_DOWNSTREAM, hold, NULL, NULL);

  g_object_set_data (G_OBJECT (stream), "vlm-hold", GSIZE_TO_POINTER (id));
  g_rec_mutex_lock (&graph->lock);
  g_ptr_array_add (graph->waiting, gst_object_ref (stream));
  g_rec_mutex_unlock (&graph->lock);
}

/* From there it is sent on, in its order, with the next that comes. */
static gboolean
store_event (GstPad *from, GstEvent **event, gpointer stream)
{
  if (GST_EVENT_TYPE (*event) != GST_EVENT_SEGMENT && GST_EVENT_TYPE (*event) != GST_EVENT_EOS)
    gst_pad_store_sticky_event (stream, *event);
  return TRUE;
}

/*
 * A multiqueue that is flushed keeps what streams begin with, caps above all, for what comes next: all
 * that is in it, but not what its thread has just taken out, and throws away when it sees the flush.
 * That is likely here, where a flush wakes a stream that waits. The sink pad still has it; when
 * a flush ends, that thread stands still.
 */
static GstPadProbeReturn
restore_events (GstPad *stream, GstPadProbeInfo *info, gpointer sink)
{
  if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_FLUSH_STOP)
    gst_pad_sticky_events_foreach (sink, store_event, stream);
  return GST_PAD_PROBE_OK;
}

/* Links from to the multiqueue. Returns the pad behind it (transfer full), NULL with an error. */
static GstPad *
enqueue (VlmGraph *graph, GstPad *from, GError **error)
{
  g_autoptr (GstPad) sink = gst_element_request_pad_simple (graph->queue, "sink_%u");
  g_autoptr (GstIterator) inside = gst_pad_iterate_internal_links (sink);
  GValue value = G_VALUE_INIT;
  GstPad *behind = NULL;

  if (gst_iterator_next (inside, &value) == GST_ITERATOR_OK)
    behind = g_value_dup_object (&value);
  g_value_unset (&value);
  gst_pad_add_probe (behind, GST_PAD_PROBE_TYPE_EVENT_FLUSH, restore_events, gst_object_ref (sink),
      gst_object_unref);
  make_wait (graph, behind);
  /* A flush that loses the very start of the stream would have the rest stored without it first. */
  gst_pad_sticky_events_foreach (from, store_event, behind);
  if (vlm_graph_link (graph, from, sink, error))
    return behind;
  gst_object_unref (behind);
  return NULL;
}

/* With the first frame. */
static GstPadProbeReturn
find_origin (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  VlmGraph *graph = user_data;

  graph->origin = vlm_buffer_stream_time (pad, GST_PAD_PROBE_INFO_BUFFER (info));
  g_atomic_int_set (&graph->begun, TRUE);
  return GST_PAD_PROBE_REMOVE;
}

/* Whether the buffer belongs to what comes after graph->end. */
static gboolean
is_beyond (VlmGraph *graph, GstPad *pad, GstBuffer *buffer)
{
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (pad);
  GstClockTime end = graph->origin + graph->end;

  /* Frames that others were made from come before those, and may be seen after the end: what counts
   * is when a frame is decoded. Where nobody knows that, the next key frame is the first place to stop. */
  if (GST_BUFFER_DTS_IS_VALID (buffer) || caps == NULL || !vlm_caps_are_video (caps))
    return vlm_buffer_decode_time (pad, buffer) >= end;
  return !GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_DELTA_UNIT)
      && vlm_buffer_stream_time (pad, buffer) >= end;
}

/*
 * Demuxers have ways of their own to stop at a time; some break the last frames, some do not stop.
 * What counts is what comes after the seek, and all of that may have come before the seek returns.
 */
static GstPadProbeReturn
end_stream (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  VlmGraph *graph = user_data;
  GstBuffer *buffer;

  if (!(info->type & GST_PAD_PROBE_TYPE_BUFFER)) {
    if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_FLUSH_STOP)
      g_atomic_int_set (&graph->sought, TRUE);
    return GST_PAD_PROBE_OK;
  }
  buffer = GST_PAD_PROBE_INFO_BUFFER (info);
  if (!g_atomic_int_get (&graph->sought)
      || (g_object_get_data (G_OBJECT (pad), "vlm-ended") == NULL
          && !is_beyond (graph, pad, buffer)))
    return GST_PAD_PROBE_OK;
  g_object_set_data (G_OBJECT (pad), "vlm-ended", GINT_TO_POINTER (TRUE));
  gst_buffer_unref (buffer);
  GST_PAD_PROBE_INFO_FLOW_RETURN (info) = GST_FLOW_EOS;
  return GST_PAD_PROBE_HANDLED;
}

static void
add_stream (VlmGraph *graph, GstPad *pad, const GstCaps *caps)
{
  g_autoptr (GstPad) stream = NULL;
  GError *error = NULL;
  gboolean good;

  vlm_graph_watch (graph, pad);
  if (graph->end > 0)
    gst_pad_add_probe (
        pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_FLUSH, end_stream, graph, NULL);
  if (g_atomic_int_get (&graph->ready)) {
    /* A file that begins anew in its middle; the muxer has no place for what follows. */
    good = vlm_graph_discard (graph, pad, &error);
  } else {
    stream = enqueue (graph, pad, &error);
    if (stream != NULL && graph->video == NULL && vlm_caps_are_video (caps)) {
      graph->video = gst_object_ref (stream);
      gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, find_origin, graph, NULL);
    }
    good = stream != NULL && graph->add_stream (graph, stream, caps, &error);
  }
  if (!good)
    vlm_graph_fail (graph, error);
}

static void
on_demuxed (GstElement *demuxer, GstPad *pad, gpointer user_data)
{
  VlmGraph *graph = user_data;
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (pad);

  if (caps == NULL)
    caps = gst_pad_query_caps (pad, NULL);
  if (!vlm_graph_begin_change (graph))
    return;
  open_pad (graph, pad, caps);
  vlm_graph_end_change (graph);
}

static void
on_no_more_pads (GstElement *demuxer, gpointer user_data)
{
  VlmGraph *graph = user_data;

  if (!vlm_graph_begin_change (graph))
    return;
  if (g_atomic_int_dec_and_test (&graph->pending))
    vlm_graph_all_there (graph);
  vlm_graph_end_change (graph);
}

/* A new demuxer for such caps, not yet in the pipeline; NULL: there is none. */
static GstElement *
make_demuxer (const GstCaps *caps)
{
  GList *all =
      gst_element_factory_list_get_elements (GST_ELEMENT_FACTORY_TYPE_DEMUXER, GST_RANK_MARGINAL);
  GList *fitting = gst_element_factory_list_filter (all, caps, GST_PAD_SINK, FALSE);
  GstElement *demuxer = NULL;

  fitting = g_list_sort (fitting, gst_plugin_feature_rank_compare_func);
  for (GList *item = fitting; item != NULL && demuxer == NULL; item = item->next)
    demuxer = gst_element_factory_create (item->data, NULL);
  gst_plugin_feature_list_free (fitting);
  gst_plugin_feature_list_free (all);
  return demuxer;
}

/* What comes out of the pad is a stream, or has to be taken apart. */
static void
open_pad (VlmGraph *graph, GstPad *pad, const GstCaps *caps)
{
  GstElement *demuxer = vlm_graph_can_mux (graph, caps) ? NULL : make_demuxer (caps);
  GError *error = NULL;

  if (demuxer == NULL) {
    add_stream (graph, pad, caps);
    return;
  }
  g_atomic_int_inc (&graph->pending);
  g_signal_connect (demuxer, "pad-added", G_CALLBACK (on_demuxed), graph);
  g_signal_connect (demuxer, "no-more-pads", G_CALLBACK (on_no_more_pads), graph);
  gst_bin_add (GST_BIN (graph->pipeline), demuxer);
  if (!vlm_graph_link_element (graph, pad, demuxer, &error))
    vlm_graph_fail (graph, error);
  else
    gst_element_sync_state_with_parent (demuxer);
}

static void
on_type (GstElement *typefind, guint probability, GstCaps *caps, gpointer user_data)
{
  VlmGraph *graph = user_data;
  g_autoptr (GstPad) pad = gst_element_get_static_pad (typefind, "src");

  if (!vlm_graph_begin_change (graph))
    return;
  open_pad (graph, pad, caps);
  /* An elementary stream is all that there is. */
  if (g_atomic_int_get (&graph->pending) == 0)
    vlm_graph_all_there (graph);
  vlm_graph_end_change (graph);
}

/* A demuxer that does not say when it has found all streams: it has been looking for long enough. */
static void
on_full (GstElement *queue, gpointer user_data)
{
  VlmGraph *graph = user_data;

  if (!vlm_graph_begin_change (graph))
    return;
  vlm_graph_all_there (graph);
  vlm_graph_end_change (graph);
}

GstElement *
vlm_graph_add_demuxers (VlmGraph *graph, GError **error)
{
  GstElement *typefind = vlm_graph_add (graph, "typefind", error);

  if (typefind == NULL || (graph->queue = vlm_graph_add (graph, "multiqueue", error)) == NULL)
    return NULL;
  g_object_set (graph->queue, "max-size-buffers", 0, "max-size-time", (guint64) 0, "max-size-bytes",
      MAX_BYTES, NULL);
  g_signal_connect (typefind, "have-type", G_CALLBACK (on_type), graph);
  g_signal_connect (graph->queue, "overrun", G_CALLBACK (on_full), graph);
  return typefind;
}
