/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* vlm-bench --scaling: how the time of vision and prefill grows with threads and with work. */

#ifndef TOOLS_BENCH_SCALING_H
#define TOOLS_BENCH_SCALING_H

#include "bench-model.h"

/* Each thread is to add this share of what one alone does: two are 1.85 times as fast. */
#define BENCH_LEAST_SPEEDUP 0.925
/* Most time for the same work that a larger case may take beside any smaller one. */
#define BENCH_MOST_GROWTH 1.25

typedef struct
{
  const gchar *model, *mmproj; /* as in VlmLoadOptions */
  VlmPrecision precision;
  guint n_threads;     /* 0: the CPUs that this process may use */
  guint n_runs;        /* >= 1, counted after one that warms up */
  const gchar *series; /* "threads", "image", "tiles", "prompt" or "all" */
  gboolean json;
} BenchScaling;

gboolean bench_scaling_is_series (const gchar *name);

/*
 * Measures the cases of the series in turn and prints their median times; *met tells whether all
 * grew as little as they should. Errors: those of vlm_model_load () and vlm_session_generate ().
 */
gboolean bench_scaling (const BenchScaling *options, gboolean *met, GError **error);

#endif
