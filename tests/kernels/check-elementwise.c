/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "check.h"

enum
{
  SLOT_Y,
  SLOT_A,
  SLOT_B,
  SLOT_C,
  SLOT_TAPS
};

/* Lengths around every width of register, then some longer ones. */
#define N_LENGTHS 72

static size_t
length (size_t i)
{
  return i < 68 ? i : 500 + check_below (600);
}

static float
edge_value (void)
{
  static const float edges[] = { 0.0f, -0.0f, 1e-45f, -1e-45f, 1e-39f, -1.1754944e-38f, 1e-30f,
    0.5f, -0.5f, 1, -1, 3, -3, 5.5f, -5.5f, 10, -10, 13.5f, -13.5f, 50, -50, 87, -87, 88.5f, -88.5f,
    89, -89, 104, -104, 150, -150, 1e4f, -1e4f, 1e10f, -1e10f, 1e18f, -1e18f, 3e38f, -3e38f };

  if (check_below (4) == 0)
    return edges[check_below (sizeof edges / sizeof edges[0])];

  return (float) (check_uniform (-1, 1) * (check_below (2) != 0 ? 4 : 20));
}

static float *
plain_values (unsigned slot, size_t n, double size)
{
  float *x = check_slot (slot, n * sizeof (float));
  size_t i;

  for (i = 0; i < n; i++)
    x[i] = (float) check_uniform (-size, size);

  return x;
}

static float *
edge_values (unsigned slot, size_t n)
{
  float *x = check_slot (slot, n * sizeof (float));
  size_t i;

  for (i = 0; i < n; i++)
    x[i] = edge_value ();

  return x;
}

static void
check_function (void (*function) (float *x, size_t n), double (*reference) (double x))
{
  size_t round, i, n;
  float *x, *y;

  for (round = 0; round < N_LENGTHS + 20; round++) {
    n = length (round);
    x = edge_values (SLOT_A, n);
    if (n > 0 && round % 8 == 0)
      x[check_below (n)] = NAN;
    y = check_slot (SLOT_Y, n * sizeof (float));
    if (n > 0)
      memcpy (y, x, n * sizeof (float));
    function (y, n);
    for (i = 0; i < n; i++)
      check_near (y[i], reference (x[i]), 0x1p-21 * (1 + fabs (x[i])), "y", i);
    check_expect (check_intact (SLOT_Y), "wrote before x");
  }
}

static double
gelu_tanh_reference (double x)
{
  double u = 0.79788456080286535588 * (x + 0.044715 * x * x * x);

  return 0.5 * x * (1 + tanh (u));
}

static double
gelu_erf_reference (double x)
{
  return 0.5 * x * erfc (-x * 0.70710678118654752440);
}

void
check_gelu_tanh (const VlmKernels *kernels)
{
  check_function (kernels->gelu_tanh, gelu_tanh_reference);
}

void
check_gelu_erf (const VlmKernels *kernels)
{
  check_function (kernels->gelu_erf, gelu_erf_reference);
}

void
check_silu_mul (const VlmKernels *kernels)
{
  size_t round, i, n;
  float *gate, *up, *y, *in_place;

  for (round = 0; round < N_LENGTHS + 20; round++) {
    n = length (round);
    gate = edge_values (SLOT_A, n);
    up = plain_values (SLOT_B, n, 1);
    if (n > 0 && round % 8 == 0)
      gate[check_below (n)] = NAN;
    y = check_slot (SLOT_Y, n * sizeof (float));
    kernels->silu_mul (y, gate, up, n);
    check_expect (check_intact (SLOT_Y), "wrote before y");
    for (i = 0; i < n; i++) {
      double g = gate[i];

      check_near (
          y[i], g / (1 + exp (-g)) * up[i], 0x1p-21 * (1 + fabs (g)) * fabs (up[i]), "y", i);
    }
    in_place = round % 2 != 0 ? gate : up;
    kernels->silu_mul (in_place, gate, up, n);
    for (i = 0; i < n; i++)
      check_expect (memcmp (in_place + i, y + i, sizeof y[i]) == 0, "in place: y [%zu]", i);
  }
}

