/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "captionmeta.h"
#include "clocktime.h"
#include "mode.h"
#include "vlmcaption-private.h"

#define GST_CAT_DEFAULT gst_vlm_caption_debug

/* ---- The text pad ------------------------------------------------------------------------- */

/* A text pad that is added from now on begins with what event says. Called with the lock. */
static void
remember (GstVlmCaption *self, GstEvent *event)
{
  switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_STREAM_START:
      gst_event_replace (&self->stream_start, event);
      self->ended = FALSE;
      break;
    case GST_EVENT_SEGMENT:
      gst_event_replace (
          &self->time_segment, self->segment.format == GST_FORMAT_TIME ? event : NULL);
      self->ended = FALSE;
      break;
    case GST_EVENT_EOS:
      self->ended = TRUE;
      break;
    default:
      break;
  }
}

/*
 * The text pad, which is to be told of event or, where that is NULL, of a frame. In one step with that
 * the event is remembered: a pad that is added before is told here, one that is added after begins with
 * it, and none misses it or has an older one on top of it. NULL also in a flush and while the element
 * stops, when what the streaming thread still has in its hands is void. (transfer full)
 */
static GstVlmTextPad *
get_listener (GstVlmCaption *self, GstEvent *event)
{
  GstVlmTextPad *text = NULL;

  g_mutex_lock (&self->lock);
  if (self->running && self->first_wanted != G_MAXUINT) {
    if (event != NULL)
      remember (self, event);
    text = self->text != NULL ? gst_object_ref (self->text) : NULL;
  }
  g_mutex_unlock (&self->lock);

  return text;
}

/* ---- Video -------------------------------------------------------------------------------- */

/* Of a frame or gap with a PTS: the part that lies in the segment; FALSE if there is none. */
static gboolean
cut_to_segment (GstVlmCaption *self, const GstVlmTimes *times, GstVlmTextFrame *part)
{
  GstClockTime duration = GST_CLOCK_TIME_IS_VALID (times->duration) ? times->duration : 0;
  /* An overlay waits for text beyond the start of a frame, however short the frame is. */
  GstClockTime end = gst_vlm_clock_time_add (times->pts, MAX (duration, 1));

  if (self->segment.format != GST_FORMAT_TIME
      || !gst_segment_clip (
          &self->segment, GST_FORMAT_TIME, times->pts, end, &part->start, &part->end))
    return FALSE;

  part->cut_start = part->start != times->pts;
  part->cut_end = part->end != end;
  part->end = MAX (part->end, gst_vlm_clock_time_add (part->start, 1));
  return TRUE;
}

/* Fills in stream time and running time: those at which the frame begins to be seen. */
static void
map_to_segment (GstVlmCaption *self, GstVlmTimes *times)
{
  GstVlmTextFrame part;

  times->stream_time = GST_CLOCK_TIME_NONE;
  times->running_time = GST_CLOCK_TIME_NONE;
  if (!GST_CLOCK_TIME_IS_VALID (times->pts) || !cut_to_segment (self, times, &part))
    return;

  times->stream_time = gst_segment_to_stream_time (&self->segment, GST_FORMAT_TIME, part.start);
  times->running_time = gst_segment_to_running_time (&self->segment, GST_FORMAT_TIME, part.start);
}

static void
read_times (GstVlmCaption *self, GstBuffer *buffer, GstVlmTimes *times)
{
  times->pts = GST_BUFFER_PTS (buffer);
  times->duration = GST_BUFFER_DURATION (buffer);
  if (!GST_CLOCK_TIME_IS_VALID (times->duration) && GST_VIDEO_INFO_FPS_N (&self->info) > 0)
    times->duration = gst_util_uint64_scale_int (
        GST_SECOND, GST_VIDEO_INFO_FPS_D (&self->info), GST_VIDEO_INFO_FPS_N (&self->info));

  map_to_segment (self, times);

  g_mutex_lock (&self->lock);
  self->now = *times;
  g_mutex_unlock (&self->lock);
}

/* Whether the frames that get a caption are known in advance; the trigger is an exception. */
static gboolean
is_foreseen (const GstVlmSettings *settings)
{
  return settings->interval > 0 && settings->interval < G_MAXUINT64
      && settings->scene_threshold == 0;
}

static void
tell_wishes (GstVlmCaption *self, GstVlmTextPad *text, GstVlmMode mode)
{
  GstVlmTextWishes wishes = { .sync = mode == GST_VLM_MODE_SYNC };

  GST_OBJECT_LOCK (self);
  wishes.foreseen = is_foreseen (self->settings);
  wishes.timing = self->settings->text_timing;
  wishes.max_duration = self->settings->text_max_duration;
  GST_OBJECT_UNLOCK (self);

  gst_vlm_text_pad_set_wishes (text, &wishes);
}

