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
  gdouble rate = (gdouble) result->info.token_bytes / median[BENCH_TOKEN];
  BenchStage stage;

  bench_print_machine (machine, result->n_threads);
  json_decref (machine);
  printf ("# %s: %s, %.1f MB of weights, loaded in %.2f s, peak memory %.1f MB\n", options->model,
      result->info.fast ? "integers" : "floats", result->info.weight_bytes / 1e6, result->load,
      result->peak_bytes / 1e6);
  printf ("# picture %u x %u: %u image tokens, %u prompt tokens, %" G_GSIZE_FORMAT
          " answer tokens; medians of %u runs\n",
      options->width, options->height, result->n_image_tokens, result->n_prompt_tokens,
      result->n_tokens, options->n_runs);
  for (stage = BENCH_IMAGE; stage <= BENCH_TOTAL; stage++)
    printf ("%-8s %10.2f ms\n", bench_stage_name (stage), median[stage] * 1e3);
  printf ("a token reads %.1f MB: %.2f GB/s, %.0f %% of the %.2f GB/s of a plain read\n",
      result->info.token_bytes / 1e6, rate / 1e9, 100 * rate / median[BENCH_READ],
      median[BENCH_READ] / 1e9);
}

/* What must be equal wherever times are compared. (transfer full) */
static json_t *
shape_of (const BenchStagesResult *result)
{
  return json_pack ("{s:i, s:i, s:i, s:i, s:i}", "patches", (int) result->n_patches, "text_layers",
      (int) result->info.n_layers, "text_width", (int) result->info.hidden_size, "vision_layers",
      (int) result->info.n_vision_layers, "vision_width", (int) result->info.vision_hidden_size);
}

void
bench_print_stages_json (const BenchStagesResult *result)
{
  json_t *root = json_pack ("{s:o, s:i, s:i, s:s, s:b, s:I, s:I, s:I, s:f, s:i, s:i, s:i, s:o}",
      "machine", bench_machine (), "threads", (int) result->n_threads, "runs",
      (int) result->options->n_runs, "model", result->options->model, "fast", result->info.fast,
      "weight_bytes", (json_int_t) result->info.weight_bytes, "token_bytes",
      (json_int_t) result->info.token_bytes, "peak_bytes", (json_int_t) result->peak_bytes, "load",
      result->load, "image_tokens", (int) result->n_image_tokens, "prompt_tokens",
      (int) result->n_prompt_tokens, "answer_tokens", (int) result->n_tokens, "shape",
      shape_of (result));
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
  json_dumpf (root, stdout, JSON_INDENT (1) | JSON_REAL_PRECISION (6));
  printf ("\n");
  json_decref (root);
}
