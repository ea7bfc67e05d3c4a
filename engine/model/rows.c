/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "rows.h"

/* What one job should be worth in multiply-adds (or as many bytes touched). */
#define JOB_WORK (64 * 1024)

typedef struct
{
  VlmRowsFunc func;
  gpointer user_data;
  gsize n_rows, rows_per_job;
} RowsRun;

static void
rows_job (gsize job, guint thread, gpointer user_data)
{
  const RowsRun *run = user_data;
  gsize first = job * run->rows_per_job;

  run->func (first, MIN (run->rows_per_job, run->n_rows - first), run->user_data);
}

gboolean
vlm_rows_run (VlmTeam *team, gsize n_rows, gsize row_work, VlmRowsFunc func, gpointer user_data)
{
  RowsRun run = { func, user_data, n_rows, CLAMP (JOB_WORK / MAX (row_work, 1), 1, n_rows) };

  if (n_rows == 0)
    return TRUE;
  return vlm_team_run (team, (n_rows + run.rows_per_job - 1) / run.rows_per_job, rows_job, &run);
}

void
vlm_norm_row (
    const VlmKernels *kernels, const VlmNorm *norm, gfloat eps, const gfloat *x, gfloat *y, gsize n)
{
  if (norm->bias != NULL)
    kernels->layer_norm (y, x, norm->weight, norm->bias, n, eps);
  else
    kernels->rms_norm (y, x, norm->weight, n, eps);
}

typedef struct
{
  const VlmKernels *kernels;
  const VlmNorm *norm;
  gfloat eps;
  const gfloat *x;
  gfloat *y;
  gsize n;
} Rows;

static void
norm_rows (gsize first, gsize n_rows, gpointer user_data)
{
  const Rows *r = user_data;
  gsize i;

  for (i = first; i < first + n_rows; i++)
    vlm_norm_row (r->kernels, r->norm, r->eps, r->x + i * r->n, r->y + i * r->n, r->n);
}

gboolean
vlm_rows_norm (VlmTeam *team, const VlmKernels *kernels, const VlmNorm *norm, gfloat eps,
    const gfloat *x, gfloat *y, gsize n_rows, gsize n)
{
  Rows r = { kernels, norm, eps, x, y, n };

  return vlm_rows_run (team, n_rows, n, norm_rows, &r);
}
