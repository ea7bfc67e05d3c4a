/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What int-lanes.h is written in, as AVX-512 BW without VNNI. simd/README.md has the rules. */

#ifndef VLM_KERNELS_INT_AVX512_H
#define VLM_KERNELS_INT_AVX512_H

#include "int-512.h"
#include "int-maddubs.h"

/* Registers: 12 sums, 4 weights, 2 constants, the rest for products. */
#define INT_ROWS 6
#define INT_VECTORS 2

/* Registers: 16 sums, 2 queries or weights, the rest for broadcasts and products. */
#define HEAD_ROWS 8
#define HEAD_VECTORS 2

#define INT_BIAS 0

/* Sums of two products. |w| is unsigned; 2 * 128 * 127 fits because activations are never -128. */
vlm_always_inline vi
vi_pairs (vi w, vi x)
{
  vi x_signed = _mm512_mask_sub_epi8 (x, _mm512_movepi8_mask (w), _mm512_setzero_si512 (), x);

  return _mm512_maddubs_epi16 (_mm512_abs_epi8 (w), x_signed);
}

vlm_always_inline vi
vi_dot (vi sum, vi w, va x, int lane)
{
  vi pairs = vi_pairs (w, vi_broadcast (x + 4 * lane));

  return vi_add_pairs (sum, pairs);
}

#endif
