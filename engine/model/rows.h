/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Element-wise work on the rows of an array, cut among the team. */

#ifndef VLM_ROWS_H
#define VLM_ROWS_H

#include "engine/runtime/team.h"
#include "kernels/kernels.h"
#include "inputs.h"

/* Called with consecutive runs of rows that cover 0 .. n_rows - 1. */
typedef void (*VlmRowsFunc) (gsize first, gsize n_rows, gpointer user_data);

/* Runs func over n_rows rows of about row_work multiply-adds each. FALSE when cancelled. */
gboolean vlm_rows_run (
    VlmTeam *team, gsize n_rows, gsize row_work, VlmRowsFunc func, gpointer user_data);

/* y = norm (x) for one row of n values, which may be the same one; RMS when norm has no bias. */
void vlm_norm_row (const VlmKernels *kernels, const VlmNorm *norm, gfloat eps, const gfloat *x,
    gfloat *y, gsize n);

/* y[i] = norm (x[i]) for n_rows tightly packed rows of n values. */
gboolean vlm_rows_norm (VlmTeam *team, const VlmKernels *kernels, const VlmNorm *norm, gfloat eps,
    const gfloat *x, gfloat *y, gsize n_rows, gsize n);

#endif
