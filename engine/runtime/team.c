/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * One run at a time owns the crew: the turn queue sees to that. The leader (the thread that calls
 * vlm_team_run) publishes the run under the lock and raises the generation; crew threads that are
 * still spinning notice at once, the others sleep on a condition. Everybody then takes job numbers
 * from one atomic counter until it is used up.
 */

#define _GNU_SOURCE
#include "team.h"

#include <stdint.h>

#ifdef __linux__
#include <sys/resource.h>
#include <unistd.h>
#endif

/* A waiting crew thread looks this often before it goes to sleep: about a tenth of a millisecond. */
#define SPIN_ROUNDS 2000

/* Waiting for a turn wakes up this often to look at the cancellable. */
#define TURN_POLL_US (5 * G_TIME_SPAN_MILLISECOND)

#define MAX_THREADS 256

struct _VlmTeam
{
  guint n_threads;
  gint nice;
  GCancellable *cancellable;
};

typedef struct
{
  GMutex lock;
  GCond wake; /* crew: a run was published */
  GCond done; /* leader: the last helper has left */
  GThreadPool *pool;
  guint n_crew;

  gint generation; /* atomic; raised for every run */

  /* The current run. Written under the lock by the leader. */
  VlmJobFunc func;
  gpointer user_data;
  GCancellable *cancellable;
  gint nice;
  gsize n_jobs;
  gsize next;     /* atomic */
  gint cancelled; /* atomic */
  guint wanted;   /* helpers that may still join */
  guint joined;   /* helpers that have joined this run */
  gint active;    /* atomic; helpers inside this run */
} Crew;

static Crew crew;

static GMutex turn_lock;
static GCond turn_cond;
static GQueue turn_queue = G_QUEUE_INIT;

