/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "frames.h"

#include <math.h>
#include <string.h>

#include <gst/video/video.h>

#include "thumbnail.h"

/* A frame that comes so little early counts as due: containers round times. In ns. */
#define EARLY 1000000.0

#define META "GstVlmCaptionMeta"

struct _VlmFrames
{
  GstElement *element;
  const VlmSelection *selection;
  VlmCaptionTaker take;
  gpointer data;
  gchar *model;

  GMutex lock; /* of what follows */
  VlmInput *input;
  gboolean armed, stopped, live;
  gint64 base;        /* stream time of the input's start; -1: no frame came yet */
  gint64 sound;       /* stream time of the first sound, or -1 */
  gint64 first, last; /* captions of the input so far; -1: none */
  gdouble due;
  gint64 capture_start; /* us since 1970 of stream time 0, or -1 */
  guint64 last_id;      /* of the caption that was taken last */
  GstVideoOrientationMethod orientation;
  VlmFramesState state;
};

/* ---- Which frames -------------------------------------------------------------------------- */

static gdouble
next_due (const VlmFrames *frames, gint64 time)
{
  gdouble every = frames->selection->every;
  gdouble early = MIN (EARLY, every / 4);

  return frames->first + (floor ((time - frames->first + early) / every) + 1) * every;
}

/* Has the element describe each frame that looks new, or none unless it is asked to. */
static void
set_interval (VlmFrames *frames, gboolean scenes)
{
  g_object_set (frames->element, "interval", scenes ? G_GUINT64_CONSTANT (0) : G_MAXUINT64,
      "scene-threshold", scenes ? frames->selection->scene_change : 0.0, NULL);
}

/* Lets the frames through that are to be described, from now on. */
static void
arm (VlmFrames *frames)
{
  set_interval (frames, frames->selection->every <= 0 && !frames->input->still);
  frames->armed = TRUE;
}

void
vlm_frames_begin (VlmFrames *frames, VlmInput *input, gboolean wait)
{
  guint n = input->captions->len;

  g_mutex_lock (&frames->lock);
  frames->input = input;
  frames->armed = frames->stopped = frames->live = FALSE;
  frames->first = n > 0 ? ((VlmCaption *) input->captions->pdata[0])->pts : -1;
  frames->last = n > 0 ? ((VlmCaption *) input->captions->pdata[n - 1])->pts : -1;
  frames->due = n > 0 && frames->selection->every > 0 ? next_due (frames, frames->last) : 0;
  frames->base = frames->sound = frames->capture_start = -1;
  frames->last_id = 0;
  frames->orientation = GST_VIDEO_ORIENTATION_IDENTITY;
  memset (&frames->state, 0, sizeof (frames->state));
  frames->state.position = frames->state.end = -1;
  if (wait)
    set_interval (frames, FALSE);
  else
    arm (frames);
  g_mutex_unlock (&frames->lock);
}

void
vlm_frames_note_sound (VlmFrames *frames, gint64 time)
{
  g_mutex_lock (&frames->lock);
  if (frames->sound < 0)
    frames->sound = time;
  g_mutex_unlock (&frames->lock);
}

gint64
vlm_frames_get_base (VlmFrames *frames)
{
  gint64 base;

  g_mutex_lock (&frames->lock);
  base = MAX (frames->base, 0);
  g_mutex_unlock (&frames->lock);
  return base;
}

gint64
vlm_frames_get_start (VlmFrames *frames)
{
  gint64 start;

  g_mutex_lock (&frames->lock);
  start = MAX (frames->selection->from, frames->last);
  g_mutex_unlock (&frames->lock);
  return start;
}

typedef enum
{
  CHOICE_DROP,    /* the element need not see it */
  CHOICE_PASS,    /* it passes */
  CHOICE_DESCRIBE /* it passes and is described */
} Choice;

/* A frame of what is asked for and not described already; time is its own. */
static Choice
choose_new (VlmFrames *frames, gint64 time)
{
  /* The scene of the last caption is compared with, and therefore described, once more. */
  if (frames->selection->every <= 0)
    return time < frames->last ? CHOICE_DROP : CHOICE_DESCRIBE;
  if (frames->first < 0)
    frames->first = time;
  else if (time <= frames->last || time + MIN (EARLY, frames->selection->every / 4) < frames->due)
    return CHOICE_PASS;
  frames->due = next_due (frames, time);
  return CHOICE_DESCRIBE;
}

/* time and end are the frame's, after the input's start. */
static Choice
choose (VlmFrames *frames, gint64 time, gint64 end)
{
  const VlmSelection *selection = frames->selection;

  if (frames->input->still)
    return CHOICE_DESCRIBE;
  if (selection->to >= 0 && time >= selection->to) {
    frames->state.beyond = TRUE;
    return CHOICE_DROP;
  }
  frames->state.position = time;
  frames->state.end = selection->to >= 0 ? MIN (end, selection->to) : end;
  if (!frames->armed)
    return CHOICE_PASS;
  if (time < selection->from && end <= selection->from)
    return CHOICE_DROP;
  return choose_new (frames, MAX (time, selection->from));
}

