/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "matrix.h"

#include "engine/formats/floats.h"
#include "matrix-private.h"

/* Bytes of the rows of x that one job takes: with a panel they should stay in a core's second-level
 * cache. */
#define X_BLOCK_BYTES (192 * 1024)
#define X_BLOCK_BYTES_ROUNDED (384 * 1024)
#define X_BLOCK_MIN 24
#define X_BLOCK_MAX 192
#define X_BLOCK_MAX_ROUNDED 288
#define X_BLOCK_STEP 12 /* whole register tiles of the common kernels */
#define X_BLOCK_STEP_ROUNDED 16

/* The same of rows in tiles. */
#define TILED_BLOCK_BYTES (1536 * 1024)
#define TILED_BLOCK_MAX 512

/* Jobs are cut so that each has at least this much to do, or forking costs more than it gives. */
#define JOB_MULTIPLY_ADDS (2 * 1024 * 1024)

/* But one row of x, whose weights come from memory, must still keep every thread busy. */
#define LEAST_JOBS 32

void
vlm_matrix_free (VlmMatrix *matrix)
{
  g_free (matrix);
}

static gsize
get_part_bytes (const VlmMatrixPart *part)
{
  return vlm_matrix_part_get_n_panels (part) * part->panel_bytes;
}

gsize
vlm_matrix_get_bytes (const VlmMatrix *matrix)
{
  gsize sum = 0;
  guint i;

  for (i = 0; i < matrix->n_parts; i++)
    sum += get_part_bytes (&matrix->parts[i]);
  return sum;
}

gboolean
vlm_matrix_has_integers (const VlmMatrix *matrix)
{
  guint i;

  for (i = 0; i < matrix->n_parts; i++) {
    if (matrix->parts[i].dtype == VLM_DTYPE_QUANTISED)
      return TRUE;
  }
  return FALSE;
}

/* Row number row of the part. */
static void
get_part_row (
    const VlmMatrixPart *part, gsize cols, const VlmKernels *kernels, guint row, gfloat *out)
{
  const guint8 *base = part->data + row / part->panel * part->panel_bytes;
  gsize c, panel = part->panel;

  if (part->dtype == VLM_DTYPE_QUANTISED) {
    vlm_int_unpack_row (kernels, &part->format, out, base, row % panel, cols);
  } else if (part->dtype == VLM_DTYPE_F32) {
    const gfloat *src = (const gfloat *) base + row % panel;

    for (c = 0; c < cols; c++)
      out[c] = src[c * panel];
  } else {
    const guint16 *src = (const guint16 *) base + row % panel;
    guint16 line[256];
    gsize i, n;

    for (c = 0; c < cols; c += n) {
      n = MIN (G_N_ELEMENTS (line), cols - c);
      for (i = 0; i < n; i++)
        line[i] = src[(c + i) * panel];
      vlm_floats_widen (kernels, part->dtype, line, out + c, n);
    }
  }
}

void
vlm_matrix_get_row (const VlmMatrix *matrix, const VlmKernels *kernels, guint row, gfloat *out)
{
  const VlmMatrixPart *part = matrix->parts;

  g_return_if_fail (row < matrix->rows);
  while (row - part->first >= part->rows)
    part++;
  get_part_row (part, matrix->cols, kernels, row - part->first, out);
}

static void
multiply_rounded (const VlmProduct *p, const VlmMatrixPart *part, gconstpointer w, gsize first_x,
    gsize m, gsize n, const gfloat *bias, gfloat *y, gsize ldy)
{
  const VlmActivations *rounded = vlm_inputs_find_rounded (p->inputs, part->input_group);
  VlmActivations x;

  g_assert (rounded != NULL);
  x = *rounded;
  x.q += first_x * x.ldq;
  x.scale += first_x * x.ldg;
  x.sum += first_x * x.ldg;
  p->kernels->matmul_int (y, ldy, &x, m, &part->format, w, n, bias);
}

gsize
vlm_product_panels (const VlmProduct *p, const VlmMatrixPart *part, gsize column, gsize n_columns,
    gsize first_x, gsize m, gfloat *y, gsize ldy)
{
  const VlmKernels *kernels = p->kernels;
  gsize cols = p->matrix->cols, ldx = p->inputs->ldx;
  gsize left = MIN (n_columns, part->rows - column), n = MIN (part->panel, left);
  gconstpointer w = part->data + column / part->panel * part->panel_bytes;
  const gfloat *bias = p->bias != NULL ? p->bias + part->first + column : NULL;
  const gfloat *x;

  if (vlm_matrix_part_is_tiled (part, kernels, p->inputs)) {
    g_assert (p->inputs->tiled.data != NULL);
    n = MIN (VLM_TILED_PANELS * part->panel, left);
    kernels->matmul_tiled (
        y, ldy, &p->inputs->tiled, first_x, m, &part->format, w, part->panel_bytes, n, bias);
    return n;
  }
  if (part->dtype == VLM_DTYPE_QUANTISED) {
    multiply_rounded (p, part, w, first_x, m, n, bias, y, ldy);
    return n;
  }
  x = p->inputs->x + first_x * ldx;
  if (part->dtype == VLM_DTYPE_F32)
    kernels->matmul_f32 (y, ldy, x, ldx, m, w, cols, n, bias);
  else if (part->dtype == VLM_DTYPE_F16)
    kernels->matmul_f16 (y, ldy, x, ldx, m, w, cols, n, bias);
  else
    kernels->matmul_bf16 (y, ldy, x, ldx, m, w, cols, n, bias);
  return n;
}

gsize
vlm_product_choose_x_block (const VlmProduct *p, const VlmMatrixPart *part)
{
  const VlmKernels *kernels = p->kernels;
  gsize cols = p->matrix->cols, m = p->inputs->n;
  gsize step = part->dtype == VLM_DTYPE_QUANTISED ? X_BLOCK_STEP_ROUNDED : X_BLOCK_STEP;
  gsize most, n_blocks;

  if (vlm_matrix_part_is_tiled (part, kernels, p->inputs)) {
    step = VLM_TILED_ROWS;
    most = CLAMP (TILED_BLOCK_BYTES / (cols * 2), step, TILED_BLOCK_MAX);
  } else if (part->dtype == VLM_DTYPE_QUANTISED) {
    most = CLAMP (X_BLOCK_BYTES_ROUNDED / cols, X_BLOCK_MIN, X_BLOCK_MAX_ROUNDED);
  } else {
    most = CLAMP (X_BLOCK_BYTES / (cols * sizeof (gfloat)), X_BLOCK_MIN, X_BLOCK_MAX);
  }
  most = most / step * step;
  n_blocks = (m + most - 1) / most;
  return MIN (((m + n_blocks - 1) / n_blocks + step - 1) / step * step, m);
}

gsize
vlm_matrix_choose_pieces (gsize piece_work, gsize n_pieces)
{
  gsize pieces = MIN (JOB_MULTIPLY_ADDS / piece_work, n_pieces / LEAST_JOBS);

  return MAX (pieces, 1);
}
