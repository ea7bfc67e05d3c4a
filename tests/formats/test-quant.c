/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Halves and integers of floats, against definitions that are slow and plain. */

#include <math.h>
#include <string.h>

#include "engine/formats/half.h"
#include "engine/formats/quant.h"
#include "engine/vlm.h"
#include "fixture.h"

#define N_HALVES 0x7c00 /* finite ones without sign */

/* The value of a finite half without sign, by the words of the standard. */
static gdouble
half_value (guint half)
{
  guint exponent = half >> 10, fraction = half & 0x3ff;

  return exponent ? ldexp (1024 + fraction, (gint) exponent - 25) : ldexp (fraction, -24);
}

/* The nearest of all halves, found by looking at them; N_HALVES stands for infinity. */
static guint
nearest_half (gdouble value)
{
  guint low = 0, high = N_HALVES;

  while (high - low > 1) {
    guint middle = (low + high) / 2;

    if (half_value (middle) <= value)
      low = middle;
    else
      high = middle;
  }
  /* N_HALVES as if there were no infinity: 2^16. */
  if (value - half_value (low) == half_value (high) - value)
    return low % 2 ? high : low;
  return value - half_value (low) < half_value (high) - value ? low : high;
}

static void
test_half_values (void)
{
  static VlmKernels kernels;
  guint i;

  g_assert_cmpint (vlm_kernels_init (&kernels, VLM_CPU_SCALAR), ==, 0);
  for (i = 0; i < 0x10000; i++) {
    guint16 half = i, magnitude = i & 0x7fff;
    gfloat value = vlm_half_to_float (half), by_kernel;

    kernels.f16_to_f32 (&by_kernel, &half, 1);
    if (magnitude > N_HALVES) {
      g_assert_true (isnan (value) && isnan (by_kernel));
      g_assert_true (isnan (vlm_half_to_float (vlm_half_from_float (value))));
      continue;
    }
    g_assert_cmpmem (&value, sizeof (value), &by_kernel, sizeof (by_kernel));
    g_assert_cmpuint (vlm_half_from_float (value), ==, half);
    if (magnitude == N_HALVES)
      g_assert_true (isinf (value));
    else
      g_assert_cmpfloat (fabs (value), ==, half_value (magnitude));
    g_assert_cmpint (!signbit (value), ==, i < 0x8000);
  }
}

static void
check_rounding (gfloat value, guint expected)
{
  g_assert_cmpuint (vlm_half_from_float (value), ==, expected);
  g_assert_cmpuint (vlm_half_from_float (-value), ==, expected | 0x8000);
}

/* Between any two neighbours: half way, and one step of f32 on either side of it. */
static void
test_half_rounding (void)
{
  guint i;

  for (i = 0; i < N_HALVES; i++) {
    gfloat middle = (half_value (i) + half_value (i + 1)) / 2;

    check_rounding (middle, i % 2 ? i + 1 : i);
    check_rounding (nextafterf (middle, 0), i);
    check_rounding (nextafterf (middle, INFINITY), i + 1);
  }
  check_rounding (0, 0);
  check_rounding (1e-45f, 0);
  check_rounding (65519.996f, 0x7bff);
  check_rounding (65520, N_HALVES);
  check_rounding (G_MAXFLOAT, N_HALVES);
}

static void
test_half_arrays (void)
{
  gfloat values[100];
  guint16 halves[100];
  guint i;

  for (i = 0; i < 100; i++)
    values[i] = (gint) i - 50;
  g_assert_cmpuint (vlm_halves_from_floats (halves, values, 100), ==, 100);
  for (i = 0; i < 100; i++)
    g_assert_cmpfloat (vlm_half_to_float (halves[i]), ==, values[i]);
  values[71] = 65520;
  values[90] = NAN;
  g_assert_cmpuint (vlm_halves_from_floats (halves, values, 100), ==, 71);
  values[71] = -INFINITY;
  g_assert_cmpuint (vlm_halves_from_floats (halves, values, 100), ==, 71);
  values[3] = NAN;
  g_assert_cmpuint (vlm_halves_from_floats (halves, values, 100), ==, 3);
  g_assert_cmpuint (vlm_halves_from_floats (halves, values, 3), ==, 3);
}

