/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The stages of an answer as an SVG drawing: a bar for each, with the range of its runs, and below
 * them a histogram of the time from the frame to the caption. Colours follow the viewer's light or
 * dark scheme.
 */

#include "bench-stages.h"

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

static const gchar head[] =
    "<style>\n"
    ".back { fill: #ffffff } .ink { fill: #1f2430 } .pale { fill: #5b6270 }\n"
    ".bar { fill: #2f6fb3 } .line { stroke: #1f2430; stroke-width: 1.5 }\n"
    "text { font: 13px sans-serif } .title { font-weight: bold }\n"
    "@media (prefers-color-scheme: dark) {\n"
    ".back { fill: #14171c } .ink { fill: #e8eaee } .pale { fill: #a3abb8 }\n"
    ".bar { fill: #5b9bdd } .line { stroke: #e8eaee }\n"
    "}\n"
    "</style>\n";

/* Text with its start, middle or end at x. XML has no way to write control characters. */
static void
put_text (
    GString *svg, const gchar *class, const gchar *anchor, gdouble x, gdouble y, const gchar *text)
{
  g_autofree gchar *shown = g_utf8_make_valid (text, -1);
  g_autofree gchar *escaped = NULL;
  gchar *c;

  for (c = shown; *c != '\0'; c++) {
    if (g_ascii_iscntrl (*c))
      *c = '?';
  }
  escaped = g_markup_escape_text (shown, -1);
  g_string_append_printf (svg,
      "<text class=\"%s\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", class, anchor, x,
      y, escaped);
}

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
  put_text (svg, "ink", "end", LEFT - 10, y + 15, name);
  put_bar (svg, LEFT, y, MAX (result->median[stage] * scale, 1), 20, title);
  g_string_append_printf (svg,
      "<line class=\"line\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
      LEFT + low * scale, LEFT + high * scale, y + 10, y + 10);
  put_text (svg, "ink", "start", LEFT + high * scale + 8, y + 15, figure);
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
  put_text (svg, "ink title", "start", LEFT, y - 12, "From the frame to its caption, runs by time");
  for (i = 0; i < n_bins; i++) {
    gdouble height = (gdouble) counts[i] / most * COLUMNS;

    g_snprintf (text, sizeof text, "%u runs of %.1f to %.1f ms", counts[i],
        (low + (high - low) * i / n_bins) * 1e3, (low + (high - low) * (i + 1) / n_bins) * 1e3);
    if (counts[i] > 0)
      put_bar (svg, LEFT + i * width, y + COLUMNS - height, MAX (width - 2, 1), height, text);
  }
  g_string_append_printf (svg,
      "<line class=\"line\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT, WIDTH - RIGHT,
      y + COLUMNS, y + COLUMNS);
  g_snprintf (text, sizeof text, "%.1f ms", low * 1e3);
  put_text (svg, "pale", "start", LEFT, y + COLUMNS + 18, text);
  g_snprintf (text, sizeof text, "%.1f ms", high * 1e3);
  put_text (svg, "pale", "end", WIDTH - RIGHT, y + COLUMNS + 18, text);
  g_snprintf (text, sizeof text, "%u", most);
  put_text (svg, "pale", "end", LEFT - 10, y + 12, text);
}

gchar *
bench_plot (const BenchStagesResult *result)
{
  const gdouble below = TOP + (BENCH_TOTAL + 1) * ROW + GAP;
  const gint height = (gint) below + COLUMNS + 40;
  g_autofree gchar *name = g_path_get_basename (result->options->model);
  g_autofree gchar *tokens =
      g_strdup_printf ("%u image tokens, %u prompt tokens, %" G_GSIZE_FORMAT " answer tokens",
          result->n_image_tokens, result->n_prompt_tokens, result->n_tokens);
  g_autofree gchar *runs = g_strdup_printf (
      "%u threads, medians and ranges of %u runs", result->n_threads, result->options->n_runs);
  GString *svg = g_string_new (NULL);
  gdouble most = 0, low, high;
  BenchStage stage;

  g_string_append_printf (svg,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
      "role=\"img\">\n%s<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n",
      WIDTH, height, WIDTH, height, head, WIDTH, height);
  put_text (svg, "ink title", "start", LEFT, 24, name);
  put_text (svg, "pale", "start", LEFT, 44, tokens);
  put_text (svg, "pale", "start", LEFT, 62, runs);
  for (stage = BENCH_IMAGE; stage <= BENCH_TOTAL; stage++) {
    find_range (result->runs[stage], result->options->n_runs, &low, &high);
    most = MAX (most, high);
  }
  for (stage = BENCH_IMAGE; stage <= BENCH_TOTAL; stage++)
    put_stage (svg, result, stage, TOP + stage * ROW, (WIDTH - LEFT - RIGHT) / most);
  put_histogram (svg, result, below);
  g_string_append (svg, "</svg>\n");
  return g_string_free (svg, FALSE);
}