/*
 * When the frame is shown after the input's start, and until when; one without timestamps follows
 * the frame before. FALSE: it is outside of what is played.
 */
static gboolean
find_time (VlmFrames *frames, GstPad *pad, GstBuffer *buffer, gint64 *time, gint64 *end)
{
  g_autoptr (GstEvent) event = gst_pad_get_sticky_event (pad, GST_EVENT_SEGMENT, 0);
  const GstSegment *segment = NULL;
  GstClockTime pts = GST_BUFFER_PTS (buffer), duration = GST_BUFFER_DURATION (buffer);
  guint64 stream_time;

  if (event != NULL)
    gst_event_parse_segment (event, &segment);
  if (frames->input->still) {
    *time = *end = 0;
    return TRUE;
  }
  if (segment == NULL || segment->format != GST_FORMAT_TIME || !GST_CLOCK_TIME_IS_VALID (pts)) {
    *time = MAX (frames->state.end, 0);
  } else {
    stream_time = gst_segment_to_stream_time (segment, GST_FORMAT_TIME, pts);
    if (stream_time > G_MAXINT64)
      return FALSE;
    if (frames->base < 0)
      frames->base =
          frames->sound >= 0 ? MIN (frames->sound, (gint64) stream_time) : (gint64) stream_time;
    *time = MAX ((gint64) stream_time - frames->base, 0);
  }
  if (GST_CLOCK_TIME_IS_VALID (duration))
    *end = *time + (gint64) duration;
  else if (frames->state.position >= 0)
    *end = *time + MAX (*time - frames->state.position, 0);
  else
    *end = *time;
  return TRUE;
}

static GstPadProbeReturn
look_at_buffer (VlmFrames *frames, GstPad *pad, GstBuffer *buffer)
{
  gint64 time, end;
  Choice choice;
  guint64 id;

  if (frames->stopped || frames->state.refused)
    return GST_PAD_PROBE_DROP;
  frames->state.n_frames++;
  /* The element passes what lies outside of the segment. */
  if (!find_time (frames, pad, buffer, &time, &end))
    return GST_PAD_PROBE_OK;
  choice = choose (frames, time, end);
  if (choice == CHOICE_DROP)
    return GST_PAD_PROBE_DROP;
  frames->state.inside = choice == CHOICE_DESCRIBE;
  if (choice == CHOICE_DESCRIBE && (frames->selection->every > 0 || frames->input->still))
    g_signal_emit_by_name (frames->element, "trigger", &id);
  return GST_PAD_PROBE_OK;
}

/* When the pictures were taken, and how the camera was held. */
static void
look_at_tags (VlmFrames *frames, const GstTagList *tags)
{
  GstVideoOrientationMethod orientation;
  GstDateTime *date = NULL;

  if (gst_video_orientation_from_tag ((GstTagList *) tags, &orientation))
    frames->orientation = orientation;
  if (gst_tag_list_get_date_time (tags, GST_TAG_DATE_TIME, &date)) {
    g_autoptr (GDateTime) full =
        gst_date_time_has_time (date) ? gst_date_time_to_g_date_time (date) : NULL;

    if (full != NULL)
      frames->capture_start =
          g_date_time_to_unix (full) * G_USEC_PER_SEC + g_date_time_get_microsecond (full);
    gst_date_time_unref (date);
  }
}

static GstPadProbeReturn
watch_sink (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  VlmFrames *frames = user_data;
  GstPadProbeReturn answer = GST_PAD_PROBE_OK;

  g_mutex_lock (&frames->lock);
  if (frames->input == NULL) {
    /* Between two inputs. */
  } else if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
    answer = look_at_buffer (frames, pad, GST_PAD_PROBE_INFO_BUFFER (info));
  } else if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_TAG) {
    GstTagList *tags;

    gst_event_parse_tag (GST_PAD_PROBE_INFO_EVENT (info), &tags);
    look_at_tags (frames, tags);
  } else if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_FLUSH_STOP) {
    arm (frames);
  }
  g_mutex_unlock (&frames->lock);
  return answer;
}

/* ---- What becomes of them ------------------------------------------------------------------ */

/* What the element calls its model; "built-in" for the one that is part of it. */
static const gchar *
get_model (VlmFrames *frames)
{
  GstStructure *stats = NULL;
  gboolean builtin = FALSE;

  if (frames->model != NULL)
    return frames->model;
  g_object_get (frames->element, "stats", &stats, NULL);
  gst_structure_get_boolean (stats, "builtin-model", &builtin);
  frames->model = g_strdup (builtin ? "built-in" : gst_structure_get_string (stats, "model"));
  gst_structure_free (stats);
  return frames->model;
}

static gint64
find_capture_time (const VlmFrames *frames, const GstStructure *meta, gint64 time)
{
  guint64 utc;

  if (frames->live && gst_structure_get_uint64 (meta, "utc-time", &utc)
      && GST_CLOCK_TIME_IS_VALID (utc))
    return (gint64) (utc / 1000);
  return frames->capture_start >= 0 ? frames->capture_start + time / 1000 : -1;
}

