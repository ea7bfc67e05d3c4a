/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What int-lanes.h is written in, as AVX2. simd/README.md has the rules. */

#ifndef VLM_KERNELS_INT_AVX2_H
#define VLM_KERNELS_INT_AVX2_H

#include "int-256.h"
#include "int-maddubs.h"

/* Registers: 8 sums, 4 weights, 2 constants, the rest for products. */
#define INT_ROWS 4
#define INT_SIZES_STEP
#define INT_VECTORS 2

#define INT_BIAS 0

/* The same anywhere in memory, as another type. */
typedef __m256i_u vi_memory;

/* |w|, unsigned. */
vlm_always_inline vi
vi_load_size (const uint8_t *w)
{
  return _mm256_abs_epi8 (vi_load (w));
}

/* x gets the signs of w; sums of two products fit in 16 bits because x is never -128. w stays in
 * memory: what limits these loops is the number of instructions, and compilers would rather load it
 * once for all rows. */
vlm_always_inline vi
vi_dot_size (vi sum, vi size, vi x, const uint8_t *w)
{
  __asm__("vpsignb %2, %1, %0" : "=x"(x) : "x"(x), "m"(*(const vi_memory *) w));
  return vi_add_pairs (sum, _mm256_maddubs_epi16 (size, x));
}

#endif
