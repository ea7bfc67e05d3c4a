/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the element's own files share: vlmcaption.c (class, pads, states), stream.c (what comes in
 * on the video pad) and captions.c (what the worker tells).
 */

#ifndef GST_VLM_CAPTION_PRIVATE_H
#define GST_VLM_CAPTION_PRIVATE_H

#include <gst/base/gstflowcombiner.h>
#include <gst/video/video.h>

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

  /* Object lock. */
  GstVlmSettings *settings;
  GstVlmTextPad *text; /* NULL: not requested */

  /* Stream lock of sink. */
  gboolean have_caps;
  GstVideoInfo info;
  GstSegment segment;
  GstVlmSelector selector;
  guint64 next_id;

  /* lock */
  GMutex lock;
  guint serial;       /* counts segments and flushes; changed by the streaming thread */
  guint first_wanted; /* answers of earlier serials come too late */
  GstFlowCombiner *combiner;
  GstVlmAnswer *answer; /* the caption in force */
  GstVlmTimes now;      /* of the newest frame */
  GstVlmMode mode;      /* in use; AUTO: not settled yet */
  gboolean live;
  GstClockTime reported_latency;
  gchar *model; /* path that is or was loaded */
  gboolean builtin;
  gboolean note_due; /* the next message carries the built-in model's note */
  gint percent;      /* of loading, as last posted */
  gchar *last_text;  /* of the last message */
};

/* ---- vlmcaption.c -------- */

/* The text pad, or NULL. (transfer full) */
GstVlmTextPad *gst_vlm_caption_get_text_pad (GstVlmCaption *self);

/* ---- captions.c ---------- */

extern const GstVlmWorkerHooks gst_vlm_caption_worker_hooks;

/* Before the worker starts: path is about to be loaded. */
void gst_vlm_caption_announce_loading (GstVlmCaption *self);

/* The caption in force, or NULL. (transfer full) */
GstVlmAnswer *gst_vlm_caption_get_answer (GstVlmCaption *self);

/* The mode in use, AUTO as long as no frame has come. */
GstVlmMode gst_vlm_caption_get_mode (GstVlmCaption *self);

GstStructure *gst_vlm_caption_make_stats (GstVlmCaption *self);

/* ---- stream.c ------------ */

GstFlowReturn gst_vlm_caption_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer);
gboolean gst_vlm_caption_sink_event (GstPad *pad, GstObject *parent, GstEvent *event);

/* Forgets the stream; before the first frame and with no streaming thread. */
void gst_vlm_caption_reset_stream (GstVlmCaption *self);

/* Ends waits and captions without waiting for them; until the stream is reset or flushed. */
void gst_vlm_caption_begin_flush (GstVlmCaption *self);

G_END_DECLS

#endif
