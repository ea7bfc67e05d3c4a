/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cue-source.h"

#include <gst/app/gstappsrc.h>
#include <string.h>

/* How long the video waits for the first text, far longer than that takes, and how often it looks up. */
#define WAIT (10 * G_TIME_SPAN_SECOND)
#define LOOK_INTERVAL (50 * G_TIME_SPAN_MILLISECOND)

/* Shared by the probes that use it. */
typedef struct
{
  VlmGraph *graph;
  GstAppSrc *source;
  const GPtrArray *cues;
  VlmCueText text;
  GMutex lock;
  GCond cond;
  gboolean arrived; /* with the lock: text, or the end of it, is where it is to go */
} Feed;

static void
feed_clear (gpointer data)
{
  Feed *feed = data;

  gst_object_unref (feed->source);
  g_mutex_clear (&feed->lock);
  g_cond_clear (&feed->cond);
}

static void
feed_unref (gpointer feed)
{
  g_atomic_rc_box_release_full (feed, feed_clear);
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

static GstPadProbeReturn
see_text (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Feed *feed = user_data;

  if (!(info->type & GST_PAD_PROBE_TYPE_BUFFER)
      && GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) != GST_EVENT_EOS)
    return GST_PAD_PROBE_OK;
  g_mutex_lock (&feed->lock);
  feed->arrived = TRUE;
  g_cond_signal (&feed->cond);
  g_mutex_unlock (&feed->lock);
  return GST_PAD_PROBE_REMOVE;
}

/* A muxer does not wait for subtitles to begin with, and would leave out what it knows too late. */
static void
wait_for_text (Feed *feed)
{
  gint64 until = g_get_monotonic_time () + WAIT;

  g_mutex_lock (&feed->lock);
  while (!feed->arrived && g_get_monotonic_time () < until && !vlm_graph_is_stopping (feed->graph))
    g_cond_wait_until (&feed->cond, &feed->lock, g_get_monotonic_time () + LOOK_INTERVAL);
  g_mutex_unlock (&feed->lock);
}

/* With the first frame, which goes on when the text has arrived. */
static GstPadProbeReturn
push_all (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Feed *feed = user_data;
  gint64 origin = vlm_buffer_running_time (pad, GST_PAD_PROBE_INFO_BUFFER (info));

  name_track (GST_ELEMENT (feed->source));
  for (guint i = 0; i < feed->cues->len; i++)
    push_cue (feed, g_ptr_array_index (feed->cues, i), origin);
  gst_app_src_end_of_stream (feed->source);
  wait_for_text (feed);
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
  feed = g_atomic_rc_box_new0 (Feed);
  feed->graph = graph;
  feed->source = gst_object_ref (GST_APP_SRC (source));
  feed->cues = cues;
  feed->text = text;
  g_mutex_init (&feed->lock);
  g_cond_init (&feed->cond);
  gst_pad_add_probe (to, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, see_text,
      g_atomic_rc_box_acquire (feed), feed_unref);
  gst_pad_add_probe (graph->video, GST_PAD_PROBE_TYPE_BUFFER, push_all, feed, feed_unref);
  return TRUE;
}
