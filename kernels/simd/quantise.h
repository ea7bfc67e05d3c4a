/* SPDX-License-Identifier: LGPL-2.1-or-later */

#ifndef VLM_KERNELS_SIMD_QUANTISE_H
#define VLM_KERNELS_SIMD_QUANTISE_H

#include "kernels/kernels.h"

#include "rest.h"

/*
 * No value is beyond 127 but a NaN: x * (127 / amax) exceeds it by less than a rounding, and then is
 * rounded to it.
 */
static void
quantise_group (int8_t *q, float *scale, int32_t *sum, const float *x, size_t n)
{
  vf most = vf_zero (), inverse;
  vsum total = vsum_zero ();
  float amax;
  size_t l;

  for (l = 0; l < n; l += VF_LANES)
    most = vf_max_number (vf_abs (load_rest (x, l, n)), most);
  amax = vf_max_lane (most);
  *scale = amax >= 0x1p-100f ? amax / 127 : 0;
  inverse = vf_set1 (amax >= 0x1p-100f ? 127 / amax : 0);

  for (l = 0; l < n; l += VF_LANES) {
    vf value = vf_mul (load_rest (x, l, n), inverse);

    total = vf_store_i8 (q + l, vf_max_number (value, vf_set1 (-127)), total);
  }
  *sum = vsum_lanes (total);
}

static void
simd_quantise_i8 (int8_t *q, float *scale, int32_t *sum, const float *x, size_t n, size_t group)
{
  size_t at;

  for (at = 0; at < n; at += group)
    quantise_group (
        q + at, scale + at / group, sum + at / group, x + at, n - at < group ? n - at : group);
  for (at = (n + VF_LANES - 1) / VF_LANES * VF_LANES; at < vlm_padded_k (n); at++)
    q[at] = 0;
}

#endif
