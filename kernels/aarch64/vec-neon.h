/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The vectors that simd/ is written in, as Armv8-A Advanced SIMD. simd/README.md has the rules. */

#ifndef VLM_KERNELS_VEC_NEON_H
#define VLM_KERNELS_VEC_NEON_H

#include "kernels/simd/compiler.h"

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VF_LANES 4

/* Registers: 20 sums, 4 weights, the rest for broadcasts. With 24 sums gcc 12 spills two. */
#define MATMUL_ROWS 5
#define MATMUL_VECTORS 4

/* The same. */
#define ATTENTION_ROWS 5
#define ATTENTION_VECTORS 4

typedef float32x4_t vf;
typedef int32x4_t vsum;

typedef struct
{
  float64x2_t low, high;
} vd;

vlm_always_inline vf
vf_zero (void)
{
  return vdupq_n_f32 (0);
}

vlm_always_inline vf
vf_set1 (float x)
{
  return vdupq_n_f32 (x);
}

vlm_always_inline vf
vf_load (const float *p)
{
  return vld1q_f32 (p);
}

vlm_always_inline void
vf_store (float *p, vf x)
{
  vst1q_f32 (p, x);
}

vlm_always_inline uint32x4_t
vf_first_lanes (size_t n)
{
  static const uint32_t lanes[4] = { 0, 1, 2, 3 };

  return vcltq_u32 (vld1q_u32 (lanes), vdupq_n_u32 ((uint32_t) n));
}

vlm_always_inline vf
vf_load_part (const float *p, size_t n)
{
  float lanes[4] = { 0, 0, 0, 0 };
  size_t i;

  for (i = 0; i < n; i++)
    lanes[i] = p[i];

  return vld1q_f32 (lanes);
}

vlm_always_inline void
vf_store_part (float *p, vf x, size_t n)
{
  float lanes[4];
  size_t i;

  vst1q_f32 (lanes, x);
  for (i = 0; i < n; i++)
    p[i] = lanes[i];
}

vlm_always_inline vf
vf_keep_part (vf x, size_t n, vf other)
{
  return vbslq_f32 (vf_first_lanes (n), x, other);
}

vlm_always_inline vf
vf_load_i8 (const int8_t *p)
{
  int32_t four;

  memcpy (&four, p, sizeof four);
  return vcvtq_f32_s32 (
      vmovl_s16 (vget_low_s16 (vmovl_s8 (vreinterpret_s8_s32 (vdup_n_s32 (four))))));
}

vlm_always_inline vf
vf_load_f16 (const uint16_t *p)
{
  return vcvt_f32_f16 (vreinterpret_f16_u16 (vld1_u16 (p)));
}

vlm_always_inline vf
vf_load_bf16 (const uint16_t *p)
{
  return vreinterpretq_f32_u32 (vshll_n_u16 (vld1_u16 (p), 16));
}

vlm_always_inline vf
vf_add (vf a, vf b)
{
  return vaddq_f32 (a, b);
}

vlm_always_inline vf
vf_sub (vf a, vf b)
{
  return vsubq_f32 (a, b);
}

vlm_always_inline vf
vf_mul (vf a, vf b)
{
  return vmulq_f32 (a, b);
}

vlm_always_inline vf
vf_div (vf a, vf b)
{
  return vdivq_f32 (a, b);
}

vlm_always_inline vf
vf_min (vf a, vf b)
{
  return vminq_f32 (a, b);
}

vlm_always_inline vf
vf_max (vf a, vf b)
{
  return vmaxq_f32 (a, b);
}

vlm_always_inline vf
vf_max_number (vf a, vf b)
{
  return vbslq_f32 (vcgtq_f32 (a, b), a, b);
}

vlm_always_inline vsum
vsum_zero (void)
{
  return vdupq_n_s32 (0);
}

vlm_always_inline vsum
vf_store_i8 (int8_t *p, vf x, vsum sum)
{
  vsum q = vcvtnq_s32_f32 (x);
  int16x4_t half = vmovn_s32 (q);
  int8x8_t bytes = vmovn_s16 (vcombine_s16 (half, half));

  memcpy (p, &bytes, 4);
  return vaddq_s32 (sum, q);
}

vlm_always_inline int32_t
vsum_lanes (vsum sum)
{
  return vaddvq_s32 (sum);
}

vlm_always_inline vf
vf_abs (vf x)
{
  return vabsq_f32 (x);
}

vlm_always_inline vf
vf_fma (vf a, vf b, vf c)
{
  return vfmaq_f32 (c, a, b);
}

vlm_always_inline float
vf_sum (vf x)
{
  return vaddvq_f32 (x);
}

vlm_always_inline float
vf_max_lane (vf x)
{
  return vmaxvq_f32 (x);
}

vlm_always_inline vf
vf_round (vf x)
{
  return vrndnq_f32 (x);
}

/* In two factors, so that neither leaves the normal range before the product does. */
vlm_always_inline vf
vf_scale2 (vf x, vf n)
{
  int32x4_t bias = vdupq_n_s32 (127);
  int32x4_t e = vcvtq_s32_f32 (n);
  int32x4_t half = vshrq_n_s32 (e, 1);
  int32x4_t rest = vsubq_s32 (e, half);
  vf a = vreinterpretq_f32_s32 (vshlq_n_s32 (vaddq_s32 (half, bias), 23));
  vf b = vreinterpretq_f32_s32 (vshlq_n_s32 (vaddq_s32 (rest, bias), 23));

  return vmulq_f32 (vmulq_f32 (x, a), b);
}

vlm_always_inline vf
vf_split (vf x, vf *n)
{
  x = vf_min (vf_set1 (130.0f), vf_max (vf_set1 (-160.0f), x));
  *n = vrndmq_f32 (x);
  return vf_sub (x, *n);
}

vlm_always_inline vd
vd_set1 (double x)
{
  return (vd){ vdupq_n_f64 (x), vdupq_n_f64 (x) };
}

vlm_always_inline vd
vd_from_vf (vf x)
{
  return (vd){ vcvt_f64_f32 (vget_low_f32 (x)), vcvt_high_f64_f32 (x) };
}

vlm_always_inline vd
vd_add (vd a, vd b)
{
  return (vd){ vaddq_f64 (a.low, b.low), vaddq_f64 (a.high, b.high) };
}

vlm_always_inline vd
vd_sub (vd a, vd b)
{
  return (vd){ vsubq_f64 (a.low, b.low), vsubq_f64 (a.high, b.high) };
}

vlm_always_inline vd
vd_mul (vd a, vd b)
{
  return (vd){ vmulq_f64 (a.low, b.low), vmulq_f64 (a.high, b.high) };
}

vlm_always_inline double
vd_sum (vd x)
{
  return vaddvq_f64 (vaddq_f64 (x.low, x.high));
}

#endif