static inline void
cpu_relax (void)
{
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause ();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

/* Makes the calling thread this nice, unless it is so already or nicer. */
static void
be_nice (gint nice)
{
#ifdef __linux__
  static GPrivate asked = G_PRIVATE_INIT (NULL);

  if (nice <= GPOINTER_TO_INT (g_private_get (&asked)))
    return;
  g_private_set (&asked, GINT_TO_POINTER (nice));
  /* On Linux niceness belongs to a thread; 0 is the calling one. */
  if (getpriority (PRIO_PROCESS, 0) < nice)
    setpriority (PRIO_PROCESS, 0, nice);
#endif
}

static void
work (guint thread)
{
  be_nice (crew.nice);
  for (;;) {
    gsize job;

    if (crew.cancellable != NULL && g_cancellable_is_cancelled (crew.cancellable)) {
      g_atomic_int_set (&crew.cancelled, TRUE);
      return;
    }
    job = __atomic_fetch_add (&crew.next, 1, __ATOMIC_RELAXED);
    if (job >= crew.n_jobs)
      return;
    crew.func (job, thread, crew.user_data);
  }
}

/* Waits until the generation differs from seen; spins first, since the next run is often near. */
static void
wait_for_run (gint seen)
{
  guint i;

  for (i = 0; i < SPIN_ROUNDS; i++) {
    if (g_atomic_int_get (&crew.generation) != seen)
      return;
    cpu_relax ();
  }
  g_mutex_lock (&crew.lock);
  while (g_atomic_int_get (&crew.generation) == seen)
    g_cond_wait (&crew.wake, &crew.lock);
  g_mutex_unlock (&crew.lock);
}

/* The whole life of a crew thread; it ends with the process. */
static void
crew_thread (gpointer data, gpointer user_data)
{
  gint seen = 0;

  for (;;) {
    guint thread = 0;

    wait_for_run (seen);
    g_mutex_lock (&crew.lock);
    seen = g_atomic_int_get (&crew.generation);
    if (crew.wanted > 0) {
      crew.wanted--;
      thread = ++crew.joined;
      g_atomic_int_inc (&crew.active);
    }
    g_mutex_unlock (&crew.lock);
    if (thread == 0)
      continue;

    work (thread);

    g_mutex_lock (&crew.lock);
    if (g_atomic_int_dec_and_test (&crew.active))
      g_cond_signal (&crew.done);
    g_mutex_unlock (&crew.lock);
  }
}

/* Call with crew.lock held. */
static void
grow_crew (guint n_crew)
{
  if (crew.pool == NULL)
    crew.pool = g_thread_pool_new (crew_thread, NULL, (gint) n_crew, TRUE, NULL);
  if (crew.pool == NULL)
    return; /* no threads to be had: the leader works alone */
  if (crew.n_crew < n_crew)
    g_thread_pool_set_max_threads (crew.pool, (gint) n_crew, NULL);
  while (crew.n_crew < n_crew) {
    crew.n_crew++;
    g_thread_pool_push (crew.pool, &crew, NULL);
  }
}

VlmTeam *
vlm_team_new (guint n_threads, GCancellable *cancellable)
{
  VlmTeam *team = g_new0 (VlmTeam, 1);

  team->n_threads = MIN (n_threads > 0 ? n_threads : vlm_team_get_n_cpus (), MAX_THREADS);
  team->cancellable = cancellable;
  return team;
}

void
vlm_team_free (VlmTeam *team)
{
  g_free (team);
}

void
vlm_team_set_nice (VlmTeam *team, gint nice)
{
  team->nice = nice;
  be_nice (nice);
}

guint
vlm_team_get_n_threads (const VlmTeam *team)
{
  return team->n_threads;
}

static gboolean
is_cancelled (VlmTeam *team)
{
  return team->cancellable != NULL && g_cancellable_is_cancelled (team->cancellable);
}

gboolean
vlm_team_begin_turn (VlmTeam *team)
{
  gboolean cancelled = FALSE;

  g_mutex_lock (&turn_lock);
  g_queue_push_tail (&turn_queue, team);
  while (g_queue_peek_head (&turn_queue) != team && !(cancelled = is_cancelled (team)))
    g_cond_wait_until (&turn_cond, &turn_lock, g_get_monotonic_time () + TURN_POLL_US);
  if (!cancelled)
    cancelled = is_cancelled (team);
  if (cancelled) {
    g_queue_remove (&turn_queue, team);
    g_cond_broadcast (&turn_cond);
  }
  g_mutex_unlock (&turn_lock);
  return !cancelled;
}

void
vlm_team_end_turn (VlmTeam *team)
{
  g_mutex_lock (&turn_lock);
  g_assert (g_queue_peek_head (&turn_queue) == team);
  g_queue_pop_head (&turn_queue);
  g_cond_broadcast (&turn_cond);
  g_mutex_unlock (&turn_lock);
}

static void
publish_run (VlmTeam *team, gsize n_jobs, VlmJobFunc func, gpointer user_data)
{
  guint helpers = MIN (team->n_threads, n_jobs) - 1;
  guint i;

  g_mutex_lock (&crew.lock);
  grow_crew (helpers);
  crew.func = func;
  crew.user_data = user_data;
  crew.cancellable = team->cancellable;
  crew.nice = team->nice;
  crew.n_jobs = n_jobs;
  crew.next = 0;
  crew.cancelled = FALSE;
  crew.wanted = helpers;
  crew.joined = 0;
  g_atomic_int_inc (&crew.generation);
  /* Not a broadcast: the crew may be much larger than this run, from one that came before. */
  for (i = 0; i < helpers; i++)
    g_cond_signal (&crew.wake);
  g_mutex_unlock (&crew.lock);
}

/* Nobody may join any more; waits for those who have. */
static void
join_run (void)
{
  guint i;

  g_mutex_lock (&crew.lock);
  crew.wanted = 0;
  g_mutex_unlock (&crew.lock);

  for (i = 0; i < SPIN_ROUNDS && g_atomic_int_get (&crew.active) > 0; i++)
    cpu_relax ();

  g_mutex_lock (&crew.lock);
  while (g_atomic_int_get (&crew.active) > 0)
    g_cond_wait (&crew.done, &crew.lock);
  crew.cancellable = NULL;
  g_mutex_unlock (&crew.lock);
}

gboolean
vlm_team_run (VlmTeam *team, gsize n_jobs, VlmJobFunc func, gpointer user_data)
{
  gsize job;

  if (team->n_threads > 1 && n_jobs > 1) {
    publish_run (team, n_jobs, func, user_data);
    work (0);
    join_run ();
    return !g_atomic_int_get (&crew.cancelled);
  }

  for (job = 0; job < n_jobs; job++) {
    if (is_cancelled (team))
      return FALSE;
    func (job, 0, user_data);
  }
  return TRUE;
}
