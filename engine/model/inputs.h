/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a linear layer multiplies: rows of floats or, where its weights are integers, the same rows
 * rounded to 8 bits in groups, or to bfloat16 in tiles; several of these, or several groups, where
 * its weights are of several kinds. They are made by the step before the product, a row or a part of
 * one at a time while it is in a near cache, so that rounding costs no trip through memory.
 */

#ifndef VLM_INPUTS_H
#define VLM_INPUTS_H

#include "engine/runtime/arena.h"
#include "engine/runtime/team.h"
#include "kernels/kernels.h"

/* Tensors that are one product at most: q, k and v. */
#define VLM_MAX_PARTS 3

typedef struct _VlmMatrix VlmMatrix;

/* The same rows in every form that the parts of one matrix want. */
typedef struct
{
  gsize n;         /* rows */
  const gfloat *x; /* [n][ldx], or NULL when no part wants floats */
  gsize ldx;
  VlmActivations rounded[VLM_MAX_PARTS]; /* each with another group */
  guint n_rounded;
  VlmTiledRows tiled; /* data is NULL when no part wants them */

  /*
   * Whether these are of a prompt or a picture, which are many rows: where the kernels have products
   * in tiles, parts of integers take theirs tiled. Set by whoever takes the inputs. How many rows
   * there are in fact does not count, or cutting a prompt elsewhere would change bits.
   */
  gboolean many;

  gfloat *storage; /* room for the rows in all forms */
  gsize size;      /* floats of it */
  gfloat *scratch; /* a row for each thread */
  gsize max_k;     /* of both, padded */
} VlmInputs;

typedef struct
{
  gfloat *weight, *bias; /* bias is NULL for RMS norms */
} VlmNorm;

/* Adds to *total what vlm_inputs_take () will take: room for n rows of up to k values. */
void vlm_inputs_measure (gsize *total, VlmTeam *team, gsize n, gsize k);
void vlm_inputs_take (VlmInputs *inputs, VlmArena *arena, VlmTeam *team, gsize n, gsize k);

/* inputs are the n rows of x themselves, for a matrix of floats. */
void vlm_inputs_borrow (VlmInputs *inputs, const gfloat *x, gsize ldx, gsize n);

/*
 * norm (x[i]) for n tightly packed rows, made ready for matrix; RMS when norm has no bias.
 * FALSE when cancelled.
 */
gboolean vlm_inputs_norm (VlmInputs *inputs, const VlmMatrix *matrix, VlmTeam *team,
    const VlmKernels *kernels, const VlmNorm *norm, gfloat eps, const gfloat *x, gsize n);

/* The rows rounded in groups of this many values; NULL where no part of the matrix wanted them. */
const VlmActivations *vlm_inputs_find_rounded (const VlmInputs *inputs, gsize group);

/* Writes row i. */
typedef void (*VlmInputFunc) (gsize i, gfloat *row, gpointer user_data);

/*
 * n rows that func writes, made ready for matrix. row_work: what func costs a row, in
 * multiply-adds. FALSE when cancelled.
 */
gboolean vlm_inputs_make (VlmInputs *inputs, const VlmMatrix *matrix, VlmTeam *team,
    const VlmKernels *kernels, gsize n, gsize row_work, VlmInputFunc func, gpointer user_data);

/*
 * The n rows of x made ready for matrix. x must stay as long as inputs are used.
 * FALSE when cancelled.
 */
gboolean vlm_inputs_rows (VlmInputs *inputs, const VlmMatrix *matrix, VlmTeam *team,
    const VlmKernels *kernels, const gfloat *x, gsize ldx, gsize n);

/* Room for n rows in every form that matrix wants, which vlm_inputs_put () fills. */
void vlm_inputs_lay_out (
    VlmInputs *inputs, const VlmMatrix *matrix, const VlmKernels *kernels, gsize n);

/*
 * Values first .. first + n - 1 of row i in every form. first is a multiple of every group, and of
 * VLM_TILED_STEP for tiles; so is n, unless the row ends with it. Threads may put other rows, or
 * other values, at a time.
 */
void vlm_inputs_put (VlmInputs *inputs, const VlmKernels *kernels, gsize i, gsize first,
    const gfloat *values, gsize n);

#endif
