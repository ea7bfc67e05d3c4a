/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Bytes become 16-bit pairs of two taps of one channel, so that one multiply-add of pairs
 * (vpmaddwd) takes both taps. Sums are 32-bit and exact in any order.
 */

#include "resample.h"
#include "kernels/scalar/scalar.h"

#include <immintrin.h>
#include <string.h>

static inline int32_t
load_int32 (const void *p)
{
  int32_t value;

  memcpy (&value, p, sizeof value);
  return value;
}

/* The byte order of the pairs (r r g g b b - -) of two RGB pixels whose first byte is at o. */
#define PAIRS(o) o, -1, o + 3, -1, o + 1, -1, o + 4, -1, o + 2, -1, o + 5, -1, -1, -1, -1, -1

/* Eight taps, 24 bytes: both loads stay inside them, the upper one begins 4 bytes early. */
static inline __m256i
add_eight_taps (__m256i sum, const uint8_t *pixel, const int16_t *w)
{
  const __m256i first = _mm256_setr_epi8 (PAIRS (0), PAIRS (4));
  const __m256i second = _mm256_setr_epi8 (PAIRS (6), PAIRS (10));
  const __m256i first_weights = _mm256_setr_epi32 (0, 0, 0, 0, 2, 2, 2, 2);
  const __m256i second_weights = _mm256_setr_epi32 (1, 1, 1, 1, 3, 3, 3, 3);
  __m128i low = _mm_loadu_si128 ((const __m128i *) pixel);
  __m128i high = _mm_loadu_si128 ((const __m128i *) (pixel + 8));
  __m256i bytes = _mm256_set_m128i (high, low);
  __m256i weights = _mm256_castsi128_si256 (_mm_loadu_si128 ((const __m128i *) w));
  __m256i a, b;

  a = _mm256_madd_epi16 (
      _mm256_shuffle_epi8 (bytes, first), _mm256_permutevar8x32_epi32 (weights, first_weights));
  b = _mm256_madd_epi16 (
      _mm256_shuffle_epi8 (bytes, second), _mm256_permutevar8x32_epi32 (weights, second_weights));

  return _mm256_add_epi32 (sum, _mm256_add_epi32 (a, b));
}

/* Four taps, 12 bytes; weights holds their four values in its low half. */
static inline __m128i
add_four_taps (__m128i sum, const uint8_t *pixel, __m128i weights)
{
  const __m128i first = _mm_setr_epi8 (PAIRS (0));
  const __m128i second = _mm_setr_epi8 (PAIRS (6));
  __m128i bytes = _mm_loadl_epi64 ((const __m128i *) pixel);
  __m128i a, b;

  bytes = _mm_insert_epi32 (bytes, load_int32 (pixel + 8), 2);
  a = _mm_madd_epi16 (_mm_shuffle_epi8 (bytes, first), _mm_shuffle_epi32 (weights, 0x00));
  b = _mm_madd_epi16 (_mm_shuffle_epi8 (bytes, second), _mm_shuffle_epi32 (weights, 0x55));

  return _mm_add_epi32 (sum, _mm_add_epi32 (a, b));
}

/* Sums of the three channels of one output pixel of at least four taps. */
static inline __m128i
sum_pixel (const uint8_t *pixel, const int16_t *w, int32_t count)
{
  /* Takes out the taps of the last four that were added before. */
  static const int64_t keep[4] = { 0, (int64_t) 0xffff000000000000u, (int64_t) 0xffffffff00000000u,
    (int64_t) 0xffffffffffff0000u };
  __m256i wide = _mm256_setzero_si256 ();
  __m128i sum;
  int32_t t;

  for (t = 0; t + 8 <= count; t += 8)
    wide = add_eight_taps (wide, pixel + t * 3, w + t);
  sum = _mm_add_epi32 (_mm256_castsi256_si128 (wide), _mm256_extracti128_si256 (wide, 1));

  if (t + 4 <= count) {
    sum = add_four_taps (sum, pixel + t * 3, _mm_loadl_epi64 ((const __m128i *) (w + t)));
    t += 4;
  }
  if (t < count) {
    __m128i rest = _mm_loadl_epi64 ((const __m128i *) (w + count - 4));

    rest = _mm_and_si128 (rest, _mm_cvtsi64_si128 (keep[count - t]));
    sum = add_four_taps (sum, pixel + (count - 4) * 3, rest);
  }

  return sum;
}

