/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "caption-options.h"

#include <stdio.h>
#include <string.h>

#include "caption/help.h"

#define SUMMARY "Describes each INPUT in words: videos, pictures, folders of them, URIs."

#define DESCRIPTION                                                                                \
  "Each INPUT goes through the GStreamer element vlmcaption. With --dump, or without an INPUT,\n"  \
  "the model is called directly and all INPUTs, which must be pictures, belong to one prompt, "    \
  "in\n"                                                                                           \
  "the order given. With --timings it is called directly too, once for each INPUT.\n"              \
  "\n"                                                                                             \
  "Numbers that are not given are those of the model's files.\n"                                   \
  "\n"                                                                                             \
  "Environment:\n"                                                                                 \
  "  VLMCAPTION_MODEL   the model when --model is not given; without both, the small built-in\n"   \
  "                     one is used, which only knows shapes and test patterns\n"                  \
  "  VLM_CPU            highest CPU level that may be used: scalar, avx2, avx512, neon, ...\n"     \
  "\n"                                                                                             \
  "Exit status: 0 when all went well, 1 when an input, an output or the model failed, 2 for a\n"   \
  "wrong command line, 130 after Ctrl-C.\n"                                                        \
  "\n"                                                                                             \
  "A real model: hf download LiquidAI/LFM2.5-VL-450M --local-dir DIR\n"

/* In the order of VlmPrecision. */
static const gchar *const precisions[] = { "auto", "exact", "fast", NULL };
static const gchar *const tilings[] = { "auto", "on", "off", NULL };

static gboolean
parse_choice (const gchar *option, const gchar *found, const gchar *const *choices, gint *choice,
    GError **error)
{
  g_autofree gchar *expected = NULL;
  gint i;

  for (i = 0; choices[i] != NULL; i++) {
    if (found == NULL || strcmp (found, choices[i]) == 0) {
      *choice = i;
      return TRUE;
    }
  }
  expected = g_strjoinv (" or ", (gchar **) choices);
  vlm_option_refuse (error, option, found, expected);
  return FALSE;
}

static gboolean
check_range (const gchar *option, gdouble value, gdouble min, gdouble max, const gchar *expected,
    GError **error)
{
  g_autofree gchar *found = NULL;

  if (value >= min && value <= max)
    return TRUE;
  /* Enough digits to tell a value from the limit that it just misses. */
  found = g_strdup_printf ("%.15g", value);
  return vlm_option_refuse (error, option, found, expected);
}

/* Passes -1, the unset value, too. */
static gboolean
check_number (const gchar *option, gdouble value, gdouble min, gdouble max, const gchar *expected,
    GError **error)
{
  return value == -1 || check_range (option, value, min, max, expected, error);
}

/* The ranges are those of the engine. */

static gboolean
check_numbers (const CaptionOptions *options, GError **error)
{
  return check_number ("max-tokens", options->max_tokens, 1, G_MAXINT, "at least 1", error)
      && check_number ("temperature", options->temperature, 0, 100, "0 to 100", error)
      && check_number ("top-k", options->top_k, 0, G_MAXINT, "at least 0", error)
      && check_number ("top-p", options->top_p, 0, 1, "0 to 1", error)
      && check_number ("min-p", options->min_p, 0, 1, "0 to 1", error)
      && check_number (
          "repetition-penalty", options->repetition_penalty, 0.01, 100, "0.01 to 100", error)
      && check_number ("seed", options->seed, 0, (gdouble) G_MAXINT64, "at least 0", error)
      && check_number ("min-image-tokens", options->min_image_tokens, 1, 8192, "1 to 8192", error)
      && check_number ("max-image-tokens", options->max_image_tokens, 1, 8192, "1 to 8192", error)
      && check_range ("threads", options->threads, 0, 1024, "0 to 1024", error);
}

static void
set_defaults (CaptionOptions *options)
{
  memset (options, 0, sizeof (*options));
  options->max_tokens = options->top_k = -1;
  options->temperature = options->top_p = options->min_p = options->repetition_penalty = -1;
  options->seed = -1;
  options->min_image_tokens = options->max_image_tokens = -1;
}

/* Options of both ways of captioning at once cannot be meant. */
static gboolean
check_ways (const CaptionOptions *options, GError **error)
{
  const gchar *output = vlm_run_options_find_output (&options->run);

  if (output == NULL || (options->dump == NULL && !options->timings && options->n_pictures > 0))
    return TRUE;
  g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED,
      options->n_pictures == 0 ? "%s needs an INPUT"
                               : "%s does not go together with --dump and --timings",
      output);
  return FALSE;
}

/* What is left unsaid: the model of the environment, the prompt, no input. */
static gboolean
complete (CaptionOptions *options, GError **error)
{
  const gchar *model = g_getenv ("VLMCAPTION_MODEL");

  if (options->model == NULL && model != NULL && model[0] != '\0')
    options->model = g_strdup (model);
  if (options->pictures == NULL)
    options->pictures = g_new0 (gchar *, 1);
  options->n_pictures = g_strv_length (options->pictures);
  if (options->prompt == NULL && options->n_pictures == 0) {
    g_set_error_literal (
        error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "neither an INPUT nor a --prompt was given");
    return FALSE;
  }
  if (options->prompt == NULL)
    options->prompt = g_strdup (CAPTION_DEFAULT_PROMPT);
  return check_ways (options, error);
}

/* What the command line says in words that are still to be understood. */
typedef struct
{
  gchar *precision, *tiling;
  gboolean version, help, help_all;
} Words;

