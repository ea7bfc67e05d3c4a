/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Weights of a linear layer, packed once at load into the order that the kernels read. */

#ifndef VLM_MATRIX_H
#define VLM_MATRIX_H

#include "engine/formats/tensors.h"
#include "engine/runtime/slab.h"
#include "engine/runtime/team.h"
#include "engine/vlm.h"
#include "inputs.h"
#include "kernels/kernels.h"

/* Values of a row of inputs that share a scale where the weights have one scale a row. */
#define VLM_ROW_INPUT_GROUP 128

struct _VlmMatrix
{
  guint rows, cols;    /* y = x W^T: rows outputs from cols inputs */
  VlmDType dtype;      /* VLM_DTYPE_QUANTISED for integers */
  VlmIntFormat format; /* of integers */
  gsize input_group;   /* integers: values of an input row with one scale */
  guint panel;         /* rows in one panel */
  gsize panel_bytes;
  guint8 *data; /* [ceil (rows / panel)] panels, in the slab; floats: [cols][panel] each */
};

/* What loading matrices needs. */
typedef struct
{
  VlmTensorSource *source;
  const VlmKernels *kernels;
  VlmPrecision precision;
  VlmTeam *team; /* packs integers, within turns that the load takes itself */
  VlmSlab *slab; /* memory of the packed weights */
  GCancellable *cancellable;
} VlmMatrixLoader;

/*
 * Reads tensors of rank 2 with equal columns, stacked by rows (q, k and v as one product), and packs
 * them. Without may_round, neither weights nor what they multiply are rounded. What they become:
 *   integers of one format  themselves, unless precision is exact or nothing may be rounded
 *   floats                  with precision fast 8-bit integers, if they may be rounded
 *   floats of one type      otherwise themselves
 *   everything else         f32
 * Errors: VLM_ERROR_FORMAT when the columns differ; VLM_ERROR_MEMORY; those of reading.
 * (transfer full)
 */
VlmMatrix *vlm_matrix_load (const VlmMatrixLoader *loader, const VlmTensorInfo *const *infos,
    guint n_infos, gboolean may_round, GError **error);

/* The packed weights live on in the slab. */
void vlm_matrix_free (VlmMatrix *matrix);
gsize vlm_matrix_get_bytes (const VlmMatrix *matrix);

/* Unpacks one row as f32 (an embedding look-up). */
void vlm_matrix_get_row (
    const VlmMatrix *matrix, const VlmKernels *kernels, guint row, gfloat *out);

/*
 * y[i][r] = bias[r] + sum_c x[i][c] W[r][c] for all rows of inputs, which were made for this matrix;
 * bias may be NULL. FALSE when cancelled; y is incomplete then. Call within a turn.
 */
gboolean vlm_matrix_multiply (const VlmMatrix *matrix, VlmTeam *team, const VlmKernels *kernels,
    const gfloat *bias, const VlmInputs *inputs, gfloat *y, gsize ldy);

#endif
