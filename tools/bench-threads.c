/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bench-threads.h"

#include <stdlib.h>

typedef struct
{
  BenchThreadFunc func;
  gpointer user_data;
  guint thread;
} Task;

static gpointer
run_task (gpointer data)
{
  Task *task = data;

  task->func (task->thread, task->user_data);
  return NULL;
}

gdouble
bench_run_threads (guint n_threads, BenchThreadFunc func, gpointer user_data)
{
  g_autofree Task *tasks = g_new (Task, n_threads);
  g_autofree GThread **threads = g_new (GThread *, n_threads);
  gint64 since = g_get_monotonic_time ();
  guint i;

  for (i = 0; i < n_threads; i++)
    tasks[i] = (Task){ func, user_data, i };
  for (i = 1; i < n_threads; i++)
    threads[i] = g_thread_new ("bench", run_task, &tasks[i]);
  run_task (&tasks[0]);
  for (i = 1; i < n_threads; i++)
    g_thread_join (threads[i]);
  return (gdouble) MAX (g_get_monotonic_time () - since, 1) / G_USEC_PER_SEC;
}

static gint
compare_doubles (gconstpointer a, gconstpointer b)
{
  gdouble x = *(const gdouble *) a, y = *(const gdouble *) b;

  return x < y ? -1 : x > y;
}

gdouble
bench_median (const gdouble *values, guint n)
{
  g_autofree gdouble *sorted = g_memdup2 (values, n * sizeof (*values));

  qsort (sorted, n, sizeof (*sorted), compare_doubles);
  return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}
