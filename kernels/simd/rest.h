/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Element i and those after it, as far as a register and an array of n reach. */

#ifndef VLM_KERNELS_SIMD_REST_H
#define VLM_KERNELS_SIMD_REST_H

vlm_always_inline vf
load_rest (const float *p, size_t i, size_t n)
{
  return n - i >= VF_LANES ? vf_load (p + i) : vf_load_part (p + i, n - i);
}

vlm_always_inline void
store_rest (float *p, vf x, size_t i, size_t n)
{
  if (n - i >= VF_LANES)
    vf_store (p + i, x);
  else
    vf_store_part (p + i, x, n - i);
}

#endif
