/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "half.h"
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

static inline __attribute__ ((always_inline)) int32_t
dot_i8 (const int8_t *x, const uint8_t *w, size_t len)
{
  const int8_t *q = (const int8_t *) w;
  int32_t sum = 0;
  size_t l;

  for (l = 0; l < len; l++)
    sum += x[l] * q[l];

  return sum;
}

static inline __attribute__ ((always_inline)) int32_t
dot_i4 (const int8_t *x, const uint8_t *w, size_t len)
{
  int32_t sum = 0;
  size_t l;

  for (l = 0; l < len / 2; l++)
    sum += x[l] * (w[l] & 15) + x[l + len / 2] * (w[l] >> 4);

  return sum;
}

/* Adds group g of every column; returns what follows it in the panel. */
static inline __attribute__ ((always_inline)) const uint8_t *
add_group (float *sums, const VlmActivations *x, size_t row, size_t g, size_t len, const uint8_t *w,
    VlmIntFormat format)
{
  const int8_t *q = x->q + row * x->ldq + g * x->group;
  float x_scale = x->scale[row * x->ldg + g];
  const uint16_t *scales = (const uint16_t *) w;
  size_t bytes = format == VLM_INT_I4_GROUPS ? len / 2 : len, j;

  w += PANEL * sizeof (uint16_t);
  for (j = 0; j < PANEL; j++) {
    float factor = x_scale * f16_value (scales[j]);
    int32_t dot;

    if (format == VLM_INT_I4_GROUPS)
      dot = dot_i4 (q, w + j * bytes, len) - 8 * x->sum[row * x->ldg + g];
    else
      dot = dot_i8 (q, w + j * bytes, len);
    sums[j] = fmaf ((float) dot, factor, sums[j]);
  }

  return w + PANEL * bytes;
}

static inline __attribute__ ((always_inline)) void
matmul (float *y, size_t ldy, const VlmActivations *x, size_t m, const void *w, size_t n,
    const float *bias, VlmIntFormat format)
{
  size_t padded = vlm_padded_k (x->k), i, j, at;

  for (i = 0; i < m; i++) {
    float sums[PANEL] = { 0 };
    const uint8_t *next = w;

    for (at = 0; at < padded; at += x->group) {
      size_t len = padded - at < x->group ? padded - at : x->group;

      next = add_group (sums, x, i, at / x->group, len, next, format);
    }
    for (j = 0; j < n; j++)
      y[i * ldy + j] = bias != NULL ? sums[j] + bias[j] : sums[j];
  }
}

/* Rows are contiguous in the panel, however many groups the activations have. */
void
vlm_scalar_matmul_i8 (float *y, size_t ldy, const VlmActivations *x, size_t m, const void *w,
    size_t n, const float *bias)
{
  const float *scales = w;
  const uint8_t *values = (const uint8_t *) (scales + PANEL);
  size_t padded = vlm_padded_k (x->k), i, j, at;

  for (i = 0; i < m; i++) {
    for (j = 0; j < n; j++) {
      float sum = 0;

      for (at = 0; at < padded; at += x->group) {
        size_t len = padded - at < x->group ? padded - at : x->group;
        int32_t dot = dot_i8 (x->q + i * x->ldq + at, values + j * padded + at, len);

        sum = fmaf ((float) dot, x->scale[i * x->ldg + at / x->group], sum);
      }
      y[i * ldy + j] = bias != NULL ? fmaf (sum, scales[j], bias[j]) : sum * scales[j];
    }
  }
}

void
vlm_scalar_matmul_i8_groups (float *y, size_t ldy, const VlmActivations *x, size_t m, const void *w,
    size_t n, const float *bias)
{
  matmul (y, ldy, x, m, w, n, bias, VLM_INT_I8_GROUPS);
}

void
vlm_scalar_matmul_i4_groups (float *y, size_t ldy, const VlmActivations *x, size_t m, const void *w,
    size_t n, const float *bias)
{
  matmul (y, ldy, x, m, w, n, bias, VLM_INT_I4_GROUPS);
}
