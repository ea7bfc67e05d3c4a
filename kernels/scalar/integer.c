/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "half.h"
#include "kernels/panel.h"
#include "scalar.h"

#include <math.h>

#define PANEL VLM_SCALAR_INT_PANEL

/* Adding this to a float of magnitude below 2^22 rounds it to a whole number, ties to even. */
#define ROUNDER 0x1.8p23f

static void
quantise_group (int8_t *q, float *scale, int32_t *sum, const float *x, size_t n)
{
  float amax = 0, inverse = 0;
  size_t l;

  for (l = 0; l < n; l++)
    amax = fabsf (x[l]) > amax ? fabsf (x[l]) : amax;
  *scale = 0;
  if (amax >= 0x1p-100f) {
    *scale = amax / 127;
    inverse = 127 / amax;
  }

  *sum = 0;
  for (l = 0; l < n; l++) {
    float value = x[l] * inverse;

    value = value > -127 ? value : -127;
    value = value < 127 ? value : 127;
    q[l] = (int8_t) ((value + ROUNDER) - ROUNDER);
    *sum += q[l];
  }
}

void
vlm_scalar_quantise_i8 (
    int8_t *q, float *scale, int32_t *sum, const float *x, size_t n, size_t group)
{
  size_t at;

  for (at = 0; at < n; at += group)
    quantise_group (
        q + at, scale + at / group, sum + at / group, x + at, n - at < group ? n - at : group);
  for (at = n; at < vlm_padded_k (n); at++)
    q[at] = 0;
}

static int32_t
dot_bytes (const int8_t *x, const uint8_t *w, size_t len)
{
  const int8_t *q = (const int8_t *) w;
  int32_t sum = 0;
  size_t l;

  for (l = 0; l < len; l++)
    sum += x[l] * q[l];

  return sum;
}

static int32_t
dot_nibbles (const int8_t *x, const uint8_t *w, size_t len, unsigned shift)
{
  int32_t sum = 0;
  size_t l;

  for (l = 0; l < len; l++)
    sum += x[l] * (w[l] >> shift & 15);

  return sum;
}

/* With the bits of each value above its low four, from value number first of a run on. */
static int32_t
dot_high (const int8_t *x, const uint8_t *w, size_t first, size_t len, unsigned bits)
{
  const unsigned count = bits - 4, mask = (1u << count) - 1;
  const size_t unit = panel_unit (bits);
  int32_t sum = 0;
  size_t l, i;

  for (l = 0; l < len; l += 4) {
    const uint8_t *word = w + (first + l) / unit * PANEL * 4;
    unsigned shift = (unsigned) ((first + l) % unit / 4) * count;

    for (i = 0; i < 4; i++)
      sum += x[l + i] * (int32_t) (word[i] >> shift & mask);
  }

  return sum;
}

/* Values first .. first + len - 1 of column j of a run, their bias taken out. */
static int32_t
dot_run (const VlmIntFormat *format, const uint8_t *run, size_t run_len, size_t j, const int8_t *x,
    int32_t x_sum, size_t first, size_t len)
{
  const size_t half = run_len / 2, end = first + len;
  const uint8_t *row = run + j * half;
  int32_t sum = 0;

  if (format->bits == 8)
    return dot_bytes (x, run + j * run_len + first, len);

  if (first < half)
    sum += dot_nibbles (x, row + first, (end < half ? end : half) - first, 0);
  if (end > half) {
    size_t from = first > half ? first : half;

    sum += dot_nibbles (x + (from - first), row + (from - half), end - from, 4);
  }
  if (format->bits > 4)
    sum += 16
        * dot_high (x, run + panel_low_bytes (format->bits, PANEL, run_len) + j * 4, first, len,
            format->bits);

  return sum - panel_bias (format) * x_sum;
}

/* What column j of a run is multiplied with. */
typedef struct
{
  float scale, min;
} Factors;

