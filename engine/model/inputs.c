/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "inputs.h"

#include "matrix.h"

/* What one job should be worth in multiply-adds (or as many bytes touched). */
#define JOB_WORK (64 * 1024)

/* What rounding a value costs, in the same unit. */
#define ROUND_WORK 4

typedef struct
{
  VlmInputs *inputs;
  const VlmKernels *kernels;
  gsize k, rows_per_job;

  const VlmNorm *norm; /* of rows x [n][k], or NULL */
  gfloat eps;
  const gfloat *x;

  gfloat *rows; /* [n][ldx], changed in place */
  gsize ldx;
  VlmInputFunc func;
  gpointer user_data;
} Fill;

void
vlm_inputs_measure (gsize *total, VlmTeam *team, gsize n, gsize k)
{
  vlm_arena_measure (total, n * vlm_padded_k (k));
  vlm_arena_measure (total, vlm_team_get_n_threads (team) * vlm_padded_k (k));
}

void
vlm_inputs_take (VlmInputs *inputs, VlmArena *arena, VlmTeam *team, gsize n, gsize k)
{
  inputs->max_k = vlm_padded_k (k);
  inputs->storage = vlm_arena_take (arena, n * inputs->max_k);
  inputs->scratch = vlm_arena_take (arena, vlm_team_get_n_threads (team) * inputs->max_k);
}

void
vlm_inputs_borrow (VlmInputs *inputs, const gfloat *x, gsize ldx, gsize n)
{
  inputs->n = n;
  inputs->x = x;
  inputs->ldx = ldx;
}

/* Divides the storage for n rounded rows: a byte a value and at most 8 bytes for each 16. */
static void
lay_out_rounded (VlmInputs *inputs, const VlmMatrix *matrix, gsize n)
{
  VlmActivations *rounded = &inputs->rounded;
  gsize ldq = vlm_padded_k (matrix->cols), ldg = vlm_n_groups (matrix->cols, matrix->input_group);
  gint8 *q = (gint8 *) inputs->storage;
  gfloat *scale = (gfloat *) (q + n * ldq);

  g_assert (matrix->cols <= inputs->max_k);
  inputs->n = n;
  inputs->x = NULL;
  rounded->q = q;
  rounded->ldq = ldq;
  rounded->scale = scale;
  rounded->sum = (gint32 *) (scale + n * ldg);
  rounded->ldg = ldg;
  rounded->k = matrix->cols;
  rounded->group = matrix->input_group;
}

static void
lay_out (VlmInputs *inputs, const VlmMatrix *matrix, gsize n)
{
  if (matrix->dtype == VLM_DTYPE_QUANTISED)
    lay_out_rounded (inputs, matrix, n);
  else
    vlm_inputs_borrow (inputs, inputs->storage, matrix->cols, n);
}

static void
round_row (const Fill *fill, gsize i, const gfloat *row)
{
  const VlmActivations *rounded = &fill->inputs->rounded;

  /* The arrays are this function's to fill; the kernels take them as constant. */
  fill->kernels->quantise_i8 ((gint8 *) rounded->q + i * rounded->ldq,
      (gfloat *) rounded->scale + i * rounded->ldg, (gint32 *) rounded->sum + i * rounded->ldg, row,
      rounded->k, rounded->group);
}

static void
fill_row (const Fill *fill, gsize i, guint thread)
{
  VlmInputs *inputs = fill->inputs;
  const gfloat *x = fill->x + i * fill->k;
  gfloat *row;

  if (fill->norm == NULL) {
    row = fill->rows + i * fill->ldx;
    if (fill->func != NULL)
      fill->func (row, fill->user_data);
  } else {
    row = inputs->x != NULL ? inputs->storage + i * fill->k
                            : inputs->scratch + thread * inputs->max_k;
    if (fill->norm->bias != NULL)
      fill->kernels->layer_norm (row, x, fill->norm->weight, fill->norm->bias, fill->k, fill->eps);
    else
      fill->kernels->rms_norm (row, x, fill->norm->weight, fill->k, fill->eps);
  }
  if (inputs->x == NULL)
    round_row (fill, i, row);
}

static void
fill_job (gsize job, guint thread, gpointer user_data)
{
  const Fill *fill = user_data;
  gsize first = job * fill->rows_per_job;
  gsize end = MIN (first + fill->rows_per_job, fill->inputs->n);
  gsize i;

  for (i = first; i < end; i++)
    fill_row (fill, i, thread);
}

static gboolean
run (Fill *fill, VlmTeam *team, gsize row_work)
{
  gsize n = fill->inputs->n;

  if (n == 0)
    return TRUE;
  fill->rows_per_job = CLAMP (JOB_WORK / MAX (row_work, 1), 1, n);
  return vlm_team_run (team, (n + fill->rows_per_job - 1) / fill->rows_per_job, fill_job, fill);
}

gboolean
vlm_inputs_norm (VlmInputs *inputs, const VlmMatrix *matrix, VlmTeam *team,
    const VlmKernels *kernels, const VlmNorm *norm, gfloat eps, const gfloat *x, gsize n)
{
  Fill fill = {
    .inputs = inputs, .kernels = kernels, .k = matrix->cols, .norm = norm, .eps = eps, .x = x
  };

  lay_out (inputs, matrix, n);
  return run (&fill, team, fill.k * (inputs->x == NULL ? ROUND_WORK : 1));
}

gboolean
vlm_inputs_rows (VlmInputs *inputs, const VlmMatrix *matrix, VlmTeam *team,
    const VlmKernels *kernels, gfloat *x, gsize ldx, gsize n, gsize row_work, VlmInputFunc func,
    gpointer user_data)
{
  Fill fill = { .inputs = inputs,
    .kernels = kernels,
    .k = matrix->cols,
    .x = x,
    .rows = x,
    .ldx = ldx,
    .func = func,
    .user_data = user_data };

  if (matrix->dtype == VLM_DTYPE_QUANTISED) {
    lay_out_rounded (inputs, matrix, n);
    row_work += ROUND_WORK * matrix->cols;
  } else {
    vlm_inputs_borrow (inputs, x, ldx, n);
  }
  return (inputs->x != NULL && func == NULL) || run (&fill, team, row_work);
}
