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

  for (i = first; i < first + n_rows; i++) {
    if (r->norm->bias != NULL)
      r->kernels->layer_norm (
          r->y + i * r->n, r->x + i * r->n, r->norm->weight, r->norm->bias, r->n, r->eps);
    else
      r->kernels->rms_norm (r->y + i * r->n, r->x + i * r->n, r->norm->weight, r->n, r->eps);
  }
}

gboolean
vlm_rows_norm (VlmTeam *team, const VlmKernels *kernels, const VlmNorm *norm, gfloat eps,
    const gfloat *x, gfloat *y, gsize n_rows, gsize n)
{
  Rows r = { kernels, norm, eps, x, y, n };

  return vlm_rows_run (team, n_rows, n, norm_rows, &r);
}
