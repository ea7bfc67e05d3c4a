/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Integer operations of 512-bit registers, for the headers of the levels that have them. */

#ifndef VLM_KERNELS_INT_512_H
#define VLM_KERNELS_INT_512_H

#include "vec-avx512.h"

#include <string.h>

/* Zen 4 reads ahead better when it is left alone: a token then takes 0.88 of the time. */
#define INT_CALLS_AHEAD() (!__builtin_cpu_is ("amd"))

typedef __m512i vi;

/* Activations are broadcast from memory. */
typedef const int8_t *va;

vlm_always_inline va
va_load (const int8_t *p)
{
  return p;
}

vlm_always_inline vi
vi_set1 (int32_t x)
{
  return _mm512_set1_epi32 (x);
}

vlm_always_inline vi
vi_load (const uint8_t *p)
{
  return _mm512_loadu_si512 ((const vi *) p);
}

vlm_always_inline void
vi_store (uint8_t *p, vi x)
{
  _mm512_storeu_si512 ((vi *) p, x);
}

vlm_always_inline vf
vi_to_vf (vi x)
{
  return _mm512_cvtepi32_ps (x);
}

/* Rounded, ties to even. */
vlm_always_inline vi
vi_from_vf (vf x)
{
  return _mm512_cvtps_epi32 (x);
}

/* x 2^e, neither being zero, subnormal or beyond the largest number. */
vlm_always_inline vf
vi_scale2 (vf x, vi e)
{
  return _mm512_castsi512_ps (
      _mm512_add_epi32 (_mm512_castps_si512 (x), _mm512_slli_epi32 (e, 23)));
}

/* Lanes of low + 2^16 high, of numbers of 15 bits without a sign. */
vlm_always_inline vi
vi_pair (vi low, vi high)
{
  return _mm512_or_si512 (low, _mm512_slli_epi32 (high, 16));
}

/* Stores even[0], odd[0], even[1], ... in 16 bits each. */
vlm_always_inline void
vi_store_pairs (int16_t *p, vi even, vi odd)
{
  vi low = _mm512_and_si512 (even, _mm512_set1_epi32 (0xffff));

  _mm512_storeu_si512 ((vi *) p, _mm512_or_si512 (low, _mm512_slli_epi32 (odd, 16)));
}

vlm_always_inline vi
vi_add (vi a, vi b)
{
  return _mm512_add_epi32 (a, b);
}

vlm_always_inline vi
vi_or (vi a, vi b)
{
  return _mm512_or_si512 (a, b);
}

vlm_always_inline vi
vi_xor (vi a, vi b)
{
  return _mm512_xor_si512 (a, b);
}

/* Rows of words become columns. */
vlm_always_inline void
vi_transpose (vi *x)
{
  vi y[16];
  int i;

  VLM_UNROLL
  for (i = 0; i < 16; i += 2) {
    y[i] = _mm512_unpacklo_epi32 (x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_epi32 (x[i], x[i + 1]);
  }
  VLM_UNROLL
  for (i = 0; i < 16; i += 4) {
    x[i] = _mm512_unpacklo_epi64 (y[i], y[i + 2]);
    x[i + 1] = _mm512_unpackhi_epi64 (y[i], y[i + 2]);
    x[i + 2] = _mm512_unpacklo_epi64 (y[i + 1], y[i + 3]);
    x[i + 3] = _mm512_unpackhi_epi64 (y[i + 1], y[i + 3]);
  }
  /* Quarter q of x[4 r + c] is now of column 4 q + c, of four rows. */
  VLM_UNROLL
  for (i = 0; i < 4; i++) {
    y[i] = _mm512_shuffle_i32x4 (x[i], x[4 + i], 0x88);
    y[4 + i] = _mm512_shuffle_i32x4 (x[i], x[4 + i], 0xdd);
    y[8 + i] = _mm512_shuffle_i32x4 (x[8 + i], x[12 + i], 0x88);
    y[12 + i] = _mm512_shuffle_i32x4 (x[8 + i], x[12 + i], 0xdd);
  }
  VLM_UNROLL
  for (i = 0; i < 4; i++) {
    x[i] = _mm512_shuffle_i32x4 (y[i], y[8 + i], 0x88);
    x[4 + i] = _mm512_shuffle_i32x4 (y[4 + i], y[12 + i], 0x88);
    x[8 + i] = _mm512_shuffle_i32x4 (y[i], y[8 + i], 0xdd);
    x[12 + i] = _mm512_shuffle_i32x4 (y[4 + i], y[12 + i], 0xdd);
  }
}

/* Bytes shifted to the left, or right where that is negative; of them the bits of the mask. */
vlm_always_inline vi
vi_shift_bits (vi x, int left, int mask)
{
  vi shifted = left >= 0 ? _mm512_slli_epi16 (x, left) : _mm512_srli_epi16 (x, -left);

  return _mm512_and_si512 (shifted, _mm512_set1_epi8 ((char) mask));
}

vlm_always_inline vi
vi_low_nibbles (vi x)
{
  return _mm512_and_si512 (x, _mm512_set1_epi8 (15));
}

vlm_always_inline vi
vi_high_nibbles (vi x)
{
  return vi_low_nibbles (_mm512_srli_epi16 (x, 4));
}

/* Products of bytes without a sign and with one, added up in pairs of 16 bits. */
vlm_always_inline vi
vi_maddubs (vi a, vi b)
{
  return _mm512_maddubs_epi16 (a, b);
}

/* Products of numbers of 16 bits, added up in pairs. */
vlm_always_inline vi
vi_madd (vi a, vi b)
{
  return _mm512_madd_epi16 (a, b);
}

/* Pairs of 16 bits, added up. */
vlm_always_inline vi
vi_add_up_pairs (vi pairs)
{
  return vi_madd (pairs, _mm512_set1_epi16 (1));
}

vlm_always_inline vi
vi_add_16 (vi a, vi b)
{
  return _mm512_add_epi16 (a, b);
}

/* Four activations for every column. */
vlm_always_inline vi
vi_broadcast (const int8_t *x)
{
  int32_t four;

  memcpy (&four, x, sizeof four);
  return vi_set1 (four);
}

#endif
