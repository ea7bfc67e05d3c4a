/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the element says on the bus: captions, the model's loading, and what went wrong. Every
 * function posts and therefore must be called without the element's object lock.
 */

#ifndef GST_VLM_MESSAGE_H
#define GST_VLM_MESSAGE_H

#include "answer.h"

G_BEGIN_DECLS

/* What a caption's message says beside the caption. */
typedef struct
{
  GstClockTime age;   /* how far video has gone since the frame */
  guint64 dropped;    /* selected frames given up for newer ones so far */
  const gchar *model; /* path */
  gboolean builtin;
  const gchar *note; /* NULL, or what a reader should know about the model */
  gboolean partial;  /* the caption still grows */
} GstVlmMessageContext;

/* Posts the element message "vlmcaption". */
void gst_vlm_message_post_caption (
    GstElement *element, const GstVlmAnswer *answer, const GstVlmMessageContext *context);

/* Posts a QOS message about a frame that was given up for a newer one, or for the load's sake. */
void gst_vlm_message_post_drops (GstElement *element, gboolean live, const GstVlmTimes *times,
    guint64 completed, guint64 dropped);

/* Posts a PROGRESS message with the code "load". */
void gst_vlm_message_post_progress (
    GstElement *element, GstProgressType type, const gchar *path, gint percent);

/* Tells that the built-in model is in use, what it knows, and how to get the real one. */
void gst_vlm_message_post_builtin (GstElement *element);

/* The text of gst_vlm_message_post_builtin(). */
const gchar *gst_vlm_message_builtin_note (void);

/* Posts an ERROR about a model at path that was not found, cannot be read, or is damaged. */
void gst_vlm_message_post_model_error (GstElement *element, const gchar *path, const GError *error);

/* Posts a WARNING about one frame that got no caption. */
void gst_vlm_message_post_failed (GstElement *element, GstClockTime pts, const GError *error);

G_END_DECLS

#endif
