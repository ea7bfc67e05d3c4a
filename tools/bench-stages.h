/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* vlm-bench MODEL: the time of each stage of an answer. */

#ifndef TOOLS_BENCH_STAGES_H
#define TOOLS_BENCH_STAGES_H

#include "engine/vlm.h"

typedef struct
{
  const gchar *model, *mmproj; /* as in VlmLoadOptions */
  VlmPrecision precision;
  guint n_threads;     /* 0: the CPUs that this process may use */
  guint n_runs;        /* >= 1, counted after one that warms up */
  guint width, height; /* of the picture */
  guint max_tokens;    /* of an answer */
  gboolean json;
} BenchStages;

/*
 * Describes the same drawn picture again and again, and prints the median time of each stage beside
 * the rate at which the same threads read memory, measured between the answers. Errors: those of
 * vlm_model_load () and vlm_session_generate ().
 */
gboolean bench_stages (const BenchStages *options, GError **error);

#endif
