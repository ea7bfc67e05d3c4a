/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The worker team, the scratch arena and memory that may be too much. */

#define _GNU_SOURCE
#include <sched.h>
#include <sys/resource.h>

#include "engine/runtime/alloc.h"
#include "engine/runtime/arena.h"
#include "engine/runtime/team.h"
#include "engine/vlm.h"

#define MAX_JOBS 1000

typedef struct
{
  gint runs[MAX_JOBS];
  gint busy[64]; /* per thread number: two jobs at once on one would race */
  gint clashes;
} Tally;

static void
count_job (gsize job, guint thread, gpointer user_data)
{
  Tally *tally = user_data;

  if (!g_atomic_int_compare_and_exchange (&tally->busy[thread], 0, 1))
    g_atomic_int_inc (&tally->clashes);
  g_atomic_int_inc (&tally->runs[job]);
  g_atomic_int_set (&tally->busy[thread], 0);
}

static void
test_every_job_once (void)
{
  static const gsize counts[] = { 0, 1, 2, 3, 7, 64, MAX_JOBS };
  guint threads, i, round;
  gsize job;

  for (threads = 1; threads <= 4; threads++) {
    VlmTeam *team = vlm_team_new (threads, NULL);

    for (i = 0; i < G_N_ELEMENTS (counts); i++) {
      for (round = 0; round < 50; round++) {
        Tally tally = { 0 };

        g_assert_true (vlm_team_begin_turn (team));
        g_assert_true (vlm_team_run (team, counts[i], count_job, &tally));
        vlm_team_end_turn (team);
        for (job = 0; job < MAX_JOBS; job++)
          g_assert_cmpint (tally.runs[job], ==, job < counts[i]);
        g_assert_cmpint (tally.clashes, ==, 0);
      }
    }
    vlm_team_free (team);
  }
}

typedef struct
{
  GCancellable *cancellable;
  gint runs;
  gint cancelled; /* set once the cancellation is certain to be seen */
  gint late;      /* jobs that began after that */
} CancelAt;

static void
cancel_in_the_middle (gsize job, guint thread, gpointer user_data)
{
  CancelAt *at = user_data;

  if (g_atomic_int_get (&at->cancelled))
    g_atomic_int_inc (&at->late);
  if (g_atomic_int_add (&at->runs, 1) == 10) {
    g_cancellable_cancel (at->cancellable);
    g_atomic_int_set (&at->cancelled, TRUE);
  }
}

static void
test_cancel (void)
{
  guint threads;

  for (threads = 1; threads <= 3; threads++) {
    g_autoptr (GCancellable) cancellable = g_cancellable_new ();
    VlmTeam *team = vlm_team_new (threads, cancellable);
    CancelAt at = { cancellable, 0, 0, 0 };

    g_assert_true (vlm_team_begin_turn (team));
    g_assert_false (vlm_team_run (team, MAX_JOBS, cancel_in_the_middle, &at));
    g_assert_cmpint (at.runs, >=, 11);
    /* A thread may have looked just before and begin one more job, but no second one. */
    g_assert_cmpint (at.late, <, threads);
    at.late = 0;
    g_assert_false (vlm_team_run (team, MAX_JOBS, cancel_in_the_middle, &at));
    g_assert_cmpint (at.late, ==, 0);
    vlm_team_end_turn (team);
    g_assert_false (vlm_team_begin_turn (team));
    vlm_team_free (team);
  }
}

#define N_STREAMS 4
#define N_TURNS 200

typedef struct
{
  gint inside;
  gint started;
  gint turns[N_STREAMS];
  gint largest_lead;
} Fairness;

typedef struct
{
  Fairness *fairness;
  guint index;
} Stream;

static gpointer
take_turns (gpointer data)
{
  Stream *stream = data;
  Fairness *f = stream->fairness;
  VlmTeam *team = vlm_team_new (2, NULL);
  Tally tally = { 0 };
  guint i, j;

  g_atomic_int_inc (&f->started);
  while (g_atomic_int_get (&f->started) < N_STREAMS)
    g_thread_yield ();
  for (i = 0; i < N_TURNS; i++) {
    gint least = G_MAXINT;

    g_assert_true (vlm_team_begin_turn (team));
    g_assert_true (g_atomic_int_compare_and_exchange (&f->inside, 0, 1));
    f->turns[stream->index]++;
    for (j = 0; j < N_STREAMS; j++)
      least = MIN (least, f->turns[j]);
    f->largest_lead = MAX (f->largest_lead, f->turns[stream->index] - least);
    g_assert_true (vlm_team_run (team, 16, count_job, &tally));
    g_usleep (50); /* long enough for the others to queue up behind */
    g_atomic_int_set (&f->inside, 0);
    vlm_team_end_turn (team);
  }
  vlm_team_free (team);
  return NULL;
}

static void
test_turns_exclude_and_are_fair (void)
{
  Fairness fairness = { 0 };
  Stream streams[N_STREAMS];
  GThread *threads[N_STREAMS];
  guint i;

  for (i = 0; i < N_STREAMS; i++) {
    streams[i].fairness = &fairness;
    streams[i].index = i;
    threads[i] = g_thread_new ("stream", take_turns, &streams[i]);
  }
  for (i = 0; i < N_STREAMS; i++)
    g_thread_join (threads[i]);
  for (i = 0; i < N_STREAMS; i++)
    g_assert_cmpint (fairness.turns[i], ==, N_TURNS);
  /* Served in order of asking. A stream may be late to ask by a scheduling slice, not by half. */
  g_assert_cmpint (fairness.largest_lead, <, N_TURNS / 2);
}

