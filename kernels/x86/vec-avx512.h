/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The vectors that simd/ is written in, as AVX-512 F, BW, DQ, VL. simd/README.md has the rules. */

#ifndef VLM_KERNELS_VEC_AVX512_H
#define VLM_KERNELS_VEC_AVX512_H

#include "kernels/simd/compiler.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define VF_LANES 16

/* Registers: 24 sums, 2 weights, the rest for broadcasts. */
#define MATMUL_ROWS 12
#define MATMUL_VECTORS 2

/* Registers: 24 sums, 4 loads, one broadcast. */
#define ATTENTION_ROWS 6
#define ATTENTION_VECTORS 4

typedef __m512 vf;
typedef __m512i vsum;

typedef struct
{
  __m512d low, high;
} vd;

vlm_always_inline vf
vf_zero (void)
{
  return _mm512_setzero_ps ();
}

vlm_always_inline vf
vf_set1 (float x)
{
  return _mm512_set1_ps (x);
}

vlm_always_inline vf
vf_load (const float *p)
{
  return _mm512_loadu_ps (p);
}

vlm_always_inline void
vf_store (float *p, vf x)
{
  _mm512_storeu_ps (p, x);
}

vlm_always_inline __mmask16
vf_first_lanes (size_t n)
{
  return (__mmask16) ((1u << n) - 1);
}

vlm_always_inline vf
vf_load_part (const float *p, size_t n)
{
  return _mm512_maskz_loadu_ps (vf_first_lanes (n), p);
}

vlm_always_inline void
vf_store_part (float *p, vf x, size_t n)
{
  _mm512_mask_storeu_ps (p, vf_first_lanes (n), x);
}

vlm_always_inline vf
vf_keep_part (vf x, size_t n, vf other)
{
  return _mm512_mask_blend_ps (vf_first_lanes (n), other, x);
}

vlm_always_inline vf
vf_load_i8 (const int8_t *p)
{
  return _mm512_cvtepi32_ps (_mm512_cvtepi8_epi32 (_mm_loadu_si128 ((const __m128i *) p)));
}

vlm_always_inline vf
vf_load_f16 (const uint16_t *p)
{
  return _mm512_cvtph_ps (_mm256_loadu_si256 ((const __m256i *) p));
}

vlm_always_inline vf
vf_load_bf16 (const uint16_t *p)
{
  __m512i wide = _mm512_cvtepu16_epi32 (_mm256_loadu_si256 ((const __m256i *) p));

  return _mm512_castsi512_ps (_mm512_slli_epi32 (wide, 16));
}

vlm_always_inline vf
vf_add (vf a, vf b)
{
  return _mm512_add_ps (a, b);
}

vlm_always_inline vf
vf_sub (vf a, vf b)
{
  return _mm512_sub_ps (a, b);
}

vlm_always_inline vf
vf_mul (vf a, vf b)
{
  return _mm512_mul_ps (a, b);
}

vlm_always_inline vf
vf_div (vf a, vf b)
{
  return _mm512_div_ps (a, b);
}

vlm_always_inline vf
vf_min (vf a, vf b)
{
  return _mm512_min_ps (a, b);
}

vlm_always_inline vf
vf_max (vf a, vf b)
{
  return _mm512_max_ps (a, b);
}

vlm_always_inline vf
vf_max_number (vf a, vf b)
{
  return _mm512_max_ps (a, b);
}

vlm_always_inline vsum
vsum_zero (void)
{
  return _mm512_setzero_si512 ();
}

vlm_always_inline vsum
vf_store_i8 (int8_t *p, vf x, vsum sum)
{
  vsum q = _mm512_cvtps_epi32 (x);

  _mm_storeu_si128 ((__m128i *) p, _mm512_cvtepi32_epi8 (q));
  return _mm512_add_epi32 (sum, q);
}

/* Four registers at once. */
#define VF_STORE_4_I8
vlm_always_inline vsum
vf_store_4_i8 (int8_t *p, const vf *x, vsum sum)
{
  const __m512i order = _mm512_setr_epi32 (0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  vsum q[4] = { _mm512_cvtps_epi32 (x[0]), _mm512_cvtps_epi32 (x[1]), _mm512_cvtps_epi32 (x[2]),
    _mm512_cvtps_epi32 (x[3]) };
  vsum bytes =
      _mm512_packs_epi16 (_mm512_packs_epi32 (q[0], q[1]), _mm512_packs_epi32 (q[2], q[3]));

  _mm512_storeu_si512 ((vsum *) p, _mm512_permutexvar_epi32 (order, bytes));
  return _mm512_add_epi32 (
      sum, _mm512_add_epi32 (_mm512_add_epi32 (q[0], q[1]), _mm512_add_epi32 (q[2], q[3])));
}

vlm_always_inline int32_t
vsum_lanes (vsum sum)
{
  return _mm512_reduce_add_epi32 (sum);
}

vlm_always_inline vf
vf_abs (vf x)
{
  return _mm512_abs_ps (x);
}

vlm_always_inline vf
vf_fma (vf a, vf b, vf c)
{
  return _mm512_fmadd_ps (a, b, c);
}

vlm_always_inline float
vf_sum (vf x)
{
  return _mm512_reduce_add_ps (x);
}

vlm_always_inline float
vf_max_lane (vf x)
{
  return _mm512_reduce_max_ps (x);
}

vlm_always_inline vf
vf_round (vf x)
{
  return _mm512_roundscale_ps (x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* x less the nearest whole number, to even at ties */
vlm_always_inline vf
vf_rest (vf x)
{
  return _mm512_reduce_ps (x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

vlm_always_inline vf
vf_scale2 (vf x, vf n)
{
  return _mm512_scalef_ps (x, n);
}

vlm_always_inline vf
vf_split (vf x, vf *n)
{
  *n = x; /* vf_scale2 rounds down itself */
  return _mm512_reduce_ps (x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}

vlm_always_inline vd
vd_set1 (double x)
{
  return (vd){ _mm512_set1_pd (x), _mm512_set1_pd (x) };
}

vlm_always_inline vd
vd_from_vf (vf x)
{
  return (vd){ _mm512_cvtps_pd (_mm512_castps512_ps256 (x)),
    _mm512_cvtps_pd (_mm512_extractf32x8_ps (x, 1)) };
}

vlm_always_inline vd
vd_add (vd a, vd b)
{
  return (vd){ _mm512_add_pd (a.low, b.low), _mm512_add_pd (a.high, b.high) };
}

vlm_always_inline vd
vd_sub (vd a, vd b)
{
  return (vd){ _mm512_sub_pd (a.low, b.low), _mm512_sub_pd (a.high, b.high) };
}

vlm_always_inline vd
vd_mul (vd a, vd b)
{
  return (vd){ _mm512_mul_pd (a.low, b.low), _mm512_mul_pd (a.high, b.high) };
}

vlm_always_inline double
vd_sum (vd x)
{
  return _mm512_reduce_add_pd (_mm512_add_pd (x.low, x.high));
}

#endif
