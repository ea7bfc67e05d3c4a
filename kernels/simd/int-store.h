/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Where sums of rows of integer products go. */

#ifndef VLM_KERNELS_SIMD_INT_STORE_H
#define VLM_KERNELS_SIMD_INT_STORE_H

#include "kernels/kernels.h"

#include "int-rows.h"
#include "rest.h"

/* Apart from the tiles, because it would be most of their code. scales may be NULL. */
static __attribute__ ((noinline)) void
int_store_rows (float *y, size_t ldy, const IntRow *sums, size_t rows, size_t n,
    const float *scales, const float *bias)
{
  size_t i, j;

  for (i = 0; i < rows; i++) {
    for (j = 0; j < n; j += VF_LANES) {
      vf sum = vf_load (sums[i] + j);

      if (scales != NULL && bias != NULL)
        sum = vf_fma (sum, vf_load (scales + j), load_rest (bias, j, n));
      else if (scales != NULL)
        sum = vf_mul (sum, vf_load (scales + j));
      else if (bias != NULL)
        sum = vf_add (sum, load_rest (bias, j, n));
      store_rest (y + i * ldy, sum, j, n);
    }
  }
}

/* The scales of rows, which come in at the end; else NULL. */
static const float *
int_row_scales (const VlmIntFormat *format, const void *w)
{
  return format->scale == VLM_SCALE_ROW ? w : NULL;
}

#endif
