/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "matrix.h"

#include <string.h>

#include "engine/vlm.h"

#define ALIGNMENT 64

/* Rows of x that one job takes: with a panel they should stay in a core's second-level cache. */
#define X_BLOCK_BYTES (192 * 1024)
#define X_BLOCK_MIN 24
#define X_BLOCK_MAX 192

/* Jobs are cut so that each has at least this much to do, or forking costs more than it gives. */
#define JOB_MULTIPLY_ADDS (2 * 1024 * 1024)

/* But one row of x, whose weights come from memory, must still keep every thread busy. */
#define LEAST_JOBS 8

static VlmMatrix *
matrix_new (guint64 rows, guint64 cols, VlmDType dtype, guint panel, GError **error)
{
  VlmMatrix *matrix;
  gsize panel_bytes = 0;
  gsize n_bytes, n_panels;

  if (rows == 0 || cols == 0 || rows > G_MAXINT32 || cols > G_MAXINT32) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "A matrix of %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT
        " is not usable, expected sides of "
        "1..%d",
        rows, cols, G_MAXINT32);
    return NULL;
  }
  n_panels = (rows + panel - 1) / panel;
  if (!g_size_checked_mul (&panel_bytes, cols, panel * vlm_dtype_size (dtype))
      || !g_size_checked_mul (&n_bytes, panel_bytes, n_panels))
    n_bytes = G_MAXSIZE;

  matrix = g_new0 (VlmMatrix, 1);
  matrix->rows = rows;
  matrix->cols = cols;
  matrix->dtype = dtype;
  matrix->panel = panel;
  matrix->panel_bytes = panel_bytes;
  /* g_aligned_alloc() would end the process; a model too large for the memory is an error. */
  if (n_bytes < G_MAXSIZE / 2)
    matrix->block = g_try_malloc0 (n_bytes + ALIGNMENT);
  if (matrix->block == NULL) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
        "No memory for a matrix of %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT, rows, cols);
    vlm_matrix_free (matrix);
    return NULL;
  }
  matrix->data = (guint8 *) (((guintptr) matrix->block + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  return matrix;
}

void
vlm_matrix_free (VlmMatrix *matrix)
{
  if (matrix == NULL)
    return;
  g_free (matrix->block);
  g_free (matrix);
}

gsize
vlm_matrix_get_bytes (const VlmMatrix *matrix)
{
  return (matrix->rows + matrix->panel - 1) / matrix->panel * matrix->panel_bytes;
}

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

/* Reads n values of a tensor as f32. */
static void
widen (const VlmKernels *kernels, VlmDType dtype, gconstpointer src, gfloat *dst, gsize n)
{
  if (dtype == VLM_DTYPE_F16)
    kernels->f16_to_f32 (dst, src, n);
  else if (dtype == VLM_DTYPE_BF16)
    kernels->bf16_to_f32 (dst, src, n);
  else
    memcpy (dst, src, n * sizeof (gfloat));
}

/* Packs one tensor into the rows from first_row on; a few rows at a time pass through memory. */
static gboolean
pack_tensor (VlmMatrix *matrix, guint first_row, VlmTensorSource *source, const VlmTensorInfo *info,
    const VlmKernels *kernels, GCancellable *cancellable, GError **error)
{
  gsize row_bytes = matrix->cols * vlm_dtype_size (info->dtype);
  guint step = CLAMP ((1 << 20) / row_bytes, 1, info->shape[0]);
  gboolean convert = matrix->dtype != info->dtype;
  g_autofree guint8 *rows = g_malloc (step * row_bytes);
  g_autofree gfloat *wide = convert ? g_new (gfloat, step * matrix->cols) : NULL;
  guint row;

  for (row = 0; row < info->shape[0]; row += step) {
    guint n = MIN (step, info->shape[0] - row);

    if (!vlm_tensor_source_read (
            source, info, row * row_bytes, rows, n * row_bytes, cancellable, error))
      return FALSE;
    if (convert)
      widen (kernels, info->dtype, rows, wide, (gsize) n * matrix->cols);
    pack_rows (matrix, first_row + row, n, convert ? (gconstpointer) wide : rows);
  }
  return TRUE;
}

VlmMatrix *
vlm_matrix_load_stacked (VlmTensorSource *source, const VlmTensorInfo *const *infos, guint n_infos,
    const VlmKernels *kernels, GCancellable *cancellable, GError **error)
{
  VlmMatrix *matrix;
  VlmDType dtype = infos[0]->dtype;
  guint64 rows = 0;
  guint i, row = 0;

  for (i = 0; i < n_infos; i++) {
    if (infos[i]->rank != 2 || infos[i]->shape[1] != infos[0]->shape[1]) {
      g_autofree gchar *found = vlm_tensor_shape_to_string (infos[i]->shape, infos[i]->rank);

      g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
          "Tensor %s has shape %s, expected two dimensions with %" G_GUINT64_FORMAT " columns",
          infos[i]->name, found, infos[0]->shape[1]);
      return NULL;
    }
    /* One product has one type; a checkpoint that mixes them is read as the wider one. */
    if (infos[i]->dtype != dtype)
      dtype = VLM_DTYPE_F32;
    rows += infos[i]->shape[0];
  }

  matrix = matrix_new (rows, infos[0]->shape[1], dtype, kernels->panel, error);
  for (i = 0; i < n_infos && matrix != NULL; i++) {
    if (!pack_tensor (matrix, row, source, infos[i], kernels, cancellable, error))
      g_clear_pointer (&matrix, vlm_matrix_free);
    row += infos[i]->shape[0];
  }
  return matrix;
}

