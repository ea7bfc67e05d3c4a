/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "half.h"
#include "scalar.h"

#define PANEL VLM_SCALAR_PANEL

/* Two rows share a widened line of weights; the sums of each row are the same as for it alone. */
#define ROWS 2

typedef enum
{
  WEIGHTS_F32,
  WEIGHTS_F16,
  WEIGHTS_BF16
} Weights;

static inline __attribute__ ((always_inline)) void
widen_line (float *line, const void *w, Weights type, size_t l)
{
  size_t j;

  if (type == WEIGHTS_F32)
    memcpy (line, (const float *) w + l * PANEL, PANEL * sizeof (float));
  for (j = 0; type == WEIGHTS_F16 && j < PANEL; j++)
    line[j] = f16_value (((const uint16_t *) w)[l * PANEL + j]);
  for (j = 0; type == WEIGHTS_BF16 && j < PANEL; j++)
    line[j] = bf16_value (((const uint16_t *) w)[l * PANEL + j]);
}

static inline __attribute__ ((always_inline)) void
matmul_tile (float *y, size_t ldy, const float *x, size_t ldx, size_t rows, const void *w,
    Weights type, size_t k, size_t n, const float *bias)
{
  float sum[ROWS][PANEL] = { { 0 } };
  float line[PANEL];
  size_t i, j, l;

  for (l = 0; l < k; l++) {
    widen_line (line, w, type, l);
    for (i = 0; i < rows; i++) {
      for (j = 0; j < PANEL; j++)
        sum[i][j] += x[i * ldx + l] * line[j];
    }
  }

  for (i = 0; i < rows; i++) {
    for (j = 0; j < n; j++)
      y[i * ldy + j] = bias != NULL ? sum[i][j] + bias[j] : sum[i][j];
  }
}

static inline __attribute__ ((always_inline)) void
matmul (float *y, size_t ldy, const float *x, size_t ldx, size_t m, const void *w, Weights type,
    size_t k, size_t n, const float *bias)
{
  size_t i;

  for (i = 0; i + ROWS <= m; i += ROWS)
    matmul_tile (y + i * ldy, ldy, x + i * ldx, ldx, ROWS, w, type, k, n, bias);
  for (; i < m; i++)
    matmul_tile (y + i * ldy, ldy, x + i * ldx, ldx, 1, w, type, k, n, bias);
}

void
vlm_scalar_matmul_f32 (float *y, size_t ldy, const float *x, size_t ldx, size_t m, const float *w,
    size_t k, size_t n, const float *bias)
{
  matmul (y, ldy, x, ldx, m, w, WEIGHTS_F32, k, n, bias);
}

void
vlm_scalar_matmul_f16 (float *y, size_t ldy, const float *x, size_t ldx, size_t m,
    const uint16_t *w, size_t k, size_t n, const float *bias)
{
  matmul (y, ldy, x, ldx, m, w, WEIGHTS_F16, k, n, bias);
}

void
vlm_scalar_matmul_bf16 (float *y, size_t ldy, const float *x, size_t ldx, size_t m,
    const uint16_t *w, size_t k, size_t n, const float *bias)
{
  matmul (y, ldy, x, ldx, m, w, WEIGHTS_BF16, k, n, bias);
}
