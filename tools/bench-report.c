/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The times of the stages as lines and as JSON. */

#include "bench-machine.h"
#include "bench-stages.h"

#include <stdio.h>

void
bench_print_stages (const BenchStagesResult *result)
{
  const BenchStages *options = result->options;
  json_t *machine = bench_machine ();
  const gdouble *median = result->median;
  gdouble rate = (gdouble) result->model.info.token_bytes / median[BENCH_TOKEN];
  BenchStage stage;

  bench_print_machine (machine, result->n_threads);
  json_decref (machine);
  printf ("# %s: %s, %.1f MB of weights, loaded in %.2f s, peak memory %.1f MB\n", options->model,
      result->model.info.fast ? "integers" : "floats", result->model.info.weight_bytes / 1e6,
      result->model.load, result->peak_bytes / 1e6);
  printf ("# picture %u x %u: %u image tokens, %u prompt tokens (%u known from the answer before), "
          "%" G_GSIZE_FORMAT " answer tokens; medians of %u runs\n",
      options->width, options->height, result->answer.n_image_tokens,
      result->answer.n_prompt_tokens, result->answer.n_kept_tokens, result->answer.n_tokens,
      options->n_runs);
  for (stage = BENCH_IMAGE; stage <= BENCH_TOTAL; stage++)
    printf ("%-8s %10.2f ms\n", bench_stage_name (stage), median[stage] * 1e3);
  printf ("a token reads %.1f MB: %.2f GB/s, %.0f %% of the %.2f GB/s of a plain read\n",
      result->model.info.token_bytes / 1e6, rate / 1e9, 100 * rate / median[BENCH_READ],
      median[BENCH_READ] / 1e9);
  for (stage = BENCH_VISION; stage <= BENCH_TOKEN; stage++) {
    BenchPoint point;

    if (bench_stage_point (result, stage, &point))
      printf ("%-8s %10.2f G operations, %.1f a byte: %.1f GOPS, %.0f %% of %.1f\n",
          bench_stage_name (stage), point.cost.operations / 1e9, point.intensity, point.rate / 1e9,
          100 * point.share, point.roof / 1e9);
  }
  printf ("%s peak of %s on registers alone: %.1f GOPS\n", bench_peak_kind (result),
      vlm_cpu_level_name (result->level), median[BENCH_PEAK] / 1e9);
}

/* What must be equal wherever times are compared. (transfer full) */
static json_t *
shape_of (const BenchStagesResult *result)
{
  return json_pack ("{s:i, s:i, s:i, s:i, s:i}", "patches", (int) result->answer.n_patches,
      "text_layers", (int) result->model.info.n_layers, "text_width",
      (int) result->model.info.hidden_size, "vision_layers",
      (int) result->model.info.n_vision_layers, "vision_width",
      (int) result->model.info.vision_hidden_size);
}

/* What each stage does beside what the machine could. (transfer full) */
static json_t *
work_of (const BenchStagesResult *result)
{
  json_t *work = json_object ();
  BenchStage stage;

  for (stage = BENCH_VISION; stage <= BENCH_TOKEN; stage++) {
    BenchPoint p;

    if (bench_stage_point (result, stage, &p))
      json_object_set_new (work, bench_stage_name (stage),
          json_pack ("{s:f, s:f, s:f, s:f, s:f, s:f}", "operations", p.cost.operations, "bytes",
              p.cost.bytes, "rate", p.rate, "intensity", p.intensity, "roof", p.roof, "share",
              p.share));
  }
  return work;
}

void
bench_print_stages_json (const BenchStagesResult *result)
{
  json_t *root =
      json_pack ("{s:o, s:i, s:i, s:s, s:b, s:I, s:I, s:I, s:f, s:i, s:i, s:i, s:i, s:o}",
          "machine", bench_machine (), "threads", (int) result->n_threads, "runs",
          (int) result->options->n_runs, "model", result->options->model, "fast",
          result->model.info.fast, "weight_bytes", (json_int_t) result->model.info.weight_bytes,
          "token_bytes", (json_int_t) result->model.info.token_bytes, "peak_bytes",
          (json_int_t) result->peak_bytes, "load", result->model.load, "image_tokens",
          (int) result->answer.n_image_tokens, "prompt_tokens",
          (int) result->answer.n_prompt_tokens, "kept_tokens", (int) result->answer.n_kept_tokens,
          "answer_tokens", (int) result->answer.n_tokens, "shape", shape_of (result));
  json_t *samples = json_object ();
  BenchStage stage;
  guint i;

  for (stage = 0; stage < N_BENCH_STAGES; stage++) {
    json_t *values = json_array ();

    for (i = 0; i < result->options->n_runs; i++)
      json_array_append_new (values, json_real (result->runs[stage][i]));
    json_object_set_new (samples, bench_stage_name (stage), values);
    json_object_set_new (root, bench_stage_name (stage), json_real (result->median[stage]));
  }
  json_object_set_new (root, "samples", samples);
  json_object_set_new (root, "level", json_string (vlm_cpu_level_name (result->level)));
  json_object_set_new (root, "peak_kind", json_string (bench_peak_kind (result)));
  json_object_set_new (root, "work", work_of (result));
  json_dumpf (root, stdout, JSON_INDENT (1) | JSON_REAL_PRECISION (6));
  printf ("\n");
  json_decref (root);
}