static float
scale_at (const VlmIntFormat *format, const uint8_t *scales, size_t j, float super)
{
  switch (format->scale) {
    case VLM_SCALE_F16:
      return f16_value (((const uint16_t *) scales)[j]);
    case VLM_SCALE_F32:
      return ((const float *) scales)[j];
    default:
      return (float) ((const int8_t *) scales)[j] * super;
  }
}

/* supers are the halves that hold for the run, if its scales are codes. */
static Factors
factors_of (const VlmIntFormat *format, const uint8_t *scales, const uint16_t *supers, size_t j)
{
  const int has_supers = format->scale == VLM_SCALE_CODES;
  Factors factors = { 0, 0 };

  factors.scale = scale_at (format, scales, j, has_supers ? f16_value (supers[j]) : 0);
  if (format->has_min)
    factors.min =
        scale_at (format, scales, PANEL + j, has_supers ? f16_value (supers[PANEL + j]) : 0);

  return factors;
}

static void
matmul_groups (float *sums, const VlmActivations *x, size_t row, const VlmIntFormat *format,
    const uint8_t *w, size_t n)
{
  const size_t padded = vlm_padded_k (x->k);
  const uint16_t *supers = NULL;
  size_t at, j;

  for (at = 0; at < padded; at += x->group) {
    size_t len = padded - at < x->group ? padded - at : x->group, g = row * x->ldg + at / x->group;
    const int8_t *q = x->q + row * x->ldq + at;
    float x_scale = x->scale[g], x_total = x_scale * (float) x->sum[g];
    const uint8_t *scales;

    if (format->scale == VLM_SCALE_CODES && at % VLM_SUPER_GROUP == 0) {
      supers = (const uint16_t *) w;
      w += panel_super_bytes (format, PANEL);
    }
    scales = w;
    w += panel_scale_bytes (format, PANEL);
    for (j = 0; j < n; j++) {
      Factors factors = factors_of (format, scales, supers, j);
      int32_t dot = dot_run (format, w, len, j, q, x->sum[g], 0, len);

      sums[j] = fmaf ((float) dot, x_scale * factors.scale, sums[j]);
      if (format->has_min)
        sums[j] = fmaf (x_total, factors.min, sums[j]);
    }
    w += panel_value_bytes (format->bits, PANEL, len);
  }
}

/* The run is the whole row, however many groups the activations have. */
static void
matmul_row (float *sums, const VlmActivations *x, size_t row, const VlmIntFormat *format,
    const uint8_t *w, size_t n)
{
  const size_t padded = vlm_padded_k (x->k);
  size_t at, j;

  for (j = 0; j < n; j++) {
    for (at = 0; at < padded; at += x->group) {
      size_t len = padded - at < x->group ? padded - at : x->group,
             g = row * x->ldg + at / x->group;
      int32_t dot = dot_run (format, w, padded, j, x->q + row * x->ldq + at, x->sum[g], at, len);

      sums[j] = fmaf ((float) dot, x->scale[g], sums[j]);
    }
  }
}

void
vlm_scalar_matmul_int (float *y, size_t ldy, const VlmActivations *x, size_t m,
    const VlmIntFormat *format, const void *w, size_t n, const float *bias)
{
  const float *scales = w;
  size_t i, j;

  for (i = 0; i < m; i++) {
    float *out = y + i * ldy, sums[PANEL] = { 0 };

    if (format->scale == VLM_SCALE_ROW) {
      matmul_row (sums, x, i, format, (const uint8_t *) (scales + PANEL), n);
      for (j = 0; j < n; j++)
        out[j] = bias != NULL ? fmaf (sums[j], scales[j], bias[j]) : sums[j] * scales[j];
    } else {
      matmul_groups (sums, x, i, format, w, n);
      for (j = 0; j < n; j++)
        out[j] = bias != NULL ? sums[j] + bias[j] : sums[j];
    }
  }
}
