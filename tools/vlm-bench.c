/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * vlm-bench: how fast this machine is. The programs stand above engine/vlm.h; this one looks below
 * it with --kernels, which is about the kernels themselves, one by one and level by level.
 */

#include "config.h"

#include <stdio.h>

#include "bench-kernels.h"
#include "bench-scaling.h"
#include "bench-stages.h"
#include "output.h"

#define EXIT_USAGE 2
#define EXIT_MISSED 3
#define MAX_THREADS 1024
#define MAX_RUNS 1000
#define MAX_TOKENS 100000
#define PICTURE_SIDE 512

#define SUMMARY                                                                                    \
  "Measures how long each stage of a caption takes with MODEL on this machine or, with "           \
  "--kernels,\n"                                                                                   \
  "what the kernels of the engine reach, each beside its limit."

#define DESCRIPTION                                                                                \
  "The stages are those of one picture of 512 x 512, untiled, and an answer of --max-tokens; "     \
  "times\n"                                                                                        \
  "are medians, after one run that does not count; total is from the frame to its caption. What "  \
  "a\n"                                                                                            \
  "token reads of weights stands beside a plain read of memory by the same threads, measured\n"    \
  "between the runs; and the rate of each stage beside its roof: the multiplying instructions "    \
  "of\n"                                                                                           \
  "the level on registers alone, or what its bytes allow at the rate of that read, if that is "    \
  "less.\n"                                                                                        \
  "\n"                                                                                             \
  "--scaling measures vision and prefill with one thread and more, with 64 to 256 image tokens, "  \
  "1 to\n"                                                                                         \
  "10 tiles and prompts of 64 to 1024 words, all in turn. Each thread is to add 92.5 %, and no "   \
  "case\n"                                                                                         \
  "may take over 1.25 times as long for the same work as a smaller one.\n"                         \
  "\n"                                                                                             \
  "Products of matrices are given in GOPS or GFLOPS (10^9 operations a second, a product and "     \
  "its\n"                                                                                          \
  "addition being two) beside the rate of the level's multiplying instructions on registers "      \
  "alone;\n"                                                                                       \
  "those of one row or a few in GB/s of weights beside a plain read of the same memory; all "      \
  "else\n"                                                                                         \
  "in 10^9 values a second. Rows x K x columns. All threads work at once and their rates are\n"    \
  "added up; the time of a thread is what it had of a processor. Each figure is the median of 7\n" \
  "runs, measured in turn with the limit. A level has lines for what the levels above it in the\n" \
  "table have not, and all with --level. The last line tells what it costs to hand work to the\n"  \
  "threads and to wait for them.\n"                                                                \
  "\n"                                                                                             \
  "Exit status: 0 when all went well, 1 when something failed, 2 for a wrong command line, 3 "     \
  "when\n"                                                                                         \
  "--scaling found something to grow faster than it should.\n"

typedef struct
{
  gboolean kernels, json, quick, version;
  gint threads, runs, max_tokens;
  gchar *level, *precision, *mmproj, *plot, *roofline, *scaling;
  gchar **words; /* the model */
} Options;

static gboolean
wrong (GError **error, const gchar *message)
{
  g_set_error_literal (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, message);
  return FALSE;
}

/* "auto", "exact" or "fast"; -1 for anything else. */
static gint
precision_from_name (const gchar *name)
{
  static const gchar *const names[] = { "auto", "exact", "fast" };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (names); i++) {
    if (g_strcmp0 (name, names[i]) == 0)
      return (gint) i;
  }
  return name == NULL ? VLM_PRECISION_AUTO : -1;
}

static gboolean
check_options (Options *options, GError **error)
{
  guint n_words = options->words != NULL ? g_strv_length (options->words) : 0;

  if (options->kernels && n_words > 0)
    return wrong (error, "--kernels takes no model");
  if (options->kernels && (options->plot != NULL || options->roofline != NULL))
    return wrong (error, "--plot and --roofline draw the stages of a model, not kernels");
  if (options->scaling != NULL && !bench_scaling_is_series (options->scaling))
    return wrong (error, "--scaling is threads, image, tiles, prompt or all");
  if (options->scaling != NULL
      && (options->kernels || options->plot != NULL || options->roofline != NULL))
    return wrong (error, "--scaling goes with neither --kernels, --plot nor --roofline");
  if (!options->kernels && n_words != 1)
    return wrong (error, "expected one model, or --kernels");
  if (precision_from_name (options->precision) < 0)
    return wrong (error, "--precision is auto, exact or fast");
  if (options->threads < 0 || options->threads > MAX_THREADS)
    return wrong (error, "--threads is out of range, expected 0 to 1024");
  if (options->runs < 1 || options->runs > MAX_RUNS)
    return wrong (error, "--runs is out of range, expected 1 to 1000");
  if (options->max_tokens < 1 || options->max_tokens > MAX_TOKENS)
    return wrong (error, "--max-tokens is out of range, expected 1 to 100000");
  return TRUE;
}

