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
  const gchar *plot; /* file for a drawing of the result; NULL: none */
} BenchStages;

typedef enum
{
  BENCH_IMAGE,
  BENCH_VISION,
  BENCH_PREFILL,
  BENCH_TOKEN, /* one step of decoding */
  BENCH_TOTAL, /* from the frame to its caption */
  BENCH_READ,  /* bytes a second, not a time */
  N_BENCH_STAGES
} BenchStage;

/* "image", "vision", "prefill", "token", "total", "read" */
const gchar *bench_stage_name (BenchStage stage);

/* What was measured. */
typedef struct
{
  const BenchStages *options;
  VlmModelInfo info; /* its strings are gone with the model */
  guint n_threads;
  guint n_patches, n_image_tokens, n_prompt_tokens;
  gsize n_tokens;                /* of an answer */
  gdouble load;                  /* seconds */
  guint64 peak_bytes;            /* most memory of the process, up to the end of the first answer */
  gdouble *runs[N_BENCH_STAGES]; /* seconds, in the order in which they were measured */
  gdouble median[N_BENCH_STAGES]; /* of these */
} BenchStagesResult;

/*
 * Describes the same drawn picture again and again, and prints the median time of each stage beside
 * the rate at which the same threads read memory, measured between the answers. Errors: those of
 * vlm_model_load (), vlm_session_generate () and of writing the plot.
 */
gboolean bench_stages (const BenchStages *options, GError **error);

/* The result as lines, and as one JSON object, on standard output. */
void bench_print_stages (const BenchStagesResult *result);
void bench_print_stages_json (const BenchStagesResult *result);

/* An SVG drawing: a bar for each stage, and how often the whole took how long. (transfer full) */
gchar *bench_plot (const BenchStagesResult *result);

#endif
