/* SPDX-License-Identifier: LGPL-2.1-or-later */

#ifndef VLM_KERNELS_SIMD_EXP_H
#define VLM_KERNELS_SIMD_EXP_H

/*
 * e^x within 2 units in the last place; 0 for x < -104 and -infinity, infinity for x > 89, NaN for
 * NaN, exactly 1 for 0. x = n ln 2 + r with |r| <= ln 2 / 2 and a polynomial in r (Cephes' expf).
 */
vlm_always_inline vf
vf_exp (vf x)
{
  vf n, r, y;

  x = vf_min (vf_set1 (90.0f), vf_max (vf_set1 (-110.0f), x));
  n = vf_round (vf_mul (x, vf_set1 (1.44269504f)));
  r = vf_fma (n, vf_set1 (-0.693359375f), x);
  r = vf_fma (n, vf_set1 (2.12194440e-4f), r);

  y = vf_fma (vf_set1 (1.9875691500e-4f), r, vf_set1 (1.3981999507e-3f));
  y = vf_fma (y, r, vf_set1 (8.3334519073e-3f));
  y = vf_fma (y, r, vf_set1 (4.1665795894e-2f));
  y = vf_fma (y, r, vf_set1 (1.6666665459e-1f));
  y = vf_fma (y, r, vf_set1 (5.0000001201e-1f));
  y = vf_fma (vf_mul (r, r), y, r);

  return vf_scale2 (vf_add (y, vf_set1 (1.0f)), n);
}

/* 2^x with a relative error of 2^-22; 0 far below, infinity from 128 on, NaN for NaN, exactly 1 for 0. */
vlm_always_inline vf
vf_exp2 (vf x)
{
  vf n, r = vf_split (x, &n), y;

  y = vf_fma (vf_set1 (0x1.e9750ep-10f), r, vf_set1 (0x1.277850p-7f));
  y = vf_fma (y, r, vf_set1 (0x1.c91ce8p-5f));
  y = vf_fma (y, r, vf_set1 (0x1.ebdb56p-3f));
  y = vf_fma (y, r, vf_set1 (0x1.62e4bap-1f));
  return vf_scale2 (vf_fma (y, r, vf_set1 (1.0f)), n);
}

#endif