VlmMatrix *
vlm_matrix_load (VlmTensorSource *source, const VlmTensorInfo *info, const VlmKernels *kernels,
    GCancellable *cancellable, GError **error)
{
  return vlm_matrix_load_stacked (source, &info, 1, kernels, cancellable, error);
}

void
vlm_matrix_get_row (const VlmMatrix *matrix, const VlmKernels *kernels, guint row, gfloat *out)
{
  const guint8 *base = matrix->data + row / matrix->panel * matrix->panel_bytes;
  gsize c, panel = matrix->panel;

  if (matrix->dtype == VLM_DTYPE_F32) {
    const gfloat *src = (const gfloat *) base + row % panel;

    for (c = 0; c < matrix->cols; c++)
      out[c] = src[c * panel];
  } else {
    const guint16 *src = (const guint16 *) base + row % panel;
    guint16 line[256];
    gsize i, n;

    for (c = 0; c < matrix->cols; c += n) {
      n = MIN (G_N_ELEMENTS (line), matrix->cols - c);
      for (i = 0; i < n; i++)
        line[i] = src[(c + i) * panel];
      widen (kernels, matrix->dtype, line, out + c, n);
    }
  }
}

typedef struct
{
  const VlmMatrix *matrix;
  const VlmKernels *kernels;
  const gfloat *bias;
  const gfloat *x;
  gfloat *y;
  gsize ldx, ldy, m;
  gsize x_block; /* rows of x in one job */
  gsize panels_per_job;
  gsize n_groups; /* jobs for one x block */
} Product;

static void
multiply_panel (const Product *p, gsize panel, gsize first_x, gsize m)
{
  const VlmMatrix *matrix = p->matrix;
  gsize column = panel * matrix->panel;
  gsize n = MIN (matrix->panel, matrix->rows - column);
  gconstpointer w = matrix->data + panel * matrix->panel_bytes;
  const gfloat *bias = p->bias != NULL ? p->bias + column : NULL;
  const gfloat *x = p->x + first_x * p->ldx;
  gfloat *y = p->y + first_x * p->ldy + column;

  if (matrix->dtype == VLM_DTYPE_F32)
    p->kernels->matmul_f32 (y, p->ldy, x, p->ldx, m, w, matrix->cols, n, bias);
  else if (matrix->dtype == VLM_DTYPE_F16)
    p->kernels->matmul_f16 (y, p->ldy, x, p->ldx, m, w, matrix->cols, n, bias);
  else
    p->kernels->matmul_bf16 (y, p->ldy, x, p->ldx, m, w, matrix->cols, n, bias);
}

static void
multiply_job (gsize job, guint thread, gpointer user_data)
{
  const Product *p = user_data;
  /* Neighbouring jobs share their rows of x, which stay in the cache from one to the next. */
  gsize first_x = job / p->n_groups * p->x_block;
  gsize m = MIN (p->x_block, p->m - first_x);
  gsize first = job % p->n_groups * p->panels_per_job;
  gsize n_panels = (p->matrix->rows + p->matrix->panel - 1) / p->matrix->panel;
  gsize panel;

  for (panel = first; panel < MIN (first + p->panels_per_job, n_panels); panel++)
    multiply_panel (p, panel, first_x, m);
}

gboolean
vlm_matrix_multiply (const VlmMatrix *matrix, VlmTeam *team, const VlmKernels *kernels,
    const gfloat *bias, const gfloat *x, gsize ldx, gsize m, gfloat *y, gsize ldy)
{
  Product p = { matrix, kernels, bias, x, y, ldx, ldy, m, 0, 0, 0 };
  gsize n_panels = (matrix->rows + matrix->panel - 1) / matrix->panel;
  gsize panel_work;

  if (m == 0)
    return TRUE;
  p.x_block = CLAMP (X_BLOCK_BYTES / (matrix->cols * sizeof (gfloat)), X_BLOCK_MIN, X_BLOCK_MAX);
  p.x_block = MIN (p.x_block / 12 * 12, m); /* whole register tiles of the common kernels */
  panel_work = p.x_block * matrix->cols * matrix->panel;
  p.panels_per_job = MIN (JOB_MULTIPLY_ADDS / panel_work, n_panels / LEAST_JOBS);
  p.panels_per_job = MAX (p.panels_per_job, 1);
  p.n_groups = (n_panels + p.panels_per_job - 1) / p.panels_per_job;

  return vlm_team_run (team, p.n_groups * ((m + p.x_block - 1) / p.x_block), multiply_job, &p);
}