static double
sum_of_squares (const float *x, size_t n, double centre)
{
  double sum = 0;
  size_t i;

  for (i = 0; i < n; i++)
    sum += (x[i] - centre) * (x[i] - centre);

  return sum;
}

void
check_rms_norm (const VlmKernels *kernels)
{
  static const double sizes[] = { 1, 1e-3, 1e4, 1e18, 0, 1e-30 };
  size_t round, i, n;
  float *x, *w, *y;

  for (round = 0; round < N_LENGTHS; round++) {
    float eps = round % 3 == 0 ? 1e-6f : 1e-5f;

    n = length (round);
    x = plain_values (SLOT_A, n, sizes[round % 6]);
    w = plain_values (SLOT_B, n, 3);
    y = check_slot (SLOT_Y, n * sizeof (float));
    kernels->rms_norm (y, x, w, n, eps);
    check_expect (check_intact (SLOT_Y), "wrote before y");
    for (i = 0; i < n; i++) {
      double expected = w[i] * (x[i] / sqrt (sum_of_squares (x, n, 0) / n + eps));

      check_near (y[i], expected, 8 * 0x1p-23 * fabs (expected) + 0x1p-148, "y", i);
    }
    kernels->rms_norm (x, x, w, n, eps);
    check_expect (n == 0 || memcmp (x, y, n * sizeof (float)) == 0, "in place, n %zu", n);
  }
}

void
check_layer_norm (const VlmKernels *kernels)
{
  static const double offsets[] = { 0, 1, -1000, 1e-3, 1e6 };
  size_t round, i, n;
  float *x, *w, *b, *y;

  for (round = 0; round < N_LENGTHS; round++) {
    double mean = 0, variance;

    n = length (round);
    x = plain_values (SLOT_A, n, round % 7 == 0 ? 0 : 2);
    w = plain_values (SLOT_B, n, 3);
    b = plain_values (SLOT_C, n, 1);
    y = check_slot (SLOT_Y, n * sizeof (float));
    for (i = 0; i < n; i++)
      x[i] += (float) offsets[round % 5];
    for (i = 0; i < n; i++)
      mean += x[i] / (double) n;
    variance = sum_of_squares (x, n, mean) / n;

    kernels->layer_norm (y, x, w, b, n, 1e-6f);
    check_expect (check_intact (SLOT_Y), "wrote before y");
    for (i = 0; i < n; i++) {
      double scaled = (x[i] - mean) / sqrt (variance + (double) 1e-6f) * w[i];
      double slack = 4 * 0x1p-52 * fabs (mean) * n / sqrt (variance + 1e-6) * fabs (w[i]);

      check_near (y[i], scaled + b[i], 4 * 0x1p-23 * (fabs (scaled) + fabs (b[i])) + slack, "y", i);
    }
    kernels->layer_norm (x, x, w, b, n, 1e-6f);
    check_expect (n == 0 || memcmp (x, y, n * sizeof (float)) == 0, "in place, n %zu", n);
  }
}

void
check_add (const VlmKernels *kernels)
{
  size_t round, i, n;
  float *x, *y, *before;

  for (round = 0; round < N_LENGTHS; round++) {
    n = length (round);
    x = edge_values (SLOT_A, n);
    before = edge_values (SLOT_B, n);
    y = check_slot (SLOT_Y, n * sizeof (float));
    if (n > 0)
      memcpy (y, before, n * sizeof (float));
    kernels->add (y, x, n);
    check_expect (check_intact (SLOT_Y), "wrote before y");
    for (i = 0; i < n; i++) {
      float expected = before[i] + x[i];

      check_expect (memcmp (&expected, y + i, sizeof expected) == 0, "n %zu: y [%zu]", n, i);
    }
  }
}

void
check_mul (const VlmKernels *kernels)
{
  size_t round, i, n;
  float *a, *b, *y;

  for (round = 0; round < N_LENGTHS; round++) {
    n = length (round);
    a = edge_values (SLOT_A, n);
    b = edge_values (SLOT_B, n);
    y = check_slot (SLOT_Y, n * sizeof (float));
    kernels->mul (y, a, b, n);
    check_expect (check_intact (SLOT_Y), "wrote before y");
    for (i = 0; i < n; i++) {
      float expected = a[i] * b[i];

      check_expect (memcmp (&expected, y + i, sizeof expected) == 0, "n %zu: y [%zu]", n, i);
    }
    kernels->mul (a, a, b, n);
    check_expect (n == 0 || memcmp (a, y, n * sizeof (float)) == 0, "in place, n %zu", n);
  }
}

