/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A pipeline that captions one input after the other and keeps the model between them:
 *
 *   uridecodebin, or appsrc with a decoded picture ! queue ! videoconvert ! vlmcaption ! fakesink
 */

#ifndef TOOLS_CAPTION_LINE_H
#define TOOLS_CAPTION_LINE_H

#include "../caption-options.h"
#include "frames.h"

typedef struct _VlmLine VlmLine;

/*
 * NULL with an error: the element is missing, or it does not take the settings, the model for one.
 * options and selection must outlive the line. take is called on threads of the pipeline, once at a
 * time, with captions that are not among those of the input, in order of time.
 */
VlmLine *vlm_line_new (const CaptionOptions *options, const VlmSelection *selection,
    VlmCaptionTaker take, gpointer data, GError **error);
void vlm_line_free (VlmLine *line);

/*
 * Captions the input, going on after the captions that it has. Sets its state, its message and, if
 * it was played to its end, its end. Once *stop is not 0 (atomically), the caption that is being
 * made is waited for, nothing more. FALSE with an error: no more inputs can be captioned, because of
 * the model.
 */
gboolean vlm_line_play (VlmLine *line, VlmInput *input, gint *stop, GError **error);

/* How far the line is, in ns after the start of its input, for a display; -1: not known. From any thread. */
void vlm_line_get_progress (VlmLine *line, gint64 *start, gint64 *position, gint64 *duration);

#endif
