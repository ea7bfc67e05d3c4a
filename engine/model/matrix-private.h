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

/*
 * Reads the tensors whose rows are those of part, and packs them: into what its type and format
 * say, in memory that it has already. Errors: see vlm_matrix_load ().
 */
gboolean vlm_matrix_part_load (VlmMatrixPart *part, guint cols, const VlmMatrixLoader *loader,
    const VlmTensorInfo *const *infos, guint n_infos, GError **error);

#endif