void
vlm_avx2_resample_row (uint8_t *dst, const uint8_t *src, size_t n_pixels, const int32_t *start,
    const int32_t *count, const int16_t *weights, size_t max_taps, unsigned bits)
{
  const __m128i half = _mm_set1_epi32 ((int) (1u << (bits - 1)));
  const __m128i shift = _mm_cvtsi32_si128 ((int) bits);
  size_t i;

  for (i = 0; i < n_pixels; i++) {
    __m128i sum;
    int32_t packed;

    if (count[i] < 4) {
      vlm_scalar_resample_row (
          dst + i * 3, src, 1, start + i, count + i, weights + i * max_taps, max_taps, bits);
      continue;
    }

    sum = sum_pixel (src + (size_t) start[i] * 3, weights + i * max_taps, count[i]);
    sum = _mm_sra_epi32 (_mm_add_epi32 (sum, half), shift);
    sum = _mm_packs_epi32 (sum, sum);
    packed = _mm_cvtsi128_si32 (_mm_packus_epi16 (sum, sum));
    memcpy (dst + i * 3, &packed, 3);
  }
}

/* The weights of taps t and t + 1, or of t and nothing, for every lane. */
static inline __m256i
pair_of_weights (const int16_t *weights, size_t t, size_t n_taps)
{
  uint32_t second = t + 1 < n_taps ? (uint16_t) weights[t + 1] : 0;

  return _mm256_set1_epi32 ((int) ((uint16_t) weights[t] | second << 16));
}

static inline __m256i
descale (__m256i sum, unsigned bits)
{
  sum = _mm256_add_epi32 (sum, _mm256_set1_epi32 ((int) (1u << (bits - 1))));
  return _mm256_sra_epi32 (sum, _mm_cvtsi32_si128 ((int) bits));
}

static inline __m256i
sum_columns (
    const uint8_t *src, size_t stride, const int16_t *weights, size_t n_taps, unsigned bits)
{
  const __m256i zero = _mm256_setzero_si256 ();
  __m256i sum0 = zero, sum1 = zero, sum2 = zero, sum3 = zero;
  size_t t;

  for (t = 0; t < n_taps; t += 2) {
    __m256i w = pair_of_weights (weights, t, n_taps);
    __m256i a = _mm256_loadu_si256 ((const __m256i *) (src + t * stride));
    __m256i b =
        t + 1 < n_taps ? _mm256_loadu_si256 ((const __m256i *) (src + (t + 1) * stride)) : zero;
    __m256i low = _mm256_unpacklo_epi8 (a, b), high = _mm256_unpackhi_epi8 (a, b);

    sum0 = _mm256_add_epi32 (sum0, _mm256_madd_epi16 (_mm256_unpacklo_epi8 (low, zero), w));
    sum1 = _mm256_add_epi32 (sum1, _mm256_madd_epi16 (_mm256_unpackhi_epi8 (low, zero), w));
    sum2 = _mm256_add_epi32 (sum2, _mm256_madd_epi16 (_mm256_unpacklo_epi8 (high, zero), w));
    sum3 = _mm256_add_epi32 (sum3, _mm256_madd_epi16 (_mm256_unpackhi_epi8 (high, zero), w));
  }

  sum0 = _mm256_packs_epi32 (descale (sum0, bits), descale (sum1, bits));
  sum2 = _mm256_packs_epi32 (descale (sum2, bits), descale (sum3, bits));
  return _mm256_packus_epi16 (sum0, sum2);
}

void
vlm_avx2_resample_column (uint8_t *dst, const uint8_t *src, size_t stride, size_t n,
    const int16_t *weights, size_t n_taps, unsigned bits)
{
  size_t i;

  for (i = 0; i + 32 <= n; i += 32)
    _mm256_storeu_si256 (
        (__m256i *) (dst + i), sum_columns (src + i, stride, weights, n_taps, bits));
  vlm_scalar_resample_column (dst + i, src + i, stride, n - i, weights, n_taps, bits);
}
