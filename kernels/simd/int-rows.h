/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Float sums of rows of integer products. */

#ifndef VLM_KERNELS_SIMD_INT_ROWS_H
#define VLM_KERNELS_SIMD_INT_ROWS_H

#include "int-values.h"

/* Sums of a row of activations, or scales, of all columns of a panel. */
typedef float IntRow[INT_PANEL];

vlm_always_inline void
int_clear (IntRow *sums, size_t rows)
{
  size_t r, v;

  for (r = 0; r < rows; r++) {
    VLM_UNROLL
    for (v = 0; v < INT_PANEL; v += VF_LANES)
      vf_store (sums[r] + v, vf_zero ());
  }
}

#endif
