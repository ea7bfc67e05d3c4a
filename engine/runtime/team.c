/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * One run at a time owns the crew: the turn queue sees to that. The leader (the thread that calls
 * vlm_team_run) writes down the run and opens it with one atomic store; crew threads that are still
 * looking join with one compare-and-exchange, the others sleep on a condition and are called. Jobs
 * are dealt out in runs of neighbours, one for each thread, so that each reads on where it left off;
 * whoever is done with its own helps the next.
 */

#define _GNU_SOURCE
#include "team.h"

#include <stdint.h>

#ifdef __linux__
#include <sys/resource.h>
#include <unistd.h>
#endif

/*
 * How long threads look for what they wait for before they sleep. At first without giving way: the
 * next run of a stage is microseconds away. Then the CPU is offered to others each time. Crew threads
 * so bridge what the leader does alone, from token to token too; docs/decisions.md has the figures.
 */
#define HOT_US 20
#define AWAKE_US 200

/* Looks between two at the clock while hot. */
#define LOOKS 32

/* Waiting for a turn wakes up this often to look at the cancellable. */
#define TURN_POLL_US (5 * G_TIME_SPAN_MILLISECOND)

#define MAX_THREADS 256
#define CACHE_LINE 64

/* Of Crew.state. */
#define PLACE ((guint) 1 << 16)
#define INSIDE (PLACE - 1)

struct _VlmTeam
{
  guint n_threads;
  gint nice;
  GCancellable *cancellable;
};

/* Jobs from next to end, dealt out to one thread; others take of them when theirs are done. */
typedef struct
{
  gsize next; /* atomic */
  gsize end;
} __attribute__ ((aligned (CACHE_LINE))) Share;