/* Unfused operations in the order of the formula, like the entry's promise. */
void
check_rope (const VlmKernels *kernels)
{
  size_t round, i, half;
  float *x, *before, *c, *s;

  for (round = 0; round < N_LENGTHS; round++) {
    half = length (round);
    before = plain_values (SLOT_A, 2 * half, 4);
    c = plain_values (SLOT_B, half, 1);
    s = plain_values (SLOT_C, half, 1);
    x = check_slot (SLOT_Y, 2 * half * sizeof (float));
    if (half > 0)
      memcpy (x, before, 2 * half * sizeof (float));
    kernels->rope (x, c, s, half);
    check_expect (check_intact (SLOT_Y), "wrote before x");
    for (i = 0; i < half; i++) {
      float a = before[i] * c[i], b = before[i + half] * s[i];
      float d = before[i + half] * c[i], e = before[i] * s[i];
      float low = a - b, high = d + e;

      check_expect (memcmp (&low, x + i, sizeof low) == 0, "half %zu: x [%zu]", half, i);
      check_expect (
          memcmp (&high, x + half + i, sizeof high) == 0, "half %zu: x [half + %zu]", half, i);
    }
  }
}

void
check_short_conv (const VlmKernels *kernels)
{
  size_t round, i, t, n, n_taps;
  float *y, *gate, *taps, *u;
  const float *rows[4];

  for (round = 0; round < N_LENGTHS; round++) {
    n = length (round);
    n_taps = 1 + round % 4;
    gate = plain_values (SLOT_A, n, 2);
    u = plain_values (SLOT_B, n * n_taps, 2);
    taps = plain_values (SLOT_TAPS, n * n_taps, 2);
    y = check_slot (SLOT_Y, n * sizeof (float));
    for (t = 0; t < n_taps; t++)
      rows[t] = u + (n_taps - 1 - t) * n;
    kernels->short_conv (y, gate, rows, taps, n_taps, n);
    check_expect (check_intact (SLOT_Y), "wrote before y");
    for (i = 0; i < n; i++) {
      float sum = 0;

      for (t = 0; t < n_taps; t++) {
        float product = taps[t * n + i] * rows[t][i];

        sum = sum + product;
      }
      sum = gate[i] * sum;
      check_expect (memcmp (&sum, y + i, sizeof sum) == 0, "n %zu taps %zu: y [%zu]", n, n_taps, i);
    }
  }
}

static void
check_widening (void (*widen) (float *y, const uint16_t *x, size_t n), int half)
{
  size_t round, i, n;

  for (round = 0; round < N_LENGTHS + 1; round++) {
    uint16_t *x;
    float *y;

    n = round < N_LENGTHS ? length (round) : 65536;
    x = check_slot (SLOT_A, n * sizeof (uint16_t));
    y = check_slot (SLOT_Y, n * sizeof (float));
    for (i = 0; i < n; i++)
      x[i] = (uint16_t) (n == 65536 ? i : check_random ());
    widen (y, x, n);
    check_expect (check_intact (SLOT_Y), "wrote before y");
    for (i = 0; i < n; i++) {
      uint32_t bits = (uint32_t) x[i] << 16;
      float expected;

      memcpy (&expected, &bits, sizeof expected);
      if (half)
        expected = (float) check_half_value (x[i]);
      check_expect (
          isnan (expected) ? isnan (y[i]) : memcmp (&expected, y + i, sizeof expected) == 0,
          "%04x becomes %g", x[i], y[i]);
    }
  }
}

void
check_f16_to_f32 (const VlmKernels *kernels)
{
  check_widening (kernels->f16_to_f32, 1);
}

void
check_bf16_to_f32 (const VlmKernels *kernels)
{
  check_widening (kernels->bf16_to_f32, 0);
}
