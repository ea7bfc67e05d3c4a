/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The command line of vlm-caption. */

#ifndef TOOLS_CAPTION_OPTIONS_H
#define TOOLS_CAPTION_OPTIONS_H

#include "caption/run-options.h"
#include "engine/vlm.h"

#define CAPTION_DEFAULT_PROMPT "Describe this picture in one sentence."

/* In numbers -1 means: as the model's files say. */
typedef struct
{
  gchar *model;         /* path; NULL: nothing was said */
  gchar *mmproj;        /* path of a GGUF model's vision part, or NULL */
  gchar *prompt;        /* never NULL */
  gchar *system_prompt; /* or NULL */
  gchar *dump;          /* directory, or NULL */
  VlmPrecision precision;
  VlmTiling tiling;
  gint max_tokens;
  gdouble temperature;
  gint top_k;
  gdouble top_p, min_p, repetition_penalty;
  gint64 seed;
  gint min_image_tokens, max_image_tokens;
  gint threads; /* 0: as many as CPUs may be used */
  gboolean timings;
  gchar **pictures; /* inputs as they were named, NULL-terminated; never NULL */
  guint n_pictures;
  VlmRunOptions run;
} CaptionOptions;

typedef enum
{
  CAPTION_OPTIONS_RUN,
  CAPTION_OPTIONS_DONE, /* --version or --help was answered */
  CAPTION_OPTIONS_WRONG /* error is set */
} CaptionOptionsOutcome;

/* Takes the options out of the command line. */
CaptionOptionsOutcome caption_options_parse (
    CaptionOptions *options, gint argc, gchar **argv, GError **error);
void caption_options_clear (CaptionOptions *options);

#endif
