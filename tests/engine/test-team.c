/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The worker team when threads, turns and cancellations come at any time, and when nothing comes. */

#include "engine/runtime/team.h"
#include "cpu-seconds.h"

#define MAX_JOBS 300
#define MAX_THREADS 6
#define N_STREAMS 5
#define N_TEAMS 40
#define N_RUNS 30

typedef struct
{
  GCancellable *cancellable;
  gint cancel_at; /* the run is cancelled when so many jobs have begun; or -1 */
  gint begun;
  gint runs[MAX_JOBS];
  gint busy[MAX_THREADS]; /* two jobs at once with one number of a thread would race */
  gint clashes;
  guint64 work[MAX_JOBS];
} Run;

/* Not atomic on purpose: what a job writes is there for the leader when the run has ended. */
static void
count_job (gsize job, guint thread, gpointer user_data)
{
  Run *run = user_data;
  guint i;

  if (!g_atomic_int_compare_and_exchange (&run->busy[thread], 0, 1))
    g_atomic_int_inc (&run->clashes);
  g_atomic_int_inc (&run->runs[job]);
  if (g_atomic_int_add (&run->begun, 1) + 1 == run->cancel_at)
    g_cancellable_cancel (run->cancellable);
  for (i = 0; i <= job % 50; i++)
    run->work[job] += job * i;
  g_atomic_int_set (&run->busy[thread], 0);
}

static void
check_run (const Run *run, gsize n_jobs, gboolean done)
{
  gsize job;
  gint n_run = 0;

  g_assert_cmpint (run->clashes, ==, 0);
  for (job = 0; job < MAX_JOBS; job++) {
    guint64 last = job % 50;

    n_run += run->runs[job];
    g_assert_cmpint (run->runs[job], <=, job < n_jobs);
    g_assert_cmpuint (run->work[job], ==, run->runs[job] ? job * (last * (last + 1) / 2) : 0);
  }
  g_assert_cmpint (n_run, ==, run->begun);
  if (done)
    g_assert_cmpint (n_run, ==, n_jobs);
  else
    g_assert_cmpint (n_run, >=, run->cancel_at);
}

/* Runs within one turn until one of them is cancelled, which it is not before its time. */
static void
use_team (GRand *random, VlmTeam *team, GCancellable *cancellable)
{
  guint i;

  g_assert_true (vlm_team_begin_turn (team));
  for (i = 0; i < N_RUNS; i++) {
    Run run = { .cancellable = cancellable, .cancel_at = -1 };
    gsize n_jobs = (gsize) g_rand_int_range (random, 0, MAX_JOBS);
    gboolean done;

    if (n_jobs > 0 && g_rand_int_range (random, 0, 20) == 0)
      run.cancel_at = g_rand_int_range (random, 1, (gint) n_jobs + 1);
    /* Now and then so long that the crew goes to sleep, or is about to. */
    if (g_rand_int_range (random, 0, 10) == 0)
      g_usleep ((gulong) g_rand_int_range (random, 50, 400));
    done = vlm_team_run (team, n_jobs, count_job, &run);
    check_run (&run, n_jobs, done);
    g_assert_true (done || g_cancellable_is_cancelled (cancellable));
    if (g_cancellable_is_cancelled (cancellable)) {
      g_assert_cmpint (run.begun, >=, run.cancel_at);
      break;
    }
  }
  vlm_team_end_turn (team);
}

static gpointer
use_teams (gpointer data)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (GPOINTER_TO_UINT (data));
  guint i;

  for (i = 0; i < N_TEAMS; i++) {
    g_autoptr (GCancellable) cancellable = g_cancellable_new ();
    VlmTeam *team =
        vlm_team_new ((guint) g_rand_int_range (random, 1, MAX_THREADS + 1), cancellable);

    use_team (random, team, cancellable);
    vlm_team_free (team);
  }
  return NULL;
}

static void
test_many_teams (void)
{
  GThread *threads[N_STREAMS];
  guint i;

  for (i = 0; i < N_STREAMS; i++)
    threads[i] = g_thread_new ("stream", use_teams, GUINT_TO_POINTER (i + 1));
  for (i = 0; i < N_STREAMS; i++)
    g_thread_join (threads[i]);
}

typedef struct
{
  gint begun;
  gint met;
} Meeting;

/* Both jobs wait for each other, which they do in vain unless another thread has come. */
static void
meet (gsize job, guint thread, gpointer user_data)
{
  Meeting *meeting = user_data;
  guint i;

  g_atomic_int_inc (&meeting->begun);
  for (i = 0; i < 10000 && g_atomic_int_get (&meeting->begun) < 2; i++)
    g_usleep (1000);
  if (g_atomic_int_get (&meeting->begun) == 2)
    g_atomic_int_inc (&meeting->met);
}

/* However long ago the last run was, threads that went to sleep meanwhile come. */
static void
test_sleepers_come (void)
{
  static const gulong pauses[] = { 0, 20, 100, 180, 200, 220, 500, 5000, 100000 };
  VlmTeam *team = vlm_team_new (2, NULL);
  guint i, round;

  g_assert_true (vlm_team_begin_turn (team));
  for (i = 0; i < G_N_ELEMENTS (pauses); i++) {
    for (round = 0; round < 5; round++) {
      Meeting meeting = { 0 };

      g_usleep (pauses[i]);
      g_assert_true (vlm_team_run (team, 2, meet, &meeting));
      g_assert_cmpint (meeting.met, ==, 2);
    }
  }
  vlm_team_end_turn (team);
  vlm_team_free (team);
}

/* The helper takes so much longer that the leader goes to sleep. */
static void
meet_and_stay (gsize job, guint thread, gpointer user_data)
{
  meet (job, thread, user_data);
  if (thread > 0)
    g_usleep (20000);
}

static void
test_leader_sleeps (void)
{
  VlmTeam *team = vlm_team_new (2, NULL);
  guint i;

  g_assert_true (vlm_team_begin_turn (team));
  for (i = 0; i < 20; i++) {
    Meeting meeting = { 0 };

    g_assert_true (vlm_team_run (team, 2, meet_and_stay, &meeting));
    g_assert_cmpint (meeting.met, ==, 2);
  }
  vlm_team_end_turn (team);
  vlm_team_free (team);
}

/* Between captions the crew sleeps: less than half a percent of a CPU. */
static void
test_idle (void)
{
  VlmTeam *team = vlm_team_new (4, NULL);
  gdouble before;
  guint i;

  g_assert_true (vlm_team_begin_turn (team));
  for (i = 0; i < 1000; i++) {
    Run run = { .cancel_at = -1 };

    g_assert_true (vlm_team_run (team, MAX_JOBS, count_job, &run));
  }
  vlm_team_end_turn (team);
  before = cpu_seconds ();
  g_usleep (2 * G_USEC_PER_SEC);
  g_assert_cmpfloat (cpu_seconds () - before, <, 0.005 * 2);
  vlm_team_free (team);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/team/many", test_many_teams);
  g_test_add_func ("/team/sleepers-come", test_sleepers_come);
  g_test_add_func ("/team/leader-sleeps", test_leader_sleeps);
  g_test_add_func ("/team/idle", test_idle);
  return g_test_run ();
}