static void
test_n_cpus (void)
{
  VlmTeam *team;
  cpu_set_t whole, one;

  g_assert_cmpuint (vlm_team_get_n_cpus (), >=, 1);
  g_assert_cmpuint (vlm_team_get_n_cpus (), <=, g_get_num_processors ());

  /* Bound to one CPU, a team of "all there are" is one thread. */
  g_assert_cmpint (sched_getaffinity (0, sizeof (whole), &whole), ==, 0);
  CPU_ZERO (&one);
  CPU_SET (sched_getcpu (), &one);
  g_assert_cmpint (sched_setaffinity (0, sizeof (one), &one), ==, 0);
  team = vlm_team_new (0, NULL);
  g_assert_cmpuint (vlm_team_get_n_threads (team), ==, 1);
  vlm_team_free (team);
  g_assert_cmpint (sched_setaffinity (0, sizeof (whole), &whole), ==, 0);

  team = vlm_team_new (100000, NULL);
  g_assert_cmpuint (vlm_team_get_n_threads (team), <=, 256);
  vlm_team_free (team);
}

static void
test_arena (void)
{
  VlmArena arena = { 0 };
  GError *error = NULL;
  gsize total = 0;
  gfloat *a, *b;

  vlm_arena_measure (&total, 5);
  vlm_arena_measure (&total, 100);
  g_assert_true (vlm_arena_reserve (&arena, total, &error));
  g_assert_no_error (error);
  a = vlm_arena_take (&arena, 5);
  b = vlm_arena_take (&arena, 100);
  g_assert_cmpuint ((guintptr) a % 64, ==, 0);
  g_assert_cmpuint ((guintptr) b % 64, ==, 0);
  g_assert_true (b >= a + 5);
  a[4] = b[99] = 1;

  total = 0;
  vlm_arena_measure (&total, G_MAXSIZE / 8);
  vlm_arena_measure (&total, G_MAXSIZE / 8);
  vlm_arena_measure (&total, G_MAXSIZE / 8);
  g_assert_false (vlm_arena_reserve (&arena, total, &error));
  g_assert_error (error, VLM_ERROR, VLM_ERROR_MEMORY);
  g_clear_error (&error);
  vlm_arena_clear (&arena);
}

static void
test_alloc (void)
{
  GError *error = NULL;
  gint *some = vlm_alloc0 (3, sizeof (gint), "three numbers", &error);

  g_assert_no_error (error);
  g_assert_cmpint (some[2], ==, 0);
  g_free (some);
  g_free (vlm_alloc (0, 8, "nothing", &error));
  g_assert_no_error (error);
  g_assert_null (vlm_alloc (G_MAXSIZE / 4, 8, "too much", &error));
  g_assert_error (error, VLM_ERROR, VLM_ERROR_MEMORY);
  g_assert_nonnull (strstr (error->message, "too much"));
  g_clear_error (&error);
}

/* Blocks of any size can be written from their first byte to their last. */
static void
test_blocks (void)
{
  static const gsize sizes[] = { 0, 1, 1000, (1 << 20) - 1, 1 << 20, (1 << 21) + 1, 3 << 20,
    (5 << 20) - 1 };
  GError *error = NULL;
  guint8 *zeros;
  gsize i;

  for (i = 0; i < G_N_ELEMENTS (sizes); i++) {
    guint8 *block = vlm_alloc_block (sizes[i]);

    g_assert_nonnull (block);
    memset (block, 0xff, sizes[i]);
    g_free (block);
  }
  g_assert_null (vlm_alloc_block (G_MAXSIZE / 2 + 1));
  g_assert_null (vlm_alloc_block (G_MAXSIZE));

  /* What was just freed may come again, and is not zero by itself. */
  zeros = vlm_alloc0 (3, 1 << 20, "zeros", &error);
  g_assert_no_error (error);
  for (i = 0; i < 3 << 20; i++)
    g_assert_cmpuint (zeros[i], ==, 0);
  g_free (zeros);
}

static void
read_nice (gsize job, guint thread, gpointer user_data)
{
  gint *nice = user_data;

  /* Long enough for the helpers to join. */
  g_usleep (1000);
  nice[job] = getpriority (PRIO_PROCESS, 0);
}

static gpointer
run_nicely (gpointer user_data)
{
  VlmTeam *team = vlm_team_new (3, NULL);

  vlm_team_set_nice (team, 7);
  g_assert_true (vlm_team_begin_turn (team));
  g_assert_true (vlm_team_run (team, 50, read_nice, user_data));
  vlm_team_end_turn (team);
  vlm_team_free (team);
  return NULL;
}

/* All threads that work for a team are as nice as it asks, and nobody else is. */
static void
test_nice (void)
{
  gint before = getpriority (PRIO_PROCESS, 0);
  gint nice[50];
  guint i;

  g_thread_join (g_thread_new ("nice", run_nicely, nice));
  for (i = 0; i < G_N_ELEMENTS (nice); i++)
    g_assert_cmpint (nice[i], ==, MAX (before, 7));
  g_assert_cmpint (getpriority (PRIO_PROCESS, 0), ==, before);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/runtime/team/every-job-once", test_every_job_once);
  g_test_add_func ("/runtime/team/cancel", test_cancel);
  g_test_add_func ("/runtime/team/turns", test_turns_exclude_and_are_fair);
  g_test_add_func ("/runtime/team/n-cpus", test_n_cpus);
  g_test_add_func ("/runtime/arena", test_arena);
  g_test_add_func ("/runtime/alloc", test_alloc);
  g_test_add_func ("/runtime/blocks", test_blocks);
  /* Last, since the threads of the pool stay as they are. */
  g_test_add_func ("/runtime/team/nice", test_nice);
  return g_test_run ();
}
