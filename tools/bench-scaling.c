/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bench-scaling.h"
#include "bench-machine.h"
#include "bench-threads.h"

#include <stdio.h>
#include <string.h>

#define WORD "stone "
#define MOST_TILES 10

static const gchar *const series_names[] = { "threads", "image", "tiles", "prompt" };
static const gchar *const stage_names[] = { "vision", "prefill" };

typedef enum
{
  THREADS,
  IMAGE,
  TILES,
  PROMPT,
  N_SERIES
} Series;

typedef enum
{
  VISION,
  PREFILL,
  N_STAGES
} Stage;

/* A request that is measured. */
typedef struct
{
  Series series;
  guint size; /* threads, image tokens, tiles or words */
  VlmRequest request;
  VlmImage image;
  gchar *prompt;
  BenchAnswer answer;       /* the work that it is */
  gdouble *times[N_STAGES]; /* of each run */
  gdouble median[N_STAGES];
  gdouble
      growth[N_STAGES]; /* speed beside one thread, or time for the same work beside the first */
  gboolean met[N_STAGES];
} Case;

typedef struct
{
  const BenchScaling *options;
  BenchModel model;
  guint n_threads;
  guint8 *pixels; /* enough for the largest picture */
  GPtrArray *cases;
} Bench;

gboolean
bench_scaling_is_series (const gchar *name)
{
  guint i;

  for (i = 0; i < N_SERIES; i++) {
    if (g_str_equal (name, series_names[i]))
      return TRUE;
  }
  return g_str_equal (name, "all");
}

static void
case_free (gpointer data)
{
  Case *c = data;

  g_free (c->times[VISION]);
  g_free (c->times[PREFILL]);
  g_free (c->prompt);
  g_free (c);
}

/* One piece of side * side pixels until something else is said. */
static Case *
add_case (Bench *bench, Series series, guint size, guint side)
{
  Case *c = g_new0 (Case, 1);
  Stage stage;

  c->series = series;
  c->size = size;
  c->image = bench_picture (bench->pixels, side, side);
  c->request = (VlmRequest) VLM_REQUEST_INIT;
  c->request.prompt = BENCH_PROMPT;
  c->request.images = &c->image;
  c->request.n_images = bench->model.info.has_vision ? 1 : 0;
  c->request.max_tokens = 1;
  c->request.tiling = VLM_TILING_OFF;
  c->request.n_threads = bench->n_threads;
  for (stage = 0; stage < N_STAGES; stage++)
    c->times[stage] = g_new0 (gdouble, bench->options->n_runs);
  g_ptr_array_add (bench->cases, c);
  return c;
}

static void
add_threads (Bench *bench)
{
  guint n;

  for (n = 1; n <= bench->n_threads; n *= 2)
    add_case (bench, THREADS, n, bench->model.shape.tile_side)->request.n_threads = n;
}

/* Squares from half the side of a tile to the whole; nothing is resized. */
static void
add_images (Bench *bench)
{
  const guint pixels = bench->model.shape.token_side;
  const guint most = bench->model.shape.tile_side / pixels;
  guint side;

  for (side = most / 2; side <= most; side += MAX (most / 8, 1)) {
    Case *c = add_case (bench, IMAGE, side * side, side * pixels);

    c->request.min_image_tokens = c->request.max_image_tokens = (gint) (side * side);
  }
}

/* Pictures a tile high and n wide, of twice the size, so that they do not pass for one. */
static void
add_tiles (Bench *bench)
{
  static const guint counts[] = { 1, 2, 4, 7, MOST_TILES };
  const guint side = 2 * bench->model.shape.tile_side;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (counts); i++) {
    Case *c = add_case (bench, TILES, counts[i], side);

    c->image = bench_picture (bench->pixels, counts[i] * side, side);
    c->request.tiling = VLM_TILING_ON;
    c->request.min_tiles = c->request.max_tiles = (gint) counts[i];
    c->request.use_thumbnail = FALSE;
  }
}

