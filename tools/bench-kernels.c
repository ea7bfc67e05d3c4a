/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The table of vlm-bench --kernels, as lines or as JSON. */

#include "bench-kernels.h"
#include "bench-machine.h"

#include <stdio.h>
#include <string.h>

typedef struct
{
  json_t *results; /* NULL: lines of text */
} Report;

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
  bench_print_machine (machine, threads);
  printf ("%-13s %-15s %-21s %-15s %9s %-6s %9s %6s\n", "level", "kernel", "format", "shape",
      "rate", "", "limit", "share");
}

static void
print_team (const BenchTeam *team)
{
  printf ("# a run handed to all threads costs %.2f us, %.2f us when they were asleep\n", team->hot,
      team->asleep);
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
  json_t *about = bench_machine (), *all;
  BenchTeam team;
  gboolean done;

  if (!options->json)
    print_head (about, n_threads);
  done = measure_levels (&bench, error);
  team = bench_team (&bench);
  if (done && !options->json)
    print_team (&team);
  all = json_pack ("{s:o, s:i, s:i, s:b, s:{s:f, s:f}, s:o?}", "machine", about, "threads",
      (int) n_threads, "runs", BENCH_RUNS, "quick", options->quick, "team_us", "hot", team.hot,
      "asleep", team.asleep, "results", into.results);
  if (done && options->json) {
    json_dumpf (all, stdout, JSON_INDENT (1) | JSON_REAL_PRECISION (5));
    printf ("\n");
  }
  json_decref (all);

  return done;
}
