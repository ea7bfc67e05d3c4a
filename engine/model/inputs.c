/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "inputs.h"

#include <string.h>

#include "matrix-private.h"
#include "rows.h"

/* What one job should be worth in multiply-adds (or as many bytes touched). */
#define JOB_WORK (64 * 1024)

/* What rounding a value costs, in the same unit. */
#define ROUND_WORK 4

/*
 * Room for a value in all forms, in floats. A rounded value takes a byte and, in the finest groups,
 * half a one of scale and sum: floats beside two kinds of groups take 4 + 1.5 + 1.25 bytes a value,
 * three kinds of groups less, as do floats, a kind of groups and tiles with 4 + 1.25 + 2. Rows of a
 * few values, whose groups are short, stay below it too.
 */
#define ROOM 2

typedef struct
{
  VlmInputs *inputs;
  const VlmKernels *kernels;
  gsize k, rows_per_job;

  VlmInputFunc func; /* makes the rows; or NULL: */
  gpointer user_data;
  const gfloat *rows; /* [n][ldx] */
  gsize ldx;
} Fill;

/* Where tiles begin in the storage; they are read in lines of the cache. */
#define TILED_ALIGNMENT 64

/* Room for n rows of k values in all forms. Tiles are whole ones. */
static gsize
storage_floats (gsize n, gsize k)
{
  gsize rows = (n + VLM_TILED_ROWS - 1) / VLM_TILED_ROWS * VLM_TILED_ROWS;

  return ROOM * rows * ((k + VLM_TILED_STEP - 1) / VLM_TILED_STEP * VLM_TILED_STEP);
}

void
vlm_inputs_measure (gsize *total, VlmTeam *team, gsize n, gsize k)
{
  vlm_arena_measure (total, storage_floats (n, k));
  vlm_arena_measure (total, vlm_team_get_n_threads (team) * vlm_padded_k (k));
}

void
vlm_inputs_take (VlmInputs *inputs, VlmArena *arena, VlmTeam *team, gsize n, gsize k)
{
  inputs->max_k = vlm_padded_k (k);
  inputs->size = storage_floats (n, k);
  inputs->storage = vlm_arena_take (arena, inputs->size);
  inputs->scratch = vlm_arena_take (arena, vlm_team_get_n_threads (team) * inputs->max_k);
}

void
vlm_inputs_borrow (VlmInputs *inputs, const gfloat *x, gsize ldx, gsize n)
{
  inputs->n = n;
  inputs->x = x;
  inputs->ldx = ldx;
  inputs->n_rounded = 0;
  inputs->tiled.data = NULL;
}

/* Adds n rows rounded in groups, which lie from storage on. Returns what is behind them. */
static gint8 *
add_rounded (VlmInputs *inputs, gsize cols, gsize group, gsize n, gint8 *storage)
{
  VlmActivations *rounded = &inputs->rounded[inputs->n_rounded++];
  gsize ldq = vlm_padded_k (cols), ldg = vlm_n_groups (cols, group);
  gfloat *scale = (gfloat *) (storage + n * ldq);

  rounded->q = storage;
  rounded->ldq = ldq;
  rounded->scale = scale;
  rounded->sum = (gint32 *) (scale + n * ldg);
  rounded->ldg = ldg;
  rounded->k = cols;
  rounded->group = group;
  return (gint8 *) (rounded->sum + n * ldg);
}

static gboolean
wants_floats (const VlmMatrix *matrix)
{
  guint i;

  for (i = 0; i < matrix->n_parts; i++) {
    if (matrix->parts[i].dtype != VLM_DTYPE_QUANTISED)
      return TRUE;
  }
  return FALSE;
}

const VlmActivations *
vlm_inputs_find_rounded (const VlmInputs *inputs, gsize group)
{
  guint i;

  for (i = 0; i < inputs->n_rounded; i++) {
    if (inputs->rounded[i].group == group)
      return &inputs->rounded[i];
  }
  return NULL;
}

/* The same of n rows in tiles. */
static gint8 *
add_tiled (VlmInputs *inputs, gsize cols, const VlmKernels *kernels, gsize n, gint8 *storage)
{
  gsize used = storage - (gint8 *) inputs->storage;

  used = (used + TILED_ALIGNMENT - 1) / TILED_ALIGNMENT * TILED_ALIGNMENT;
  inputs->tiled = (VlmTiledRows){ (gint8 *) inputs->storage + used, n, cols };
  return (gint8 *) inputs->tiled.data + kernels->tiled_bytes (n, cols);
}

/*
 * Divides the storage for n rows in every form that matrix wants. x is where the floats are already,
 * or NULL when they are to have room as well.
 */
