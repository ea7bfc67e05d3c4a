/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The time of each stage of an answer, from a picture to the last token. */

#include "bench-stages.h"
#include "bench-machine.h"
#include "bench-threads.h"

#include <sys/resource.h>

static const gchar *const names[N_BENCH_STAGES] = { "image", "vision", "prefill", "token", "total",
  "read", "peak" };

/* What goes on while the result comes about. */
typedef struct
{
  BenchStagesResult result;
  guint8 *pixels;
  BenchMemory *memory;
  BenchPeak peak;
} Bench;

const gchar *
bench_stage_name (BenchStage stage)
{
  return names[stage];
}

const gchar *
bench_peak_kind (const BenchStagesResult *result)
{
  if (!result->model.info.fast)
    return "float32";
  return result->level == VLM_CPU_AMX ? "bfloat16" : "int8";
}

gboolean
bench_stage_point (const BenchStagesResult *result, BenchStage stage, BenchPoint *point)
{
  const BenchAnswer *answer = &result->answer;
  const BenchCost none = { 0 };

  point->cost = stage == BENCH_VISION ? answer->vision
      : stage == BENCH_PREFILL        ? answer->prefill
      : stage == BENCH_TOKEN          ? answer->token_cost
                                      : none;
  if (point->cost.operations == 0 || result->median[stage] <= 0)
    return FALSE;
  point->rate = point->cost.operations / result->median[stage];
  point->intensity = point->cost.operations / point->cost.bytes;
  point->roof = MIN (result->median[BENCH_PEAK], point->intensity * result->median[BENCH_READ]);
  point->share = point->rate / point->roof;
  return TRUE;
}

static void
keep (BenchStagesResult *kept, guint run, const BenchAnswer *answer)
{
  kept->runs[BENCH_IMAGE][run] = answer->timings.image;
  kept->runs[BENCH_VISION][run] = answer->timings.vision;
  kept->runs[BENCH_PREFILL][run] = answer->timings.prefill;
  kept->runs[BENCH_TOKEN][run] = answer->token;
  kept->runs[BENCH_TOTAL][run] = answer->timings.total;
  /* The first answer had nothing of its prompt from one before. */
  kept->answer.n_kept_tokens = answer->n_kept_tokens;
  kept->answer.prefill = answer->prefill;
}

/* A run below 0 warms up: its work is counted, its times are not. */
static gboolean
run_once (Bench *bench, gint run, GError **error)
{
  BenchStagesResult *kept = &bench->result;
  const BenchStages *options = kept->options;
  const VlmImage image = bench_picture (bench->pixels, options->width, options->height);
  VlmRequest request = VLM_REQUEST_INIT;
  BenchAnswer answer;

  request.prompt = BENCH_PROMPT;
  request.images = &image;
  request.n_images = kept->model.info.has_vision ? 1 : 0;
  request.max_tokens = (gint) options->max_tokens;
  request.tiling = VLM_TILING_OFF;
  request.n_threads = kept->n_threads;
  if (run >= 0) {
    kept->runs[BENCH_READ][run] = bench_memory_read_rate (bench->memory);
    kept->runs[BENCH_PEAK][run] = bench_peak_rate (bench->peak, kept->n_threads);
  }
  if (!bench_model_ask (&kept->model, &request, run < 0, &answer, error))
    return FALSE;
  if (run < 0)
    kept->answer = answer;
  else
    keep (kept, (guint) run, &answer);
  return TRUE;
}

static guint64
peak_bytes (void)
{
  struct rusage usage;

  getrusage (RUSAGE_SELF, &usage);
  return (guint64) usage.ru_maxrss * 1024;
}

static gboolean
run_all (Bench *bench, GError **error)
{
  BenchStagesResult *kept = &bench->result;
  const BenchStages *options = kept->options;
  BenchModel *model = &kept->model;
  gboolean ok;
  gint run;

  if (!bench_model_open (
          model, options->model, options->mmproj, options->precision, kept->n_threads, error))
    return FALSE;
  kept->level = (VlmCpuLevel) vlm_cpu_level_from_name (model->info.level);
  bench->peak =
      model->info.fast ? bench_peak_batches (kept->level) : bench_peak_floats (kept->level);
  ok = run_once (bench, -1, error);
  /* The memory that is read for comparison is none of the model's. */
  kept->peak_bytes = peak_bytes ();
  bench->memory = bench_memory_new (kept->n_threads);
  for (run = 0; ok && run < (gint) options->n_runs; run++)
    ok = run_once (bench, run, error);
  bench_memory_free (bench->memory);
  bench_model_close (model);
  return ok;
}

/* drawing: taken over */
static gboolean
write_drawing (const gchar *path, gchar *drawing, GError **error)
{
  gboolean ok = g_file_set_contents (path, drawing, -1, error);

  g_free (drawing);
  return ok;
}

static gboolean
report (const BenchStagesResult *result, GError **error)
{
  const BenchStages *options = result->options;

  if (options->json)
    bench_print_stages_json (result);
  else
    bench_print_stages (result);
  if (options->plot != NULL && !write_drawing (options->plot, bench_plot (result), error))
    return FALSE;
  return options->roofline == NULL
      || write_drawing (options->roofline, bench_roofline (result), error);
}

gboolean
bench_stages (const BenchStages *options, GError **error)
{
  Bench bench = { .result.options = options };
  BenchStagesResult *result = &bench.result;
  gboolean ok;
  BenchStage stage;

  result->n_threads = options->n_threads > 0 ? options->n_threads : g_get_num_processors ();
  bench.pixels = bench_draw (options->width, options->height);
  for (stage = 0; stage < N_BENCH_STAGES; stage++)
    result->runs[stage] = g_new0 (gdouble, options->n_runs);
  ok = run_all (&bench, error);
  for (stage = 0; ok && stage < N_BENCH_STAGES; stage++)
    result->median[stage] = bench_median (result->runs[stage], options->n_runs);
  ok = ok && report (result, error);
  for (stage = 0; stage < N_BENCH_STAGES; stage++)
    g_free (result->runs[stage]);
  g_free (bench.pixels);
  return ok;
}
