/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* vlm-bench --kernels: its call, and what its parts share. */

#ifndef TOOLS_BENCH_KERNELS_H
#define TOOLS_BENCH_KERNELS_H

#include "kernels/kernels.h"

#include <glib.h>

typedef struct
{
  guint n_threads;    /* 0: the CPUs that this process may use */
  const gchar *level; /* only this one, with what it takes from the levels below it; or NULL */
  gboolean quick;     /* small shapes and short runs: figures that only show that it works */
  gboolean json;
} BenchKernels;

/* Measures and prints the kernels of every level. Error: there is no such level
 * (G_OPTION_ERROR_BAD_VALUE). */
gboolean bench_kernels (const BenchKernels *options, GError **error);

/* Rates are medians of so many runs; odd. */
#define BENCH_RUNS 7

/* One line of the table. */
typedef struct
{
  const gchar *level;
  const gchar *kernel;
  const gchar *format; /* of the weights, or what else tells cases of a kernel apart */
  gchar shape[48];
  const gchar *unit;
  gdouble rate;  /* of all threads together */
  gdouble limit; /* in the same unit; 0: none is known */
  gdouble share; /* rate / limit, each run beside its own limit */
} BenchResult;

typedef struct
{
  guint threads;
  gboolean quick;
  const gchar *level;
  void (*report) (const BenchResult *result, gpointer user_data);
  gpointer user_data;
} Bench;

/* A level in the table. */
typedef struct
{
  VlmKernels kernels; /* kernels.name may be one that vlm_cpu_level_name () does not know */
  VlmCpuLevel level;  /* whose instructions it has */
} BenchLevel;

/* A piece of work for one of the threads; returns how much it was, in whatever unit. */
typedef gdouble (*BenchWork) (guint thread, gpointer user_data);

/* A measurement: the work, what limits it, and their rates. */
typedef struct
{
  BenchWork work;
  BenchWork limit; /* NULL: nothing is known to; gets the same user_data */
  gpointer user_data;
  gdouble rate, limit_rate, share; /* units of work a second */
} BenchCase;

/*
 * Measures on all threads of the bench at once, limit and work in turn. A thread's time is what it
 * had of a processor, so that other programs count as little as can be; rates of threads are added.
 */
void bench_measure (const Bench *bench, BenchCase *c);

/* bytes of memory, in large pages where the system has them. Bails out where there is none. */
gpointer bench_allocate (gsize bytes);

/* The levels of this processor and build, in ascending order; their number is *n_levels. */
BenchLevel *bench_levels (guint *n_levels);

/* Which entries of a level are to be measured. */
typedef struct
{
  gboolean floats[3]; /* matmul_f32, _f16, _bf16 */
  gboolean integers;
  gboolean tiled;
  gboolean attention, quantise, rms_norm, layer_norm, gelu_tanh, silu_mul, resample_column;
} BenchEntries;

/* Those that no level below has, or all with Bench.level. */
BenchEntries bench_entries (const Bench *bench, const BenchLevel *levels, guint i);

/* Report the entries of a level: products of matrices, and all others. */
void bench_products (const Bench *bench, const BenchLevel *level, const BenchEntries *entries);
void bench_functions (const Bench *bench, const BenchLevel *level, const BenchEntries *entries);

/* What handing a run to all threads and waiting for them costs, in microseconds. */
typedef struct
{
  gdouble hot;    /* right after the run before */
  gdouble asleep; /* when the threads have gone to sleep */
} BenchTeam;

BenchTeam bench_team (const Bench *bench);

#endif
