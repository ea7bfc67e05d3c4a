/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* From tensors in files to packed panels, some megabytes of rows at a time. */

#include <string.h>

#include "decoder.h"
#include "engine/formats/floats.h"
#include "engine/runtime/alloc.h"
#include "matrix-private.h"

/* Values of the rows that pass through memory at once: enough for every thread to pack panels. */
#define STAGE_VALUES (4 * 1024 * 1024)

static VlmMatrix *
matrix_new (guint64 rows, guint64 cols, VlmDType dtype, const VlmIntFormat *format,
    const VlmMatrixLoader *loader, GError **error)
{
  VlmMatrix *matrix;
  gboolean is_int = dtype == VLM_DTYPE_QUANTISED;
  guint panel = is_int ? loader->kernels->int_panel : loader->kernels->panel;
  gsize panel_bytes = 0, n_bytes;

  if (rows == 0 || cols == 0 || rows > G_MAXINT32 || cols > G_MAXINT32) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "A matrix of %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT
        " is not usable, expected sides of "
        "1..%d",
        rows, cols, G_MAXINT32);
    return NULL;
  }
  if (is_int)
    panel_bytes = vlm_int_panel_bytes (loader->kernels, format, cols);
  else if (!g_size_checked_mul (&panel_bytes, cols, panel * vlm_dtype_size (dtype)))
    panel_bytes = G_MAXSIZE;
  if (!g_size_checked_mul (&n_bytes, panel_bytes, (rows + panel - 1) / panel))
    n_bytes = G_MAXSIZE;

  matrix = g_new0 (VlmMatrix, 1);
  matrix->rows = rows;
  matrix->cols = cols;
  matrix->dtype = dtype;
  matrix->panel = panel;
  matrix->panel_bytes = panel_bytes;
  if (is_int) {
    matrix->format = *format;
    matrix->input_group = format->scale == VLM_SCALE_ROW ? VLM_ROW_INPUT_GROUP : format->group;
  }
  matrix->data = vlm_slab_take (loader->slab, n_bytes);
  if (matrix->data == NULL) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
        "No memory for a matrix of %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT, rows, cols);
    g_clear_pointer (&matrix, vlm_matrix_free);
  }
  return matrix;
}

/* ---- Floats ------------------------------------------------------------------------------- */

/* Puts n_rows row-major rows, the first of which is row first_row, to their places. */
static void
pack_rows (VlmMatrix *matrix, guint first_row, guint n_rows, gconstpointer rows)
{
  gsize cols = matrix->cols;
  gsize panel = matrix->panel;
  gsize c;
  guint r;

  for (r = 0; r < n_rows; r++) {
    gsize row = first_row + r;
    guint8 *base = matrix->data + row / panel * matrix->panel_bytes;

    if (matrix->dtype == VLM_DTYPE_F32) {
      const guint32 *src = (const guint32 *) rows + r * cols;
      guint32 *dst = (guint32 *) base + row % panel;

      for (c = 0; c < cols; c++)
        dst[c * panel] = src[c];
    } else {
      const guint16 *src = (const guint16 *) rows + r * cols;
      guint16 *dst = (guint16 *) base + row % panel;

      for (c = 0; c < cols; c++)
        dst[c * panel] = src[c];
    }
  }
}

/* Reads n rows of a tensor of floats as they are. */
static gboolean
read_raw (const VlmMatrixLoader *loader, const VlmTensorInfo *info, guint64 row, gsize n,
    gpointer raw, GError **error)
{
  gsize row_bytes = info->shape[1] * vlm_dtype_size (info->dtype);

  return vlm_tensor_source_read (
      loader->source, info, row * row_bytes, raw, n * row_bytes, loader->cancellable, error);
}

/* Reads n rows of any tensor as f32; raw and rows are scratch for what its type needs. */
static gboolean
read_wide (const VlmMatrixLoader *loader, const VlmTensorInfo *info, guint64 row, gsize n,
    gpointer raw, VlmQuantRows *rows, gfloat *wide, GError **error)
{
  gsize i, cols = info->shape[1];
  VlmIntRows view;

  if (info->dtype != VLM_DTYPE_QUANTISED) {
    if (!read_raw (loader, info, row, n, raw, error))
      return FALSE;
    vlm_floats_widen (loader->kernels, info->dtype, raw, wide, n * cols);
    return TRUE;
  }
  if (!vlm_tensor_source_read_rows (loader->source, info, row, n, rows, loader->cancellable, error))
    return FALSE;
  view = vlm_quant_rows_view (rows, 0);
  for (i = 0; i < n; i++)
    vlm_int_dequantise_row (&info->format, wide + i * cols, &view, i, cols);
  return TRUE;
}

