/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What loading and multiplying matrices share. */

#ifndef VLM_MATRIX_PRIVATE_H
#define VLM_MATRIX_PRIVATE_H

#include "matrix.h"

/* Panels of the part. */
static inline gsize
vlm_matrix_part_get_n_panels (const VlmMatrixPart *part)
{
  return ((gsize) part->rows + part->panel - 1) / part->panel;
}

/* Whether the part multiplies these inputs, or such ones, in tiles. */
static inline gboolean
vlm_matrix_part_is_tiled (
    const VlmMatrixPart *part, const VlmKernels *kernels, const VlmInputs *inputs)
{
  return inputs->many && kernels->matmul_tiled != NULL && part->dtype == VLM_DTYPE_QUANTISED;
}

/*
 * Reads the tensors whose rows are those of part, and packs them: into what its type and format
 * say, in memory that it has already. Errors: see vlm_matrix_load ().
 */
gboolean vlm_matrix_part_load (VlmMatrixPart *part, guint cols, const VlmMatrixLoader *loader,
    const VlmTensorInfo *const *infos, guint n_infos, GError **error);

/* What a product multiplies; bias may be NULL. */
typedef struct
{
  const VlmMatrix *matrix;
  const VlmKernels *kernels;
  const gfloat *bias; /* of all rows of the matrix */
  const VlmInputs *inputs;
} VlmProduct;

/*
 * Rows first_x .. first_x + m - 1 of the inputs times panels of the part, into y, which begins at the
 * first of these rows and at column number column of the part, where a panel does. Returns how many
 * columns that were: of as many panels as one call takes, and at most n_columns. Where the part is
 * tiled, first_x is a multiple of VLM_TILED_ROWS, and y has room for whole tiles and whole panels,
 * which are overwritten.
 */
gsize vlm_product_panels (const VlmProduct *product, const VlmMatrixPart *part, gsize column,
    gsize n_columns, gsize first_x, gsize m, gfloat *y, gsize ldy);

/* Rows of all rows of x for one job: as few blocks as the cache allows, of nearly equal height. */
gsize vlm_product_choose_x_block (const VlmProduct *product, const VlmMatrixPart *part);

/* How many of n_pieces, each of so many multiply-adds, make one job. */
gsize vlm_matrix_choose_pieces (gsize piece_work, gsize n_pieces);

#endif
