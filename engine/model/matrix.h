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

/* Consecutive rows of a matrix that are stored alike. */
typedef struct
{
  guint first, rows;   /* of the matrix */
  VlmDType dtype;      /* VLM_DTYPE_QUANTISED for integers */
  VlmIntFormat format; /* of integers */
  gsize input_group;   /* integers: values of an input row with one scale */
  guint panel;         /* rows in one panel */
  gsize panel_bytes;
  guint8 *data; /* [ceil (rows / panel)] panels, in the slab; floats: [cols][panel] each */
} VlmMatrixPart;

struct _VlmMatrix
{
  guint rows, cols; /* y = x W^T: rows outputs from cols inputs */
  guint n_parts;    /* one above the other; neighbours differ in how they are stored */
  VlmMatrixPart parts[VLM_MAX_PARTS];
};

/* What loading matrices needs. */
typedef struct
{
  VlmTensorSource *source;
  const VlmKernels *kernels;
  VlmPrecision precision;
  VlmTeam *team; /* rounds and packs, within turns that the load takes itself */
  VlmSlab *slab; /* memory of the packed weights */
  GCancellable *cancellable;
} VlmMatrixLoader;

/*
 * Reads 1 .. VLM_MAX_PARTS tensors of rank 2 with equal columns, stacked by rows (q, k and v as one
 * product), and packs them. Each becomes, whatever the others are:
 *   integers  themselves; f32 when precision is exact or they may not be rounded
 *   floats    themselves; with precision fast 8-bit integers, if they may be rounded
 * Without may_round, neither weights nor what they multiply are rounded.
 * Errors: VLM_ERROR_FORMAT when the columns differ; VLM_ERROR_MEMORY; those of reading.
 * (transfer full)
 */
VlmMatrix *vlm_matrix_load (const VlmMatrixLoader *loader, const VlmTensorInfo *const *infos,
    guint n_infos, gboolean may_round, GError **error);

/* The packed weights live on in the slab. */
void vlm_matrix_free (VlmMatrix *matrix);
gsize vlm_matrix_get_bytes (const VlmMatrix *matrix);

/* Whether any of its products are of integers. */
gboolean vlm_matrix_has_integers (const VlmMatrix *matrix);

/* Unpacks one row as f32 (an embedding look-up). */
void vlm_matrix_get_row (
    const VlmMatrix *matrix, const VlmKernels *kernels, guint row, gfloat *out);

#endif
