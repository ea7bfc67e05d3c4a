/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the text pad's two files share: textpad.c (what comes in) and textsend.c (what goes out). */

#ifndef GST_VLM_TEXT_PAD_PRIVATE_H
#define GST_VLM_TEXT_PAD_PRIVATE_H

#include "textpad.h"
#include "textpeer.h"

G_BEGIN_DECLS

GST_DEBUG_CATEGORY_EXTERN (gst_vlm_caption_debug);

struct _GstVlmTextPad
{
  GstPad parent;

  GstPad *video; /* of the same element */
  GstVlmTextIdleFunc idle;
  gpointer user_data;

  GMutex lock;
  GCond cond; /* anything for the thread to do */

  gboolean flushing;  /* also while the pad is inactive */
  gboolean retired;   /* taken away from the element: it will never be active again */
  guint busy;         /* threads that are in the peer, which may block */
  GstFlowReturn flow; /* once it is an error, nothing more is sent */
  GstVlmTextPlan plan;
  gboolean losing; /* the queue was full, and has not been half empty since */
  GstVlmTextWishes wishes;
  gboolean new_peer;   /* linked, and nothing has been sent since */
  gboolean know_rules; /* those of the plan; FALSE after each new link or wish */

  guint group_id; /* of the video, 0 if it has none */
  guint serial;
  GstEvent *segment;
  gboolean need_stream_start;
  gboolean need_segment;
  gboolean reverse; /* the segment is played backwards: no text */
  gboolean started; /* the peer has data of this segment to preroll on */
  gboolean ended;   /* video has ended */
  gboolean over;    /* the end of this stream has been queued: the next one must be a new one */
  gboolean late;    /* linked after that, and nothing has been sent since */

  gboolean paused;     /* after playing: downstream takes nothing */
  gint64 frame_since;  /* when the frame came that downstream has not taken; 0: none */
  gint64 eos_deadline; /* 0: video has not ended */
};

/* ---- textsend.c ---------- */

/* Queues the events that begin a stream. Called with the lock. */
void gst_vlm_text_pad_put_stream_start (GstVlmTextPad *self);

/* Queues what has to come before data and has not been sent yet. Called with the lock. */
void gst_vlm_text_pad_put_stream_events (GstVlmTextPad *self);

/* Queues the end of the stream. Called with the lock. */
void gst_vlm_text_pad_put_eos (GstVlmTextPad *self);

/* Sends everything from the calling thread. Called with the lock, which is given up. */
void gst_vlm_text_pad_send_all_unlock (GstVlmTextPad *self);

/* Hands the queue to the pad's thread. Called with the lock, which is given up. */
void gst_vlm_text_pad_wake_unlock (GstVlmTextPad *self);

/* What the thread does again and again; the pad is the argument. */
void gst_vlm_text_pad_run_task (gpointer user_data);

G_END_DECLS

#endif
