/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* vlm-model: what one does with a model besides asking it. */

#include "config.h"

#include <stdio.h>
#include <string.h>

#include "output.h"
#include "synth.h"
#include "tokens.h"

#define EXIT_USAGE 2

#define SUMMARY                                                                                    \
  "Commands:\n"                                                                                    \
  "  tokenize [--json] MODEL     Read one text a line, print its ids\n"                            \
  "  detokenize [--json] MODEL   Read the ids of one text a line, print the text\n"                \
  "  synth --preset NAME [--seed N] DIR\n"                                                         \
  "                              Write a full-size checkpoint of random weights"

#define DESCRIPTION                                                                                \
  "tokenize splits added tokens off as tokenizer.json says; with --json each line is a JSON\n"     \
  "string, which may hold any character. detokenize is its inverse.\n"                             \
  "\n"                                                                                             \
  "Exit status: 0 when all went well, 1 when something failed, 2 for a wrong command line.\n"

typedef struct
{
  gboolean json, version;
  gchar *preset;
  gint64 seed;
  gchar **words; /* command and what it works on */
} Options;

static gboolean
wrong (GError **error, const gchar *message)
{
  g_set_error_literal (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, message);
  return FALSE;
}

static gboolean
check_words (const Options *options, GError **error)
{
  static const gchar *const commands[] = { "tokenize", "detokenize", "synth", NULL };
  guint n = options->words != NULL ? g_strv_length (options->words) : 0;

  if (n == 0)
    return wrong (error, "no command was given");
  if (!g_strv_contains (commands, options->words[0])) {
    g_set_error (
        error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, "%s is no command", options->words[0]);
    return FALSE;
  }
  if (n != 2) {
    g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED,
        "%s works on one directory, %u were given", options->words[0], n - 1);
    return FALSE;
  }
  if (strcmp (options->words[0], "synth") == 0 && options->preset == NULL)
    return wrong (error, "synth needs a --preset");
  return TRUE;
}

static gboolean
parse (Options *options, gint argc, gchar **argv, GError **error)
{
  g_autoptr (GOptionContext) context = g_option_context_new ("COMMAND DIR");
  g_autofree gchar *presets = synth_preset_names ();
  g_autofree gchar *preset_help = g_strdup_printf ("synth: one of %s", presets);
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &options->json, "Texts are JSON strings", NULL },
    { "preset", 0, 0, G_OPTION_ARG_STRING, &options->preset, preset_help, "NAME" },
    { "seed", 0, 0, G_OPTION_ARG_INT64, &options->seed, "synth: start of the random numbers (0)",
        "N" },
    { "version", 0, 0, G_OPTION_ARG_NONE, &options->version, "Print the version", NULL },
    { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options->words, NULL, NULL },
    { NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL },
  };

  g_option_context_add_main_entries (context, entries, NULL);
  g_option_context_set_summary (context, SUMMARY);
  g_option_context_set_description (context, DESCRIPTION);
  return g_option_context_parse (context, &argc, &argv, error)
      && (options->version || check_words (options, error));
}

static gboolean
run (const Options *options, GError **error)
{
  const gchar *command = options->words[0], *path = options->words[1];
  g_autoptr (VlmTokenizer) tokenizer = NULL;

  if (strcmp (command, "synth") == 0)
    return synth_write (options->preset, options->seed, path, error);
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
  }
  g_free (options.preset);
  g_strfreev (options.words);
  return status;
}
