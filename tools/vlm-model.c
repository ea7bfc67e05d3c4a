/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* vlm-model: what one does with a model besides asking it. */

#include "config.h"

#include <stdio.h>
#include <string.h>

#include "convert.h"
#include "info.h"
#include "job.h"
#include "output.h"
#include "synth.h"
#include "tokens.h"
#include "verify.h"

#define EXIT_USAGE 2
/* And the number of the signal, as shells tell it. */
#define EXIT_SIGNAL 128

#define SUMMARY                                                                                    \
  "Commands:\n"                                                                                    \
  "  info [--json] MODEL         Tell what a model is\n"                                           \
  "  verify MODEL                Look for damage: checksums, shapes, numbers that are none\n"      \
  "  convert [--type TYPE] [--vision-type TYPE] [--requantise] MODEL FILE.slm\n"                   \
  "                              Write a model to one file, its weights as TYPE\n"                 \
  "  tokenize [--json] MODEL     Read one text a line, print its ids\n"                            \
  "  detokenize [--json] MODEL   Read the ids of one text a line, print the text\n"                \
  "  synth --preset NAME [--seed N] [--outliers N] DIR\n"                                          \
  "                              Write a full-size checkpoint of random weights\n"                 \
  "\n"                                                                                             \
  "MODEL is a directory as hf download leaves it, a .slm or .cellm file, or the text file of a\n"  \
  "GGUF model or its directory."

#define DESCRIPTION                                                                                \
  "convert takes f16, int8 (one scale a row), int4 (one scale for 64 values), or keep, which "     \
  "leaves\n"                                                                                       \
  "integers as they are and makes f16 of floats; keep is what is done without --type when MODEL "  \
  "has\n"                                                                                          \
  "integers. Tower and projector get f16 with f16, keep with keep, else int8, unless "             \
  "--vision-type\n"                                                                                \
  "says otherwise; int4 is not for them. Integers are not rounded a second time unless\n"          \
  "--requantise allows it. FILE.slm appears, or is replaced, in one step at the end; when "        \
  "anything\n"                                                                                     \
  "fails nothing is left behind.\n"                                                                \
  "\n"                                                                                             \
  "verify prints a line for each problem, and for each deviation from the published size.\n"       \
  "\n"                                                                                             \
  "tokenize splits added tokens off as tokenizer.json says; with --json each line is a JSON\n"     \
  "string, which may hold any character. detokenize is its inverse.\n"                             \
  "\n"                                                                                             \
  "Exit status: 0 when all went well, 1 when something failed or verify found a problem, 2 for "   \
  "a\n"                                                                                            \
  "wrong command line, 128 and the number of the signal after Ctrl-C and the like.\n"

typedef struct
{
  gboolean json, version, requantise;
  gchar *preset, *type, *vision_type, *mmproj;
  gint64 seed;
  gint threads, outliers;
  VlmConvertOptions convert; /* type, vision_type, requantise and threads, understood */
  gchar **words;             /* command and what it works on */
} Options;

static gboolean
wrong (GError **error, const gchar *message)
{
  g_set_error_literal (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, message);
  return FALSE;
}

/* The numbers of words are those behind the command. */
static gboolean
check_words (const Options *options, GError **error)
{
  static const gchar *const commands[] = { "info", "verify", "convert", "tokenize", "detokenize",
    "synth", NULL };
  guint n = options->words != NULL ? g_strv_length (options->words) : 0, wanted;

  if (n == 0)
    return wrong (error, "no command was given");
  if (!g_strv_contains (commands, options->words[0])) {
    g_set_error (
        error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "%s is no command", options->words[0]);
    return FALSE;
  }
  wanted = strcmp (options->words[0], "convert") == 0 ? 2 : 1;
  if (n != wanted + 1) {
    g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "%s works on %s, %u were given",
        options->words[0], wanted == 2 ? "a model and a file to write" : "one model or directory",
        n - 1);
    return FALSE;
  }
  if (strcmp (options->words[0], "synth") == 0 && options->preset == NULL)
    return wrong (error, "synth needs a --preset");
  if (options->outliers < 0 || options->outliers > SYNTH_MAX_OUTLIERS)
    return wrong (error, "--outliers is out of range, expected 0 to 16");
  return TRUE;
}

