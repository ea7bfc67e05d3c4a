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

/* Jobs are cut so that each has at least this much to do, or forking costs more than it gives. */
#define JOB_MULTIPLY_ADDS (2 * 1024 * 1024)

/* But one row of x, whose weights come from memory, must still keep every thread busy. */
#define LEAST_JOBS 8

void
vlm_matrix_free (VlmMatrix *matrix)
{
  g_free (matrix);
}

gsize
vlm_matrix_get_n_panels (const VlmMatrix *matrix)
{
  return (matrix->rows + matrix->panel - 1) / matrix->panel;
}

gsize
vlm_matrix_get_bytes (const VlmMatrix *matrix)
{
  return vlm_matrix_get_n_panels (matrix) * matrix->panel_bytes;
}

void
vlm_matrix_get_row (const VlmMatrix *matrix, const VlmKernels *kernels, guint row, gfloat *out)
{
  const guint8 *base = matrix->data + row / matrix->panel * matrix->panel_bytes;
  gsize c, panel = matrix->panel;

  if (matrix->dtype == VLM_DTYPE_QUANTISED) {
    vlm_int_unpack_row (kernels, &matrix->format, out, base, row % panel, matrix->cols);
  } else if (matrix->dtype == VLM_DTYPE_F32) {
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
      vlm_floats_widen (kernels, matrix->dtype, line, out + c, n);
    }
  }
}

typedef struct
{
  const VlmMatrix *matrix;
  const VlmKernels *kernels;
  const gfloat *bias;
  const VlmInputs *inputs;
  gfloat *y;
  gsize ldy;
  gsize x_block; /* rows of x in one job */
  gsize panels_per_job;
  gsize n_groups; /* jobs for one x block */
} Product;

static void
multiply_rounded (const Product *p, gconstpointer w, gsize first_x, gsize m, gsize n,
    const gfloat *bias, gfloat *y)
{
  VlmActivations x = p->inputs->rounded;

  x.q += first_x * x.ldq;
  x.scale += first_x * x.ldg;
  x.sum += first_x * x.ldg;
  p->kernels->matmul_int (y, p->ldy, &x, m, &p->matrix->format, w, n, bias);
}

static void
multiply_panel (const Product *p, gsize panel, gsize first_x, gsize m)
{
  const VlmMatrix *matrix = p->matrix;
  gsize column = panel * matrix->panel;
  gsize n = MIN (matrix->panel, matrix->rows - column);
  gconstpointer w = matrix->data + panel * matrix->panel_bytes;
  const gfloat *bias = p->bias != NULL ? p->bias + column : NULL;
  gfloat *y = p->y + first_x * p->ldy + column;
  const gfloat *x;

  if (matrix->dtype == VLM_DTYPE_QUANTISED) {
    multiply_rounded (p, w, first_x, m, n, bias, y);
    return;
  }
  x = p->inputs->x + first_x * p->inputs->ldx;
  if (matrix->dtype == VLM_DTYPE_F32)
    p->kernels->matmul_f32 (y, p->ldy, x, p->inputs->ldx, m, w, matrix->cols, n, bias);
  else if (matrix->dtype == VLM_DTYPE_F16)
    p->kernels->matmul_f16 (y, p->ldy, x, p->inputs->ldx, m, w, matrix->cols, n, bias);
  else
    p->kernels->matmul_bf16 (y, p->ldy, x, p->inputs->ldx, m, w, matrix->cols, n, bias);
}

static void
multiply_job (gsize job, guint thread, gpointer user_data)
{
  const Product *p = user_data;
  /* Neighbouring jobs share their rows of x, which stay in the cache from one to the next. */
  gsize first_x = job / p->n_groups * p->x_block;
  gsize m = MIN (p->x_block, p->inputs->n - first_x);
  gsize first = job % p->n_groups * p->panels_per_job;
  gsize end = MIN (first + p->panels_per_job, vlm_matrix_get_n_panels (p->matrix));
  gsize panel;

  for (panel = first; panel < end; panel++)
    multiply_panel (p, panel, first_x, m);
}

/* Rows of x for one job: as few blocks as the cache allows, of nearly equal height. */
static gsize
choose_x_block (const VlmMatrix *matrix, gsize m)
{
  gsize most, n_blocks;

  if (matrix->dtype == VLM_DTYPE_QUANTISED)
    most = CLAMP (X_BLOCK_BYTES_ROUNDED / matrix->cols, X_BLOCK_MIN, X_BLOCK_MAX_ROUNDED);
  else
    most = CLAMP (X_BLOCK_BYTES / (matrix->cols * sizeof (gfloat)), X_BLOCK_MIN, X_BLOCK_MAX);
  most = most / X_BLOCK_STEP * X_BLOCK_STEP;
  n_blocks = (m + most - 1) / most;
  return MIN (((m + n_blocks - 1) / n_blocks + X_BLOCK_STEP - 1) / X_BLOCK_STEP * X_BLOCK_STEP, m);
}

gboolean
vlm_matrix_multiply (const VlmMatrix *matrix, VlmTeam *team, const VlmKernels *kernels,
    const gfloat *bias, const VlmInputs *inputs, gfloat *y, gsize ldy)
{
  Product p = { matrix, kernels, bias, inputs, y, ldy, 0, 0, 0 };
  gsize n_panels = vlm_matrix_get_n_panels (matrix);
  gsize panel_work;

  if (inputs->n == 0)
    return TRUE;
  p.x_block = choose_x_block (matrix, inputs->n);
  panel_work = p.x_block * matrix->cols * matrix->panel;
  p.panels_per_job = MIN (JOB_MULTIPLY_ADDS / panel_work, n_panels / LEAST_JOBS);
  p.panels_per_job = MAX (p.panels_per_job, 1);
  p.n_groups = (n_panels + p.panels_per_job - 1) / p.panels_per_job;

  return vlm_team_run (
      team, p.n_groups * ((inputs->n + p.x_block - 1) / p.x_block), multiply_job, &p);
}
