/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "half.h"
#include "scalar.h"

#include <math.h>

void
vlm_scalar_gelu_tanh (float *x, size_t n)
{
  size_t i;

  for (i = 0; i < n; i++) {
    float u = 0.7978845608f * x[i] * (1 + 0.044715f * x[i] * x[i]);

    x[i] = 0.5f * x[i] * (1 + tanhf (u));
  }
}

void
vlm_scalar_gelu_erf (float *x, size_t n)
{
  size_t i;

  for (i = 0; i < n; i++)
    x[i] = 0.5f * x[i] * (1 + erff (x[i] * 0.7071067812f));
}

void
vlm_scalar_silu_mul (float *y, const float *gate, const float *up, size_t n)
{
  size_t i;

  for (i = 0; i < n; i++)
    y[i] = gate[i] / (1 + expf (-gate[i])) * up[i];
}

void
vlm_scalar_add (float *y, const float *x, size_t n)
{
  size_t i;

  for (i = 0; i < n; i++)
    y[i] += x[i];
}

void
vlm_scalar_mul (float *y, const float *a, const float *b, size_t n)
{
  size_t i;

  for (i = 0; i < n; i++)
    y[i] = a[i] * b[i];
}

void
vlm_scalar_rope (float *x, const float *cos, const float *sin, size_t half)
{
  size_t i;

  for (i = 0; i < half; i++) {
    float low = x[i], high = x[i + half];

    x[i] = low * cos[i] - high * sin[i];
    x[i + half] = high * cos[i] + low * sin[i];
  }
}

void
vlm_scalar_short_conv (
    float *y, const float *gate, const float *const *u, const float *taps, size_t n_taps, size_t n)
{
  size_t c, t;

  for (c = 0; c < n; c++) {
    float sum = 0;

    for (t = 0; t < n_taps; t++)
      sum += taps[t * n + c] * u[t][c];
    y[c] = gate[c] * sum;
  }
}

void
vlm_scalar_f16_to_f32 (float *y, const uint16_t *x, size_t n)
{
  size_t i;

  for (i = 0; i < n; i++)
    y[i] = f16_value (x[i]);
}

void
vlm_scalar_bf16_to_f32 (float *y, const uint16_t *x, size_t n)
{
  size_t i;

  for (i = 0; i < n; i++)
    y[i] = bf16_value (x[i]);
}