static gboolean
understand_convert (Options *options, GError **error)
{
  if (strcmp (options->words[0], "convert") != 0)
    return TRUE;
  if (options->threads < 0 || options->threads > 1024)
    return wrong (error, "--threads is out of range, expected 0 to 1024");
  options->convert.requantise = options->requantise;
  options->convert.n_threads = (guint) options->threads;
  options->convert.mmproj = options->mmproj;
  return (options->type == NULL
             || convert_parse_type ("type", options->type, &options->convert.text_type, error))
      && (options->vision_type == NULL
          || convert_parse_type (
              "vision-type", options->vision_type, &options->convert.vision_type, error));
}

static gboolean
parse (Options *options, gint argc, gchar **argv, GError **error)
{
  g_autoptr (GOptionContext) context = g_option_context_new ("COMMAND MODEL [FILE]");
  g_autofree gchar *presets = synth_preset_names ();
  g_autofree gchar *preset_help = g_strdup_printf ("synth: one of %s", presets);
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &options->json, "Print JSON; texts are JSON strings", NULL },
    { "mmproj", 0, 0, G_OPTION_ARG_FILENAME, &options->mmproj,
        "info, verify, convert: vision part of a GGUF model; without, the one beside it", "FILE" },
    { "type", 't', 0, G_OPTION_ARG_STRING, &options->type, "convert: f16, int8, int4 or keep",
        "TYPE" },
    { "vision-type", 0, 0, G_OPTION_ARG_STRING, &options->vision_type,
        "convert: f16, int8 or keep, of tower and projector", "TYPE" },
    { "requantise", 0, 0, G_OPTION_ARG_NONE, &options->requantise,
        "convert: round integers a second time", NULL },
    { "threads", 'j', 0, G_OPTION_ARG_INT, &options->threads,
        "convert: threads to compute with; 0: as many as CPUs may be used", "N" },
    { "preset", 0, 0, G_OPTION_ARG_STRING, &options->preset, preset_help, "NAME" },
    { "seed", 0, 0, G_OPTION_ARG_INT64, &options->seed, "synth: start of the random numbers (0)",
        "N" },
    { "outliers", 0, 0, G_OPTION_ARG_INT, &options->outliers,
        "synth: channels that stand out, 0 to 16 (0)", "N" },
    { "version", 0, 0, G_OPTION_ARG_NONE, &options->version, "Print the version", NULL },
    { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options->words, NULL, NULL },
    { NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL },
  };

  g_option_context_add_main_entries (context, entries, NULL);
  g_option_context_set_summary (context, SUMMARY);
  g_option_context_set_description (context, DESCRIPTION);
  return g_option_context_parse (context, &argc, &argv, error)
      && (options->version
          || (check_words (options, error) && understand_convert (options, error)));
}

static gboolean
run (const Options *options, GError **error)
{
  const gchar *command = options->words[0], *path = options->words[1];
  g_autoptr (VlmTokenizer) tokenizer = NULL;

  if (strcmp (command, "info") == 0)
    return info_print (path, options->mmproj, options->json, error);
  if (strcmp (command, "verify") == 0)
    return verify_model (path, options->mmproj, error);
  if (strcmp (command, "convert") == 0)
    return convert_model (path, options->words[2], &options->convert, error);
  if (strcmp (command, "synth") == 0)
    return synth_write (options->preset, options->seed, (guint) options->outliers, path, error);
  tokenizer = vlm_tokenizer_load (path, error);
  if (tokenizer == NULL)
    return FALSE;
  if (strcmp (command, "tokenize") == 0)
    return tokens_from_text (tokenizer, options->json, error);
  return tokens_to_text (tokenizer, options->json, error);
}

int
main (int argc, char **argv)
{
  Options options = { 0 };
  g_autoptr (GError) error = NULL;
  int status = 0;

  if (!parse (&options, argc, argv, &error)) {
    fprintf (stderr, "vlm-model: %s\nvlm-model --help tells more.\n", error->message);
    status = EXIT_USAGE;
  } else if (options.version) {
    puts ("vlm-model " PACKAGE_VERSION);
  } else {
    run (&options, &error);
  }
  if (status == 0 && (error != NULL || !output_flush (&error))) {
    fprintf (stderr, "vlm-model: %s\n", error->message);
    status = 1;
    if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED) && job_get_signal () != 0)
      status = EXIT_SIGNAL + job_get_signal ();
  }
  g_free (options.preset);
  g_free (options.type);
  g_free (options.vision_type);
  g_free (options.mmproj);
  g_strfreev (options.words);
  return status;
}
