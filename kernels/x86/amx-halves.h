/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tiles of bfloat16 that are made of floats. */

#ifndef VLM_KERNELS_AMX_HALVES_H
#define VLM_KERNELS_AMX_HALVES_H

#include "amx-tiles.h"
#include "vec-avx512.h"

/* Numbers in a row of a tile. */
#define STEP 32

typedef uint16_t HalfTile[AMX_ROWS][STEP];

vlm_always_inline size_t
count_steps (size_t head_dim)
{
  return (head_dim + STEP - 1) / STEP;
}

/* Numbers of first, then of second. */
vlm_always_inline __m512i
round_pair (vf first, vf second)
{
  return (__m512i) _mm512_cvtne2ps_pbh (second, first);
}

/* The same, of each in turn: a row of the second factor. */
vlm_always_inline __m512i
round_in_turn (vf first, vf second)
{
  static const uint16_t pairs[STEP] = { 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8,
    24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31 };

  return _mm512_permutexvar_epi16 (_mm512_loadu_si512 (pairs), round_pair (first, second));
}

#endif
