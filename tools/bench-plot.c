/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The stages of an answer as an SVG drawing: a bar for each, with the range of its runs, and below
 * them a histogram of the time from the frame to the caption.
 */

#include "bench-stages.h"
#include "bench-svg.h"

#include <math.h>
#include <string.h>

#define WIDTH 640
#define LEFT 90     /* where the bars begin */
#define RIGHT 110   /* room for the figures behind them */
#define ROW 30      /* a stage */
#define TOP 80      /* the first stage */
#define COLUMNS 120 /* height of the histogram */
#define GAP 70      /* between the two */
#define MAX_BINS 20

static void
put_bar (GString *svg, gdouble x, gdouble y, gdouble width, gdouble height, const gchar *title)
{
  g_string_append_printf (svg,
      "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>%s</title>"
      "</rect>\n",
      x, y, width, height, title);
}

static void
find_range (const gdouble *values, guint n, gdouble *low, gdouble *high)
{
  guint i;

  *low = *high = values[0];
  for (i = 1; i < n; i++) {
    *low = MIN (*low, values[i]);
    *high = MAX (*high, values[i]);
  }
}

/* One stage: its median as a bar, the range of its runs as a line, the median in figures. */
static void
put_stage (
    GString *svg, const BenchStagesResult *result, BenchStage stage, gdouble y, gdouble scale)
{
  const gchar *name = bench_stage_name (stage);
  g_autofree gchar *figure = g_strdup_printf ("%.2f ms", result->median[stage] * 1e3);
  g_autofree gchar *title = g_strdup_printf ("%s: %s", name, figure);
  gdouble low, high;

  find_range (result->runs[stage], result->options->n_runs, &low, &high);
  bench_svg_text (svg, "ink", "end", LEFT - 10, y + 15, name);
  put_bar (svg, LEFT, y, MAX (result->median[stage] * scale, 1), 20, title);
  bench_svg_line (svg, "line", LEFT + low * scale, y + 10, LEFT + high * scale, y + 10);
  bench_svg_text (svg, "ink", "start", LEFT + high * scale + 8, y + 15, figure);
}

/* How many values are in each of n_bins equal parts of low .. high. */
static void
count_bins (const gdouble *values, guint n, gdouble low, gdouble high, guint *counts, guint n_bins)
{
  guint i, bin;

  for (i = 0; i < n; i++) {
    bin = high > low ? (guint) ((values[i] - low) / (high - low) * n_bins) : 0;
    counts[MIN (bin, n_bins - 1)]++;
  }
}

static void
put_histogram (GString *svg, const BenchStagesResult *result, gdouble y)
{
  const guint n = result->options->n_runs;
  const guint n_bins = CLAMP ((guint) ceil (sqrt (n) * 2), 1, MAX_BINS);
  const gdouble width = (gdouble) (WIDTH - LEFT - RIGHT) / n_bins;
  guint counts[MAX_BINS] = { 0 }, most = 0, i;
  gdouble low, high;
  gchar text[64];

  find_range (result->runs[BENCH_TOTAL], n, &low, &high);
  count_bins (result->runs[BENCH_TOTAL], n, low, high, counts, n_bins);
  for (i = 0; i < n_bins; i++)
    most = MAX (most, counts[i]);
  bench_svg_text (
      svg, "ink title", "start", LEFT, y - 12, "From the frame to its caption, runs by time");
  for (i = 0; i < n_bins; i++) {
    gdouble height = (gdouble) counts[i] / most * COLUMNS;

    g_snprintf (text, sizeof text, "%u runs of %.1f to %.1f ms", counts[i],
        (low + (high - low) * i / n_bins) * 1e3, (low + (high - low) * (i + 1) / n_bins) * 1e3);
    if (counts[i] > 0)
      put_bar (svg, LEFT + i * width, y + COLUMNS - height, MAX (width - 2, 1), height, text);
  }
  bench_svg_line (svg, "line", LEFT, y + COLUMNS, WIDTH - RIGHT, y + COLUMNS);
  g_snprintf (text, sizeof text, "%.1f ms", low * 1e3);
  bench_svg_text (svg, "pale", "start", LEFT, y + COLUMNS + 18, text);
  g_snprintf (text, sizeof text, "%.1f ms", high * 1e3);
  bench_svg_text (svg, "pale", "end", WIDTH - RIGHT, y + COLUMNS + 18, text);
  g_snprintf (text, sizeof text, "%u", most);
  bench_svg_text (svg, "pale", "end", LEFT - 10, y + 12, text);
}

gchar *
bench_plot (const BenchStagesResult *result)
{
  const gdouble below = TOP + (BENCH_TOTAL + 1) * ROW + GAP;
  const gint height = (gint) below + COLUMNS + 40;
  g_autofree gchar *name = g_path_get_basename (result->options->model);
  g_autofree gchar *tokens =
      g_strdup_printf ("%u image tokens, %u prompt tokens, %" G_GSIZE_FORMAT " answer tokens",
          result->answer.n_image_tokens, result->answer.n_prompt_tokens, result->answer.n_tokens);
  g_autofree gchar *runs = g_strdup_printf (
      "%u threads, medians and ranges of %u runs", result->n_threads, result->options->n_runs);
  GString *svg = bench_svg_begin (WIDTH, height);
  gdouble most = 0, low, high;
  BenchStage stage;

  bench_svg_text (svg, "ink title", "start", LEFT, 24, name);
  bench_svg_text (svg, "pale", "start", LEFT, 44, tokens);
  bench_svg_text (svg, "pale", "start", LEFT, 62, runs);
  for (stage = BENCH_IMAGE; stage <= BENCH_TOTAL; stage++) {
    find_range (result->runs[stage], result->options->n_runs, &low, &high);
    most = MAX (most, high);
  }
  for (stage = BENCH_IMAGE; stage <= BENCH_TOTAL; stage++)
    put_stage (svg, result, stage, TOP + stage * ROW, (WIDTH - LEFT - RIGHT) / most);
  put_histogram (svg, result, below);
  return bench_svg_end (svg);
}
