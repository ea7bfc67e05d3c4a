/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The vectors that simd/ is written in, as AVX2 with FMA and F16C. simd/README.md has the rules. */

#ifndef VLM_KERNELS_VEC_AVX2_H
#define VLM_KERNELS_VEC_AVX2_H

#include "kernels/simd/compiler.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define VF_LANES 8

/* Registers: 12 sums, 2 weights, 2 broadcasts. */
#define MATMUL_ROWS 6
#define MATMUL_VECTORS 2

/* The same sixteen. */
#define ATTENTION_ROWS 6
#define ATTENTION_VECTORS 2

typedef __m256 vf;
typedef __m256i vsum;

typedef struct
{
  __m256d low, high;
} vd;

vlm_always_inline vf
vf_zero (void)
{
  return _mm256_setzero_ps ();
}

vlm_always_inline vf
vf_set1 (float x)
{
  return _mm256_set1_ps (x);
}

vlm_always_inline vf
vf_load (const float *p)
{
  return _mm256_loadu_ps (p);
}

vlm_always_inline void
vf_store (float *p, vf x)
{
  _mm256_storeu_ps (p, x);
}

vlm_always_inline __m256i
vf_first_lanes (size_t n)
{
  const __m256i lane = _mm256_setr_epi32 (0, 1, 2, 3, 4, 5, 6, 7);

  return _mm256_cmpgt_epi32 (_mm256_set1_epi32 ((int) n), lane);
}

vlm_always_inline vf
vf_load_part (const float *p, size_t n)
{
  return _mm256_maskload_ps (p, vf_first_lanes (n));
}

vlm_always_inline void
vf_store_part (float *p, vf x, size_t n)
{
  _mm256_maskstore_ps (p, vf_first_lanes (n), x);
}

vlm_always_inline vf
vf_keep_part (vf x, size_t n, vf other)
{
  return _mm256_blendv_ps (other, x, _mm256_castsi256_ps (vf_first_lanes (n)));
}

vlm_always_inline vf
vf_load_i8 (const int8_t *p)
{
  return _mm256_cvtepi32_ps (_mm256_cvtepi8_epi32 (_mm_loadl_epi64 ((const __m128i *) p)));
}

vlm_always_inline vf
vf_load_f16 (const uint16_t *p)
{
  return _mm256_cvtph_ps (_mm_loadu_si128 ((const __m128i *) p));
}

vlm_always_inline vf
vf_load_bf16 (const uint16_t *p)
{
  __m256i wide = _mm256_cvtepu16_epi32 (_mm_loadu_si128 ((const __m128i *) p));

  return _mm256_castsi256_ps (_mm256_slli_epi32 (wide, 16));
}

vlm_always_inline vf
vf_add (vf a, vf b)
{
  return _mm256_add_ps (a, b);
}

vlm_always_inline vf
vf_sub (vf a, vf b)
{
  return _mm256_sub_ps (a, b);
}

vlm_always_inline vf
vf_mul (vf a, vf b)
{
  return _mm256_mul_ps (a, b);
}

vlm_always_inline vf
vf_div (vf a, vf b)
{
  return _mm256_div_ps (a, b);
}

vlm_always_inline vf
vf_min (vf a, vf b)
{
  return _mm256_min_ps (a, b);
}

vlm_always_inline vf
vf_max (vf a, vf b)
{
  return _mm256_max_ps (a, b);
}

vlm_always_inline vf
vf_max_number (vf a, vf b)
{
  return _mm256_max_ps (a, b);
}

vlm_always_inline vsum
vsum_zero (void)
{
  return _mm256_setzero_si256 ();
}

vlm_always_inline vsum
vf_store_i8 (int8_t *p, vf x, vsum sum)
{
  vsum q = _mm256_cvtps_epi32 (x);
  __m128i half = _mm_packs_epi32 (_mm256_castsi256_si128 (q), _mm256_extracti128_si256 (q, 1));

  _mm_storel_epi64 ((__m128i *) p, _mm_packs_epi16 (half, half));
  return _mm256_add_epi32 (sum, q);
}

