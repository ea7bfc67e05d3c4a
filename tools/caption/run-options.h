/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The options of vlm-caption that are about inputs, outputs and the run, not about the model. */

#ifndef TOOLS_CAPTION_RUN_OPTIONS_H
#define TOOLS_CAPTION_RUN_OPTIONS_H

#include <glib.h>

#include "frames.h"

typedef struct
{
  VlmSelection selection;
  gint jobs;
  /* Paths, or NULL. */
  gchar *srt, *vtt, *jsonl, *db, *html, *mkv, *burn;
  gint64 min_cue, max_cue; /* ns; 0: none */
  gboolean resume, overwrite, quiet;

  /* As they are written. */
  gchar *every_text, *fps_text, *scenes_text, *from_text, *to_text, *min_cue_text, *max_cue_text;
  gboolean scenes;
} VlmRunOptions;

/* Adds the options to the context, to be read into options, which has to be all zeros. */
void vlm_run_options_add (VlmRunOptions *options, GOptionContext *context);

/* Understands what was read. Error: which option has a wrong value, or which do not go together. */
gboolean vlm_run_options_complete (VlmRunOptions *options, GError **error);

/* Fails: "--OPTION is FOUND, expected EXPECTED". Always FALSE. */
gboolean vlm_option_refuse (
    GError **error, const gchar *option, const gchar *found, const gchar *expected);

/* Whether an option was given that only the captioning of inputs knows; its name, or NULL. */
const gchar *vlm_run_options_find_output (const VlmRunOptions *options);

void vlm_run_options_clear (VlmRunOptions *options);

#endif