static void
add_prompts (Bench *bench)
{
  static const guint counts[] = { 64, 128, 256, 512, 1024 };
  guint i, j;

  for (i = 0; i < G_N_ELEMENTS (counts); i++) {
    Case *c = add_case (bench, PROMPT, counts[i], 1);
    GString *text = g_string_new (NULL);

    for (j = 0; j < counts[i]; j++)
      g_string_append (text, WORD);
    c->prompt = g_string_free (text, FALSE);
    c->request.prompt = c->prompt;
    c->request.n_images = 0;
  }
}

static gboolean
is_wanted (const Bench *bench, Series series)
{
  return g_str_equal (bench->options->series, "all")
      || g_str_equal (bench->options->series, series_names[series]);
}

static void
add_cases (Bench *bench)
{
  void (*const add[N_SERIES]) (Bench *) = { add_threads, add_images, add_tiles, add_prompts };
  guint i;

  for (i = 0; i < N_SERIES; i++) {
    if (is_wanted (bench, i) && (i == THREADS || i == PROMPT || bench->model.info.has_vision))
      add[i](bench);
  }
}

/* Rounds over all cases, so that whatever disturbs meets all of them; one ahead counts work. */
static gboolean
measure (Bench *bench, GError **error)
{
  gint run;
  guint i;

  for (run = -1; run < (gint) bench->options->n_runs; run++) {
    for (i = 0; i < bench->cases->len; i++) {
      Case *c = bench->cases->pdata[i];
      BenchAnswer answer;

      if (!bench_model_ask (&bench->model, &c->request, run < 0, &answer, error))
        return FALSE;
      if (run < 0) {
        c->answer = answer;
        continue;
      }
      c->times[VISION][run] = answer.timings.vision;
      c->times[PREFILL][run] = answer.timings.prefill;
      c->answer.prefill = answer.prefill;
    }
  }
  return TRUE;
}

static gdouble
operations (const Case *c, Stage stage)
{
  return stage == VISION ? c->answer.vision.operations : c->answer.prefill.operations;
}

/* How many times as fast as first, run by run. (One of them may know some of its prompt already.) */
static void
judge_threads (Case *c, const Case *first, Stage stage, guint n_runs)
{
  const gdouble work = operations (c, stage) / operations (first, stage);
  g_autofree gdouble *ratios = g_new (gdouble, n_runs);
  guint i;

  for (i = 0; i < n_runs; i++)
    ratios[i] = work * first->times[stage][i] / c->times[stage][i];
  c->growth[stage] = bench_median (ratios, n_runs);
  c->met[stage] = c == first || c->growth[stage] >= BENCH_LEAST_SPEEDUP * c->size;
}

/* Time for the same work beside the first of the series, and beside the least of those before. */
static void
judge_growth (Case *c, const Case *first, Stage stage, gdouble *least)
{
  c->growth[stage] =
      c->median[stage] / operations (c, stage) / (first->median[stage] / operations (first, stage));
  c->met[stage] = c == first || c->growth[stage] <= BENCH_MOST_GROWTH * *least;
  *least = c == first ? c->growth[stage] : MIN (*least, c->growth[stage]);
}

static gboolean
judge (Bench *bench, Stage stage)
{
  const guint n_runs = bench->options->n_runs;
  const Case *first = NULL;
  gdouble least = 0;
  gboolean met = TRUE;
  guint i;

  for (i = 0; i < bench->cases->len; i++) {
    Case *c = bench->cases->pdata[i];

    if (operations (c, stage) == 0)
      continue;
    c->median[stage] = bench_median (c->times[stage], n_runs);
    if (first == NULL || first->series != c->series)
      first = c;
    if (c->series == THREADS)
      judge_threads (c, first, stage, n_runs);
    else
      judge_growth (c, first, stage, &least);
    met = met && c->met[stage];
  }
  return met;
}

