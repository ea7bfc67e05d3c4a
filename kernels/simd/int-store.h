/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Where sums of rows of integer products go. */

#ifndef VLM_KERNELS_SIMD_INT_STORE_H
#define VLM_KERNELS_SIMD_INT_STORE_H

#include "kernels/kernels.h"

#include "int-rows.h"
#include "rest.h"

/* All columns of a panel. */
vlm_always_inline void
int_store_vectors (
    float *y, size_t ldy, const IntRow *sums, size_t rows, const float *scales, const float *bias)
{
  size_t i, v;

  for (i = 0; i < rows; i++) {
    VLM_UNROLL
    for (v = 0; v < INT_PANEL; v += VF_LANES) {
      vf sum = vf_load (sums[i] + v);

      if (scales != NULL && bias != NULL)
        sum = vf_fma (sum, vf_load (scales + v), vf_load (bias + v));
      else if (scales != NULL)
        sum = vf_mul (sum, vf_load (scales + v));
      else if (bias != NULL)
        sum = vf_add (sum, vf_load (bias + v));
      vf_store (y + i * ldy + v, sum);
    }
  }
}

/* Apart from the tiles, because it would be most of their code. scales may be NULL. */
static __attribute__ ((noinline)) void
int_store_rows (float *y, size_t ldy, const IntRow *sums, size_t rows, size_t n,
    const float *scales, const float *bias)
{
  size_t i, j;

  if (n == INT_PANEL) {
    if (scales != NULL && bias != NULL)
      int_store_vectors (y, ldy, sums, rows, scales, bias);
    else if (scales != NULL)
      int_store_vectors (y, ldy, sums, rows, scales, NULL);
    else if (bias != NULL)
      int_store_vectors (y, ldy, sums, rows, NULL, bias);
    else
      int_store_vectors (y, ldy, sums, rows, NULL, NULL);
    return;
  }
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
