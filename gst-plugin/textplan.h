/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the text pad sends, and with which times: a plain state machine that turns video frames and
 * captions into text buffers and GAP events. There are three styles:
 *
 * CUES    for files and applications. A cue starts at the frame it describes and lasts to the next
 *         caption, the end, or for ten seconds; it is sent when its end is known.
 * SLICES  for peers that let video pass only as far as they have text: an overlay behind video
 *         that waits for its captions, and muxers. The caption of the frame that passes, in
 *         contiguous slices that never reach beyond the next selected frame. Such a peer blocks
 *         its text, so this needs a thread of its own. An overlay lets go of a slice at the first
 *         frame that ends with it or later; if the next frame starts before that end, a new slice
 *         starts there, too.
 * HELD    for an overlay beside video that does not wait. A caption starts when it arrives and
 *         lasts practically for ever; STREAM_START before the next one makes the overlay let go.
 *
 * An overlay compares text with the whole frame, not with its part in the segment: on a frame that
 * begins before the segment it draws nothing and lets go of what it has, and on one that ends after
 * it, it lets go once it has drawn.
 */

#ifndef GST_VLM_TEXT_PLAN_H
#define GST_VLM_TEXT_PLAN_H

#include "answer.h"

G_BEGIN_DECLS

typedef enum
{
  GST_VLM_TEXT_CUES,
  GST_VLM_TEXT_SLICES,
  GST_VLM_TEXT_HELD
} GstVlmTextStyle;

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
  GstVlmTextStyle style;
  GstClockTime longest_slice;
  gboolean looked_ahead;  /* SLICES: the peer must see where the next slice will start */
  GQueue out;             /* GstBuffer and GstEvent, in the order to send */
  GstClockTime position;  /* what has been sent reaches up to here; NONE: nothing was */
  gboolean spent;         /* SLICES: an overlay has let go of the text it had */
  GstClockTime video_end; /* of the last frame; NONE: none came */
  GstVlmAnswer *shown;    /* CUES: its end is not known; HELD: what the overlay has */
} GstVlmTextPlan;

/* longest_slice matters for SLICES only. */
void gst_vlm_text_plan_init (
    GstVlmTextPlan *plan, GstVlmTextStyle style, GstClockTime longest_slice);
void gst_vlm_text_plan_clear (GstVlmTextPlan *plan);

/* Starts again after a flush or in a new segment; what is in out stays. */
void gst_vlm_text_plan_restart (GstVlmTextPlan *plan);

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
