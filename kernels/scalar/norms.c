/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sums run in double, so that their error is the same for every length. */

#include "scalar.h"

#include <math.h>

void
vlm_scalar_rms_norm (float *y, const float *x, const float *w, size_t n, float eps)
{
  double sum = 0;
  float inverse;
  size_t i;

  for (i = 0; i < n; i++)
    sum += (double) x[i] * x[i];

  inverse = (float) (1 / sqrt (sum / n + eps));
  for (i = 0; i < n; i++)
    y[i] = w[i] * (x[i] * inverse);
}

void
vlm_scalar_layer_norm (
    float *y, const float *x, const float *w, const float *b, size_t n, float eps)
{
  double mean = 0, variance = 0, inverse;
  size_t i;

  for (i = 0; i < n; i++)
    mean += x[i];
  mean /= n;

  for (i = 0; i < n; i++)
    variance += (x[i] - mean) * (x[i] - mean);
  variance /= n;

  inverse = 1 / sqrt (variance + eps);
  for (i = 0; i < n; i++)
    y[i] = (float) ((x[i] - mean) * inverse) * w[i] + b[i];
}