vlm_always_inline int32_t
vsum_lanes (vsum sum)
{
  __m128i four = _mm_add_epi32 (_mm256_castsi256_si128 (sum), _mm256_extracti128_si256 (sum, 1));

  four = _mm_add_epi32 (four, _mm_shuffle_epi32 (four, 0x4e));
  return _mm_cvtsi128_si32 (_mm_add_epi32 (four, _mm_shuffle_epi32 (four, 0xb1)));
}

vlm_always_inline vf
vf_abs (vf x)
{
  return _mm256_andnot_ps (_mm256_set1_ps (-0.0f), x);
}

vlm_always_inline vf
vf_fma (vf a, vf b, vf c)
{
  return _mm256_fmadd_ps (a, b, c);
}

vlm_always_inline float
vf_sum (vf x)
{
  __m128 sum = _mm_add_ps (_mm256_castps256_ps128 (x), _mm256_extractf128_ps (x, 1));

  sum = _mm_add_ps (sum, _mm_movehl_ps (sum, sum));
  return _mm_cvtss_f32 (_mm_add_ss (sum, _mm_movehdup_ps (sum)));
}

vlm_always_inline float
vf_max_lane (vf x)
{
  __m128 max = _mm_max_ps (_mm256_castps256_ps128 (x), _mm256_extractf128_ps (x, 1));

  max = _mm_max_ps (max, _mm_movehl_ps (max, max));
  return _mm_cvtss_f32 (_mm_max_ss (max, _mm_movehdup_ps (max)));
}

vlm_always_inline vf
vf_round (vf x)
{
  return _mm256_round_ps (x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* In two factors, so that neither leaves the normal range before the product does. */
vlm_always_inline vf
vf_scale2 (vf x, vf n)
{
  __m256i bias = _mm256_set1_epi32 (127);
  __m256i e = _mm256_cvtps_epi32 (n);
  __m256i half = _mm256_srai_epi32 (e, 1);
  __m256i rest = _mm256_sub_epi32 (e, half);
  __m256i a = _mm256_slli_epi32 (_mm256_add_epi32 (half, bias), 23);
  __m256i b = _mm256_slli_epi32 (_mm256_add_epi32 (rest, bias), 23);

  return _mm256_mul_ps (_mm256_mul_ps (x, _mm256_castsi256_ps (a)), _mm256_castsi256_ps (b));
}

vlm_always_inline vf
vf_split (vf x, vf *n)
{
  x = vf_min (vf_set1 (130.0f), vf_max (vf_set1 (-160.0f), x));
  *n = _mm256_floor_ps (x);
  return vf_sub (x, *n);
}

vlm_always_inline vd
vd_set1 (double x)
{
  return (vd){ _mm256_set1_pd (x), _mm256_set1_pd (x) };
}

vlm_always_inline vd
vd_from_vf (vf x)
{
  return (vd){ _mm256_cvtps_pd (_mm256_castps256_ps128 (x)),
    _mm256_cvtps_pd (_mm256_extractf128_ps (x, 1)) };
}

vlm_always_inline vd
vd_add (vd a, vd b)
{
  return (vd){ _mm256_add_pd (a.low, b.low), _mm256_add_pd (a.high, b.high) };
}

vlm_always_inline vd
vd_sub (vd a, vd b)
{
  return (vd){ _mm256_sub_pd (a.low, b.low), _mm256_sub_pd (a.high, b.high) };
}

vlm_always_inline vd
vd_mul (vd a, vd b)
{
  return (vd){ _mm256_mul_pd (a.low, b.low), _mm256_mul_pd (a.high, b.high) };
}

vlm_always_inline double
vd_sum (vd x)
{
  __m256d sum = _mm256_add_pd (x.low, x.high);
  __m128d pair = _mm_add_pd (_mm256_castpd256_pd128 (sum), _mm256_extractf128_pd (sum, 1));

  return _mm_cvtsd_f64 (_mm_add_sd (pair, _mm_unpackhi_pd (pair, pair)));
}

#endif
