/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sums run in double, so that their error is the same for every length. */

#ifndef VLM_KERNELS_SIMD_NORMS_H
#define VLM_KERNELS_SIMD_NORMS_H

#include "rest.h"

#include <math.h>

/* sum (x - mean)^2 */
vlm_always_inline double
sum_squares (const float *x, size_t n, double mean)
{
  vd sum = vd_set1 (0), centre = vd_set1 (mean);
  double rest = 0;
  size_t i;

  for (i = 0; i + VF_LANES <= n; i += VF_LANES) {
    vd d = vd_sub (vd_from_vf (vf_load (x + i)), centre);

    sum = vd_add (sum, vd_mul (d, d));
  }
  for (; i < n; i++)
    rest += (x[i] - mean) * (x[i] - mean);

  return vd_sum (sum) + rest;
}

static void
simd_rms_norm (float *y, const float *x, const float *w, size_t n, float eps)
{
  vf inverse = vf_set1 ((float) (1 / sqrt (sum_squares (x, n, 0) / n + eps)));
  size_t i;

  for (i = 0; i < n; i += VF_LANES)
    store_rest (y, vf_mul (load_rest (w, i, n), vf_mul (load_rest (x, i, n), inverse)), i, n);
}

static void
simd_layer_norm (float *y, const float *x, const float *w, const float *b, size_t n, float eps)
{
  vd sum = vd_set1 (0), centre, inverse;
  double mean;
  size_t i;

  for (i = 0; i < n; i += VF_LANES)
    sum = vd_add (sum, vd_from_vf (load_rest (x, i, n)));
  mean = vd_sum (sum) / n;

  centre = vd_set1 (mean);
  inverse = vd_set1 (1 / sqrt (sum_squares (x, n, mean) / n + eps));
  for (i = 0; i < n; i += VF_LANES) {
    vd d = vd_mul (vd_sub (vd_from_vf (load_rest (x, i, n)), centre), inverse);
    vf scaled = vf_mul (vf_from_vd (d), load_rest (w, i, n));

    store_rest (y, vf_add (scaled, load_rest (b, i, n)), i, n);
  }
}

#endif
