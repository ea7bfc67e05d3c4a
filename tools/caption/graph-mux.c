/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which pad of the muxer a stream goes to, and what has to be done to it before. */

#include "graph.h"

#include <gst/pbutils/pbutils.h>

gboolean
vlm_caps_are_video (const GstCaps *caps)
{
  const gchar *name = gst_caps_is_empty (caps) || gst_caps_is_any (caps)
      ? ""
      : gst_structure_get_name (gst_caps_get_structure (caps, 0));

  return g_str_has_prefix (name, "video/") || g_str_has_prefix (name, "image/");
}

gboolean
vlm_caps_are_audio (const GstCaps *caps)
{
  return !gst_caps_is_empty (caps) && !gst_caps_is_any (caps)
      && g_str_has_prefix (gst_structure_get_name (gst_caps_get_structure (caps, 0)), "audio/");
}

/* A request pad template of the muxer that takes all, or some, of the caps; NULL: none. */
static GstPadTemplate *
find_template (VlmGraph *graph, const GstCaps *caps, gboolean all)
{
  GList *item = gst_element_get_pad_template_list (graph->muxer);

  for (; item != NULL; item = item->next) {
    GstPadTemplate *template = item->data;
    GstCaps *taken = GST_PAD_TEMPLATE_CAPS (template);

    if (GST_PAD_TEMPLATE_DIRECTION (template) == GST_PAD_SINK
        && GST_PAD_TEMPLATE_PRESENCE (template) == GST_PAD_REQUEST
        && (all ? gst_caps_is_subset (caps, taken) : gst_caps_can_intersect (caps, taken)))
      return template;
  }
  return NULL;
}

/*
 * Whether the stream may need a parser although its caps look good. AVI and MPEG-TS cut audio wherever
 * they like, and the headers of FLAC come in as many forms as there are demuxers.
 */
static gboolean
is_doubtful (const GstCaps *caps)
{
  const GstStructure *structure = gst_caps_get_structure (caps, 0);
  gboolean whole = FALSE;

  if (gst_structure_has_name (structure, "audio/x-flac"))
    return TRUE;
  return (gst_structure_has_name (structure, "audio/mpeg")
             || gst_structure_has_name (structure, "audio/x-ac3")
             || gst_structure_has_name (structure, "audio/x-eac3")
             || gst_structure_has_name (structure, "audio/x-dts"))
      && !(gst_structure_get_boolean (structure, "framed", &whole) && whole)
      && !(gst_structure_get_boolean (structure, "parsed", &whole) && whole);
}

/* What such a stream can become without touching its content: the caps that a parser puts out. */
static GstCaps *
parsed_caps (GstElementFactory *parser, const GstCaps *caps)
{
  GstCaps *result = gst_caps_new_empty ();
  const GList *item = gst_element_factory_get_static_pad_templates (parser);
  const gchar *name = gst_structure_get_name (gst_caps_get_structure (caps, 0));

  for (; item != NULL; item = item->next) {
    GstStaticPadTemplate *template = item->data;
    g_autoptr (GstCaps) all = NULL;

    if (template->direction != GST_PAD_SRC)
      continue;
    all = gst_static_pad_template_get_caps (template);
    for (guint i = 0; i < gst_caps_get_size (all); i++) {
      if (gst_structure_has_name (gst_caps_get_structure (all, i), name))
        gst_caps_append (result, gst_caps_copy_nth (all, i));
    }
  }
  return result;
}

/* A parser that brings the stream into a packing that the muxer takes; NULL: none. (transfer full) */
static GstElementFactory *
find_parser (VlmGraph *graph, const GstCaps *caps, GstPadTemplate **template)
{
  GList *all =
      gst_element_factory_list_get_elements (GST_ELEMENT_FACTORY_TYPE_PARSER, GST_RANK_MARGINAL);
  GList *fitting = gst_element_factory_list_filter (all, caps, GST_PAD_SINK, FALSE);
  GstElementFactory *found = NULL;

  for (GList *item = fitting; item != NULL && found == NULL; item = item->next) {
    g_autoptr (GstCaps) parsed = parsed_caps (item->data, caps);

    *template = find_template (graph, parsed, FALSE);
    if (*template != NULL)
      found = gst_object_ref (item->data);
  }
  gst_plugin_feature_list_free (fitting);
  gst_plugin_feature_list_free (all);
  return found;
}

/* The way of a stream to the muxer: a template of its pads, NULL if there is no way, and a parser. */
static GstPadTemplate *
find_way (VlmGraph *graph, const GstCaps *caps, GstElementFactory **parser)
{
  GstPadTemplate *template, *parsed = NULL;

  *parser = NULL;
  if (gst_caps_is_empty (caps) || gst_caps_is_any (caps))
    return NULL;
  template = find_template (graph, caps, TRUE);
  if (template == NULL || is_doubtful (caps))
    *parser = find_parser (graph, caps, &parsed);
  return *parser != NULL ? parsed : template;
}

gboolean
vlm_graph_can_mux (VlmGraph *graph, const GstCaps *caps)
{
  g_autoptr (GstElementFactory) parser = NULL;

  return find_way (graph, caps, &parser) != NULL;
}

