/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Weights of a linear layer, packed once at load into the order that the kernels read. */

#ifndef VLM_MATRIX_H
#define VLM_MATRIX_H

#include "engine/formats/tensors.h"
#include "engine/runtime/team.h"
#include "kernels/kernels.h"

typedef struct
{
  guint rows, cols; /* y = x W^T: rows outputs from cols inputs */
  VlmDType dtype;
  guint panel; /* rows in one panel */
  gsize panel_bytes;
  gpointer block; /* what was allocated; data lies in it */
  guint8 *data;   /* [ceil (rows / panel)][cols][panel], 64-byte aligned */
} VlmMatrix;

/*
 * Reads tensor info (rank 2, [rows, cols]) from source and packs it for the kernels.
 * Errors: those of vlm_tensor_source_read (); VLM_ERROR_MEMORY. (transfer full)
 */
VlmMatrix *vlm_matrix_load (VlmTensorSource *source, const VlmTensorInfo *info,
    const VlmKernels *kernels, GCancellable *cancellable, GError **error);

/*
 * The same for several tensors with equal cols, stacked by rows (q, k and v as one product).
 * Tensors of different dtypes are read as f32. VLM_ERROR_FORMAT when cols differ.
 */
VlmMatrix *vlm_matrix_load_stacked (VlmTensorSource *source, const VlmTensorInfo *const *infos,
    guint n_infos, const VlmKernels *kernels, GCancellable *cancellable, GError **error);

void vlm_matrix_free (VlmMatrix *matrix);
gsize vlm_matrix_get_bytes (const VlmMatrix *matrix);

/* Unpacks one row as f32 (an embedding look-up). */
void vlm_matrix_get_row (
    const VlmMatrix *matrix, const VlmKernels *kernels, guint row, gfloat *out);

/*
 * y[i][r] = bias[r] + sum_c x[i][c] W[r][c] for m rows of x; bias may be NULL.
 * FALSE when cancelled; y is incomplete then.
 */
gboolean vlm_matrix_multiply (const VlmMatrix *matrix, VlmTeam *team, const VlmKernels *kernels,
    const gfloat *bias, const gfloat *x, gsize ldx, gsize m, gfloat *y, gsize ldy);

#endif
