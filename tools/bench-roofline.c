/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The stages below their roof, as an SVG drawing: how many operations a stage has for each byte that
 * it has to read decides whether reading or multiplying limits it. Both scales are logarithmic.
 */

#include "bench-stages.h"
#include "bench-svg.h"

#include <math.h>

#define WIDTH 720
#define HEIGHT 470
#define LEFT 70
#define RIGHT 30
#define TOP 80
#define BOTTOM 60

/* Powers of ten at the edges. */
typedef struct
{
  gdouble left, right, bottom, top;
} Axes;

static gdouble
place_x (const Axes *axes, gdouble value)
{
  return LEFT + (log10 (value) - axes->left) / (axes->right - axes->left) * (WIDTH - LEFT - RIGHT);
}

static gdouble
place_y (const Axes *axes, gdouble value)
{
  return HEIGHT - BOTTOM
      - (log10 (value) - axes->bottom) / (axes->top - axes->bottom) * (HEIGHT - TOP - BOTTOM);
}

/* Whole decades that hold all points and the corner of the roof. */
static Axes
find_axes (const BenchStagesResult *result)
{
  const gdouble peak = result->median[BENCH_PEAK];
  const gdouble corner = peak / result->median[BENCH_READ];
  gdouble left = corner, right = corner, bottom = peak;
  BenchStage stage;
  BenchPoint point;

  for (stage = BENCH_VISION; stage <= BENCH_TOKEN; stage++) {
    if (!bench_stage_point (result, stage, &point))
      continue;
    left = MIN (left, point.intensity);
    right = MAX (right, point.intensity);
    bottom = MIN (bottom, point.rate);
  }
  return (Axes){ floor (log10 (left)), ceil (log10 (right * 1.2)), floor (log10 (bottom * 0.8)),
    ceil (log10 (peak * 1.2)) };
}

/* A line at each power of ten of both axes, with its figure. */
static void
put_grid (GString *svg, const Axes *axes)
{
  gchar text[32];
  gdouble power;

  for (power = axes->left; power <= axes->right; power++) {
    gdouble x = place_x (axes, pow (10, power));

    bench_svg_line (svg, "grid", x, TOP, x, HEIGHT - BOTTOM);
    g_snprintf (text, sizeof text, "%g", pow (10, power));
    bench_svg_text (svg, "pale", "middle", x, HEIGHT - BOTTOM + 18, text);
  }
  for (power = axes->bottom; power <= axes->top; power++) {
    gdouble y = place_y (axes, pow (10, power));

    bench_svg_line (svg, "grid", LEFT, y, WIDTH - RIGHT, y);
    g_snprintf (text, sizeof text, "%g", pow (10, power - 9));
    bench_svg_text (svg, "pale", "end", LEFT - 8, y + 4, text);
  }
  bench_svg_text (svg, "pale", "middle", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 42,
      "operations for each byte that has to be read");
  bench_svg_text (svg, "pale", "start", LEFT, TOP - 10, "GOPS");
}

/* What reading allows, up to the peak, and the peak from there on. */
static void
put_roof (GString *svg, const Axes *axes, const BenchStagesResult *result)
{
  const gdouble read = result->median[BENCH_READ], peak = result->median[BENCH_PEAK];
  const gdouble from = MAX (pow (10, axes->left), pow (10, axes->bottom) / read);
  g_autofree gchar *of_peak = g_strdup_printf ("%s peak of %s on registers alone: %.0f GOPS",
      bench_peak_kind (result), vlm_cpu_level_name (result->level), peak / 1e9);
  g_autofree gchar *of_read = g_strdup_printf ("plain read: %.1f GB/s", read / 1e9);
  const gdouble y = place_y (axes, peak), middle = sqrt (from * peak / read);

  bench_svg_line (svg, "line", place_x (axes, from), place_y (axes, from * read),
      place_x (axes, peak / read), y);
  bench_svg_line (svg, "line", place_x (axes, peak / read), y, WIDTH - RIGHT, y);
  bench_svg_text (svg, "ink", "end", WIDTH - RIGHT, y - 8, of_peak);
  bench_svg_text (
      svg, "ink", "end", place_x (axes, middle) - 10, place_y (axes, middle * read), of_read);
}

/* The prompt's figures stand above its point and those of the picture below, as they may be near each
 * other. */
static void
put_point (GString *svg, const Axes *axes, BenchStage stage, const BenchPoint *point)
{
  const gdouble x = place_x (axes, point->intensity), y = place_y (axes, point->rate);
  const gdouble down = stage == BENCH_PREFILL ? -10 : stage == BENCH_VISION ? 20 : 5;
  const gboolean before = x > (LEFT + WIDTH - RIGHT) / 2;
  g_autofree gchar *text = g_strdup_printf (
      "%s: %.1f GOPS, %.0f %%", bench_stage_name (stage), point->rate / 1e9, 100 * point->share);

  bench_svg_line (svg, "grid", x, y, x, place_y (axes, point->roof));
  g_string_append_printf (svg,
      "<circle class=\"bar\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"><title>%s</title></circle>\n", x, y,
      text);
  bench_svg_text (svg, "ink", before ? "end" : "start", before ? x + 5 : x + 10, y + down, text);
}

gchar *
bench_roofline (const BenchStagesResult *result)
{
  const Axes axes = find_axes (result);
  g_autofree gchar *name = g_path_get_basename (result->options->model);
  g_autofree gchar *line = g_strdup_printf (
      "%u image tokens, %u prompt tokens; %u threads, medians of %u runs; shares of the roof above",
      result->answer.n_image_tokens, result->answer.n_prompt_tokens, result->n_threads,
      result->options->n_runs);
  GString *svg = bench_svg_begin (WIDTH, HEIGHT);
  BenchStage stage;
  BenchPoint point;

  bench_svg_text (svg, "ink title", "start", LEFT, 24, name);
  bench_svg_text (svg, "pale", "start", LEFT, 44, line);
  put_grid (svg, &axes);
  put_roof (svg, &axes, result);
  for (stage = BENCH_VISION; stage <= BENCH_TOKEN; stage++) {
    if (bench_stage_point (result, stage, &point))
      put_point (svg, &axes, stage, &point);
  }
  return bench_svg_end (svg);
}
