/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Work on several threads at once, with nothing of the engine between. */

#ifndef TOOLS_BENCH_THREADS_H
#define TOOLS_BENCH_THREADS_H

#include <glib.h>

/* A piece of work for one of the threads. */
typedef void (*BenchThreadFunc) (guint thread, gpointer user_data);

/* Calls func on n_threads threads, the caller being thread 0; seconds until all are done. */
gdouble bench_run_threads (guint n_threads, BenchThreadFunc func, gpointer user_data);

/* The middle one of n values, or the mean of the two in the middle. */
gdouble bench_median (const gdouble *values, guint n);

#endif
