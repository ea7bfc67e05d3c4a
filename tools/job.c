/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "job.h"

#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BAR_WIDTH 40
/* Between two lines where there is no bar: what is done sooner says nothing. */
#define LINE_INTERVAL (3 * G_TIME_SPAN_SECOND)

typedef struct
{
  JobFunc func;
  gpointer user_data;
  GCancellable *cancellable;
  GMainLoop *loop;
  gboolean done;
  GError *error;
} Job;

/* A signal and the job that it cancels. */
typedef struct
{
  gint number;
  guint source; /* 0: the signal is left alone */
  GCancellable *cancellable;
} Watch;

static gint received;

gint
job_get_signal (void)
{
  return received;
}

static gboolean
take_signal (gpointer user_data)
{
  Watch *watch = user_data;

  received = watch->number;
  g_cancellable_cancel (watch->cancellable);
  return G_SOURCE_CONTINUE;
}

/* What a shell ignores for a job in the background stays ignored. */
static void
watch_signal (Watch *watch)
{
  struct sigaction action;

  if (sigaction (watch->number, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
    watch->source = g_unix_signal_add (watch->number, take_signal, watch);
}

static gboolean
quit_loop (gpointer user_data)
{
  Job *job = user_data;

  g_main_loop_quit (job->loop);
  return G_SOURCE_REMOVE;
}

static gpointer
run_thread (gpointer user_data)
{
  Job *job = user_data;

  job->done = job->func (job->cancellable, job->user_data, &job->error);
  g_idle_add (quit_loop, job);
  return NULL;
}

gboolean
job_run (JobFunc func, gpointer user_data, GError **error)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GMainLoop) loop = g_main_loop_new (NULL, FALSE);
  Job job = { func, user_data, cancellable, loop, FALSE, NULL };
  Watch watches[] = { { SIGINT, 0, cancellable }, { SIGTERM, 0, cancellable },
    { SIGHUP, 0, cancellable } };
  GThread *thread;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (watches); i++)
    watch_signal (&watches[i]);
  thread = g_thread_new ("job", run_thread, &job);
  g_main_loop_run (loop);
  g_thread_join (thread);
  for (i = 0; i < G_N_ELEMENTS (watches); i++) {
    if (watches[i].source != 0)
      g_source_remove (watches[i].source);
  }
  if (job.error != NULL)
    g_propagate_error (error, job.error);
  return job.done;
}

void
job_progress_init (JobProgress *progress, const gchar *what)
{
  progress->what = what;
  progress->terminal = isatty (STDERR_FILENO);
  progress->shown = -1;
  progress->time = g_get_monotonic_time ();
}

static void
draw_bar (const JobProgress *progress)
{
  gchar bar[BAR_WIDTH + 1] = { 0 };

  memset (bar, '.', BAR_WIDTH);
  memset (bar, '#', progress->shown * BAR_WIDTH / 100);
  fprintf (stderr, "\r%s [%s] %3d %%", progress->what, bar, progress->shown);
  fflush (stderr);
}

void
job_progress_update (gdouble fraction, gpointer user_data)
{
  JobProgress *progress = user_data;
  gint percent = (gint) (100 * CLAMP (fraction, 0, 1));
  gint64 now = g_get_monotonic_time ();

  if (percent == progress->shown)
    return;
  progress->shown = percent;
  if (progress->terminal) {
    draw_bar (progress);
  } else if (now - progress->time >= LINE_INTERVAL) {
    progress->time = now;
    fprintf (stderr, "%s: %d %%\n", progress->what, percent);
  }
}

void
job_progress_end (JobProgress *progress)
{
  if (progress->terminal && progress->shown >= 0)
    fputs ("\r\033[K", stderr);
}
