/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * vlm-bench: how fast this machine is. The programs stand above engine/vlm.h; this one looks below
 * it with --kernels, which is about the kernels themselves, one by one and level by level.
 */

#include "config.h"

#include <stdio.h>

#include "bench-kernels.h"
#include "output.h"

#define EXIT_USAGE 2
#define MAX_THREADS 1024

#define SUMMARY                                                                                    \
  "Measures what the kernels of the engine reach on this machine, each beside its limit."

#define DESCRIPTION                                                                                \
  "Products of matrices are given in GOPS or GFLOPS (10^9 operations a second, a product and "     \
  "its\n"                                                                                          \
  "addition being two) beside the rate of the level's multiplying instructions on registers "      \
  "alone;\n"                                                                                       \
  "those of one row or a few in GB/s of weights beside a plain read of the same memory; all "      \
  "else\n"                                                                                         \
  "in 10^9 values a second. Rows x K x columns. All threads work at once and their rates are\n"    \
  "added up; the time of a thread is what it had of a processor. Each figure is the median of 7\n" \
  "runs, measured in turn with the limit. A level has lines for what the levels above it in the\n" \
  "table have not, and all with --level.\n"                                                        \
  "\n"                                                                                             \
  "Exit status: 0 when all went well, 1 when something failed, 2 for a wrong command line.\n"

typedef struct
{
  gboolean kernels, json, quick, version;
  gint threads;
  gchar *level;
} Options;

static gboolean
wrong (GError **error, const gchar *message)
{
  g_set_error_literal (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, message);
  return FALSE;
}

static gboolean
check_options (Options *options, GError **error)
{
  if (!options->kernels)
    return wrong (error, "nothing is asked for, expected --kernels");
  if (options->threads < 0 || options->threads > MAX_THREADS)
    return wrong (error, "--threads is out of range, expected 0 to 1024");
  return TRUE;
}

static gboolean
parse (Options *options, gint argc, gchar **argv, GError **error)
{
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  const GOptionEntry entries[] = {
    { "kernels", 0, 0, G_OPTION_ARG_NONE, &options->kernels, "Measure the kernels", NULL },
    { "threads", 'j', 0, G_OPTION_ARG_INT, &options->threads,
        "Threads at once; 0: as many as CPUs may be used (0)", "N" },
    { "level", 0, 0, G_OPTION_ARG_STRING, &options->level,
        "Only this level of instructions, with all that it takes from those below it", "NAME" },
    { "quick", 0, 0, G_OPTION_ARG_NONE, &options->quick,
        "Small shapes and short runs, to see that it works", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &options->json, "Print one JSON object", NULL },
    { "version", 0, 0, G_OPTION_ARG_NONE, &options->version, "Print the version", NULL },
    { NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL },
  };

  g_option_context_add_main_entries (context, entries, NULL);
  g_option_context_set_summary (context, SUMMARY);
  g_option_context_set_description (context, DESCRIPTION);
  if (!g_option_context_parse (context, &argc, &argv, error))
    return FALSE;
  if (argc > 1)
    return wrong (error, "words are left over on the command line");
  return options->version || check_options (options, error);
}

static gboolean
run (const Options *options, GError **error)
{
  const BenchKernels kernels = { (guint) options->threads, options->level, options->quick,
    options->json };

  return bench_kernels (&kernels, error);
}

int
main (int argc, char **argv)
{
  Options options = { 0 };
  g_autoptr (GError) error = NULL;
  int status = 0;

  if (!parse (&options, argc, argv, &error)) {
    fprintf (stderr, "vlm-bench: %s\nvlm-bench --help tells more.\n", error->message);
    status = EXIT_USAGE;
  } else if (options.version) {
    puts ("vlm-bench " PACKAGE_VERSION);
  } else {
    run (&options, &error);
  }
  if (status == 0 && (error != NULL || !output_flush (&error))) {
    fprintf (stderr, "vlm-bench: %s\n", error->message);
    status = 1;
  }
  g_free (options.level);
  return status;
}
