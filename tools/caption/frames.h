/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which frames of an input are described, and what becomes of them: watches what goes into and comes
 * out of a vlmcaption element in sync mode.
 *
 * Frames at regular times are chosen here and not by the element's property interval: its grid of
 * times begins where playing began, and an input that is gone on with has to have the captions that
 * it would have had.
 */

#ifndef TOOLS_CAPTION_FRAMES_H
#define TOOLS_CAPTION_FRAMES_H

#include <gst/gst.h>

#include "cue.h"
#include "input.h"

/*
 * What is asked of every input. Times here and in captions are ns of stream time after the input's
 * start: its first frame, or its first sound if that is earlier. Files may start at any time.
 */
typedef struct
{
  gint64 from;
  gint64 to;            /* -1: the end */
  gdouble every;        /* from caption to caption; 0: one for each scene */
  gdouble scene_change; /* how much of the picture makes a scene, 0 to 1 */
  gboolean thumbnails;
} VlmSelection;

/* (transfer full) of the caption, whose end is not known. FALSE: no more captions are wanted. */
typedef gboolean (*VlmCaptionTaker) (VlmInput *input, VlmCaption *caption, gpointer data);

typedef struct _VlmFrames VlmFrames;

/* element is that whose pads are watched; it must outlive the frames, as must what else is given. */
VlmFrames *vlm_frames_new (
    GstElement *element, const VlmSelection *selection, VlmCaptionTaker take, gpointer data);
void vlm_frames_free (VlmFrames *frames);

/*
 * To be called before the input is played. Captions that it has already are not made again. Where
 * wait is TRUE, frames pass until a flush.
 */
void vlm_frames_begin (VlmFrames *frames, VlmInput *input, gboolean wait);

/* Sound of the input starts at that stream time. */
void vlm_frames_note_sound (VlmFrames *frames, gint64 time);

/* Whether times of capture are those of the clock when a frame comes. */
void vlm_frames_set_live (VlmFrames *frames, gboolean live);

/* No frame is described any more. */
void vlm_frames_stop (VlmFrames *frames);

/* From where on frames are needed: ns after the input's start. */
gint64 vlm_frames_get_start (VlmFrames *frames);

/* The input's start, which is known once a frame has come; ns of stream time. */
gint64 vlm_frames_get_base (VlmFrames *frames);

typedef struct
{
  guint n_frames;   /* that came */
  gint64 position;  /* of the last frame, ns after the start; -1: none came */
  gint64 end;       /* where the last frame ends; -1: none came */
  gboolean inside;  /* a frame is being described */
  gboolean beyond;  /* a frame after the part that is asked for came */
  gboolean refused; /* the taker wants no more captions */
} VlmFramesState;

/* From any thread. */
void vlm_frames_get_state (VlmFrames *frames, VlmFramesState *state);

#endif