/* Packs one tensor into the rows from first_row on. */
static gboolean
pack_float_tensor (VlmMatrix *matrix, guint first_row, const VlmMatrixLoader *loader,
    const VlmTensorInfo *info, GError **error)
{
  gsize step = CLAMP (STAGE_VALUES / matrix->cols, 1, info->shape[0]);
  gboolean convert = matrix->dtype != info->dtype;
  g_autofree guint8 *raw = NULL;
  g_autofree gfloat *wide = NULL;
  VlmQuantRows rows = { 0 };
  gboolean ok = FALSE;
  guint64 row;

  if (info->dtype == VLM_DTYPE_QUANTISED)
    ok = vlm_quant_rows_init (&rows, &info->format, step, matrix->cols, error);
  else
    ok = (raw = vlm_alloc (step * matrix->cols, vlm_dtype_size (info->dtype), info->name, error))
        != NULL;
  if (ok && convert)
    ok = (wide = vlm_alloc (step * matrix->cols, sizeof (gfloat), info->name, error)) != NULL;

  for (row = 0; ok && row < info->shape[0]; row += step) {
    gsize n = MIN (step, info->shape[0] - row);

    ok = convert ? read_wide (loader, info, row, n, raw, &rows, wide, error)
                 : read_raw (loader, info, row, n, raw, error);
    if (ok)
      pack_rows (matrix, first_row + row, n, convert ? (gconstpointer) wide : raw);
  }
  vlm_quant_rows_clear (&rows);
  return ok;
}

static gboolean
load_floats (VlmMatrix *matrix, const VlmMatrixLoader *loader, const VlmTensorInfo *const *infos,
    guint n_infos, GError **error)
{
  guint i, row = 0;

  /* Columns beyond the last row of the matrix are zero. */
  memset (matrix->data + (vlm_matrix_get_n_panels (matrix) - 1) * matrix->panel_bytes, 0,
      matrix->panel_bytes);
  for (i = 0; i < n_infos; i++) {
    if (!pack_float_tensor (matrix, row, loader, infos[i], error))
      return FALSE;
    row += infos[i]->shape[0];
  }
  return TRUE;
}

/* ---- Integers ----------------------------------------------------------------------------- */

/* Rows of the matrix on their way: those from first on, whole panels of them. */
typedef struct
{
  VlmMatrix *matrix;
  const VlmMatrixLoader *loader;
  VlmQuantRows rows;
  gsize first, n;
  gpointer raw; /* for floats that are rounded */
  gfloat *wide;
} Stage;

static void
pack_job (gsize job, guint thread, gpointer user_data)
{
  const Stage *stage = user_data;
  const VlmMatrix *matrix = stage->matrix;
  gsize row = job * matrix->panel;
  VlmIntRows rows = vlm_quant_rows_view (&stage->rows, row);

  vlm_int_pack (stage->loader->kernels, &matrix->format,
      matrix->data + (stage->first + row) / matrix->panel * matrix->panel_bytes, &rows,
      matrix->cols, MIN (matrix->panel, stage->n - row));
}

/* Packs what the stage holds, and empties it. */
static gboolean
pack_stage (Stage *stage, GError **error)
{
  VlmTeam *team = stage->loader->team;
  gsize n_jobs = (stage->n + stage->matrix->panel - 1) / stage->matrix->panel;
  gboolean done;

  if (!vlm_team_begin_turn (team))
    return vlm_set_cancelled (error);
  done = vlm_team_run (team, n_jobs, pack_job, stage);
  vlm_team_end_turn (team);
  if (!done)
    return vlm_set_cancelled (error);
  stage->first += stage->n;
  stage->n = 0;
  return TRUE;
}

/* Reads n more rows of a tensor into the stage. */
static gboolean
fill_stage (Stage *stage, const VlmTensorInfo *info, guint64 row, gsize n, GError **error)
{
  const VlmMatrixLoader *loader = stage->loader;
  VlmQuantRows tail = vlm_quant_rows_skip (&stage->rows, stage->n);

  if (info->dtype == VLM_DTYPE_QUANTISED) {
    if (!vlm_tensor_source_read_rows (
            loader->source, info, row, n, &tail, loader->cancellable, error))
      return FALSE;
  } else {
    if (!read_wide (loader, info, row, n, stage->raw, NULL, stage->wide, error))
      return FALSE;
    if (!vlm_quant_round (&tail, stage->wide, n, tail.cols, error)) {
      g_prefix_error (error, "Tensor %s, rows from %" G_GUINT64_FORMAT " on: ", info->name, row);
      return FALSE;
    }
  }
  stage->n += n;
  return TRUE;
}

