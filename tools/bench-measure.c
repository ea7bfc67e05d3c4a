/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bench-kernels.h"
#include "bench-threads.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

/* Shorter runs are repeated; seconds. */
#define RUN_SECONDS 0.03
#define QUICK_RUN_SECONDS 0.0015

/* What one thread does, and how long it took of a processor. */
typedef struct
{
  BenchWork work;
  gpointer user_data;
  guint repeats;
  gdouble *rates, *seconds; /* of each thread */
} Run;

static gdouble
thread_seconds (void)
{
  struct timespec now;

  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &now);
  return (gdouble) now.tv_sec + (gdouble) now.tv_nsec * 1e-9;
}

static void
run_one (guint thread, gpointer user_data)
{
  Run *run = user_data;
  gdouble began = thread_seconds (), work = 0;
  guint i;

  for (i = 0; i < run->repeats; i++)
    work += run->work (thread, run->user_data);
  run->seconds[thread] = thread_seconds () - began;
  run->rates[thread] = work > 0 ? work / MAX (run->seconds[thread], 1e-9) : 0;
}

/* The rates of all threads together; the time of the longest of them in *seconds. */
static gdouble
run_all (const Bench *bench, BenchWork work, gpointer user_data, guint repeats, gdouble *seconds)
{
  g_autofree gdouble *rates = g_new0 (gdouble, bench->threads);
  g_autofree gdouble *times = g_new0 (gdouble, bench->threads);
  Run run = { work, user_data, repeats, rates, times };
  gdouble rate = 0;
  guint i;

  bench_run_threads (bench->threads, run_one, &run);
  *seconds = 0;
  for (i = 0; i < bench->threads; i++) {
    rate += rates[i];
    *seconds = MAX (*seconds, times[i]);
  }

  return rate;
}

/* How often work has to be done for a run to be long enough. */
static guint
find_repeats (const Bench *bench, BenchWork work, gpointer user_data)
{
  gdouble wanted = bench->quick ? QUICK_RUN_SECONDS : RUN_SECONDS, seconds;
  guint repeats = 1;

  /* The first run also fills caches and pages; the second tells. */
  run_all (bench, work, user_data, 1, &seconds);
  do {
    run_all (bench, work, user_data, repeats, &seconds);
    if (seconds < wanted)
      repeats = seconds < wanted / 50 ? repeats * 50 : (guint) (repeats * wanted / seconds) + 1;
  } while (seconds < wanted / 2 && repeats < 10000000);

  return repeats;
}

void
bench_measure (const Bench *bench, BenchCase *c)
{
  gdouble rates[BENCH_RUNS], limits[BENCH_RUNS] = { 0 }, shares[BENCH_RUNS] = { 0 };
  guint repeats = find_repeats (bench, c->work, c->user_data), limit_repeats = 0, i;
  gdouble seconds, before = 0, after;

  if (c->limit != NULL) {
    limit_repeats = find_repeats (bench, c->limit, c->user_data);
    before = run_all (bench, c->limit, c->user_data, limit_repeats, &seconds);
  }
  for (i = 0; i < BENCH_RUNS; i++) {
    rates[i] = run_all (bench, c->work, c->user_data, repeats, &seconds);
    if (c->limit == NULL)
      continue;
    after = run_all (bench, c->limit, c->user_data, limit_repeats, &seconds);
    limits[i] = MAX (before, after);
    shares[i] = rates[i] / limits[i];
    before = after;
  }
  c->rate = bench_median (rates, BENCH_RUNS);
  c->limit_rate = bench_median (limits, BENCH_RUNS);
  c->share = bench_median (shares, BENCH_RUNS);
}

gpointer
bench_allocate (gsize bytes)
{
  const gsize page = (gsize) 2 << 20;
  gpointer memory;

  bytes = (bytes + page - 1) / page * page;
  memory = aligned_alloc (page, bytes);
  if (memory == NULL)
    g_error ("No memory for %" G_GSIZE_FORMAT " bytes", bytes);
#ifdef MADV_HUGEPAGE
  (void) madvise (memory, bytes, MADV_HUGEPAGE);
#endif

  return memory;
}