/* The first frame settles what auto means: by now the pipeline is complete and can be asked. */
static void
settle_mode (GstVlmCaption *self)
{
  GstVlmTextPad *text = gst_vlm_caption_get_text_pad (self);
  GstVlmMode mode = gst_vlm_caption_get_mode (self);

  if (mode == GST_VLM_MODE_AUTO) {
    gboolean live = gst_vlm_mode_is_live (self->sink);

    GST_OBJECT_LOCK (self);
    mode = self->settings->mode;
    GST_OBJECT_UNLOCK (self);
    if (mode == GST_VLM_MODE_AUTO)
      mode = gst_vlm_mode_choose (GST_ELEMENT (self), live);
    GST_INFO_OBJECT (
        self, "mode is %s, source is %slive", gst_vlm_mode_name (mode), live ? "" : "not ");

    g_mutex_lock (&self->lock);
    self->mode = mode;
    self->live = live;
    g_mutex_unlock (&self->lock);
  }

  if (text != NULL) {
    tell_wishes (self, text, mode);
    gst_vlm_text_pad_prepare (text);
  }
  gst_clear_object (&text);
}

/* The text that belongs to the frame goes out before the frame does. */
static void
send_text (GstVlmCaption *self, const GstVlmTimes *times, GstVlmAnswer *answer)
{
  GstVlmTextPad *text = get_listener (self, NULL);
  GstVlmTextFrame frame;
  GstClockTime oldest;

  if (text == NULL)
    goto done;
  if (!GST_CLOCK_TIME_IS_VALID (times->pts)) {
    gst_vlm_text_pad_untimed_frame (text);
    goto done;
  }
  if (!cut_to_segment (self, times, &frame))
    goto done;

  oldest = gst_vlm_worker_get_oldest_pts (self->worker, self->serial);
  frame.due = gst_vlm_selector_get_due (&self->selector);
  frame.settled = GST_CLOCK_TIME_IS_VALID (oldest) ? oldest : frame.end;
  frame.answer = answer;
  gst_vlm_text_pad_frame (text, &frame);

done:
  gst_clear_object (&text);
}

/* Downstream has answered a frame with flow: what upstream is told. */
static GstFlowReturn
finish_frame (GstVlmCaption *self, GstFlowReturn flow)
{
  GstVlmTextPad *text = gst_vlm_caption_get_text_pad (self);

  if (text != NULL)
    flow = gst_vlm_text_pad_frame_taken (text, flow);
  gst_clear_object (&text);

  return flow;
}

GstFlowReturn
gst_vlm_caption_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstVlmCaption *self = GST_VLM_CAPTION (parent);
  GstVlmTimes times;
  GstVlmAnswer *answer;

  if (!self->have_caps)
    goto not_negotiated;

  read_times (self, buffer, &times);
  settle_mode (self);
  if (!gst_vlm_caption_look_at (self, buffer, &times))
    goto flushing;

  answer = gst_vlm_caption_get_answer (self);
  if (answer != NULL)
    buffer = gst_vlm_caption_meta_attach (buffer, answer, &times);
  send_text (self, &times, answer);
  g_clear_pointer (&answer, gst_vlm_answer_unref);

  return finish_frame (self, gst_pad_push (self->src, buffer));

not_negotiated:
  GST_ELEMENT_ERROR (self, CORE, NEGOTIATION, (NULL), ("a buffer came before its caps"));
  gst_buffer_unref (buffer);
  return GST_FLOW_NOT_NEGOTIATED;

flushing:
  gst_buffer_unref (buffer);
  return GST_FLOW_FLUSHING;
}

/* ---- Events and queries ------------------------------------------------------------------- */

/* A new part of the stream begins; its number. */
static guint
begin_part (GstVlmCaption *self)
{
  guint serial;

  gst_vlm_selector_reset (&self->selector);
  self->scene.known = FALSE;
  g_mutex_lock (&self->lock);
  serial = ++self->serial;
  g_mutex_unlock (&self->lock);

  return serial;
}

static gboolean
take_caps (GstVlmCaption *self, GstEvent *event)
{
  GstVideoInfo info;
  GstCaps *caps;

  gst_event_parse_caps (event, &caps);
  self->have_caps = gst_video_info_from_caps (&info, caps);
  if (self->have_caps)
    self->info = info;
  else
    GST_WARNING_OBJECT (self, "not raw video: %" GST_PTR_FORMAT, caps);

  return self->have_caps;
}

static void
take_stream_start (GstVlmCaption *self, GstEvent *event)
{
  GstVlmTextPad *text = get_listener (self, event);

  self->orientation = GST_VIDEO_ORIENTATION_IDENTITY;
  self->oriented = FALSE;
  if (text != NULL)
    gst_vlm_text_pad_stream_start (text, event);
  gst_clear_object (&text);
}

static void
take_segment (GstVlmCaption *self, GstEvent *event)
{
  GstVlmTextPad *text;
  guint serial;

  gst_event_copy_segment (event, &self->segment);
  serial = begin_part (self);
  text = get_listener (self, event);
  if (text != NULL && self->segment.format == GST_FORMAT_TIME)
    gst_vlm_text_pad_segment (text, event, serial);
  gst_clear_object (&text);
}

