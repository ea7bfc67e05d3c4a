/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Integer operations of all of Armv8-A, for the headers of its levels. */

#ifndef VLM_KERNELS_INT_COMMON_H
#define VLM_KERNELS_INT_COMMON_H

#include "vec-neon.h"

#define INT_BIAS 0

typedef int32x4_t vi;

vlm_always_inline vi
vi_set1 (int32_t x)
{
  return vdupq_n_s32 (x);
}

vlm_always_inline vi
vi_load (const uint8_t *p)
{
  return vreinterpretq_s32_u8 (vld1q_u8 (p));
}

vlm_always_inline void
vi_store (uint8_t *p, vi x)
{
  vst1q_u8 (p, vreinterpretq_u8_s32 (x));
}

vlm_always_inline vf
vi_to_vf (vi x)
{
  return vcvtq_f32_s32 (x);
}

/* Rounded, ties to even. */
vlm_always_inline vi
vi_from_vf (vf x)
{
  return vcvtnq_s32_f32 (x);
}

/* x 2^e, neither being zero, subnormal or beyond the largest number. */
vlm_always_inline vf
vi_scale2 (vf x, vi e)
{
  return vreinterpretq_f32_s32 (vaddq_s32 (vreinterpretq_s32_f32 (x), vshlq_n_s32 (e, 23)));
}

vlm_always_inline vi
vi_add (vi a, vi b)
{
  return vaddq_s32 (a, b);
}

vlm_always_inline vi
vi_or (vi a, vi b)
{
  return vorrq_s32 (a, b);
}

/* Bytes shifted to the left, or right where that is negative; of them the bits of the mask. */
vlm_always_inline vi
vi_shift_bits (vi x, int left, int mask)
{
  uint8x16_t shifted = vshlq_u8 (vreinterpretq_u8_s32 (x), vdupq_n_s8 ((int8_t) left));

  return vreinterpretq_s32_u8 (vandq_u8 (shifted, vdupq_n_u8 ((uint8_t) mask)));
}

vlm_always_inline vi
vi_low_nibbles (vi x)
{
  return vandq_s32 (x, vdupq_n_s32 (0x0f0f0f0f));
}

vlm_always_inline vi
vi_high_nibbles (vi x)
{
  return vreinterpretq_s32_u8 (vshrq_n_u8 (vreinterpretq_u8_s32 (x), 4));
}

#endif
