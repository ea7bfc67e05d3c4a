/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Products that are used where they are made. A job computes a tile of outputs into memory of its
 * thread that stays in the second-level cache; a function takes it from there, and what it leaves is
 * rounded for the next product at once. The outputs themselves are never written to memory.
 */

#ifndef VLM_TILES_H
#define VLM_TILES_H

#include "matrix.h"

#define VLM_MAX_SEGMENTS 3

/* Room for a tile of each thread. */
typedef struct
{
  gfloat *data;
  gsize size; /* floats of one */
} VlmTileRoom;

/*
 * Some rows and columns of a product. Where the outputs are several segments side by side (gate and
 * up), a tile has the same columns of each.
 */
typedef struct
{
  gsize first, n_rows;
  gsize column, n_columns; /* of each segment */
  gfloat *
      values[VLM_MAX_SEGMENTS]; /* [n_rows][ld]; func may change what is there, and exchange them */
  gsize ld;
} VlmTile;

typedef void (*VlmTileFunc) (VlmTile *tile, gpointer user_data);

/* What becomes of a product. */
typedef struct
{
  guint n_segments;  /* 1 .. VLM_MAX_SEGMENTS; all are of the same width */
  gsize unit;        /* columns that func wants together, or 0; tiles begin at a multiple of them */
  gboolean in_order; /* all tiles with the same columns come from the first row to the last */
  VlmTileFunc func;
  gpointer user_data;
  VlmInputs *next; /* takes values[0] after func in the forms that next_matrix wants; or NULL */
  const VlmMatrix *next_matrix; /* its columns are a segment's */
} VlmEpilogue;

/* Adds to *total what vlm_tile_room_take () will take: for products of up to widest outputs. */
void vlm_tile_room_measure (gsize *total, VlmTeam *team, gsize widest);
void vlm_tile_room_take (VlmTileRoom *room, VlmArena *arena, VlmTeam *team, gsize widest);

/*
 * y[i][r] = bias[r] + sum_c x[i][c] W[r][c] for all rows of inputs, which were made for this matrix;
 * bias may be NULL, and so may room unless inputs are many. FALSE when cancelled; y is incomplete
 * then. Call within a turn.
 */
gboolean vlm_matrix_multiply (const VlmMatrix *matrix, VlmTeam *team, const VlmKernels *kernels,
    const gfloat *bias, const VlmInputs *inputs, const VlmTileRoom *room, gfloat *y, gsize ldy);

/*
 * The product that vlm_matrix_multiply () makes, handed to the epilogue in tiles. What the epilogue
 * sees and next receives has the same bits as if the whole product had been written first.
 * FALSE when cancelled. Call within a turn.
 */
gboolean vlm_matrix_multiply_tiles (const VlmMatrix *matrix, VlmTeam *team,
    const VlmKernels *kernels, const gfloat *bias, const VlmInputs *inputs, const VlmTileRoom *room,
    const VlmEpilogue *epilogue);

/*
 * y = addend + product, both [inputs->n][matrix->rows]; addend may be y. FALSE when cancelled.
 * Call within a turn.
 */
gboolean vlm_matrix_multiply_add (const VlmMatrix *matrix, VlmTeam *team, const VlmKernels *kernels,
    const gfloat *bias, const VlmInputs *inputs, const VlmTileRoom *room, const gfloat *addend,
    gfloat *y);

#endif
