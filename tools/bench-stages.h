/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* vlm-bench MODEL: the time of each stage of an answer. */

#ifndef TOOLS_BENCH_STAGES_H
#define TOOLS_BENCH_STAGES_H

#include "bench-model.h"
#include "kernels/kernels.h"

typedef struct
{
  const gchar *model, *mmproj; /* as in VlmLoadOptions */
  VlmPrecision precision;
  guint n_threads;     /* 0: the CPUs that this process may use */
  guint n_runs;        /* >= 1, counted after one that warms up */
  guint width, height; /* of the picture */
  guint max_tokens;    /* of an answer */
  gboolean json;
  const gchar *plot;     /* file for a drawing of the times; NULL: none */
  const gchar *roofline; /* file for a drawing of the rates below their limits; NULL: none */
} BenchStages;

typedef enum
{
  BENCH_IMAGE,
  BENCH_VISION,
  BENCH_PREFILL,
  BENCH_TOKEN, /* one step of decoding */
  BENCH_TOTAL, /* from the frame to its caption */
  BENCH_READ,  /* bytes a second, not a time */
  BENCH_PEAK,  /* operations a second */
  N_BENCH_STAGES
} BenchStage;

/* "image", "vision", "prefill", "token", "total", "read", "peak" */
const gchar *bench_stage_name (BenchStage stage);

/* What was measured. */
typedef struct
{
  const BenchStages *options;
  BenchModel model;  /* closed */
  VlmCpuLevel level; /* of its kernels */
  guint n_threads;
  BenchAnswer answer;            /* each of them, but for its times */
  guint64 peak_bytes;            /* most memory of the process, up to the end of the first answer */
  gdouble *runs[N_BENCH_STAGES]; /* seconds, in the order in which they were measured */
  gdouble median[N_BENCH_STAGES]; /* of these */
} BenchStagesResult;

/* How near a stage is to what the machine can do. */
typedef struct
{
  BenchCost cost;
  gdouble rate;      /* operations a second */
  gdouble intensity; /* operations for each byte that has to be read */
  gdouble roof;      /* most operations a second at this intensity: peak, or what reading allows */
  gdouble share;     /* rate / roof */
} BenchPoint;

/* FALSE for what is no stage of the network, or not there in this model. */
gboolean bench_stage_point (const BenchStagesResult *result, BenchStage stage, BenchPoint *point);

/* "int8" or "float32": what the peak is about. */
const gchar *bench_peak_kind (const BenchStagesResult *result);

/*
 * Describes the same drawn picture again and again, and prints the median time of each stage beside
 * the rates at which the same threads read memory and multiply in registers, measured between the
 * answers. Errors: those of vlm_model_load (), vlm_session_generate () and of writing the drawings.
 */
gboolean bench_stages (const BenchStages *options, GError **error);

/* The result as lines, and as one JSON object, on standard output. */
void bench_print_stages (const BenchStagesResult *result);
void bench_print_stages_json (const BenchStagesResult *result);

/* An SVG drawing: a bar for each stage, and how often the whole took how long. (transfer full) */
gchar *bench_plot (const BenchStagesResult *result);

/* An SVG drawing: each stage as a point below its roof. (transfer full) */
gchar *bench_roofline (const BenchStagesResult *result);

#endif
