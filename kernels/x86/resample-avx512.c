/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The column of resample-avx2.c, 64 bytes at a time. */

#include "resample.h"

#include <immintrin.h>

static inline __m512i
pair_of_weights (const int16_t *weights, size_t t, size_t n_taps)
{
  uint32_t second = t + 1 < n_taps ? (uint16_t) weights[t + 1] : 0;

  return _mm512_set1_epi32 ((int) ((uint16_t) weights[t] | second << 16));
}

static inline __m512i
descale (__m512i sum, unsigned bits)
{
  sum = _mm512_add_epi32 (sum, _mm512_set1_epi32 ((int) (1u << (bits - 1))));
  return _mm512_sra_epi32 (sum, _mm_cvtsi32_si128 ((int) bits));
}

static inline __m512i
sum_columns (
    const uint8_t *src, size_t stride, const int16_t *weights, size_t n_taps, unsigned bits)
{
  const __m512i zero = _mm512_setzero_si512 ();
  __m512i sum0 = zero, sum1 = zero, sum2 = zero, sum3 = zero;
  size_t t;

  for (t = 0; t < n_taps; t += 2) {
    __m512i w = pair_of_weights (weights, t, n_taps);
    __m512i a = _mm512_loadu_si512 (src + t * stride);
    __m512i b = t + 1 < n_taps ? _mm512_loadu_si512 (src + (t + 1) * stride) : zero;
    __m512i low = _mm512_unpacklo_epi8 (a, b), high = _mm512_unpackhi_epi8 (a, b);

    sum0 = _mm512_add_epi32 (sum0, _mm512_madd_epi16 (_mm512_unpacklo_epi8 (low, zero), w));
    sum1 = _mm512_add_epi32 (sum1, _mm512_madd_epi16 (_mm512_unpackhi_epi8 (low, zero), w));
    sum2 = _mm512_add_epi32 (sum2, _mm512_madd_epi16 (_mm512_unpacklo_epi8 (high, zero), w));
    sum3 = _mm512_add_epi32 (sum3, _mm512_madd_epi16 (_mm512_unpackhi_epi8 (high, zero), w));
  }

  sum0 = _mm512_packs_epi32 (descale (sum0, bits), descale (sum1, bits));
  sum2 = _mm512_packs_epi32 (descale (sum2, bits), descale (sum3, bits));
  return _mm512_packus_epi16 (sum0, sum2);
}

void
vlm_avx512_resample_column (uint8_t *dst, const uint8_t *src, size_t stride, size_t n,
    const int16_t *weights, size_t n_taps, unsigned bits)
{
  size_t i;

  for (i = 0; i + 64 <= n; i += 64)
    _mm512_storeu_si512 (dst + i, sum_columns (src + i, stride, weights, n_taps, bits));
  vlm_avx2_resample_column (dst + i, src + i, stride, n - i, weights, n_taps, bits);
}
