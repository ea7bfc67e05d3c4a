/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "source.h"

#include <string.h>

#include <gst/app/gstappsrc.h>
#include <gst/video/video.h>

#include "../picture.h"
#include "exif.h"

struct _VlmSource
{
  GstBin *pipeline;
  GstElement *element, *next;
  VlmFrames *frames;

  GMutex lock;                  /* of what follows */
  gboolean typed, sound, video; /* streams that were found */
};

/* (transfer full) the sample with caps that are accepted: other formats are made RGB. */
static GstSample *
adapt (GstSample *sample, const GstCaps *accepted, GError **error)
{
  g_autoptr (GstCaps) caps = NULL;
  GstBuffer *buffer;
  GstSample *adapted;
  guint8 *rgb;
  guint width, height;
  GstVideoInfo info;
  gsize row_bytes;
  guint y;

  if (gst_caps_can_intersect (gst_sample_get_caps (sample), accepted))
    return gst_sample_ref (sample);
  rgb = picture_to_rgb (sample, &width, &height, error);
  if (rgb == NULL)
    return NULL;
  gst_video_info_set_format (&info, GST_VIDEO_FORMAT_RGB, width, height);
  caps = gst_video_info_to_caps (&info);
  buffer = gst_buffer_new_allocate (NULL, GST_VIDEO_INFO_SIZE (&info), NULL);
  row_bytes = (gsize) width * 3;
  for (y = 0; y < height; y++)
    gst_buffer_fill (
        buffer, (gsize) y * GST_VIDEO_INFO_PLANE_STRIDE (&info, 0), rgb + y * row_bytes, row_bytes);
  adapted = gst_sample_new (buffer, caps, NULL, NULL);
  gst_buffer_unref (buffer);
  g_free (rgb);
  return adapted;
}

/* (floating) an appsrc that gives the picture and ends. */
static GstElement *
make_still_source (const VlmInput *input, const GstCaps *accepted, GError **error)
{
  g_autoptr (GstSample) decoded = picture_decode (input->path, error);
  g_autoptr (GstSample) sample = decoded != NULL ? adapt (decoded, accepted, error) : NULL;
  GstTagList *tags;
  GstElement *source;
  GstBuffer *buffer;

  if (sample == NULL)
    return NULL;
  source = gst_element_factory_make ("appsrc", NULL);
  if (source == NULL) {
    g_set_error_literal (error, GST_CORE_ERROR, GST_CORE_ERROR_MISSING_PLUGIN,
        "the GStreamer element appsrc is not installed");
    return NULL;
  }
  g_object_set (source, "format", GST_FORMAT_TIME, "caps", gst_sample_get_caps (sample), NULL);
  tags = vlm_exif_read (input->path);
  if (tags != NULL)
    gst_element_send_event (source, gst_event_new_tag (tags));

  buffer = gst_buffer_copy (gst_sample_get_buffer (sample));
  GST_BUFFER_PTS (buffer) = 0;
  GST_BUFFER_DTS (buffer) = GST_CLOCK_TIME_NONE;
  GST_BUFFER_DURATION (buffer) = GST_SECOND;
  gst_app_src_push_buffer (GST_APP_SRC (source), buffer);
  gst_app_src_end_of_stream (GST_APP_SRC (source));
  return source;
}

/* The first stream is the one that is captioned; it has no caps yet if nothing could be decoded. */
static void
link_pad (GstElement *source, GstPad *pad, VlmSource *self)
{
  g_autoptr (GstPad) sink = gst_element_get_static_pad (self->next, "sink");

  if (!gst_pad_is_linked (sink))
    gst_pad_link (pad, sink);
}

/* Notes what kinds of streams there are. The first caps are those of the file. */
static gboolean
note_stream (GstElement *source, GstPad *pad, GstCaps *caps, VlmSource *self)
{
  const gchar *name = gst_structure_get_name (gst_caps_get_structure (caps, 0));

  g_mutex_lock (&self->lock);
  if (g_str_has_prefix (name, "audio/"))
    self->sound = TRUE;
  else if (self->typed && (g_str_has_prefix (name, "video/") || g_str_has_prefix (name, "image/")))
    self->video = TRUE;
  self->typed = TRUE;
  g_mutex_unlock (&self->lock);
  return TRUE;
}