static void
print_case (const Case *c, Stage stage)
{
  printf ("%-8s %-8s %6u %9u %10.1f %10.2f %8.1f %6.2f  %s\n", series_names[c->series],
      stage_names[stage], c->size,
      stage == VISION ? c->answer.n_image_tokens : c->answer.n_prompt_tokens,
      operations (c, stage) / 1e9, c->median[stage] * 1e3,
      operations (c, stage) / c->median[stage] / 1e9, c->growth[stage],
      c->met[stage] ? "" : "missed");
}

static void
print_lines (const Bench *bench)
{
  json_t *machine = bench_machine ();
  Stage stage;
  guint i;

  bench_print_machine (machine, bench->n_threads);
  json_decref (machine);
  printf ("# threads: times as fast as one, at least %.3f each; all else: time for the same work "
          "beside the first, at most %.2f times that of any before\n",
      BENCH_LEAST_SPEEDUP, BENCH_MOST_GROWTH);
  printf ("%-8s %-8s %6s %9s %10s %10s %8s %6s\n", "series", "stage", "size", "tokens", "G op",
      "ms", "GOPS", "growth");
  for (stage = 0; stage < N_STAGES; stage++) {
    for (i = 0; i < bench->cases->len; i++) {
      if (operations (bench->cases->pdata[i], stage) > 0)
        print_case (bench->cases->pdata[i], stage);
    }
  }
}

static void
print_json (const Bench *bench, gboolean met)
{
  json_t *results = json_array ();
  json_t *root = json_pack ("{s:o, s:i, s:i, s:b, s:o}", "machine", bench_machine (), "threads",
      (int) bench->n_threads, "runs", (int) bench->options->n_runs, "met", met, "results", results);
  Stage stage;
  guint i, j;

  for (stage = 0; stage < N_STAGES; stage++) {
    for (i = 0; i < bench->cases->len; i++) {
      const Case *c = bench->cases->pdata[i];
      json_t *times = json_array ();

      for (j = 0; j < bench->options->n_runs; j++)
        json_array_append_new (times, json_real (c->times[stage][j]));
      if (operations (c, stage) == 0)
        json_decref (times);
      else
        json_array_append_new (results,
            json_pack ("{s:s, s:s, s:i, s:i, s:i, s:f, s:f, s:f, s:b, s:o}", "series",
                series_names[c->series], "stage", stage_names[stage], "size", (int) c->size,
                "image_tokens", (int) c->answer.n_image_tokens, "prompt_tokens",
                (int) c->answer.n_prompt_tokens, "operations", operations (c, stage), "median",
                c->median[stage], "growth", c->growth[stage], "met", c->met[stage], "samples",
                times));
    }
  }
  json_dumpf (root, stdout, JSON_INDENT (1) | JSON_REAL_PRECISION (6));
  printf ("\n");
  json_decref (root);
}

gboolean
bench_scaling (const BenchScaling *options, gboolean *met, GError **error)
{
  Bench bench = { .options = options };
  gboolean ok;
  guint side;

  bench.n_threads = options->n_threads > 0 ? options->n_threads : g_get_num_processors ();
  if (!bench_model_open (&bench.model, options->model, options->mmproj, options->precision,
          bench.n_threads, error))
    return FALSE;
  side = 2 * MAX (bench.model.shape.tile_side, 1);
  bench.pixels = bench_draw (MOST_TILES * side, side);
  bench.cases = g_ptr_array_new_with_free_func (case_free);
  add_cases (&bench);
  ok = measure (&bench, error);
  if (ok) {
    *met = judge (&bench, VISION);
    *met = judge (&bench, PREFILL) && *met;
    if (options->json)
      print_json (&bench, *met);
    else
      print_lines (&bench);
  }
  g_ptr_array_unref (bench.cases);
  g_free (bench.pixels);
  bench_model_close (&bench.model);
  return ok;
}
