/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The table of vlm-bench --kernels, as lines or as JSON. */

#include "bench-kernels.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
  json_t *results; /* NULL: lines of text */
} Report;

/* (transfer full) what the system calls the processor */
static gchar *
cpu_name (void)
{
  g_autofree gchar *text = NULL;
  g_auto (GStrv) lines = NULL;
  guint i;

  if (!g_file_get_contents ("/proc/cpuinfo", &text, NULL, NULL))
    return g_strdup ("unknown processor");
  lines = g_strsplit (text, "\n", -1);
  for (i = 0; lines[i] != NULL; i++) {
    const gchar *colon = strchr (lines[i], ':');

    if (colon != NULL
        && (g_str_has_prefix (lines[i], "model name") || g_str_has_prefix (lines[i], "CPU part")))
      return g_strstrip (g_strdup (colon + 1));
  }

  return g_strdup ("unknown processor");
}

/* Others that work on the machine meanwhile take from its caches and its memory. */
static json_t *
machine (void)
{
  g_autofree gchar *cpu = cpu_name ();
  gdouble load = 0;

  if (getloadavg (&load, 1) != 1)
    load = 0;
  return json_pack ("{s:s, s:i, s:f, s:s, s:s}", "cpu", cpu, "cpus", (int) g_get_num_processors (),
      "load", load, "best_level", vlm_cpu_level_name (vlm_cpu_best_level ()), "compiler",
      __VERSION__);
}

static void
report (const BenchResult *r, gpointer user_data)
{
  Report *into = user_data;

  if (into->results != NULL) {
    json_array_append_new (into->results,
        json_pack ("{s:s, s:s, s:s, s:s, s:s, s:f, s:o, s:o}", "level", r->level, "kernel",
            r->kernel, "format", r->format, "shape", r->shape, "unit", r->unit, "rate", r->rate,
            "limit", r->limit > 0 ? json_real (r->limit) : json_null (), "share",
            r->limit > 0 ? json_real (r->share) : json_null ()));
    return;
  }
  printf ("%-13s %-15s %-21s %-15s %9.2f %-6s", r->level, r->kernel, r->format, r->shape, r->rate,
      r->unit);
  if (r->limit > 0)
    printf (" %9.2f %4.0f %%", r->limit, r->share * 100);
  printf ("\n");
  fflush (stdout);
}

static void
print_head (const json_t *machine, guint threads)
{
  printf ("# %s, %d CPUs, load %.2f; best level %s; compiler %s; %u threads\n",
      json_string_value (json_object_get (machine, "cpu")),
      (int) json_integer_value (json_object_get (machine, "cpus")),
      json_real_value (json_object_get (machine, "load")),
      json_string_value (json_object_get (machine, "best_level")),
      json_string_value (json_object_get (machine, "compiler")), threads);
  printf ("%-13s %-15s %-21s %-15s %9s %-6s %9s %6s\n", "level", "kernel", "format", "shape",
      "rate", "", "limit", "share");
}

/* Whether the wanted level is there, if one is. */
static gboolean
measure_levels (const Bench *bench, GError **error)
{
  guint n_levels, i, n_found = 0;
  g_autofree BenchLevel *levels = bench_levels (&n_levels);

  for (i = 0; i < n_levels; i++) {
    const gchar *name = levels[i].kernels.name;
    BenchEntries entries = bench_entries (bench, levels, i);

    if (bench->level != NULL && strcmp (bench->level, name) != 0)
      continue;
    n_found++;
    bench_products (bench, &levels[i], &entries);
    bench_functions (bench, &levels[i], &entries);
  }
  if (n_found > 0)
    return TRUE;
  g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
      "This processor or build has no level %s; it has up to %s", bench->level,
      vlm_cpu_level_name (vlm_cpu_best_level ()));
  return FALSE;
}

gboolean
bench_kernels (const BenchKernels *options, GError **error)
{
  guint n_threads = options->n_threads > 0 ? options->n_threads : g_get_num_processors ();
  Report into = { options->json ? json_array () : NULL };
  Bench bench = { n_threads, options->quick, options->level, report, &into };
  json_t *about = machine (), *all;
  gboolean done;

  if (!options->json)
    print_head (about, n_threads);
  done = measure_levels (&bench, error);
  all = json_pack ("{s:o, s:i, s:i, s:b, s:o?}", "machine", about, "threads", (int) n_threads,
      "runs", BENCH_RUNS, "quick", options->quick, "results", into.results);
  if (done && options->json) {
    json_dumpf (all, stdout, JSON_INDENT (1) | JSON_REAL_PRECISION (5));
    printf ("\n");
  }
  json_decref (all);

  return done;
}
