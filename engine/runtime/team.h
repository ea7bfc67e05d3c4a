/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The worker team: threads that cut one stage's work among themselves.
 *
 * The process has one exclusive GThreadPool. A session holds a VlmTeam, its view of that pool: how
 * many threads it may use, and its cancellable. Within a turn, vlm_team_run() hands out jobs and
 * joins; turns of different sessions are served in the order they were asked for.
 */

#ifndef VLM_TEAM_H
#define VLM_TEAM_H

#include <gio/gio.h>

typedef struct _VlmTeam VlmTeam;

/* One job of a run; thread is 0 .. n_threads - 1, for scratch memory of one's own. */
typedef void (*VlmJobFunc) (gsize job, guint thread, gpointer user_data);

/* n_threads: 0 for the CPUs that this process may use. cancellable may be NULL; it is borrowed. */
VlmTeam *vlm_team_new (guint n_threads, GCancellable *cancellable);
void vlm_team_free (VlmTeam *team);
guint vlm_team_get_n_threads (const VlmTeam *team);

/*
 * Least niceness, 0 to 19, of the threads that work for this team, the caller's included. A thread
 * may not take niceness back, so those of the pool keep the highest that any team asked for.
 */
void vlm_team_set_nice (VlmTeam *team, gint nice);

/* CPUs that this process may use: affinity mask and cgroup 2 limit respected, at least 1. */
guint vlm_team_get_n_cpus (void);

/*
 * Waits for this session's turn of the pool. Turns are short: one tile, one prefill chunk, one
 * token. FALSE when cancelled while waiting; there is nothing to end then.
 */
gboolean vlm_team_begin_turn (VlmTeam *team);
void vlm_team_end_turn (VlmTeam *team);

/*
 * Runs func for every job 0 .. n_jobs - 1, each exactly once, on up to n_threads threads including
 * the caller, and returns when all are done. The cancellable is looked at before every job.
 * FALSE when cancelled: jobs may not have run then. Call within a turn.
 */
gboolean vlm_team_run (VlmTeam *team, gsize n_jobs, VlmJobFunc func, gpointer user_data);

#endif