static gboolean
parse (Options *options, gint argc, gchar **argv, GError **error)
{
  g_autoptr (GOptionContext) context = g_option_context_new ("[MODEL]");
  const GOptionEntry entries[] = {
    { "kernels", 0, 0, G_OPTION_ARG_NONE, &options->kernels, "Measure the kernels", NULL },
    { "threads", 'j', 0, G_OPTION_ARG_INT, &options->threads,
        "Threads at once; 0: as many as CPUs may be used (0)", "N" },
    { "runs", 0, 0, G_OPTION_ARG_INT, &options->runs, "Answers that count (5)", "N" },
    { "max-tokens", 'n', 0, G_OPTION_ARG_INT, &options->max_tokens, "Tokens of an answer (48)",
        "N" },
    { "precision", 0, 0, G_OPTION_ARG_STRING, &options->precision, "auto, exact or fast", "KIND" },
    { "mmproj", 0, 0, G_OPTION_ARG_FILENAME, &options->mmproj,
        "Vision part of a GGUF model; without, the one beside it", "FILE" },
    { "level", 0, 0, G_OPTION_ARG_STRING, &options->level,
        "Only this level of instructions, with all that it takes from those below it", "NAME" },
    { "quick", 0, 0, G_OPTION_ARG_NONE, &options->quick,
        "Small shapes and short runs, to see that it works", NULL },
    { "json", 0, 0, G_OPTION_ARG_NONE, &options->json, "Print one JSON object", NULL },
    { "plot", 0, 0, G_OPTION_ARG_FILENAME, &options->plot,
        "Draw the stages of a model, and how often a caption took how long", "FILE.svg" },
    { "roofline", 0, 0, G_OPTION_ARG_FILENAME, &options->roofline,
        "Draw the rate of each stage below the limits of the machine", "FILE.svg" },
    { "scaling", 0, 0, G_OPTION_ARG_STRING, &options->scaling,
        "Measure how vision and prefill grow: with threads, image, tiles, prompt or all",
        "SERIES" },
    { "version", 0, 0, G_OPTION_ARG_NONE, &options->version, "Print the version", NULL },
    { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options->words, NULL, NULL },
    { NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL },
  };

  g_option_context_add_main_entries (context, entries, NULL);
  g_option_context_set_summary (context, SUMMARY);
  g_option_context_set_description (context, DESCRIPTION);
  if (!g_option_context_parse (context, &argc, &argv, error))
    return FALSE;
  return options->version || check_options (options, error);
}

static gboolean
run_scaling (const Options *options, gboolean *met, GError **error)
{
  const BenchScaling scaling = { options->words[0], options->mmproj,
    (VlmPrecision) precision_from_name (options->precision), (guint) options->threads,
    (guint) options->runs, options->scaling, options->json };

  return bench_scaling (&scaling, met, error);
}

static gboolean
run_stages (const Options *options, GError **error)
{
  const BenchStages stages = { .model = options->words[0],
    .mmproj = options->mmproj,
    .precision = (VlmPrecision) precision_from_name (options->precision),
    .n_threads = (guint) options->threads,
    .n_runs = (guint) options->runs,
    .width = PICTURE_SIDE,
    .height = PICTURE_SIDE,
    .max_tokens = (guint) options->max_tokens,
    .json = options->json,
    .plot = options->plot,
    .roofline = options->roofline };

  return bench_stages (&stages, error);
}

/* met: whether all is as it is expected to be. */
static gboolean
run (const Options *options, gboolean *met, GError **error)
{
  const BenchKernels kernels = { (guint) options->threads, options->level, options->quick,
    options->json };

  if (options->kernels)
    return bench_kernels (&kernels, error);
  return options->scaling != NULL ? run_scaling (options, met, error) : run_stages (options, error);
}

int
main (int argc, char **argv)
{
  Options options = { .runs = 5, .max_tokens = 48 };
  g_autoptr (GError) error = NULL;
  gboolean met = TRUE;
  int status = 0;

  if (!parse (&options, argc, argv, &error)) {
    fprintf (stderr, "vlm-bench: %s\nvlm-bench --help tells more.\n", error->message);
    status = EXIT_USAGE;
  } else if (options.version) {
    puts ("vlm-bench " PACKAGE_VERSION);
  } else {
    run (&options, &met, &error);
  }
  if (status == 0 && (error != NULL || !output_flush (&error))) {
    fprintf (stderr, "vlm-bench: %s\n", error->message);
    status = 1;
  }
  if (status == 0 && !met)
    status = EXIT_MISSED;
  g_free (options.level);
  g_free (options.precision);
  g_free (options.mmproj);
  g_free (options.plot);
  g_free (options.roofline);
  g_free (options.scaling);
  g_strfreev (options.words);
  return status;
}
