/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Where a pipeline gets the frames of an input from. */

#ifndef TOOLS_CAPTION_SOURCE_H
#define TOOLS_CAPTION_SOURCE_H

#include <gst/gst.h>

#include "frames.h"
#include "input.h"

typedef struct _VlmSource VlmSource;

/*
 * Adds what plays the input to the pipeline: appsrc with a decoded picture, or uridecodebin for all
 * else. It is linked to next, at once or when there is a stream of pictures. accepted are the caps
 * that pictures may have; others are made RGB. frames are told when sound starts. All must outlive
 * the source. NULL with an error: the picture cannot be decoded, or an element is missing.
 */
VlmSource *vlm_source_new (const VlmInput *input, GstBin *pipeline, GstElement *next,
    const GstCaps *accepted, VlmFrames *frames, GError **error);

/* Takes it out of the pipeline, which must not be above READY. */
void vlm_source_free (VlmSource *source);

/* Whether there is sound in the input, and nothing to be seen. */
gboolean vlm_source_is_sound_only (VlmSource *source);

#endif
