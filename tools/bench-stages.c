/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The time of each stage of an answer, from a picture to the last token. */

#include "bench-stages.h"
#include "bench-machine.h"

#include <stdio.h>
#include <stdlib.h>

#define PROMPT "Describe this picture in one sentence."

typedef enum
{
  STAGE_IMAGE,
  STAGE_VISION,
  STAGE_PREFILL,
  STAGE_TOKEN, /* one step of decoding */
  STAGE_TOTAL,
  STAGE_READ, /* bytes a second, not a time */
  N_STAGES
} Stage;

static const gchar *const names[N_STAGES] = { "image", "vision", "prefill", "token", "total",
  "read" };

typedef struct
{
  const BenchStages *options;
  VlmModelInfo info;
  guint n_threads;
  guint8 *pixels;
  guint n_image_tokens, n_prompt_tokens;
  gsize n_tokens;
  gdouble load; /* seconds */
  gdouble *times[N_STAGES];
  gdouble median[N_STAGES];
} Bench;

static gint
compare_doubles (gconstpointer a, gconstpointer b)
{
  gdouble x = *(const gdouble *) a, y = *(const gdouble *) b;

  return x < y ? -1 : x > y;
}

/* The middle one of n values, which are sorted on the way; the mean of the two in the middle. */
static gdouble
median_of (gdouble *values, guint n)
{
  qsort (values, n, sizeof (*values), compare_doubles);
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/* Something to look at at every place; a plain picture would be no other for the time it takes. */
static guint8 *
draw (guint width, guint height)
{
  guint8 *pixels = g_malloc ((gsize) width * height * 3);
  gsize i;

  for (i = 0; i < (gsize) width * height * 3; i++)
    pixels[i] = (guint8) ((i * 2654435761u) >> 11);
  return pixels;
}

static gboolean
run_once (Bench *bench, VlmSession *session, BenchMemory *memory, gint run, GError **error)
{
  const BenchStages *options = bench->options;
  const VlmImage image = { bench->pixels, (gsize) options->width * 3, options->width,
    options->height };
  VlmRequest request = VLM_REQUEST_INIT;
  VlmResult result = { 0 };
  gdouble rate = memory != NULL ? bench_memory_read_rate (memory) : 0;

  request.prompt = PROMPT;
  request.images = &image;
  request.n_images = bench->info.has_vision ? 1 : 0;
  request.max_tokens = (gint) options->max_tokens;
  request.tiling = VLM_TILING_OFF;
  request.n_threads = bench->n_threads;
  if (!vlm_session_generate (session, &request, NULL, &result, error))
    return FALSE;
  if (run >= 0) {
    bench->times[STAGE_IMAGE][run] = result.timings.image;
    bench->times[STAGE_VISION][run] = result.timings.vision;
    bench->times[STAGE_PREFILL][run] = result.timings.prefill;
    /* The first token comes out of the prefill. */
    bench->times[STAGE_TOKEN][run] = result.timings.decode / MAX (result.n_ids - 1, 1);
    bench->times[STAGE_TOTAL][run] = result.timings.total;
    bench->times[STAGE_READ][run] = rate;
  }
  bench->n_image_tokens = result.n_image_tokens;
  bench->n_prompt_tokens = result.n_prompt_tokens;
  bench->n_tokens = result.n_ids;
  vlm_result_clear (&result);
  return TRUE;
}

static gboolean
run_all (Bench *bench, GError **error)
{
  const VlmLoadOptions load = { .precision = bench->options->precision,
    .mmproj = bench->options->mmproj,
    .n_threads = bench->n_threads };
  gint64 since = g_get_monotonic_time ();
  VlmModel *model = vlm_model_load (bench->options->model, &load, NULL, NULL, NULL, error);
  BenchMemory *memory;
  VlmSession *session;
  gboolean ok = TRUE;
  gint run;

  if (model == NULL)
    return FALSE;
  bench->load = (gdouble) (g_get_monotonic_time () - since) / G_USEC_PER_SEC;
  vlm_model_get_info (model, &bench->info);
  session = vlm_session_new (model);
  memory = bench_memory_new (bench->n_threads);
  for (run = -1; ok && run < (gint) bench->options->n_runs; run++)
    ok = run_once (bench, session, memory, run, error);
  bench_memory_free (memory);
  vlm_session_free (session);
  vlm_model_unref (model);
  return ok;
}

static void
print_table (const Bench *bench)
{
  json_t *machine = bench_machine ();
  const gdouble *median = bench->median;
  gdouble rate = (gdouble) bench->info.token_bytes / median[STAGE_TOKEN];
  Stage stage;

  bench_print_machine (machine, bench->n_threads);
  json_decref (machine);
  printf ("# %s: %s, %.1f MB of weights, loaded in %.2f s\n", bench->options->model,
      bench->info.fast ? "integers" : "floats", bench->info.weight_bytes / 1e6, bench->load);
  printf ("# picture %u x %u: %u image tokens, %u prompt tokens, %" G_GSIZE_FORMAT
          " answer tokens; medians of %u runs\n",
      bench->options->width, bench->options->height, bench->n_image_tokens, bench->n_prompt_tokens,
      bench->n_tokens, bench->options->n_runs);
  for (stage = STAGE_IMAGE; stage <= STAGE_TOTAL; stage++)
    printf ("%-8s %10.2f ms\n", names[stage], median[stage] * 1e3);
  printf ("a token reads %.1f MB: %.2f GB/s, %.0f %% of the %.2f GB/s of a plain read\n",
      bench->info.token_bytes / 1e6, rate / 1e9, 100 * rate / median[STAGE_READ],
      median[STAGE_READ] / 1e9);
}

static void
print_json (const Bench *bench)
{
  json_t *root = json_pack ("{s:o, s:i, s:i, s:s, s:b, s:I, s:I, s:f, s:i, s:i, s:i}", "machine",
      bench_machine (), "threads", (int) bench->n_threads, "runs", (int) bench->options->n_runs,
      "model", bench->options->model, "fast", bench->info.fast, "weight_bytes",
      (json_int_t) bench->info.weight_bytes, "token_bytes", (json_int_t) bench->info.token_bytes,
      "load", bench->load, "image_tokens", (int) bench->n_image_tokens, "prompt_tokens",
      (int) bench->n_prompt_tokens, "answer_tokens", (int) bench->n_tokens);
  Stage stage;

  for (stage = 0; stage < N_STAGES; stage++)
    json_object_set_new (root, names[stage], json_real (bench->median[stage]));
  json_dumpf (root, stdout, JSON_INDENT (1) | JSON_REAL_PRECISION (6));
  printf ("\n");
  json_decref (root);
}

gboolean
bench_stages (const BenchStages *options, GError **error)
{
  Bench bench = { .options = options };
  gboolean ok;
  Stage stage;

  bench.n_threads = options->n_threads > 0 ? options->n_threads : g_get_num_processors ();
  bench.pixels = draw (options->width, options->height);
  for (stage = 0; stage < N_STAGES; stage++)
    bench.times[stage] = g_new0 (gdouble, options->n_runs);
  ok = run_all (&bench, error);
  for (stage = 0; ok && stage < N_STAGES; stage++)
    bench.median[stage] = median_of (bench.times[stage], options->n_runs);
  if (ok && options->json)
    print_json (&bench);
  else if (ok)
    print_table (&bench);
  for (stage = 0; stage < N_STAGES; stage++)
    g_free (bench.times[stage]);
  g_free (bench.pixels);
  return ok;
}