/* ---- Integers ----------------------------------------------------------------------------- */

/* x / scale to the nearest integer, ties to the even one, kept within +-limit. */
static gint
reference_integer (gfloat x, gfloat scale, gint limit)
{
  gfloat quotient = x / scale;
  gdouble below = floor (quotient), part = quotient - below;
  gdouble q;

  if (scale == 0)
    return 0;
  if (part == 0.5)
    q = fmod (below, 2) == 0 ? below : below + 1;
  else
    q = part < 0.5 ? below : below + 1;
  return (gint) MAX (MIN (q, limit), -limit);
}

/* Holds every integer and scale of rows against the rules. */
static void
check_rows (const VlmQuantRows *rows, const gfloat *x, gsize n_rows)
{
  gsize group = rows->format.scale == VLM_SCALE_ROW ? rows->cols : 64;
  gint limit = rows->format.bits == 8 ? 127 : 7;
  gsize row, first, i;

  for (row = 0; row < n_rows; row++) {
    for (first = 0; first < rows->cols; first += group) {
      gsize end = MIN (first + group, rows->cols);
      gsize at = row * rows->n_groups + first / group;
      const gfloat *values = x + row * rows->cols;
      gfloat largest = 0, scale;
      guint half;

      for (i = first; i < end; i++)
        largest = fmaxf (largest, fabsf (values[i]));
      half = nearest_half (largest / (gfloat) limit);
      scale = (gfloat) half_value (half);
      if (rows->format.scale == VLM_SCALE_ROW)
        g_assert_cmpfloat (((gfloat *) rows->scale)[at], ==, scale);
      else
        g_assert_cmpuint (((guint16 *) rows->scale)[at], ==, half);
      for (i = first; i < end; i++)
        g_assert_cmpint (
            rows->q[row * rows->cols + i], ==, reference_integer (values[i], scale, limit));
    }
  }
}

static void
check_values (const VlmIntFormat *format, const gfloat *x, gsize n_rows, gsize cols)
{
  g_autoptr (GError) error = NULL;
  VlmQuantRows rows;

  g_assert_true (vlm_quant_rows_init (&rows, format, n_rows + 1, cols, &error));
  g_assert_cmpuint (rows.n_groups, ==, format->scale == VLM_SCALE_ROW ? 1 : (cols + 63) / 64);
  g_assert_true (vlm_quant_round (&rows, x, n_rows, cols, &error));
  g_assert_no_error (error);
  check_rows (&rows, x, n_rows);
  vlm_quant_rows_clear (&rows);
}

static void
check_both (const gfloat *x, gsize n_rows, gsize cols)
{
  check_values (&vlm_quant_int8, x, n_rows, cols);
  check_values (&vlm_quant_int4, x, n_rows, cols);
}

/* Rows of every length around the groups, at every size of values, with outliers and zeros. */
static void
test_random (void)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (7);
  gfloat x[3 * 200];
  gsize cols, i;
  gint exponent;

  for (cols = 1; cols <= 200; cols++) {
    for (exponent = -40; exponent < 15; exponent += 3) {
      for (i = 0; i < 3 * cols; i++) {
        x[i] = ldexpf (g_rand_double_range (random, -1, 1), exponent);
        if (g_rand_int_range (random, 0, 8) == 0)
          x[i] = 0;
        if (g_rand_int_range (random, 0, 30) == 0)
          x[i] *= 16;
      }
      check_both (x, 3, cols);
    }
  }
}

/* Quotients that are exactly between two integers. */
static void
test_ties (void)
{
  gfloat x[256];
  gsize i;

  for (i = 0; i < 255; i++)
    x[i] = (i - 127.0f) + 0.5f;
  x[255] = 127; /* no value above it but 127.5, which makes the scale no power of two */
  check_both (x, 1, 256);
  x[254] = 0;
  check_both (x, 1, 256);
  for (i = 0; i < 64; i++)
    x[i] = ((gint) (i % 15) - 7) / 2.0f;
  x[63] = 7;
  check_both (x, 1, 64);
}

