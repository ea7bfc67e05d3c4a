/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "kernels/levels.h"
#include "int-avx512vnni.h"

/* Groups are over so soon at this level that beginning a tile counts, and so does making pieces ready:
 * pieces are twice as large as elsewhere and a block takes all rows of a call, and the second-level
 * cache has what the first has not. */
#define INT_PIECE 256
#define INT_BLOCK_ROWS 288

#include "kernels/simd/head.h"
#include "kernels/simd/int-lanes.h"
#include "kernels/simd/integer.h"

void
vlm_kernels_fill_avx512vnni (VlmKernels *kernels)
{
  int_fill (kernels);
  head_fill (kernels);
}
