/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* From a frame of video to a job for the worker: whether, which part, how it is to be seen. */

#include "config.h"

#include "utctime.h"
#include "vlmcaption-private.h"

/* What is to be described of a frame: the part that its source wants seen, and the region in it. */
static gboolean
find_part (GstVlmCaption *self, GstBuffer *buffer, GstVideoRectangle *part)
{
  GstVideoRectangle all = { 0, 0, GST_VIDEO_INFO_WIDTH (&self->info),
    GST_VIDEO_INFO_HEIGHT (&self->info) };
  GstVideoCropMeta *crop = gst_buffer_get_video_crop_meta (buffer);
  gboolean found;

  if (crop != NULL && crop->x < (guint) all.w && crop->y < (guint) all.h && crop->width > 0
      && crop->height > 0) {
    all.w = MIN (crop->width, all.w - crop->x);
    all.h = MIN (crop->height, all.h - crop->y);
    all.x = crop->x;
    all.y = crop->y;
  }
  GST_OBJECT_LOCK (self);
  found = gst_vlm_region_resolve (&self->settings->region, &all, part);
  GST_OBJECT_UNLOCK (self);

  return found;
}

/* Whether the picture has changed since the frame that was described last. */
static gboolean
is_new (GstVlmCaption *self, GstBuffer *buffer, const GstVideoRectangle *part)
{
  GstVlmScene scene = { 0 };
  gdouble threshold;
  gboolean forced;

  GST_OBJECT_LOCK (self);
  threshold = self->settings->scene_threshold;
  GST_OBJECT_UNLOCK (self);
  if (threshold <= 0)
    return TRUE;

  g_mutex_lock (&self->lock);
  forced = self->new_scene;
  self->new_scene = FALSE;
  g_mutex_unlock (&self->lock);

  gst_vlm_scene_look (&scene, buffer, &self->info, part);
  if (!forced && gst_vlm_scene_distance (&self->scene, &scene) < threshold)
    return FALSE;
  self->scene = scene;
  return TRUE;
}

/* Whether the worker can be expected to take a frame that is due now. */
static gboolean
is_affordable (GstVlmCaption *self)
{
  GstClockTime interval;

  if (gst_vlm_caption_get_mode (self) == GST_VLM_MODE_SYNC)
    return TRUE;

  GST_OBJECT_LOCK (self);
  interval = self->settings->interval;
  GST_OBJECT_UNLOCK (self);
  return gst_vlm_worker_wants (self->worker, interval);
}

/* The id of a frame that was asked for, else 0. */
static guint64
take_asked (GstVlmCaption *self)
{
  guint64 id;

  g_mutex_lock (&self->lock);
  id = self->asked_id;
  self->asked_id = 0;
  g_mutex_unlock (&self->lock);

  return id;
}

/* The frame is to be described; asked is its id if somebody asked for it, else 0. */
static GstVlmJob *
make_job (GstVlmCaption *self, GstVlmFrame *frame, const GstVlmTimes *times, guint64 asked)
{
  GstVlmJob *job = g_new0 (GstVlmJob, 1);

  job->serial = self->serial;
  job->times = *times;
  job->frame = frame;
  job->urgent = asked != 0;
  GST_OBJECT_LOCK (self);
  job->settings = gst_vlm_settings_copy (self->settings);
  GST_OBJECT_UNLOCK (self);
  g_mutex_lock (&self->lock);
  job->id = asked != 0 ? asked : ++self->last_id;
  g_mutex_unlock (&self->lock);

  return job;
}

/* Copies a selected frame for the worker; FALSE if a flush ended the wait for its caption. */
static gboolean
describe (GstVlmCaption *self, GstBuffer *buffer, const GstVlmTimes *times, guint64 asked)
{
  gint64 selected_at = g_get_monotonic_time ();
  GstVideoRectangle part;
  GstVlmFrame *frame;
  GstVlmJob *job;

  if (!gst_vlm_worker_is_useful (self->worker))
    return TRUE;
  if (!find_part (self, buffer, &part))
    goto no_part;
  if (asked == 0 && !is_affordable (self))
    return TRUE;
  if (!is_new (self, buffer, &part) && asked == 0)
    goto unchanged;

  frame = gst_vlm_frame_new_pooled (buffer, &self->info, &self->pool);
  if (frame == NULL)
    goto no_frame;
  gst_vlm_frame_set_view (frame, &part, self->orientation);

  job = make_job (self, frame, times, asked);
  job->selected_at = selected_at;
  job->times.utc_time = gst_vlm_utc_time_find (
      GST_ELEMENT (self), buffer, self->live ? times->running_time : GST_CLOCK_TIME_NONE);
  if (gst_vlm_caption_get_mode (self) == GST_VLM_MODE_SYNC)
    return gst_vlm_worker_finish (self->worker, job);
  /* A picture that was given up is not the one described last. */
  if (!gst_vlm_worker_submit (self->worker, job))
    self->scene.known = FALSE;
  return TRUE;

unchanged:
  g_mutex_lock (&self->lock);
  self->unchanged++;
  g_mutex_unlock (&self->lock);
  return TRUE;

no_part:
  GST_ELEMENT_WARNING (self, STREAM, FAILED, ("A frame could not be described."),
      ("the region of interest lies outside of a frame of %dx%d",
          GST_VIDEO_INFO_WIDTH (&self->info), GST_VIDEO_INFO_HEIGHT (&self->info)));
  return TRUE;

no_frame:
  GST_ELEMENT_WARNING (self, STREAM, FAILED, ("A frame could not be described."),
      ("%" GST_PTR_FORMAT " does not hold a %s frame of %dx%d", buffer,
          GST_VIDEO_INFO_NAME (&self->info), GST_VIDEO_INFO_WIDTH (&self->info),
          GST_VIDEO_INFO_HEIGHT (&self->info)));
  return TRUE;
}

gboolean
gst_vlm_caption_look_at (GstVlmCaption *self, GstBuffer *buffer, const GstVlmTimes *times)
{
  GstClockTime interval;
  guint64 asked;
  gboolean due;

  /* Frames that playback cuts away, before the point that was sought, are not described. */
  if (GST_CLOCK_TIME_IS_VALID (times->pts) && self->segment.format == GST_FORMAT_TIME
      && !GST_CLOCK_TIME_IS_VALID (times->running_time))
    return TRUE;

  GST_OBJECT_LOCK (self);
  interval = self->settings->interval;
  GST_OBJECT_UNLOCK (self);
  due = gst_vlm_selector_select (&self->selector, times->pts, times->duration,
      g_get_monotonic_time () * GST_USECOND, interval);
  asked = take_asked (self);

  return (!due && asked == 0) || describe (self, buffer, times, asked);
}