/* Links from to a new element of the factory; returns that one's source pad (transfer full). */
static GstPad *
link_parser (VlmGraph *graph, GstPad *from, GstElementFactory *factory, GError **error)
{
  GstElement *parser = vlm_graph_add (graph, GST_OBJECT_NAME (factory), error);

  if (parser == NULL || !vlm_graph_link_element (graph, from, parser, error))
    return NULL;
  gst_element_sync_state_with_parent (parser);
  return gst_element_get_static_pad (parser, "src");
}

/* Frames that others are made from come before those, but nothing goes back. */
static void
note_position (VlmGraph *graph, gint64 time)
{
  gint64 position = CLAMP ((time - graph->origin) / GST_MSECOND, 0, G_MAXINT);

  if (position > g_atomic_int_get (&graph->position))
    g_atomic_int_set (&graph->position, (gint) position);
}

/* AVI, for one, has no times for codecs that reorder frames. */
static GstPadProbeReturn
look_at_frame (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  VlmGraph *graph = user_data;
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);

  if (GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_HEADER) || GST_BUFFER_PTS_IS_VALID (buffer)) {
    note_position (graph, (gint64) vlm_buffer_stream_time (pad, buffer));
    g_atomic_int_inc (&graph->frames);
    return GST_PAD_PROBE_OK;
  }
  vlm_graph_fail (graph,
      g_error_new (G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
          "its video has frames without a time, and cannot be put into such a file as it is"));
  return GST_PAD_PROBE_REMOVE;
}

void
vlm_graph_count_frames (VlmGraph *graph, GstPad *sink)
{
  gst_pad_add_probe (sink, GST_PAD_PROBE_TYPE_BUFFER, look_at_frame, graph, NULL);
}

gboolean
vlm_graph_mux (VlmGraph *graph, GstPad *from, const GstCaps *caps, GError **error)
{
  g_autoptr (GstElementFactory) parser = NULL;
  GstPadTemplate *template = find_way (graph, caps, &parser);
  g_autoptr (GstPad) source = NULL;
  g_autoptr (GstPad) sink = NULL;

  if (template == NULL) {
    g_autofree gchar *codec = gst_pb_utils_get_codec_description (caps);

    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
        "its %s (%s) cannot be put into such a file as it is", codec,
        gst_structure_get_name (gst_caps_get_structure (caps, 0)));
    return FALSE;
  }
  source = parser != NULL ? link_parser (graph, from, parser, error) : gst_object_ref (from);
  if (source == NULL)
    return FALSE;
  sink = gst_element_request_pad (graph->muxer, template, NULL, NULL);
  if (vlm_caps_are_video (caps))
    vlm_graph_count_frames (graph, sink);
  return vlm_graph_link (graph, source, sink, error);
}

gboolean
vlm_graph_discard (VlmGraph *graph, GstPad *from, GError **error)
{
  GstElement *sink = vlm_graph_add (graph, "fakesink", error);

  if (sink == NULL)
    return FALSE;
  g_object_set (sink, "sync", FALSE, "async", FALSE, NULL);
  gst_element_sync_state_with_parent (sink);
  return vlm_graph_link_element (graph, from, sink, error);
}

gboolean
vlm_graph_copy (VlmGraph *graph, GstPad *stream, const GstCaps *caps, GError **error)
{
  if (vlm_caps_are_video (caps) || vlm_caps_are_audio (caps) || vlm_graph_can_mux (graph, caps))
    return vlm_graph_mux (graph, stream, caps, error);
  return vlm_graph_discard (graph, stream, error);
}

/* A time at the pad, translated by one of GstSegment's functions; the segment's end is no limit. */
static GstClockTime
translate_time (GstPad *pad, GstClockTime time,
    guint64 (*translate) (const GstSegment *segment, GstFormat format, guint64 position))
{
  g_autoptr (GstEvent) event = gst_pad_get_sticky_event (pad, GST_EVENT_SEGMENT, 0);
  GstSegment segment;

  if (event == NULL)
    return 0;
  gst_event_copy_segment (event, &segment);
  /* A bare stream without a container has bytes. */
  if (segment.format != GST_FORMAT_TIME)
    return 0;
  segment.stop = GST_CLOCK_TIME_NONE;
  time = translate (&segment, GST_FORMAT_TIME, time);
  return GST_CLOCK_TIME_IS_VALID (time) ? time : 0;
}

static GstClockTime
pts_or_dts (GstBuffer *buffer)
{
  return GST_BUFFER_PTS_IS_VALID (buffer) ? GST_BUFFER_PTS (buffer) : GST_BUFFER_DTS (buffer);
}

GstClockTime
vlm_buffer_running_time (GstPad *pad, GstBuffer *buffer)
{
  return translate_time (pad, pts_or_dts (buffer), gst_segment_to_running_time);
}

GstClockTime
vlm_buffer_stream_time (GstPad *pad, GstBuffer *buffer)
{
  return translate_time (pad, pts_or_dts (buffer), gst_segment_to_stream_time);
}

GstClockTime
vlm_buffer_decode_time (GstPad *pad, GstBuffer *buffer)
{
  return translate_time (pad, GST_BUFFER_DTS_OR_PTS (buffer), gst_segment_to_stream_time);
}
