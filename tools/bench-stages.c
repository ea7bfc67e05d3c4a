/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The time of each stage of an answer, from a picture to the last token. */

#include "bench-stages.h"
#include "bench-machine.h"

#include <stdlib.h>
#include <sys/resource.h>

#define PROMPT "Describe this picture in one sentence."

static const gchar *const names[N_BENCH_STAGES] = { "image", "vision", "prefill", "token", "total",
  "read" };

/* What goes on while the result comes about. */
typedef struct
{
  BenchStagesResult result;
  guint8 *pixels;
  BenchMemory *memory;
} Bench;

const gchar *
bench_stage_name (BenchStage stage)
{
  return names[stage];
}

static gint
compare_doubles (gconstpointer a, gconstpointer b)
{
  gdouble x = *(const gdouble *) a, y = *(const gdouble *) b;

  return x < y ? -1 : x > y;
}

/* The middle one of n values, or the mean of the two in the middle. */
static gdouble
median_of (const gdouble *values, guint n)
{
  g_autofree gdouble *sorted = g_memdup2 (values, n * sizeof (*values));

  qsort (sorted, n, sizeof (*sorted), compare_doubles);
  return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
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

/* Rows of patches that the tower sees. */
static void
count_patches (const gchar *name, guint index, VlmArrayType type, const gsize *shape, guint n_dims,
    gconstpointer data, gpointer user_data)
{
  Bench *bench = user_data;

  if (g_str_equal (name, "patches"))
    bench->result.n_patches += (guint) shape[0];
  (void) index, (void) type, (void) n_dims, (void) data;
}

static void
keep (BenchStagesResult *kept, guint run, const VlmResult *result, gdouble rate)
{
  kept->runs[BENCH_IMAGE][run] = result->timings.image;
  kept->runs[BENCH_VISION][run] = result->timings.vision;
  kept->runs[BENCH_PREFILL][run] = result->timings.prefill;
  /* The first token comes out of the prefill. */
  kept->runs[BENCH_TOKEN][run] = result->timings.decode / MAX (result->n_ids - 1, 1);
  kept->runs[BENCH_TOTAL][run] = result->timings.total;
  kept->runs[BENCH_READ][run] = rate;
}

/* A run below 0 warms up: its picture is counted, its times are not. */
static gboolean
run_once (Bench *bench, VlmSession *session, gint run, GError **error)
{
  BenchStagesResult *kept = &bench->result;
  const BenchStages *options = kept->options;
  const VlmImage image = { bench->pixels, (gsize) options->width * 3, options->width,
    options->height };
  const VlmWatch watch = { NULL, count_patches, bench, NULL };
  VlmRequest request = VLM_REQUEST_INIT;
  VlmResult result = { 0 };
  gdouble rate = run < 0 ? 0 : bench_memory_read_rate (bench->memory);

  request.prompt = PROMPT;
  request.images = &image;
  request.n_images = kept->info.has_vision ? 1 : 0;
  request.max_tokens = (gint) options->max_tokens;
  request.tiling = VLM_TILING_OFF;
  request.n_threads = kept->n_threads;
  if (!vlm_session_generate (session, &request, run < 0 ? &watch : NULL, &result, error))
    return FALSE;
  if (run >= 0)
    keep (kept, (guint) run, &result, rate);
  kept->n_image_tokens = result.n_image_tokens;
  kept->n_prompt_tokens = result.n_prompt_tokens;
  kept->n_tokens = result.n_ids;
  vlm_result_clear (&result);
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
  const VlmLoadOptions load = {
    .precision = options->precision, .mmproj = options->mmproj, .n_threads = kept->n_threads
  };
  gint64 since = g_get_monotonic_time ();
  VlmModel *model = vlm_model_load (options->model, &load, NULL, NULL, NULL, error);
  VlmSession *session;
  gboolean ok;
  gint run;

  if (model == NULL)
    return FALSE;
  kept->load = (gdouble) (g_get_monotonic_time () - since) / G_USEC_PER_SEC;
  vlm_model_get_info (model, &kept->info);
  session = vlm_session_new (model);
  ok = run_once (bench, session, -1, error);
  /* The memory that is read for comparison is none of the model's. */
  kept->peak_bytes = peak_bytes ();
  bench->memory = bench_memory_new (kept->n_threads);
  for (run = 0; ok && run < (gint) options->n_runs; run++)
    ok = run_once (bench, session, run, error);
  bench_memory_free (bench->memory);
  vlm_session_free (session);
  vlm_model_unref (model);
  return ok;
}

static gboolean
report (const BenchStagesResult *result, GError **error)
{
  g_autofree gchar *plot = NULL;

  if (result->options->json)
    bench_print_stages_json (result);
  else
    bench_print_stages (result);
  if (result->options->plot == NULL)
    return TRUE;
  plot = bench_plot (result);
  return g_file_set_contents (result->options->plot, plot, -1, error);
}

gboolean
bench_stages (const BenchStages *options, GError **error)
{
  Bench bench = { .result.options = options };
  BenchStagesResult *result = &bench.result;
  gboolean ok;
  BenchStage stage;

  result->n_threads = options->n_threads > 0 ? options->n_threads : g_get_num_processors ();
  bench.pixels = draw (options->width, options->height);
  for (stage = 0; stage < N_BENCH_STAGES; stage++)
    result->runs[stage] = g_new0 (gdouble, options->n_runs);
  ok = run_all (&bench, error);
  for (stage = 0; ok && stage < N_BENCH_STAGES; stage++)
    result->median[stage] = median_of (result->runs[stage], options->n_runs);
  ok = ok && report (result, error);
  for (stage = 0; stage < N_BENCH_STAGES; stage++)
    g_free (result->runs[stage]);
  g_free (bench.pixels);
  return ok;
}
