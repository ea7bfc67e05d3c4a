/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * One finished caption and the frame that it describes. Immutable once it is shared; any thread
 * may hold a reference.
 */

#ifndef GST_VLM_ANSWER_H
#define GST_VLM_ANSWER_H

#include <gst/gst.h>

#include "engine/vlm.h"

G_BEGIN_DECLS

/* The times of one video frame; each may be GST_CLOCK_TIME_NONE. */
typedef struct
{
  GstClockTime pts;
  GstClockTime duration; /* the buffer's, else that of the caps' frame rate */
  GstClockTime stream_time;
  GstClockTime running_time;
  GstClockTime utc_time; /* when it was taken, ns since 1970 */
} GstVlmTimes;

typedef struct
{
  gint refcount;

  guint64 id;   /* counts the selected frames of one element, from 1 */
  guint serial; /* the part of the stream (between segments) it belongs to */
  GstVlmTimes times;
  gchar *text;           /* valid UTF-8, may be empty; as it is to be shown */
  guint n_prompt_tokens; /* picture included */
  guint n_image_tokens;
  guint n_tokens;       /* generated, the end token included */
  GstClockTime latency; /* from the selection of the frame to the end of the caption */
  GstClockTime work;    /* the part of it that the frame did not wait */
  VlmFinishReason finish_reason;
} GstVlmAnswer;

/* A zero-filled answer with one reference. (transfer full) */
GstVlmAnswer *gst_vlm_answer_new (void);
GstVlmAnswer *gst_vlm_answer_ref (GstVlmAnswer *answer);
void gst_vlm_answer_unref (GstVlmAnswer *answer);

/*
 * How far video has gone from the described frame to now, never negative: by running time where
 * both frames have one, else by PTS, else GST_CLOCK_TIME_NONE.
 */
GstClockTime gst_vlm_answer_age (const GstVlmAnswer *answer, const GstVlmTimes *now);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (GstVlmAnswer, gst_vlm_answer_unref)

G_END_DECLS

#endif
