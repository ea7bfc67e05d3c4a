/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include <string.h>

#include "clocktime.h"
#include "textplan.h"

/* Without the frame that ends it, a slice in a hurry is as long as a viewer may wait for news. */
#define HURRIED_SLICE GST_SECOND

void
gst_vlm_text_plan_init (GstVlmTextPlan *plan, const GstVlmTextRules *rules)
{
  memset (plan, 0, sizeof *plan);
  g_queue_init (&plan->out);
  plan->rules = *rules;
  gst_vlm_text_plan_restart (plan);
}

void
gst_vlm_text_plan_clear (GstVlmTextPlan *plan)
{
  g_queue_clear_full (&plan->out, (GDestroyNotify) gst_mini_object_unref);
  g_clear_pointer (&plan->shown, gst_vlm_answer_unref);
}

void
gst_vlm_text_plan_restart (GstVlmTextPlan *plan)
{
  g_clear_pointer (&plan->shown, gst_vlm_answer_unref);
  plan->position = GST_CLOCK_TIME_NONE;
  plan->video_end = GST_CLOCK_TIME_NONE;
  plan->spent = FALSE;
}

/* ---- Pieces ------------------------------------------------------------------------------- */

static void
put_text (GstVlmTextPlan *plan, const GstVlmAnswer *answer, GstClockTime start, GstClockTime end)
{
  gsize length = strlen (answer->text);
  GstBuffer *buffer = length > 0 ? gst_buffer_new_memdup (answer->text, length) : gst_buffer_new ();

  GST_BUFFER_PTS (buffer) = start;
  GST_BUFFER_DURATION (buffer) = end - start;
  g_queue_push_tail (&plan->out, buffer);
  plan->position = end;
}

/* Takes the last unsent item away if it is a gap that ends at end; its start then, else end. */
static GstClockTime
take_adjacent_gap (GstVlmTextPlan *plan, GstClockTime end)
{
  GstMiniObject *last = g_queue_peek_tail (&plan->out);
  GstClockTime start, duration;

  if (last == NULL || !GST_IS_EVENT (last)
      || GST_EVENT_TYPE (GST_EVENT_CAST (last)) != GST_EVENT_GAP)
    return end;

  gst_event_parse_gap (GST_EVENT_CAST (last), &start, &duration);
  if (start + duration != end)
    return end;

  gst_mini_object_unref (g_queue_pop_tail (&plan->out));
  return start;
}

static void
put_gap (GstVlmTextPlan *plan, GstClockTime start, GstClockTime end)
{
  start = take_adjacent_gap (plan, start);
  g_queue_push_tail (&plan->out, gst_event_new_gap (start, end - start));
}

/* There is no text up to end. */
static void
skip_to (GstVlmTextPlan *plan, GstClockTime end)
{
  if (end <= plan->position)
    return;

  put_gap (plan, plan->position, end);
  plan->position = end;
}

/* ---- Cues --------------------------------------------------------------------------------- */

static void
end_cue (GstVlmTextPlan *plan, GstClockTime end)
{
  GstClockTime start = plan->shown->times.pts;

  /* The frame may begin before the segment, where nothing can be sent. */
  if (GST_CLOCK_TIME_IS_VALID (plan->position))
    start = MAX (start, plan->position);
  end = MIN (end, gst_vlm_clock_time_add (start, plan->rules.longest));
  if (end > start)
    put_text (plan, plan->shown, start, end);
  g_clear_pointer (&plan->shown, gst_vlm_answer_unref);
}

static void
start_cue (GstVlmTextPlan *plan, GstVlmAnswer *answer)
{
  if (GST_CLOCK_TIME_IS_VALID (plan->position))
    skip_to (plan, answer->times.pts);
  if (*answer->text != '\0')
    plan->shown = gst_vlm_answer_ref (answer);
}

static void
cue_frame (GstVlmTextPlan *plan, const GstVlmTextFrame *frame)
{
  if (!GST_CLOCK_TIME_IS_VALID (plan->position)) {
    /* A sink on this pad prerolls on it, long before the first cue's end is known. Some muxers
     * would write it. */
    if (plan->rules.peer != GST_VLM_TEXT_PEER_MUXER)
      put_gap (plan, frame->start, frame->start + 1);
    plan->position = frame->start;
  }

  if (plan->shown != NULL
      && frame->end > gst_vlm_clock_time_add (plan->shown->times.pts, plan->rules.longest))
    end_cue (plan, frame->end);
  if (plan->shown == NULL)
    skip_to (plan, MIN (frame->settled, frame->end));
}

void
gst_vlm_text_plan_answer (GstVlmTextPlan *plan, GstVlmAnswer *answer)
{
  if (plan->rules.style != GST_VLM_TEXT_CUES || !GST_CLOCK_TIME_IS_VALID (answer->times.pts))
    return;

  if (plan->shown != NULL)
    end_cue (plan, answer->times.pts);
  start_cue (plan, answer);
}

void
gst_vlm_text_plan_finish (GstVlmTextPlan *plan)
{
  if (plan->rules.style == GST_VLM_TEXT_CUES && plan->shown != NULL
      && GST_CLOCK_TIME_IS_VALID (plan->video_end))
    end_cue (plan, plan->video_end);
}

