/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Plain IEEE operations in the order of kernels.h: equal to the scalar entries in every bit. */

#ifndef VLM_KERNELS_SIMD_ELEMENTWISE_H
#define VLM_KERNELS_SIMD_ELEMENTWISE_H

#include "kernels/scalar/half.h"

static void
simd_add (float *y, const float *x, size_t n)
{
  size_t i;

  for (i = 0; i + VF_LANES <= n; i += VF_LANES)
    vf_store (y + i, vf_add (vf_load (y + i), vf_load (x + i)));
  for (; i < n; i++)
    y[i] += x[i];
}

static void
simd_mul (float *y, const float *a, const float *b, size_t n)
{
  size_t i;

  for (i = 0; i + VF_LANES <= n; i += VF_LANES)
    vf_store (y + i, vf_mul (vf_load (a + i), vf_load (b + i)));
  for (; i < n; i++)
    y[i] = a[i] * b[i];
}

static void
simd_rope (float *x, const float *cos, const float *sin, size_t half)
{
  size_t i;

  for (i = 0; i + VF_LANES <= half; i += VF_LANES) {
    vf c = vf_load (cos + i), s = vf_load (sin + i);
    vf low = vf_load (x + i), high = vf_load (x + half + i);

    vf_store (x + i, vf_sub (vf_mul (low, c), vf_mul (high, s)));
    vf_store (x + half + i, vf_add (vf_mul (high, c), vf_mul (low, s)));
  }
  for (; i < half; i++) {
    float low = x[i], high = x[half + i];

    x[i] = low * cos[i] - high * sin[i];
    x[half + i] = high * cos[i] + low * sin[i];
  }
}

static void
simd_short_conv (
    float *y, const float *gate, const float *const *u, const float *taps, size_t n_taps, size_t n)
{
  size_t c, t;

  for (c = 0; c + VF_LANES <= n; c += VF_LANES) {
    vf sum = vf_zero ();

    for (t = 0; t < n_taps; t++)
      sum = vf_add (sum, vf_mul (vf_load (taps + t * n + c), vf_load (u[t] + c)));
    vf_store (y + c, vf_mul (vf_load (gate + c), sum));
  }
  for (; c < n; c++) {
    float sum = 0;

    for (t = 0; t < n_taps; t++)
      sum += taps[t * n + c] * u[t][c];
    y[c] = gate[c] * sum;
  }
}

static void
simd_f16_to_f32 (float *y, const uint16_t *x, size_t n)
{
  size_t i;

  for (i = 0; i + VF_LANES <= n; i += VF_LANES)
    vf_store (y + i, vf_load_f16 (x + i));
  for (; i < n; i++)
    y[i] = f16_value (x[i]);
}

static void
simd_bf16_to_f32 (float *y, const uint16_t *x, size_t n)
{
  size_t i;

  for (i = 0; i + VF_LANES <= n; i += VF_LANES)
    vf_store (y + i, vf_load_bf16 (x + i));
  for (; i < n; i++)
    y[i] = bf16_value (x[i]);
}

#endif
