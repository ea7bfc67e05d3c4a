/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* For levels without VNNI: steps of small weights, whose products of bytes are added up in 16 bits
 * (maddubs), and attention in pairs of 16 bits. Included after int-256.h or int-512.h. */

#ifndef VLM_KERNELS_INT_MADDUBS_H
#define VLM_KERNELS_INT_MADDUBS_H

#include "kernels/simd/compiler.h"

#define INT_SMALL_STEP

/* Opaque, or compilers add up in another order, which takes more registers than there are. */
vlm_always_inline vi
vi_add_pairs (vi sum, vi pairs)
{
  sum = vi_add (sum, vi_add_up_pairs (pairs));
  __asm__("" : "+v"(sum));
  return sum;
}

/* Four weights of each column, times their activations, in 16 bits. */
vlm_always_inline vi
vi_pairs_small (const vi *w, va x, size_t i)
{
  return vi_maddubs (w[i], vi_broadcast (x + 4 * i));
}

/* Eight products of five bits fit in 16, and four of six: sums of so many pairs, 4 or 2. */
vlm_always_inline vi
vi_step_small (vi sum, const vi *w, va x, size_t n_pairs)
{
  size_t first, i;

  VLM_UNROLL
  for (first = 0; first < 4; first += n_pairs) {
    vi pairs = vi_pairs_small (w, x, first);

    VLM_UNROLL
    for (i = first + 1; i < first + n_pairs; i++) {
      pairs = vi_add_16 (pairs, vi_pairs_small (w, x, i));
      __asm__("" : "+v"(pairs));
    }
    sum = vi_add_pairs (sum, pairs);
  }

  return sum;
}

/* Of bytes 16 bits hold no sum of two products, one factor having no sign. */
#define HEAD_KEY_PAIRS
#define HEAD_BIAS 0

/* Adds the products of both halves of each lane of pairs and of the two numbers. Not the intrinsic:
 * with it gcc 12 moves sums between registers. */
vlm_always_inline vi
vi_dot_pair (vi sum, vi pairs, const int16_t *two)
{
  __asm__("vpaddd %1, %0, %0"
          : "+v"(sum)
          : "v"(vi_madd (pairs, vi_broadcast ((const int8_t *) two))));
  return sum;
}

#endif