void
gst_vlm_text_plan_change (GstVlmTextPlan *plan, const GstVlmTextRules *rules)
{
  gst_vlm_text_plan_finish (plan);
  plan->rules = *rules;
}

void
gst_vlm_text_plan_hurry (GstVlmTextPlan *plan)
{
  if (plan->rules.style != GST_VLM_TEXT_CUES)
    return;

  gst_vlm_text_plan_finish (plan);
  if (GST_CLOCK_TIME_IS_VALID (plan->video_end)) {
    skip_to (plan, plan->video_end);
    put_gap (plan, plan->video_end, plan->video_end + 1);
  }
  plan->rules.style = GST_VLM_TEXT_SLICES;
  plan->rules.longest = MIN (plan->rules.longest, HURRIED_SLICE);
}

/* ---- Slices and held text ----------------------------------------------------------------- */

static gboolean
is_drawn (const GstVlmTextPlan *plan)
{
  return gst_vlm_text_peer_draws (plan->rules.peer);
}

/* When text of this caption ends at the latest. */
static GstClockTime
get_limit (const GstVlmTextPlan *plan, const GstVlmAnswer *answer)
{
  if (!GST_CLOCK_TIME_IS_VALID (plan->rules.limit) || !GST_CLOCK_TIME_IS_VALID (answer->times.pts))
    return GST_CLOCK_TIME_NONE;

  return gst_vlm_clock_time_add (answer->times.pts, plan->rules.limit);
}

/* An overlay draws nothing on this frame and lets it pass when its text has gone on behind it. */
static void
pass_undrawn (GstVlmTextPlan *plan, const GstVlmTextFrame *frame)
{
  put_gap (plan, frame->start, frame->end);
  plan->position = frame->end;
  plan->spent = TRUE;
}

/*
 * Frames of a camera may begin a little before the one before ends. Text does not: it goes on where it
 * was, as long as that is on this frame, so that it is drawn.
 */
static GstClockTime
find_slice_start (const GstVlmTextPlan *plan, const GstVlmTextFrame *frame)
{
  if (plan->position < frame->end)
    return MAX (plan->position, frame->start);

  return frame->start;
}

static void
put_slice (GstVlmTextPlan *plan, const GstVlmTextFrame *frame)
{
  GstClockTime start = find_slice_start (plan, frame);
  GstClockTime end = gst_vlm_clock_time_add (start, plan->rules.longest);

  /* The frame that is selected next brings its own text. */
  if (GST_CLOCK_TIME_IS_VALID (frame->due))
    end = MIN (end, MAX (frame->due, frame->end));
  end = MIN (end, get_limit (plan, frame->answer));
  skip_to (plan, start);
  put_text (plan, frame->answer, start, end);
  /* A muxer writes it once it sees what follows. */
  if (!is_drawn (plan))
    put_gap (plan, end, gst_vlm_clock_time_add (end, 1));
}

static void
slice_frame (GstVlmTextPlan *plan, const GstVlmTextFrame *frame)
{
  if (!GST_CLOCK_TIME_IS_VALID (plan->position))
    plan->position = frame->start;

  if (is_drawn (plan) && frame->cut_start) {
    pass_undrawn (plan, frame);
    return;
  }
  if (frame->answer == NULL || *frame->answer->text == '\0'
      || frame->start >= get_limit (plan, frame->answer))
    skip_to (plan, frame->end);
  else if (plan->spent || plan->position <= frame->start)
    put_slice (plan, frame);
  plan->spent = is_drawn (plan) && (frame->cut_end || frame->end >= plan->position);
}

static void
hold_frame (GstVlmTextPlan *plan, const GstVlmTextFrame *frame)
{
  if (!GST_CLOCK_TIME_IS_VALID (plan->position))
    plan->position = frame->start;

  if (is_drawn (plan) && frame->cut_start) {
    pass_undrawn (plan, frame);
    g_clear_pointer (&plan->shown, gst_vlm_answer_unref);
  } else if (frame->answer == NULL || (!is_drawn (plan) && *frame->answer->text == '\0')) {
    skip_to (plan, frame->end);
  } else if (frame->answer != plan->shown) {
    put_text (plan, frame->answer, frame->start,
        gst_vlm_clock_time_add (frame->start, plan->rules.longest));
    g_clear_pointer (&plan->shown, gst_vlm_answer_unref);
    plan->shown = gst_vlm_answer_ref (frame->answer);
  }
  if (is_drawn (plan) && (frame->cut_end || frame->end >= plan->position))
    g_clear_pointer (&plan->shown, gst_vlm_answer_unref);
}

void
gst_vlm_text_plan_frame (GstVlmTextPlan *plan, const GstVlmTextFrame *frame)
{
  switch (plan->rules.style) {
    case GST_VLM_TEXT_CUES:
      cue_frame (plan, frame);
      break;
    case GST_VLM_TEXT_SLICES:
      slice_frame (plan, frame);
      break;
    case GST_VLM_TEXT_HELD:
      hold_frame (plan, frame);
      break;
  }
  plan->video_end = frame->end;
}