/* How a phone was held: its pictures are described upright. */
static void
take_tags (GstVlmCaption *self, GstEvent *event)
{
  GstVideoOrientationMethod orientation;
  GstTagList *tags;

  gst_event_parse_tag (event, &tags);
  if (gst_tag_list_get_scope (tags) == GST_TAG_SCOPE_GLOBAL && self->oriented)
    return; /* what the stream itself says counts more */
  if (gst_video_orientation_from_tag (tags, &orientation)) {
    self->orientation = orientation;
    self->oriented = gst_tag_list_get_scope (tags) == GST_TAG_SCOPE_STREAM;
  }
}

/* Video says that nothing comes for a while: text does so too. */
static void
take_gap (GstVlmCaption *self, GstEvent *event)
{
  GstVlmTimes times = { 0 };
  GstVlmAnswer *answer = gst_vlm_caption_get_answer (self);

  gst_event_parse_gap (event, &times.pts, &times.duration);
  send_text (self, &times, answer);
  g_clear_pointer (&answer, gst_vlm_answer_unref);
}

/* Returns at once; a sink that prerolls on the end of video would wait for that of text. */
static void
take_eos (GstVlmCaption *self, GstEvent *event)
{
  GstVlmTextPad *text = get_listener (self, event);

  if (text != NULL)
    gst_vlm_text_pad_eos (text);
  gst_clear_object (&text);
}

void
gst_vlm_caption_begin_flush (GstVlmCaption *self)
{
  g_mutex_lock (&self->lock);
  self->first_wanted = G_MAXUINT;
  gst_clear_event (&self->time_segment);
  self->ended = FALSE;
  g_clear_pointer (&self->answer, gst_vlm_answer_unref);
  g_mutex_unlock (&self->lock);

  gst_vlm_worker_begin_flush (self->worker);
}

static void
end_flush (GstVlmCaption *self)
{
  guint serial = begin_part (self);

  gst_segment_init (&self->segment, GST_FORMAT_TIME);

  g_mutex_lock (&self->lock);
  self->first_wanted = serial;
  g_mutex_unlock (&self->lock);

  gst_vlm_worker_end_flush (self->worker);
}

void
gst_vlm_caption_reset_stream (GstVlmCaption *self)
{
  end_flush (self);

  self->have_caps = FALSE;
  self->orientation = GST_VIDEO_ORIENTATION_IDENTITY;
  self->oriented = FALSE;

  g_mutex_lock (&self->lock);
  gst_clear_event (&self->stream_start);
  gst_clear_event (&self->time_segment);
  self->ended = FALSE;
  self->now = (GstVlmTimes){ GST_CLOCK_TIME_NONE, GST_CLOCK_TIME_NONE, GST_CLOCK_TIME_NONE,
    GST_CLOCK_TIME_NONE, GST_CLOCK_TIME_NONE };
  self->last_id = 0;
  self->asked_id = 0;
  self->unchanged = 0;
  self->told_drops = 0;
  self->mode = GST_VLM_MODE_AUTO;
  self->live = FALSE;
  self->reported_latency = 0;
  g_mutex_unlock (&self->lock);
}

/*
 * What comes after downstream of video has seen the event. A text pad that has been added meanwhile has
 * nothing to flush, and no harm from it.
 */
static void
follow_video (GstVlmCaption *self, GstEvent *event)
{
  GstVlmTextPad *text = gst_vlm_caption_get_text_pad (self);

  switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_FLUSH_START:
      if (text != NULL)
        gst_vlm_text_pad_flush_start (text, event);
      break;
    case GST_EVENT_FLUSH_STOP:
      if (text != NULL)
        gst_vlm_text_pad_flush_stop (text, event);
      end_flush (self);
      break;
    case GST_EVENT_GAP:
      finish_frame (self, GST_FLOW_OK);
      break;
    default:
      break;
  }
  gst_clear_object (&text);
}

gboolean
gst_vlm_caption_sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstVlmCaption *self = GST_VLM_CAPTION (parent);
  gboolean forward = TRUE;
  gboolean handled;

  GST_LOG_OBJECT (pad, "%" GST_PTR_FORMAT, event);

  /* What must be known before downstream knows. */
  switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_CAPS:
      forward = take_caps (self, event);
      break;
    case GST_EVENT_SEGMENT:
      take_segment (self, event);
      break;
    case GST_EVENT_STREAM_START:
      take_stream_start (self, event);
      break;
    case GST_EVENT_GAP:
      take_gap (self, event);
      break;
    case GST_EVENT_TAG:
      take_tags (self, event);
      break;
    case GST_EVENT_FLUSH_START:
      gst_vlm_caption_begin_flush (self);
      break;
    case GST_EVENT_EOS:
      take_eos (self, event);
      break;
    default:
      break;
  }

  handled = forward && gst_pad_push_event (self->src, gst_event_ref (event));
  follow_video (self, event);
  gst_event_unref (event);

  return handled;
}
