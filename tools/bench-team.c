/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What handing work to the team costs: the time that a run of as many jobs as threads takes beside
 * that of one such job alone. The jobs take a microsecond or two, so that all threads come in time
 * if they come at once.
 */

#include "bench-kernels.h"
#include "bench-threads.h"

#include "engine/runtime/team.h"

#include <time.h>

#define ROUNDS 2000
#define SLEEP_ROUNDS 100
#define SLEEP_US 2000
#define JOB_STEPS 1500

static gdouble
microseconds (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (gdouble) now.tv_sec * 1e6 + (gdouble) now.tv_nsec * 1e-3;
}

static void
short_job (gsize job, guint thread, gpointer user_data)
{
  volatile guint step;

  for (step = 0; step < JOB_STEPS; step++)
    continue;
  (void) job, (void) thread, (void) user_data;
}

/* The median time of a run of n_jobs, each after a pause of its own. */
static gdouble
run_time (VlmTeam *team, gsize n_jobs, gulong pause, guint rounds)
{
  g_autofree gdouble *times = g_new (gdouble, rounds);
  guint i;

  for (i = 0; i < rounds; i++) {
    if (pause > 0)
      g_usleep (pause);
    times[i] = microseconds ();
    vlm_team_run (team, n_jobs, short_job, NULL);
    times[i] = microseconds () - times[i];
  }
  return bench_median (times, rounds);
}

BenchTeam
bench_team (const Bench *bench)
{
  VlmTeam *team = vlm_team_new (bench->threads, NULL);
  const guint rounds = bench->quick ? ROUNDS / 10 : ROUNDS;
  const guint sleeps = bench->quick ? SLEEP_ROUNDS / 10 : SLEEP_ROUNDS;
  BenchTeam result;
  gdouble alone;

  /* Nothing cancels it, so that there is always a turn to be had. */
  vlm_team_begin_turn (team);
  alone = run_time (team, 1, 0, rounds);
  result.hot = run_time (team, bench->threads, 0, rounds) - alone;
  result.asleep = run_time (team, bench->threads, SLEEP_US, sleeps) - alone;
  vlm_team_end_turn (team);
  vlm_team_free (team);
  return result;
}