/* A stream's first buffer. */
static GstPadProbeReturn
note_first_buffer (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  VlmSource *self = data;
  GstClockTime pts = GST_BUFFER_PTS (GST_PAD_PROBE_INFO_BUFFER (info));
  g_autoptr (GstEvent) event = gst_pad_get_sticky_event (pad, GST_EVENT_SEGMENT, 0);
  const GstSegment *segment = NULL;
  guint64 time = GST_CLOCK_TIME_NONE;

  if (event != NULL)
    gst_event_parse_segment (event, &segment);
  if (segment != NULL && segment->format == GST_FORMAT_TIME && GST_CLOCK_TIME_IS_VALID (pts))
    time = gst_segment_to_stream_time (segment, GST_FORMAT_TIME, pts);
  if (time <= G_MAXINT64)
    vlm_frames_note_sound (self->frames, (gint64) time);
  return GST_PAD_PROBE_REMOVE;
}

static void
watch_pad (GstElement *demuxer, GstPad *pad, VlmSource *self)
{
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (pad);

  if (caps != NULL
      && g_str_has_prefix (gst_structure_get_name (gst_caps_get_structure (caps, 0)), "audio/"))
    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, note_first_buffer, self, NULL);
}

/*
 * Sound may start before the pictures. In a transport stream it may come after them all the same, so
 * that it would be a matter of chance which is seen first; there pictures alone count.
 */
static void
watch_demuxer (GstBin *source, GstBin *parent, GstElement *element, VlmSource *self)
{
  GstElementFactory *factory = gst_element_get_factory (element);

  if (factory != NULL && strstr (GST_OBJECT_NAME (factory), "demux") != NULL
      && strcmp (GST_OBJECT_NAME (factory), "tsdemux") != 0
      && strcmp (GST_OBJECT_NAME (factory), "mpegpsdemux") != 0)
    g_signal_connect (element, "pad-added", G_CALLBACK (watch_pad), self);
}

/* (floating) */
static GstElement *
make_video_source (VlmSource *self, const VlmInput *input, GError **error)
{
  GstElement *source = gst_element_factory_make ("uridecodebin", NULL);
  g_autoptr (GstCaps) caps = gst_caps_from_string ("video/x-raw(ANY)");

  if (source == NULL) {
    g_set_error_literal (error, GST_CORE_ERROR, GST_CORE_ERROR_MISSING_PLUGIN,
        "the GStreamer element uridecodebin is not installed");
    return NULL;
  }
  /* Sound is not decoded. */
  g_object_set (source, "uri", input->uri, "caps", caps, "expose-all-streams", FALSE, NULL);
  g_signal_connect (source, "pad-added", G_CALLBACK (link_pad), self);
  g_signal_connect (source, "autoplug-continue", G_CALLBACK (note_stream), self);
  g_signal_connect (source, "deep-element-added", G_CALLBACK (watch_demuxer), self);
  return source;
}

VlmSource *
vlm_source_new (const VlmInput *input, GstBin *pipeline, GstElement *next, const GstCaps *accepted,
    VlmFrames *frames, GError **error)
{
  VlmSource *self = g_new0 (VlmSource, 1);

  g_mutex_init (&self->lock);
  self->pipeline = pipeline;
  self->next = next;
  self->frames = frames;
  self->element = input->still ? make_still_source (input, accepted, error)
                               : make_video_source (self, input, error);
  if (self->element == NULL) {
    vlm_source_free (self);
    return NULL;
  }
  gst_bin_add (pipeline, self->element);
  if (input->still)
    gst_element_link (self->element, next);
  return self;
}

void
vlm_source_free (VlmSource *source)
{
  if (source->element != NULL) {
    gst_element_set_state (source->element, GST_STATE_NULL);
    gst_bin_remove (source->pipeline, source->element);
  }
  g_mutex_clear (&source->lock);
  g_free (source);
}

gboolean
vlm_source_is_sound_only (VlmSource *source)
{
  gboolean sound_only;

  g_mutex_lock (&source->lock);
  sound_only = source->sound && !source->video;
  g_mutex_unlock (&source->lock);
  return sound_only;
}
