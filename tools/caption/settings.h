/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The options that captions depend on, kept with them, so that a run that goes on with others can tell. Those of how is
 * computed (--threads, --precision) and of outputs are none of them.
 */

#ifndef TOOLS_CAPTION_SETTINGS_H
#define TOOLS_CAPTION_SETTINGS_H

#include "../caption-options.h"

/*
 * (transfer full) a JSON object with a text for each option that is not what it is by itself, in one spelling for
 * one meaning: {"frames": "--every 1s", "prompt": "Hi"}.
 */
gchar *vlm_settings_new (const CaptionOptions *options);

/*
 * Compares the settings with those of the inputs that have captions (of VlmInput). For an input that is to be
 * captioned further others are an error (G_OPTION_ERROR) that names it and both values of an option. For one that is
 * done that is added to notes (of gchar *).
 */
gboolean vlm_settings_check (
    const gchar *settings, const GPtrArray *inputs, GPtrArray *notes, GError **error);

#endif
