/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Cues as a stream of text beside the video that they are of. */

#ifndef TOOLS_CAPTION_CUE_SOURCE_H
#define TOOLS_CAPTION_CUE_SOURCE_H

#include "cue.h"
#include "graph.h"

/* Makes of a caption what the stream is to say; nothing is sent for what is empty. (transfer full) */
typedef gchar *(*VlmCueText) (const gchar *text);

/*
 * Links a source of the cues, as text/x-raw of the format utf8, to the pad; for a graph's prepare.
 * It sends all of them as soon as the first frame of the graph's video is there, whose time is
 * that of a cue at 0, and then the end of its stream: whoever takes text and video together knows at
 * any time what comes next, and never waits.
 */
gboolean vlm_cue_source_add (
    VlmGraph *graph, const GPtrArray *cues, VlmCueText text, GstPad *to, GError **error);

#endif
