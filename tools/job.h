/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Long work that Ctrl-C ends in good order, and a bar that shows how far it is. */

#ifndef TOOLS_JOB_H
#define TOOLS_JOB_H

#include <gio/gio.h>

/* The work itself, in a thread of its own. */
typedef gboolean (*JobFunc) (GCancellable *cancellable, gpointer user_data, GError **error);

/*
 * Runs func to its end. SIGINT, SIGTERM and SIGHUP, unless they were ignored from the start, cancel
 * it; it fails with G_IO_ERROR_CANCELLED then.
 */
gboolean job_run (JobFunc func, gpointer user_data, GError **error);

/* The signal that cancelled the job, 0 without one. */
gint job_get_signal (void);

/* A bar on standard error when that is a terminal, else a line every few seconds. */
typedef struct
{
  const gchar *what; /* "converting" */
  gboolean terminal;
  gint shown;  /* percent */
  gint64 time; /* of the last line */
} JobProgress;

void job_progress_init (JobProgress *progress, const gchar *what);
/* A VlmProgressFunc; user_data is the JobProgress. */
void job_progress_update (gdouble fraction, gpointer user_data);
/* Takes the bar away. */
void job_progress_end (JobProgress *progress);

#endif