static void
test_tiny_scales (void)
{
  gfloat x[130];
  gsize i;
  gint step;

  /* Scales that round to zero, to the least half, and to a few times of it. */
  for (step = 1; step < 64; step++) {
    for (i = 0; i < G_N_ELEMENTS (x); i++)
      x[i] = ldexpf ((gfloat) step * ((gint) i - 64) / 64, -20);
    check_both (x, 1, G_N_ELEMENTS (x));
  }
  memset (x, 0, sizeof (x));
  check_both (x, 1, G_N_ELEMENTS (x));
  x[5] = -0.0f;
  x[70] = 1e-40f;
  check_both (x, 1, G_N_ELEMENTS (x));
}

static void
expect_refusal (const VlmIntFormat *format, gfloat value, const gchar *part)
{
  g_autoptr (GError) error = NULL;
  gfloat x[4 * 100] = { 0 };
  VlmQuantRows rows;

  x[2 * 100 + 77] = value;
  g_assert_true (vlm_quant_rows_init (&rows, format, 4, 100, &error));
  g_assert_false (vlm_quant_round (&rows, x, 4, 100, &error));
  fixture_assert_message (error, VLM_ERROR_FORMAT, part);
  fixture_assert_message (error, VLM_ERROR_FORMAT, "row 2");
  vlm_quant_rows_clear (&rows);
}

static void
test_refusals (void)
{
  static const VlmIntFormat *const formats[] = { &vlm_quant_int8, &vlm_quant_int4 };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (formats); i++) {
    expect_refusal (formats[i], NAN, "column 77 is nan");
    expect_refusal (formats[i], -NAN, "nan");
    expect_refusal (formats[i], INFINITY, "column 77 is inf");
    expect_refusal (formats[i], -INFINITY, "-inf");
    expect_refusal (formats[i], G_MAXFLOAT, "3.40282e+38");
  }
  expect_refusal (&vlm_quant_int8, 65520.0f * 127, "expected at most");
  expect_refusal (&vlm_quant_int4, 65520.0f * 7, "expected at most");
}

/* Rows of the most detailed format, whose parts a reader of files fills. */
static void
test_views (void)
{
  VlmIntFormat format = { .bits = 6, .scale = VLM_SCALE_CODES, .has_min = TRUE, .group = 16 };
  g_autoptr (GError) error = NULL;
  VlmQuantRows rows;
  VlmIntRows view;

  g_assert_true (vlm_quant_rows_init (&rows, &format, 5, 300, &error));
  g_assert_cmpuint (rows.n_groups, ==, 19);
  g_assert_cmpuint (rows.n_supers, ==, 2);
  view = vlm_quant_rows_view (&rows, 3);
  g_assert_true (view.q == rows.q + 3 * 300);
  g_assert_true (view.scale == (gint8 *) rows.scale + 3 * 19);
  g_assert_true (view.min == (gint8 *) rows.min + 3 * 19);
  g_assert_true (view.super == rows.super + 6 && view.super_min == rows.super_min + 6);
  g_assert_cmpuint (view.ldq, ==, 300);
  g_assert_cmpuint (view.lds, ==, 19);
  g_assert_cmpuint (view.ldsuper, ==, 2);
  vlm_quant_rows_clear (&rows);

  g_assert_true (vlm_quant_rows_init (&rows, &vlm_quant_int8, 5, 300, &error));
  view = vlm_quant_rows_view (&rows, 2);
  g_assert_true (view.scale == (gfloat *) rows.scale + 2);
  g_assert_null (view.min);
  g_assert_null (view.super);
  vlm_quant_rows_clear (&rows);
  g_assert_false (vlm_quant_rows_init (&rows, &vlm_quant_int8, G_MAXSIZE / 2, 300, &error));
  g_assert_error (error, VLM_ERROR, VLM_ERROR_MEMORY);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/half/values", test_half_values);
  g_test_add_func ("/half/rounding", test_half_rounding);
  g_test_add_func ("/half/arrays", test_half_arrays);
  g_test_add_func ("/quant/random", test_random);
  g_test_add_func ("/quant/ties", test_ties);
  g_test_add_func ("/quant/tiny-scales", test_tiny_scales);
  g_test_add_func ("/quant/refusals", test_refusals);
  g_test_add_func ("/quant/views", test_views);
  return g_test_run ();
}
