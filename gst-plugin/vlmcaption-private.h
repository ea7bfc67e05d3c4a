/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the element's own files share: vlmcaption.c (class, pads, states), stream.c (what comes in
 * on the video pad), look.c (which frames go to the worker) and captions.c (what it tells).
 */

#ifndef GST_VLM_CAPTION_PRIVATE_H
#define GST_VLM_CAPTION_PRIVATE_H

#include <gst/video/video.h>

#include "autooverlay.h"
#include "scene.h"
#include "selector.h"
#include "settings.h"
#include "textpad.h"
#include "vlmcaption.h"
#include "worker.h"

G_BEGIN_DECLS

GST_DEBUG_CATEGORY_EXTERN (gst_vlm_caption_debug);

struct _GstVlmCaption
{
  GstElement parent;

  GstPad *sink;
  GstPad *src;
  GstVlmWorker *worker;

  /*
   * Held while it is settled who feeds on captions: the text pad is requested, or linked to an overlay
   * or taken from it. Recursive, since linking calls the application. No streaming thread takes it.
   */
  GRecMutex choice;

  /* Object lock. */
  GstVlmSettings *settings;
  GstVlmAutoOverlay *auto_overlay; /* NULL: text, if any, was requested by others */

  /* Stream lock of sink. */
  gboolean have_caps;
  GstVideoInfo info;
  GstSegment segment;
  GstBufferPool *pool; /* of copies for the worker */
  GstVlmSelector selector;
  GstVlmScene scene;                     /* of the frame that was handed to the worker last */
  GstVideoOrientationMethod orientation; /* of the stream, from its tags */
  gboolean oriented;                     /* by tags of the stream itself, not of the whole file */

  /* lock */
  GMutex lock;
  GstVlmTextPad *text; /* NULL: not requested */
  /* What the text pad has been told, and what one that is added begins with; see get_listener(). */
  GstEvent *stream_start; /* NULL: none has come */
  GstEvent *time_segment; /* NULL: none has come, or not in time */
  gboolean ended;
  guint serial;         /* counts segments and flushes; changed by the streaming thread */
  gboolean running;     /* frames may come */
  guint64 last_id;      /* of the frames that were selected or asked for */
  guint64 asked_id;     /* the next frame is asked for and gets this id; 0: none is */
  gboolean new_scene;   /* the next selected frame is described even if it looks like the last */
  guint64 unchanged;    /* selected frames that looked like the one described last */
  guint64 told_drops;   /* dropped frames, as the last QOS message told */
  guint first_wanted;   /* answers of earlier serials come too late */
  GstVlmAnswer *answer; /* the caption in force */
  GstVlmTimes now;      /* of the newest frame */
  GstVlmMode mode;      /* in use; AUTO: not settled yet */
  gboolean live;
  GstClockTime reported_latency;
  gchar *model; /* path that is or was loaded */
  gboolean builtin;
  gboolean note_due;   /* the next message carries the built-in model's note */
  gboolean told_model; /* that it is the built-in one */
  gint percent;        /* of loading, as last posted */
  gchar *last_text;    /* of the last message */
};

/* ---- vlmcaption.c -------- */

/* The text pad, or NULL. (transfer full) */
GstVlmTextPad *gst_vlm_caption_get_text_pad (GstVlmCaption *self);

/* ---- captions.c ---------- */

extern const GstVlmWorkerHooks gst_vlm_caption_worker_hooks;

/* Asks for the next frame; the id that its caption will have, or 0 if no stream runs. */
guint64 gst_vlm_caption_ask (GstVlmCaption *self);

/* The caption in force, or NULL. (transfer full) */
GstVlmAnswer *gst_vlm_caption_get_answer (GstVlmCaption *self);

/* The mode in use, AUTO as long as no frame has come. */
GstVlmMode gst_vlm_caption_get_mode (GstVlmCaption *self);

GstStructure *gst_vlm_caption_make_stats (GstVlmCaption *self);

/* ---- look.c -------------- */

/* Has a frame described that is due or asked for; FALSE if a flush ended the wait for it. */
gboolean gst_vlm_caption_look_at (GstVlmCaption *self, GstBuffer *buffer, const GstVlmTimes *times);

/* ---- stream.c ------------ */

GstFlowReturn gst_vlm_caption_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer);
gboolean gst_vlm_caption_sink_event (GstPad *pad, GstObject *parent, GstEvent *event);

/* Forgets the stream; before the first frame and with no streaming thread. */
void gst_vlm_caption_reset_stream (GstVlmCaption *self);

/* Ends waits and captions without waiting for them; until the stream is reset or flushed. */
void gst_vlm_caption_begin_flush (GstVlmCaption *self);

G_END_DECLS

#endif