/* Texts are taken as file names are: byte for byte, not through the locale. */
static gboolean
read_command_line (CaptionOptions *options, Words *words, gint argc, gchar **argv, GError **error)
{
  g_autoptr (GOptionContext) context = g_option_context_new ("[INPUT...]");
  const GOptionEntry entries[] = {
    { "model", 'm', 0, G_OPTION_ARG_FILENAME, &options->model,
        "A directory of a Hugging Face model, or a .slm, .cellm or GGUF file", "MODEL" },
    { "mmproj", 0, 0, G_OPTION_ARG_FILENAME, &options->mmproj,
        "The vision part of a GGUF model that is not beside it", "FILE" },
    { "prompt", 'p', 0, G_OPTION_ARG_FILENAME, &options->prompt,
        "What to ask (" CAPTION_DEFAULT_PROMPT ")", "TEXT" },
    { "system-prompt", 0, 0, G_OPTION_ARG_FILENAME, &options->system_prompt,
        "Instruction before the prompt", "TEXT" },
    { "max-tokens", 'n', 0, G_OPTION_ARG_INT, &options->max_tokens, "Longest answer in tokens",
        "N" },
    { "temperature", 't', 0, G_OPTION_ARG_DOUBLE, &options->temperature,
        "Randomness of the wording; 0: none", "T" },
    { "top-k", 0, 0, G_OPTION_ARG_INT, &options->top_k, "Sample among this many tokens; 0: all",
        "K" },
    { "top-p", 0, 0, G_OPTION_ARG_DOUBLE, &options->top_p,
        "Sample among tokens of this total probability; 1: all", "P" },
    { "min-p", 0, 0, G_OPTION_ARG_DOUBLE, &options->min_p,
        "Sample among tokens of this share of the likeliest one's probability", "P" },
    { "repetition-penalty", 0, 0, G_OPTION_ARG_DOUBLE, &options->repetition_penalty,
        "Divides the score of tokens used before; 1: none", "R" },
    { "seed", 's', 0, G_OPTION_ARG_INT64, &options->seed, "Seed of the sampler", "N" },
    { "min-image-tokens", 0, 0, G_OPTION_ARG_INT, &options->min_image_tokens,
        "Fewest tokens of a picture", "N" },
    { "max-image-tokens", 0, 0, G_OPTION_ARG_INT, &options->max_image_tokens,
        "Most tokens of an untiled picture", "N" },
    { "tiling", 0, 0, G_OPTION_ARG_STRING, &words->tiling,
        "Whether large pictures are cut into tiles: auto, on or off", "WHEN" },
    { "precision", 0, 0, G_OPTION_ARG_STRING, &words->precision,
        "exact: in f32; fast: in integers; auto: fast for a quantised model", "KIND" },
    { "threads", 'j', 0, G_OPTION_ARG_INT, &options->threads,
        "Threads to compute with; 0: as many as CPUs may be used", "N" },
    { "dump", 0, 0, G_OPTION_ARG_FILENAME, &options->dump, "Write every stage to DIR as .npy",
        "DIR" },
    { "timings", 0, 0, G_OPTION_ARG_NONE, &options->timings,
        "Print the time of each stage and the peak memory", NULL },
    { "version", 0, 0, G_OPTION_ARG_NONE, &words->version, "Print the version", NULL },
    { "help", 'h', 0, G_OPTION_ARG_NONE, &words->help, "Print a screen of help", NULL },
    { "help-all", 0, 0, G_OPTION_ARG_NONE, &words->help_all, "Print this", NULL },
    { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options->pictures, NULL, NULL },
    { NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL },
  };

  g_option_context_add_main_entries (context, entries, NULL);
  g_option_context_set_summary (context, SUMMARY);
  g_option_context_set_description (context, DESCRIPTION);
  /* GLib's own help is longer than a screen. */
  g_option_context_set_help_enabled (context, FALSE);
  vlm_run_options_add (&options->run, context);
  if (!g_option_context_parse (context, &argc, &argv, error))
    return FALSE;
  if (words->help_all) {
    g_autofree gchar *text = g_option_context_get_help (context, FALSE, NULL);

    fputs (text, stdout);
  }
  return TRUE;
}

static gboolean
understand (CaptionOptions *options, const Words *words, GError **error)
{
  gint choice;

  if (!parse_choice ("precision", words->precision, precisions, &choice, error))
    return FALSE;
  options->precision = (VlmPrecision) choice;
  if (!parse_choice ("tiling", words->tiling, tilings, &choice, error))
    return FALSE;
  options->tiling = choice == 1 ? VLM_TILING_ON : choice == 2 ? VLM_TILING_OFF : VLM_TILING_AUTO;
  return check_numbers (options, error) && vlm_run_options_complete (&options->run, error)
      && complete (options, error);
}

CaptionOptionsOutcome
caption_options_parse (CaptionOptions *options, gint argc, gchar **argv, GError **error)
{
  CaptionOptionsOutcome outcome = CAPTION_OPTIONS_WRONG;
  Words words = { NULL, NULL, FALSE, FALSE, FALSE };

  set_defaults (options);
  if (read_command_line (options, &words, argc, argv, error)) {
    if (words.version || words.help || words.help_all) {
      if (words.version)
        puts ("vlm-caption " PACKAGE_VERSION);
      if (words.help)
        fputs (vlm_help_text, stdout);
      outcome = CAPTION_OPTIONS_DONE;
    } else if (understand (options, &words, error)) {
      outcome = CAPTION_OPTIONS_RUN;
    }
  }
  g_free (words.precision);
  g_free (words.tiling);
  return outcome;
}

void
caption_options_clear (CaptionOptions *options)
{
  g_free (options->model);
  g_free (options->mmproj);
  g_free (options->prompt);
  g_free (options->system_prompt);
  g_free (options->dump);
  g_strfreev (options->pictures);
  vlm_run_options_clear (&options->run);
  memset (options, 0, sizeof (*options));
}
