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

#ifdef VF_STORE_4_I8
/* A group of n values, which is known where this is inlined: everything stays in registers, and nothing
 * is a chain of as many steps. */
vlm_always_inline void
quantise_known (int8_t *q, float *scale, int32_t *sum, const float *x, size_t n)
{
  vf most[4] = { vf_zero (), vf_zero (), vf_zero (), vf_zero () }, values[4], inverse;
  vsum total = vsum_zero ();
  float amax;
  size_t l, v;

  VLM_UNROLL
  for (l = 0; l < n; l += VF_LANES)
    most[l / VF_LANES % 4] = vf_max_number (vf_abs (vf_load (x + l)), most[l / VF_LANES % 4]);
  amax = vf_max_lane (vf_max (vf_max (most[0], most[1]), vf_max (most[2], most[3])));
  *scale = amax >= 0x1p-100f ? amax / 127 : 0;
  inverse = vf_set1 (amax >= 0x1p-100f ? 127 / amax : 0);

  VLM_UNROLL
  for (l = 0; l < n; l += 4 * VF_LANES) {
    VLM_UNROLL
    for (v = 0; v < 4; v++)
      values[v] = vf_max_number (vf_mul (vf_load (x + l + v * VF_LANES), inverse), vf_set1 (-127));
    total = vf_store_4_i8 (q + l, values, total);
  }
  *sum = vsum_lanes (total);
}

static void
quantise_groups_128 (int8_t *q, float *scale, int32_t *sum, const float *x, size_t n_groups)
{
  size_t g;

  for (g = 0; g < n_groups; g++)
    quantise_known (q + 128 * g, scale + g, sum + g, x + 128 * g, 128);
}

static void
quantise_groups_64 (int8_t *q, float *scale, int32_t *sum, const float *x, size_t n_groups)
{
  size_t g;

  for (g = 0; g < n_groups; g++)
    quantise_known (q + 64 * g, scale + g, sum + g, x + 64 * g, 64);
}

/* Returns how many values of a row are in whole groups of the commonest lengths, and rounds them. */
static size_t
quantise_common (int8_t *q, float *scale, int32_t *sum, const float *x, size_t n, size_t group)
{
  group = group < n ? group : n;
  if (group == 128)
    quantise_groups_128 (q, scale, sum, x, n / 128);
  else if (group == 64)
    quantise_groups_64 (q, scale, sum, x, n / 64);
  else
    return 0;
  return n / group * group;
}
#endif

static void
simd_quantise_i8 (int8_t *q, float *scale, int32_t *sum, const float *x, size_t n, size_t group)
{
  size_t at = 0;

#ifdef VF_STORE_4_I8
  at = quantise_common (q, scale, sum, x, n, group);
#endif
  for (; at < n; at += group)
    quantise_group (
        q + at, scale + at / group, sum + at / group, x + at, n - at < group ? n - at : group);
  for (at = (n + VF_LANES - 1) / VF_LANES * VF_LANES; at < vlm_padded_k (n); at++)
    q[at] = 0;
}

#endif