static gboolean
stage_tensors (Stage *stage, const VlmTensorInfo *const *infos, guint n_infos, GError **error)
{
  guint64 row;
  gsize n;
  guint i;

  for (i = 0; i < n_infos; i++) {
    for (row = 0; row < infos[i]->shape[0]; row += n) {
      n = MIN (stage->rows.capacity - stage->n, infos[i]->shape[0] - row);
      if (!fill_stage (stage, infos[i], row, n, error)
          || (stage->n == stage->rows.capacity && !pack_stage (stage, error)))
        return FALSE;
    }
  }
  return stage->n == 0 || pack_stage (stage, error);
}

static gboolean
load_integers (VlmMatrix *matrix, const VlmMatrixLoader *loader, const VlmTensorInfo *const *infos,
    guint n_infos, GError **error)
{
  Stage stage = { .matrix = matrix, .loader = loader };
  gsize panels =
      CLAMP (STAGE_VALUES / matrix->cols / matrix->panel, 1, vlm_matrix_get_n_panels (matrix));
  gsize capacity = panels * matrix->panel;
  gboolean ok = vlm_quant_rows_init (&stage.rows, &matrix->format, capacity, matrix->cols, error);

  if (ok && infos[0]->dtype != VLM_DTYPE_QUANTISED) {
    stage.raw = vlm_alloc (capacity * matrix->cols, sizeof (gfloat), infos[0]->name, error);
    ok = stage.raw != NULL
        && (stage.wide =
                   vlm_alloc (capacity * matrix->cols, sizeof (gfloat), infos[0]->name, error))
            != NULL;
  }
  ok = ok && stage_tensors (&stage, infos, n_infos, error);
  g_free (stage.raw);
  g_free (stage.wide);
  vlm_quant_rows_clear (&stage.rows);
  return ok;
}

/* ---- Both --------------------------------------------------------------------------------- */

/* What tensors become that are one product; see vlm_matrix_load (). */
static VlmDType
choose_type (const VlmMatrixLoader *loader, const VlmTensorInfo *const *infos, guint n_infos,
    gboolean may_round, const VlmIntFormat **format)
{
  VlmDType dtype = infos[0]->dtype;
  gboolean all_floats = dtype != VLM_DTYPE_QUANTISED, alike = TRUE;
  guint i;

  *format = &infos[0]->format;
  for (i = 1; i < n_infos; i++) {
    all_floats = all_floats && infos[i]->dtype != VLM_DTYPE_QUANTISED;
    alike = alike && infos[i]->dtype == dtype
        && (dtype != VLM_DTYPE_QUANTISED || vlm_int_format_equal (&infos[i]->format, *format));
  }
  if (all_floats && may_round && loader->precision == VLM_PRECISION_FAST) {
    *format = &vlm_quant_int8;
    return VLM_DTYPE_QUANTISED;
  }
  if (dtype == VLM_DTYPE_QUANTISED && (!may_round || loader->precision == VLM_PRECISION_EXACT))
    return VLM_DTYPE_F32;
  return alike ? dtype : VLM_DTYPE_F32;
}

/* Equal columns in all; the rows of all. */
static gboolean
add_up_rows (const VlmTensorInfo *const *infos, guint n_infos, guint64 *rows, GError **error)
{
  guint i;

  *rows = 0;
  for (i = 0; i < n_infos; i++) {
    if (infos[i]->rank != 2 || infos[i]->shape[1] != infos[0]->shape[1]) {
      g_autofree gchar *found = vlm_tensor_shape_to_string (infos[i]->shape, infos[i]->rank);

      g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
          "Tensor %s has shape %s, expected two dimensions with %" G_GUINT64_FORMAT " columns",
          infos[i]->name, found, infos[0]->shape[1]);
      return FALSE;
    }
    *rows += infos[i]->shape[0];
  }
  return TRUE;
}

VlmMatrix *
vlm_matrix_load (const VlmMatrixLoader *loader, const VlmTensorInfo *const *infos, guint n_infos,
    gboolean may_round, GError **error)
{
  const VlmIntFormat *format;
  VlmDType dtype = choose_type (loader, infos, n_infos, may_round, &format);
  VlmMatrix *matrix;
  guint64 rows;
  gboolean ok;

  if (!add_up_rows (infos, n_infos, &rows, error))
    return NULL;
  matrix = matrix_new (rows, infos[0]->shape[1], dtype, format, loader, error);
  if (matrix == NULL)
    return NULL;
  ok = dtype == VLM_DTYPE_QUANTISED ? load_integers (matrix, loader, infos, n_infos, error)
                                    : load_floats (matrix, loader, infos, n_infos, error);
  if (!ok)
    g_clear_pointer (&matrix, vlm_matrix_free);
  return matrix;
}
