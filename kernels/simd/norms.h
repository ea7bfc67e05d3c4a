/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sums run in double, so that their error is the same for every length, and as two, so that no
 * addition waits for the one before. */

#ifndef VLM_KERNELS_SIMD_NORMS_H
#define VLM_KERNELS_SIMD_NORMS_H

#include "rest.h"

#include <math.h>

static double
sum_values (const float *x, size_t n)
{
  vd even = vd_set1 (0), odd = vd_set1 (0);
  size_t i;

  for (i = 0; i + 2 * VF_LANES <= n; i += 2 * VF_LANES) {
    even = vd_add (even, vd_from_vf (vf_load (x + i)));
    odd = vd_add (odd, vd_from_vf (vf_load (x + i + VF_LANES)));
  }
  for (; i < n; i += VF_LANES)
    even = vd_add (even, vd_from_vf (load_rest (x, i, n)));

  return vd_sum (vd_add (even, odd));
}

vlm_always_inline vd
square_from (const float *x, vd centre)
{
  vd d = vd_sub (vd_from_vf (vf_load (x)), centre);

  return vd_mul (d, d);
}

/* sum (x - mean)^2 */
vlm_always_inline double
sum_squares (const float *x, size_t n, double mean)
{
  vd even = vd_set1 (0), odd = vd_set1 (0), centre = vd_set1 (mean);
  double rest = 0;
  size_t i;

  for (i = 0; i + 2 * VF_LANES <= n; i += 2 * VF_LANES) {
    even = vd_add (even, square_from (x + i, centre));
    odd = vd_add (odd, square_from (x + i + VF_LANES, centre));
  }
  if (i + VF_LANES <= n) {
    even = vd_add (even, square_from (x + i, centre));
    i += VF_LANES;
  }
  for (; i < n; i++)
    rest += (x[i] - mean) * (x[i] - mean);

  return vd_sum (vd_add (even, odd)) + rest;
}

static void
simd_rms_norm (float *y, const float *x, const float *w, size_t n, float eps)
{
  vf inverse = vf_set1 ((float) (1 / sqrt (sum_squares (x, n, 0) / n + eps)));
  size_t i;

  for (i = 0; i < n; i += VF_LANES)
    store_rest (y, vf_mul (load_rest (w, i, n), vf_mul (load_rest (x, i, n), inverse)), i, n);
}

/* The mean is taken away as two floats, or a large one would leave its rounding behind. */
static void
simd_layer_norm (float *y, const float *x, const float *w, const float *b, size_t n, float eps)
{
  const double mean = sum_values (x, n) / n;
  const vf high = vf_set1 ((float) mean), low = vf_set1 ((float) (mean - (float) mean));
  const vf inverse = vf_set1 ((float) (1 / sqrt (sum_squares (x, n, mean) / n + eps)));
  size_t i;

  for (i = 0; i < n; i += VF_LANES) {
    vf d = vf_sub (vf_sub (load_rest (x, i, n), high), low);

    store_rest (y, vf_fma (vf_mul (d, inverse), load_rest (w, i, n), load_rest (b, i, n)), i, n);
  }
}

#endif
