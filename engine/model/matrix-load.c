/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the tensors of one product become, and the memory for it. */

#include "matrix-private.h"

/* Type and format in which a tensor will be packed; see vlm_matrix_load (). */
static void
choose_type (const VlmMatrixLoader *loader, const VlmTensorInfo *info, gboolean may_round,
    VlmMatrixPart *part)
{
  part->dtype = info->dtype;
  part->format = info->format;
  if (info->dtype == VLM_DTYPE_QUANTISED) {
    if (!may_round || loader->precision == VLM_PRECISION_EXACT)
      part->dtype = VLM_DTYPE_F32;
  } else if (may_round && loader->precision == VLM_PRECISION_FAST) {
    part->dtype = VLM_DTYPE_QUANTISED;
    part->format = vlm_quant_int8;
  }
}

static gboolean
are_alike (const VlmMatrixPart *a, const VlmMatrixPart *b)
{
  return a->dtype == b->dtype
      && (a->dtype != VLM_DTYPE_QUANTISED || vlm_int_format_equal (&a->format, &b->format));
}

static gboolean
check_tensor (const VlmTensorInfo *info, guint64 cols, GError **error)
{
  g_autofree gchar *found = NULL;

  if (info->rank == 2 && info->shape[1] == cols)
    return TRUE;
  found = vlm_tensor_shape_to_string (info->shape, info->rank);
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "Tensor %s has shape %s, expected two dimensions with %" G_GUINT64_FORMAT " columns",
      info->name, found, cols);
  return FALSE;
}

static gboolean
check_sides (guint64 rows, guint64 cols, GError **error)
{
  if (rows >= 1 && cols >= 1 && rows <= G_MAXINT32 && cols <= G_MAXINT32)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "A matrix of %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT
      " is not usable, expected sides of 1..%d",
      rows, cols, G_MAXINT32);
  return FALSE;
}

/* Groups the tensors into parts; n_tensors is how many each part has. */
static gboolean
divide (VlmMatrix *matrix, const VlmMatrixLoader *loader, const VlmTensorInfo *const *infos,
    guint n_infos, gboolean may_round, guint *n_tensors, GError **error)
{
  guint64 rows = 0;
  guint i;

  for (i = 0; i < n_infos; i++) {
    VlmMatrixPart next = { .first = rows };

    if (!check_tensor (infos[i], infos[0]->shape[1], error)
        || !check_sides (infos[i]->shape[0], infos[i]->shape[1], error))
      return FALSE;
    rows += infos[i]->shape[0];
    choose_type (loader, infos[i], may_round, &next);
    if (i == 0 || !are_alike (&matrix->parts[matrix->n_parts - 1], &next))
      matrix->parts[matrix->n_parts++] = next;
    matrix->parts[matrix->n_parts - 1].rows += infos[i]->shape[0];
    n_tensors[matrix->n_parts - 1]++;
  }
  matrix->rows = rows;
  matrix->cols = infos[0]->shape[1];
  return check_sides (rows, matrix->cols, error);
}

/* Settles how the panels of a part look, and takes memory for them. */
static gboolean
take_panels (VlmMatrixPart *part, guint cols, const VlmMatrixLoader *loader, GError **error)
{
  const VlmKernels *kernels = loader->kernels;
  gsize n_bytes;

  if (part->dtype == VLM_DTYPE_QUANTISED) {
    part->input_group =
        part->format.scale == VLM_SCALE_ROW ? VLM_ROW_INPUT_GROUP : part->format.group;
    part->panel = kernels->int_panel;
    part->panel_bytes = vlm_int_panel_bytes (kernels, &part->format, cols);
  } else {
    part->panel = kernels->panel;
    if (!g_size_checked_mul (&part->panel_bytes, cols, part->panel * vlm_dtype_size (part->dtype)))
      part->panel_bytes = G_MAXSIZE;
  }
  if (!g_size_checked_mul (&n_bytes, part->panel_bytes, vlm_matrix_part_get_n_panels (part)))
    n_bytes = G_MAXSIZE;
  part->data = vlm_slab_take (loader->slab, n_bytes);
  if (part->data != NULL)
    return TRUE;
  g_set_error (
      error, VLM_ERROR, VLM_ERROR_MEMORY, "No memory for a matrix of %u x %u", part->rows, cols);
  return FALSE;
}

VlmMatrix *
vlm_matrix_load (const VlmMatrixLoader *loader, const VlmTensorInfo *const *infos, guint n_infos,
    gboolean may_round, GError **error)
{
  guint n_tensors[VLM_MAX_PARTS] = { 0 }, i;
  VlmMatrix *matrix;

  g_return_val_if_fail (n_infos >= 1 && n_infos <= VLM_MAX_PARTS, NULL);
  matrix = g_new0 (VlmMatrix, 1);
  if (!divide (matrix, loader, infos, n_infos, may_round, n_tensors, error))
    goto failed;
  for (i = 0; i < matrix->n_parts; i++) {
    VlmMatrixPart *part = &matrix->parts[i];

    if (!take_panels (part, matrix->cols, loader, error)
        || !vlm_matrix_part_load (part, matrix->cols, loader, infos, n_tensors[i], error))
      goto failed;
    infos += n_tensors[i];
  }
  return matrix;

failed:
  vlm_matrix_free (matrix);
  return NULL;
}
