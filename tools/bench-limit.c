/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How fast threads of this machine multiply when they do nothing else. */

#include "bench-machine.h"
#include "bench-threads.h"

#define RUN_SECONDS 0.03
#define PROBE_ROUNDS 20000

typedef struct
{
  BenchPeak peak;
  gsize rounds;
  gdouble *operations; /* of each thread */
} Run;

static void
run_one (guint thread, gpointer user_data)
{
  Run *run = user_data;

  run->operations[thread] = run->peak (run->rounds);
}

gdouble
bench_peak_rate (BenchPeak peak, guint n_threads)
{
  g_autofree gdouble *operations = g_new0 (gdouble, n_threads);
  Run run = { peak, PROBE_ROUNDS, operations };
  gdouble seconds = bench_run_threads (1, run_one, &run), sum = 0;
  guint i;

  run.rounds = (gsize) (PROBE_ROUNDS * MAX (RUN_SECONDS / seconds, 1));
  seconds = bench_run_threads (n_threads, run_one, &run);
  for (i = 0; i < n_threads; i++)
    sum += operations[i];
  return sum / seconds;
}