static void
lay_out (VlmInputs *inputs, const VlmMatrix *matrix, const VlmKernels *kernels, const gfloat *x,
    gsize ldx, gsize n)
{
  gint8 *next = (gint8 *) inputs->storage;
  guint i;

  g_assert (matrix->cols <= inputs->max_k);
  vlm_inputs_borrow (inputs, NULL, 0, n);
  if (wants_floats (matrix)) {
    vlm_inputs_borrow (inputs, x != NULL ? x : inputs->storage, x != NULL ? ldx : matrix->cols, n);
    if (x == NULL)
      next += n * matrix->cols * sizeof (gfloat);
  }
  for (i = 0; i < matrix->n_parts; i++) {
    const VlmMatrixPart *part = &matrix->parts[i];

    if (part->dtype != VLM_DTYPE_QUANTISED)
      continue;
    if (vlm_matrix_part_is_tiled (part, kernels, inputs)) {
      if (inputs->tiled.data == NULL)
        next = add_tiled (inputs, matrix->cols, kernels, n, next);
    } else if (vlm_inputs_find_rounded (inputs, part->input_group) == NULL) {
      next = add_rounded (inputs, matrix->cols, part->input_group, n, next);
    }
  }
  g_assert (next <= (gint8 *) (inputs->storage + inputs->size));
}

void
vlm_inputs_lay_out (VlmInputs *inputs, const VlmMatrix *matrix, const VlmKernels *kernels, gsize n)
{
  lay_out (inputs, matrix, kernels, NULL, 0, n);
}

/* Forms that are not the floats themselves. */
static guint
count_made (const VlmInputs *inputs)
{
  return inputs->n_rounded + (inputs->tiled.data != NULL);
}

static void
round_values (const VlmInputs *inputs, const VlmKernels *kernels, gsize i, gsize first,
    const gfloat *values, gsize n)
{
  guint form;

  /* The arrays are this file's to fill; the kernels take them as constant. */
  for (form = 0; form < inputs->n_rounded; form++) {
    const VlmActivations *rounded = &inputs->rounded[form];
    gsize at = i * rounded->ldg + first / rounded->group;

    kernels->quantise_i8 ((gint8 *) rounded->q + i * rounded->ldq + first,
        (gfloat *) rounded->scale + at, (gint32 *) rounded->sum + at, values, n, rounded->group);
  }
  if (inputs->tiled.data != NULL)
    kernels->tile_row (&inputs->tiled, i, first, values, n);
}

void
vlm_inputs_put (VlmInputs *inputs, const VlmKernels *kernels, gsize i, gsize first,
    const gfloat *values, gsize n)
{
  if (inputs->x != NULL)
    memcpy (inputs->storage + i * inputs->ldx + first, values, n * sizeof (gfloat));
  round_values (inputs, kernels, i, first, values, n);
}

static void
fill_job (gsize job, guint thread, gpointer user_data)
{
  const Fill *fill = user_data;
  VlmInputs *inputs = fill->inputs;
  gsize first = job * fill->rows_per_job;
  gsize end = MIN (first + fill->rows_per_job, inputs->n);
  gsize i;

  for (i = first; i < end; i++) {
    const gfloat *row = fill->rows + i * fill->ldx;

    if (fill->func != NULL) {
      gfloat *made = inputs->x != NULL ? inputs->storage + i * inputs->ldx
                                       : inputs->scratch + thread * inputs->max_k;

      fill->func (i, made, fill->user_data);
      row = made;
    }
    round_values (inputs, fill->kernels, i, 0, row, fill->k);
  }
}

static gboolean
run (Fill *fill, VlmTeam *team, gsize row_work)
{
  gsize n = fill->inputs->n;

  if (n == 0)
    return TRUE;
  row_work += ROUND_WORK * count_made (fill->inputs) * fill->k;
  fill->rows_per_job = CLAMP (JOB_WORK / MAX (row_work, 1), 1, n);
  return vlm_team_run (team, (n + fill->rows_per_job - 1) / fill->rows_per_job, fill_job, fill);
}

gboolean
vlm_inputs_make (VlmInputs *inputs, const VlmMatrix *matrix, VlmTeam *team,
    const VlmKernels *kernels, gsize n, gsize row_work, VlmInputFunc func, gpointer user_data)
{
  Fill fill = {
    .inputs = inputs, .kernels = kernels, .k = matrix->cols, .func = func, .user_data = user_data
  };

  lay_out (inputs, matrix, kernels, NULL, 0, n);
  return run (&fill, team, row_work);
}

gboolean
vlm_inputs_rows (VlmInputs *inputs, const VlmMatrix *matrix, VlmTeam *team,
    const VlmKernels *kernels, const gfloat *x, gsize ldx, gsize n)
{
  Fill fill = { .inputs = inputs, .kernels = kernels, .k = matrix->cols, .rows = x, .ldx = ldx };

  lay_out (inputs, matrix, kernels, x, ldx, n);
  return count_made (inputs) == 0 || run (&fill, team, 0);
}

typedef struct
{
  const VlmKernels *kernels;
  const VlmNorm *norm;
  gfloat eps;
  const gfloat *x; /* [n][k] */
  gsize k;
} Normed;

static void
norm_row (gsize i, gfloat *row, gpointer user_data)
{
  const Normed *normed = user_data;

  vlm_norm_row (
      normed->kernels, normed->norm, normed->eps, normed->x + i * normed->k, row, normed->k);
}

gboolean
vlm_inputs_norm (VlmInputs *inputs, const VlmMatrix *matrix, VlmTeam *team,
    const VlmKernels *kernels, const VlmNorm *norm, gfloat eps, const gfloat *x, gsize n)
{
  Normed normed = { kernels, norm, eps, x, matrix->cols };

  return vlm_inputs_make (inputs, matrix, team, kernels, n, matrix->cols, norm_row, &normed);
}
