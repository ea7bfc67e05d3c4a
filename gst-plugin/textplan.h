/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the text pad sends, and with which times: a plain state machine that turns video frames and
 * captions into text buffers and GAP events, in one of the styles of textrules.h.
 *
 * An overlay compares text with the whole frame, not with its part in the segment: on a frame that
 * begins before the segment it draws nothing and lets go of what it has, and on one that ends after
 * it, it lets go once it has drawn.
 */

#ifndef GST_VLM_TEXT_PLAN_H
#define GST_VLM_TEXT_PLAN_H

#include "answer.h"
#include "textrules.h"

G_BEGIN_DECLS

typedef struct
{
  GstClockTime start, end; /* of the video frame, cut to the segment; end > start */
  gboolean cut_start;      /* it begins before the segment */
  gboolean cut_end;        /* it ends after the segment */
  GstClockTime due;        /* the next frame is selected at or after this; may be NONE */
  GstClockTime settled;    /* no caption that is still to come starts before this */
  GstVlmAnswer *answer;    /* the caption in force on this frame, or NULL; borrowed */
} GstVlmTextFrame;

typedef struct
{
  GstVlmTextRules rules;
  GQueue out;             /* GstBuffer and GstEvent, in the order to send */
  GstClockTime position;  /* what has been sent reaches up to here; NONE: nothing was */
  gboolean spent;         /* SLICES: an overlay has let go of the text it had */
  GstClockTime video_end; /* of the last frame; NONE: none came */
  GstVlmAnswer *shown;    /* CUES: its end is not known; HELD: what the overlay has */
} GstVlmTextPlan;

void gst_vlm_text_plan_init (GstVlmTextPlan *plan, const GstVlmTextRules *rules);
void gst_vlm_text_plan_clear (GstVlmTextPlan *plan);

/* Starts again after a flush or in a new segment; what is in out stays. */
void gst_vlm_text_plan_restart (GstVlmTextPlan *plan);

/* Other rules from now on, for the same peer; an open cue ends where video is. */
void gst_vlm_text_plan_change (GstVlmTextPlan *plan, const GstVlmTextRules *rules);

/* A video frame is about to be pushed. */
void gst_vlm_text_plan_frame (GstVlmTextPlan *plan, const GstVlmTextFrame *frame);

/* A caption has arrived (CUES; the others take it from the frames). */
void gst_vlm_text_plan_answer (GstVlmTextPlan *plan, GstVlmAnswer *answer);

/*
 * The peer takes no video before it has text for it: turns CUES into SLICES, up to the last frame
 * at once. From now on captions start when they arrive.
 */
void gst_vlm_text_plan_hurry (GstVlmTextPlan *plan);

/* No more frames: the open cue ends where video ended. */
void gst_vlm_text_plan_finish (GstVlmTextPlan *plan);

G_END_DECLS

#endif
