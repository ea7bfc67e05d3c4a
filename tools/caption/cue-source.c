/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cue-source.h"

#include <gst/app/gstappsrc.h>
#include <string.h>

typedef struct
{
  GstAppSrc *source;
  const GPtrArray *cues;
  VlmCueText text;
} Feed;

static void
feed_free (gpointer data)
{
  Feed *feed = data;

  gst_object_unref (feed->source);
  g_free (feed);
}

/* To whole milliseconds: Matroska has no others, and would cut a time and a length off each by itself. */
static GstClockTime
round_time (gint64 time)
{
  return (time + GST_MSECOND / 2) / GST_MSECOND * GST_MSECOND;
}

/* origin is the running time of a cue at 0. */
static void
push_cue (Feed *feed, const VlmCaption *cue, gint64 origin)
{
  GstClockTime start = round_time (origin + MAX (0, cue->pts));
  GstClockTime end = MAX (start + GST_MSECOND, round_time (origin + MAX (0, cue->end)));
  gchar *text = feed->text (cue->text);
  GstBuffer *buffer;

  if (*text == '\0') {
    g_free (text);
    return;
  }
  buffer = gst_buffer_new_wrapped (text, strlen (text));
  GST_BUFFER_PTS (buffer) = start;
  GST_BUFFER_DURATION (buffer) = end - start;
  gst_app_src_push_buffer (feed->source, buffer);
}

static void
name_track (GstElement *source)
{
  /* Without a word on the language Matroska takes it for English. */
  GstTagList *tags =
      gst_tag_list_new (GST_TAG_TITLE, "Captions", GST_TAG_LANGUAGE_CODE, "und", NULL);

  gst_element_send_event (source, gst_event_new_tag (tags));
}

/* With the first frame. */
static GstPadProbeReturn
push_all (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Feed *feed = user_data;
  gint64 origin = vlm_buffer_running_time (pad, GST_PAD_PROBE_INFO_BUFFER (info));

  name_track (GST_ELEMENT (feed->source));
  for (guint i = 0; i < feed->cues->len; i++)
    push_cue (feed, g_ptr_array_index (feed->cues, i), origin);
  gst_app_src_end_of_stream (feed->source);
  return GST_PAD_PROBE_REMOVE;
}

gboolean
vlm_cue_source_add (
    VlmGraph *graph, const GPtrArray *cues, VlmCueText text, GstPad *to, GError **error)
{
  GstElement *source = vlm_graph_add (graph, "appsrc", error);
  g_autoptr (GstCaps) caps =
      gst_caps_new_simple ("text/x-raw", "format", G_TYPE_STRING, "utf8", NULL);
  g_autoptr (GstPad) pad = NULL;
  Feed *feed;

  if (source == NULL)
    return FALSE;
  g_object_set (source, "caps", caps, "format", GST_FORMAT_TIME, "max-bytes", (guint64) 0,
      "emit-signals", FALSE, NULL);
  pad = gst_element_get_static_pad (source, "src");
  if (!vlm_graph_link (graph, pad, to, error))
    return FALSE;
  gst_element_sync_state_with_parent (source);
  feed = g_new (Feed, 1);
  *feed = (Feed){ gst_object_ref (GST_APP_SRC (source)), cues, text };
  gst_pad_add_probe (graph->video, GST_PAD_PROBE_TYPE_BUFFER, push_all, feed, feed_free);
  return TRUE;
}
