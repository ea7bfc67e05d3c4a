/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The files that are made of all captions when a run is over. */

#ifndef TOOLS_CAPTION_OUTPUTS_H
#define TOOLS_CAPTION_OUTPUTS_H

#include "input.h"
#include "report.h"
#include "run-options.h"

/* (transfer container) the paths of all outputs that were asked for, NULL-terminated. */
const gchar **vlm_outputs_get_paths (const VlmRunOptions *options);

/*
 * Whether the outputs can be what is asked: each kind that is of one video is a folder if there are
 * several (a path that is one, or ends in "/"), and no output stands where an input does.
 */
gboolean vlm_outputs_check (const VlmRunOptions *options, const GPtrArray *inputs, GError **error);

/*
 * Makes them. Where partial, the run was interrupted, and no videos are made; nor are they, or the
 * rest of them, once it is cancelled. FALSE: some could not be made; that is reported.
 */
gboolean vlm_outputs_make (const VlmRunOptions *options, const GPtrArray *inputs, gboolean partial,
    GCancellable *cancellable, VlmReport *report);

#endif