/* (transfer full) */
static VlmCaption *
make_caption (VlmFrames *frames, const GstStructure *meta)
{
  VlmCaption *caption = g_new0 (VlmCaption, 1);
  const gchar *text = gst_structure_get_string (meta, "text");
  guint64 latency = 0;
  gint64 time = frames->state.position;

  if (frames->input->still)
    time = 0;
  caption->input = g_strdup (frames->input->name);
  caption->uri = g_strdup (frames->input->uri);
  caption->pts = MAX (time, frames->input->still ? 0 : frames->selection->from);
  caption->end = frames->input->still ? 0 : -1;
  caption->still = frames->input->still;
  caption->utc = find_capture_time (frames, meta, time);
  caption->text = text != NULL ? g_utf8_make_valid (text, -1) : g_strdup ("");
  gst_structure_get_uint (meta, "tokens", &caption->tokens);
  if (gst_structure_get_uint64 (meta, "latency", &latency) && GST_CLOCK_TIME_IS_VALID (latency))
    caption->latency = latency / (gdouble) GST_SECOND;
  caption->finish_reason = g_strdup (gst_structure_get_string (meta, "finish-reason"));
  caption->model = g_strdup (get_model (frames));
  return caption;
}

static void
add_thumbnail (
    VlmCaption *caption, GstPad *pad, GstBuffer *buffer, GstVideoOrientationMethod orientation)
{
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (pad);
  GstVideoInfo info;

  if (caps != NULL && gst_video_info_from_caps (&info, caps))
    caption->thumbnail = vlm_thumbnail_new (buffer, &info, orientation, &caption->thumbnail_size);
}

/* (transfer full) the caption of the frame that comes out, or NULL if it has no new one. */
static VlmCaption *
look_at_output (VlmFrames *frames, GstBuffer *buffer)
{
  GstCustomMeta *meta = gst_buffer_get_custom_meta (buffer, META);
  VlmCaption *caption;
  guint64 id;

  if (meta == NULL || frames->input == NULL)
    return NULL;
  if (!gst_structure_get_uint64 (gst_custom_meta_get_structure (meta), "id", &id)
      || id == frames->last_id)
    return NULL;
  frames->last_id = id;
  caption = make_caption (frames, gst_custom_meta_get_structure (meta));
  if (frames->last >= 0 && caption->pts <= frames->last) {
    vlm_caption_free (caption);
    return NULL;
  }
  frames->last = caption->pts;
  if (frames->first < 0)
    frames->first = caption->pts;
  return caption;
}

static GstPadProbeReturn
watch_source (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  VlmFrames *frames = user_data;
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);
  GstVideoOrientationMethod orientation;
  VlmCaption *caption;
  VlmInput *input;
  gboolean wanted = TRUE;

  g_mutex_lock (&frames->lock);
  caption = look_at_output (frames, buffer);
  orientation = frames->orientation;
  input = frames->input;
  g_mutex_unlock (&frames->lock);

  if (caption != NULL) {
    if (frames->selection->thumbnails)
      add_thumbnail (caption, pad, buffer, orientation);
    wanted = frames->take (input, caption, frames->data);
  }

  g_mutex_lock (&frames->lock);
  frames->state.inside = FALSE;
  if (!wanted)
    frames->state.refused = TRUE;
  g_mutex_unlock (&frames->lock);
  return GST_PAD_PROBE_OK;
}

/* ---- The object ---------------------------------------------------------------------------- */

VlmFrames *
vlm_frames_new (
    GstElement *element, const VlmSelection *selection, VlmCaptionTaker take, gpointer data)
{
  VlmFrames *frames = g_new0 (VlmFrames, 1);
  g_autoptr (GstPad) sink = gst_element_get_static_pad (element, "sink");
  g_autoptr (GstPad) source = gst_element_get_static_pad (element, "src");

  frames->element = element;
  frames->selection = selection;
  frames->take = take;
  frames->data = data;
  g_mutex_init (&frames->lock);
  gst_pad_add_probe (sink,
      GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM
          | GST_PAD_PROBE_TYPE_EVENT_FLUSH,
      watch_sink, frames, NULL);
  gst_pad_add_probe (source, GST_PAD_PROBE_TYPE_BUFFER, watch_source, frames, NULL);
  return frames;
}

void
vlm_frames_free (VlmFrames *frames)
{
  g_mutex_clear (&frames->lock);
  g_free (frames->model);
  g_free (frames);
}

void
vlm_frames_set_live (VlmFrames *frames, gboolean live)
{
  g_mutex_lock (&frames->lock);
  frames->live = live;
  g_mutex_unlock (&frames->lock);
}

void
vlm_frames_stop (VlmFrames *frames)
{
  g_mutex_lock (&frames->lock);
  frames->stopped = TRUE;
  g_mutex_unlock (&frames->lock);
}

void
vlm_frames_get_state (VlmFrames *frames, VlmFramesState *state)
{
  g_mutex_lock (&frames->lock);
  *state = frames->state;
  g_mutex_unlock (&frames->lock);
}
