/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The caption on a video buffer: a custom meta, so that every language reads it as a GstStructure
 * without a header or library of ours. It has no tags: it describes content, not pixels, and is
 * therefore copied by scalers, converters and encoders.
 *
 *   GstCustomMeta *meta = gst_buffer_get_custom_meta (buffer, "GstVlmCaptionMeta");
 *   if (meta)
 *     text = gst_structure_get_string (gst_custom_meta_get_structure (meta), "text");
 */

#ifndef GST_VLM_CAPTION_META_H
#define GST_VLM_CAPTION_META_H

#include "answer.h"

G_BEGIN_DECLS

#define GST_VLM_CAPTION_META_NAME "GstVlmCaptionMeta"

/* Registers the meta; further calls do nothing. */
void gst_vlm_caption_meta_register (void);

/*
 * Adds the caption to buffer, whose times are now. buffer (transfer full) is copied only if it is
 * shared, and then without its memory; the result is what to push. (transfer full)
 */
GstBuffer *gst_vlm_caption_meta_attach (
    GstBuffer *buffer, const GstVlmAnswer *answer, const GstVlmTimes *now);

G_END_DECLS

#endif