typedef struct
{
  /*
   * Atomic. The run is open to as many helpers as it has places (the upper half); helpers inside it
   * are counted in the lower half. Whoever joins takes a place and reads the run only then.
   */
  guint state __attribute__ ((aligned (CACHE_LINE)));
  gint leader_sleeps; /* atomic; until nobody is inside */

  /* The current run. Written by the leader while nobody is inside. */
  VlmJobFunc func __attribute__ ((aligned (CACHE_LINE)));
  gpointer user_data;
  GCancellable *cancellable;
  gint nice;
  guint n_shares;
  gint cancelled; /* atomic */
  gint n_hot;     /* atomic; helpers that this team has use for */

  GMutex lock;
  GCond wake; /* crew: some are called */
  GCond done; /* leader: the last helper has left */
  GThreadPool *pool;
  gint n_crew;  /* by leaders only */
  gint awake;   /* atomic; of the crew, those called included */
  guint called; /* under the lock; sleepers that are to wake up */

  Share shares[MAX_THREADS];
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

/* Takes a job: of the thread's own share while there are any, then of the others'. */
static gboolean
take_job (guint thread, guint *n_done, gsize *job)
{
  for (; *n_done < crew.n_shares; (*n_done)++) {
    Share *share = &crew.shares[(thread + *n_done) % crew.n_shares];

    if (__atomic_load_n (&share->next, __ATOMIC_RELAXED) >= share->end)
      continue;
    *job = __atomic_fetch_add (&share->next, 1, __ATOMIC_RELAXED);
    if (*job < share->end)
      return TRUE;
  }
  return FALSE;
}

static void
work (guint thread)
{
  guint n_done = 0; /* shares without jobs */
  gsize job;

  be_nice (crew.nice);
  for (;;) {
    if (crew.cancellable != NULL && g_cancellable_is_cancelled (crew.cancellable)) {
      g_atomic_int_set (&crew.cancelled, TRUE);
      return;
    }
    if (!take_job (thread, &n_done, &job))
      return;
    crew.func (job, thread, crew.user_data);
  }
}

/* ---- Waiting ------------------------------------------------------------------------------ */

typedef struct
{
  guint looks;
  gint64 since;
} Wait;

/* To be called between two looks at what is waited for. FALSE when it is time to sleep. */
static gboolean
wait_awake (Wait *wait)
{
  gint64 now, waited;

  cpu_relax ();
  if (wait->looks++ < LOOKS)
    return TRUE;
  now = g_get_monotonic_time ();
  if (wait->since == 0)
    wait->since = now;
  waited = now - wait->since;
  if (waited < HOT_US)
    wait->looks = 0;
  else
    g_thread_yield ();
  return waited < AWAKE_US;
}

/* Joins the run if it has a place. Returns the number of the thread in it, or 0. */
static guint
join_run (void)
{
  guint state = __atomic_load_n (&crew.state, __ATOMIC_RELAXED);

  while (state >= PLACE) {
    if (__atomic_compare_exchange_n (
            &crew.state, &state, state - PLACE + 1, FALSE, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
      return state / PLACE;
  }
  return 0;
}

/* Nobody joins any more. */
static void
close_run (void)
{
  __atomic_fetch_and (&crew.state, INSIDE, __ATOMIC_SEQ_CST);
}

static void
leave_run (void)
{
  close_run (); /* there are no jobs left, so that it would be joined in vain */
  if (__atomic_sub_fetch (&crew.state, 1, __ATOMIC_SEQ_CST) > 0
      || !__atomic_load_n (&crew.leader_sleeps, __ATOMIC_SEQ_CST))
    return;
  g_mutex_lock (&crew.lock);
  g_cond_signal (&crew.done);
  g_mutex_unlock (&crew.lock);
}

/* Returns at once when there is a run to join: its leader took this thread for awake. */
static void
sleep_until_called (void)
{
  g_mutex_lock (&crew.lock);
  __atomic_fetch_sub (&crew.awake, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n (&crew.state, __ATOMIC_SEQ_CST) >= PLACE) {
    __atomic_fetch_add (&crew.awake, 1, __ATOMIC_SEQ_CST);
  } else {
    while (crew.called == 0)
      g_cond_wait (&crew.wake, &crew.lock);
    crew.called--;
  }
  g_mutex_unlock (&crew.lock);
}

/* No more threads stay awake than can be of use: others may have come for a larger team. */
static gboolean
is_needed (void)
{
  return g_atomic_int_get (&crew.awake) <= g_atomic_int_get (&crew.n_hot);
}

static guint
wait_for_run (void)
{
  for (;;) {
    Wait wait = { 0 };
    guint thread;

    do {
      thread = join_run ();
      if (thread > 0)
        return thread;
    } while (wait_awake (&wait) && is_needed ());
    sleep_until_called ();
  }
}

/* The whole life of a crew thread; it ends with the process. */
static void
crew_thread (gpointer data, gpointer user_data)
{
  for (;;) {
    work (wait_for_run ());
    leave_run ();
  }
}

/* Call with crew.lock held. */
static void
grow_crew (gint n_crew)
{
  if (crew.pool == NULL)
    crew.pool = g_thread_pool_new (crew_thread, NULL, n_crew, TRUE, NULL);
  if (crew.pool == NULL)
    return; /* no threads to be had: the leader works alone */
  g_thread_pool_set_max_threads (crew.pool, n_crew, NULL);
  __atomic_fetch_add (&crew.awake, n_crew - crew.n_crew, __ATOMIC_SEQ_CST);
  for (; crew.n_crew < n_crew; crew.n_crew++)
    g_thread_pool_push (crew.pool, &crew, NULL);
}

/* Sees to it that so many of the crew are awake. */
static void
call_crew (gint n_helpers)
{
  gint missing;

  if (__atomic_load_n (&crew.awake, __ATOMIC_SEQ_CST) >= n_helpers)
    return;
  g_mutex_lock (&crew.lock);
  if (crew.n_crew < n_helpers)
    grow_crew (n_helpers);
  missing = MIN (n_helpers, crew.n_crew) - g_atomic_int_get (&crew.awake);
  for (; missing > 0; missing--) {
    __atomic_fetch_add (&crew.awake, 1, __ATOMIC_SEQ_CST);
    crew.called++;
    g_cond_signal (&crew.wake);
  }
  g_mutex_unlock (&crew.lock);
}

/* ---- Teams -------------------------------------------------------------------------------- */

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

/* Neighbouring jobs to each thread, as many as to any other or one more. */
static void
deal_out (gsize n_jobs, guint n_shares)
{
  gsize each = n_jobs / n_shares, more = n_jobs % n_shares, next = 0;
  guint i;

  crew.n_shares = n_shares;
  for (i = 0; i < n_shares; i++) {
    __atomic_store_n (&crew.shares[i].next, next, __ATOMIC_RELAXED);
    next += each + (i < more ? 1 : 0);
    crew.shares[i].end = next;
  }
}

static void
open_run (VlmTeam *team, gsize n_jobs, VlmJobFunc func, gpointer user_data)
{
  guint n_helpers = MIN (team->n_threads, n_jobs) - 1;

  crew.func = func;
  crew.user_data = user_data;
  crew.cancellable = team->cancellable;
  crew.nice = team->nice;
  g_atomic_int_set (&crew.cancelled, FALSE);
  g_atomic_int_set (&crew.n_hot, (gint) team->n_threads - 1);
  deal_out (n_jobs, n_helpers + 1);
  __atomic_store_n (&crew.state, n_helpers * PLACE, __ATOMIC_SEQ_CST);
  call_crew ((gint) n_helpers);
}

static gboolean
is_anybody_inside (void)
{
  return __atomic_load_n (&crew.state, __ATOMIC_SEQ_CST) != 0;
}

/* Waits until everybody who has joined the run has left it. */
static void
end_run (void)
{
  Wait wait = { 0 };

  close_run ();
  while (is_anybody_inside ()) {
    if (wait_awake (&wait))
      continue;
    g_mutex_lock (&crew.lock);
    __atomic_store_n (&crew.leader_sleeps, TRUE, __ATOMIC_SEQ_CST);
    while (is_anybody_inside ())
      g_cond_wait (&crew.done, &crew.lock);
    __atomic_store_n (&crew.leader_sleeps, FALSE, __ATOMIC_SEQ_CST);
    g_mutex_unlock (&crew.lock);
  }
}

gboolean
vlm_team_run (VlmTeam *team, gsize n_jobs, VlmJobFunc func, gpointer user_data)
{
  gsize job;

  if (team->n_threads > 1 && n_jobs > 1) {
    open_run (team, n_jobs, func, user_data);
    work (0);
    end_run ();
    return !g_atomic_int_get (&crew.cancelled);
  }

  for (job = 0; job < n_jobs; job++) {
    if (is_cancelled (team))
      return FALSE;
    func (job, 0, user_data);
  }
  return TRUE;
}
