/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tiles.h"

#include <string.h>

#include "matrix-private.h"

/* Floats of a tile: with its rows of x and a panel it should stay in a core's second-level cache. */
#define TILE_FLOATS (512 * 160)

/* Columns of a segment that are taken together at most, unless they are all taken. */
#define MAX_UNIT 256

/* Floats of a line of the cache. */
#define LINE 16

/* Jobs that each thread should have, so that none waits long for another. */
#define JOBS_PER_THREAD 2

typedef struct
{
  VlmProduct product;
  const VlmEpilogue *epilogue;
  const VlmTileRoom *room;
  guint n_threads;
  gfloat *y;        /* the whole product [n][ld], which tiles are parts of; or NULL */
  gsize segment;    /* columns of one */
  gsize unit;       /* columns of one that cannot be parted */
  gsize width;      /* columns of one in a tile */
  gsize n_widths;   /* tiles side by side */
  gsize ld;         /* floats of a tile's row */
  gsize x_block;    /* rows of a tile */
  gsize n_x_blocks; /* tiles below one another */
} TiledProduct;

/* At least for a tile of all columns, whose last panel may be of one, and whose rows are padded. */
static gsize
room_floats (gsize widest)
{
  return MAX (TILE_FLOATS, VLM_TILED_ROWS * (widest + VLM_MAX_INT_PANEL + 2 * LINE));
}

void
vlm_tile_room_measure (gsize *total, VlmTeam *team, gsize widest)
{
  vlm_arena_measure (total, vlm_team_get_n_threads (team) * room_floats (widest));
}

void
vlm_tile_room_take (VlmTileRoom *room, VlmArena *arena, VlmTeam *team, gsize widest)
{
  room->size = room_floats (widest);
  room->data = vlm_arena_take (arena, vlm_team_get_n_threads (team) * room->size);
}

/* ---- How a product is cut ------------------------------------------------------------------ */

static gsize
least_common_multiple (gsize a, gsize b)
{
  gsize x = a, y = b;

  while (y > 0) {
    gsize rest = x % y;

    x = y;
    y = rest;
  }
  return a / x * b;
}

/* Whole panels of the matrix, and whole groups or steps of what the next one multiplies. */
static gsize
smallest_unit (const VlmProduct *product, const VlmEpilogue *epilogue)
{
  const VlmMatrix *matrix = product->matrix, *next = epilogue->next_matrix;
  gsize unit = MAX (epilogue->unit, 1);
  guint i;

  for (i = 0; i < matrix->n_parts; i++)
    unit = least_common_multiple (unit, matrix->parts[i].panel);
  for (i = 0; next != NULL && i < next->n_parts; i++) {
    const VlmMatrixPart *part = &next->parts[i];

    if (vlm_matrix_part_is_tiled (part, product->kernels, epilogue->next))
      unit = least_common_multiple (unit, VLM_TILED_STEP);
    else if (part->dtype == VLM_DTYPE_QUANTISED)
      unit = least_common_multiple (unit, part->input_group);
  }
  return unit;
}

/* Whether every part and every segment begins at a unit of the other. */
static gboolean
is_divided_by (const VlmMatrix *matrix, gsize segment, gsize unit)
{
  guint i;

  for (i = 0; i < matrix->n_parts; i++) {
    const VlmMatrixPart *part = &matrix->parts[i];
    gsize from = part->first % segment, to_next = segment - from;

    if (from % unit != 0 || (to_next < part->rows && to_next % unit != 0))
      return FALSE;
    if (to_next + segment < part->rows && segment % unit != 0)
      return FALSE;
  }
  return TRUE;
}

static gsize
choose_unit (const VlmProduct *product, const VlmEpilogue *epilogue, gsize segment)
{
  gsize unit = smallest_unit (product, epilogue);

  return unit <= MAX_UNIT && is_divided_by (product->matrix, segment, unit) ? unit : segment;
}

/* The parts are multiplied together: the lowest of their blocks. */
static gsize
choose_x_block (const VlmProduct *product)
{
  gsize x_block = product->inputs->n;
  guint i;

  for (i = 0; i < product->matrix->n_parts; i++)
    x_block = MIN (x_block, vlm_product_choose_x_block (product, &product->matrix->parts[i]));
  return x_block;
}

/* What the rows of a tile, and the room for them, are a multiple of. */
static gsize
get_row_step (const VlmProduct *product)
{
  guint i;

  for (i = 0; i < product->matrix->n_parts; i++) {
    if (vlm_matrix_part_is_tiled (&product->matrix->parts[i], product->kernels, product->inputs))
      return VLM_TILED_ROWS;
  }
  return 1;
}

/*
 * What products in tiles leave beyond a panel that is not full is overwritten by the columns that
 * follow. Beyond the last of a row is room: if a tile has all columns, for the rest of a panel; else
 * its columns are whole panels, but for the last ones of a segment, where it has room for as many.
 * Rows of sums are an odd number of lines apart, or they would crowd into few sets of the cache.
 */
static void
fit_into_room (TiledProduct *p)
{
  const VlmMatrix *matrix = p->product.matrix;
  gsize step = get_row_step (&p->product), most;
  guint i;

  p->ld = p->epilogue->n_segments * p->width;
  for (i = 0; p->width == p->segment && i < matrix->n_parts; i++) {
    const VlmMatrixPart *part = &matrix->parts[i];

    p->ld = MAX (p->ld, part->first + vlm_matrix_part_get_n_panels (part) * part->panel);
  }
  if (step > 1)
    p->ld = (p->ld + LINE - 1) / LINE * LINE | LINE;
  most = p->room->size / p->ld / step * step;
  g_assert (most > 0);
  p->x_block = MIN ((p->x_block + step - 1) / step * step, most);
}

/*
 * Units of a segment in a tile. Rows in tiles best pass by several panels in one call, if there is room
 * for what comes out and that leaves enough for all threads to do.
 */
static gsize
choose_units (const TiledProduct *p, gsize n_units)
{
  const gsize unit = p->epilogue->n_segments * p->unit;
  gsize units = vlm_matrix_choose_pieces (p->x_block * p->product.matrix->cols * unit, n_units);
  gsize together = VLM_TILED_PANELS * p->product.kernels->int_panel / p->unit;
  gsize row_room = p->room != NULL ? p->room->size / p->x_block : 0;

  if (get_row_step (&p->product) == 1)
    return units;
  together = MIN (together, (row_room - MIN (row_room, 2 * LINE)) / unit);
  return MAX (units, MIN (together, n_units / (JOBS_PER_THREAD * p->n_threads)));
}

static void
cut (TiledProduct *p)
{
  const VlmMatrix *matrix = p->product.matrix;
  gsize n = p->product.inputs->n, n_units;

  p->segment = matrix->rows / p->epilogue->n_segments;
  p->unit = choose_unit (&p->product, p->epilogue, p->segment);
  p->x_block = choose_x_block (&p->product);
  n_units = (p->segment + p->unit - 1) / p->unit;
  p->width = MIN (choose_units (p, n_units) * p->unit, p->segment);
  p->n_widths = (p->segment + p->width - 1) / p->width;
  if (p->y == NULL)
    fit_into_room (p);
  p->n_x_blocks = (n + p->x_block - 1) / p->x_block;
}

/* ---- Jobs ---------------------------------------------------------------------------------- */

/* Outputs first .. end - 1, which are whole panels, of the tile's rows. */
static void
multiply_columns (
    const TiledProduct *p, const VlmTile *tile, gsize first, gsize end, gfloat *values)
{
  const VlmMatrixPart *part = p->product.matrix->parts;

  while (first < end) {
    gsize n;

    while (first - part->first >= part->rows)
      part++;
    n = vlm_product_panels (&p->product, part, first - part->first, end - first, tile->first,
        tile->n_rows, values, tile->ld);
    first += n;
    values += n;
  }
  g_assert (first == end);
}

static void
run_tile (const TiledProduct *p, gsize first, gsize column, gfloat *values)
{
  const VlmEpilogue *epilogue = p->epilogue;
  gsize n_segments = epilogue->n_segments, i;
  VlmTile tile = { .first = first, .column = column };

  tile.n_rows = MIN (p->x_block, p->product.inputs->n - first);
  tile.n_columns = MIN (p->width, p->segment - column);
  tile.ld = p->ld;
  if (p->y != NULL)
    values = p->y + first * p->ld + column;
  for (i = 0; i < n_segments; i++)
    tile.values[i] = values + i * p->width;
  if (p->width == p->segment)
    multiply_columns (p, &tile, 0, p->product.matrix->rows, values);
  for (i = 0; p->width < p->segment && i < n_segments; i++)
    multiply_columns (p, &tile, i * p->segment + column, i * p->segment + column + tile.n_columns,
        tile.values[i]);

  if (epilogue->func != NULL)
    epilogue->func (&tile, epilogue->user_data);
  for (i = 0; epilogue->next != NULL && i < tile.n_rows; i++)
    vlm_inputs_put (epilogue->next, p->product.kernels, first + i, column,
        tile.values[0] + i * tile.ld, tile.n_columns);
}

static void
tile_job (gsize job, guint thread, gpointer user_data)
{
  const TiledProduct *p = user_data;
  gsize column = job % p->n_widths * p->width;
  gfloat *values = p->y != NULL ? NULL : p->room->data + thread * p->room->size;
  gsize first;

  if (!p->epilogue->in_order) {
    /* Neighbouring jobs share their rows of x, which stay in the cache from one to the next. */
    run_tile (p, job / p->n_widths * p->x_block, column, values);
    return;
  }
  for (first = 0; first < p->product.inputs->n; first += p->x_block)
    run_tile (p, first, column, values);
}

static gboolean
run_product (TiledProduct *p, VlmTeam *team)
{
  if (p->product.inputs->n == 0)
    return TRUE;
  p->n_threads = vlm_team_get_n_threads (team);
  cut (p);
  return vlm_team_run (
      team, p->n_widths * (p->epilogue->in_order ? 1 : p->n_x_blocks), tile_job, p);
}

gboolean
vlm_matrix_multiply_tiles (const VlmMatrix *matrix, VlmTeam *team, const VlmKernels *kernels,
    const gfloat *bias, const VlmInputs *inputs, const VlmTileRoom *room,
    const VlmEpilogue *epilogue)
{
  TiledProduct p = {
    .product = { matrix, kernels, bias, inputs }, .epilogue = epilogue, .room = room
  };

  g_assert (matrix->rows % epilogue->n_segments == 0 && epilogue->next != inputs);
  if (epilogue->next != NULL) {
    g_assert (epilogue->next_matrix->cols == matrix->rows / epilogue->n_segments);
    vlm_inputs_lay_out (epilogue->next, epilogue->next_matrix, kernels, inputs->n);
  }
  return run_product (&p, team);
}

/* ---- Products in plain arrays -------------------------------------------------------------- */

typedef struct
{
  gfloat *y;
  gsize ld;
} Copy;

static void
copy_tile (VlmTile *tile, gpointer user_data)
{
  const Copy *copy = user_data;
  gsize i;

  for (i = 0; i < tile->n_rows; i++)
    memcpy (copy->y + (tile->first + i) * copy->ld + tile->column, tile->values[0] + i * tile->ld,
        tile->n_columns * sizeof (gfloat));
}

gboolean
vlm_matrix_multiply (const VlmMatrix *matrix, VlmTeam *team, const VlmKernels *kernels,
    const gfloat *bias, const VlmInputs *inputs, const VlmTileRoom *room, gfloat *y, gsize ldy)
{
  Copy copy = { y, ldy };
  const VlmEpilogue epilogue = { .n_segments = 1, .func = copy_tile, .user_data = &copy };
  const VlmEpilogue nothing = { .n_segments = 1 };
  TiledProduct p = {
    .product = { matrix, kernels, bias, inputs }, .epilogue = &nothing, .y = y, .ld = ldy
  };

  if (get_row_step (&p.product) == 1)
    return run_product (&p, team);
  return vlm_matrix_multiply_tiles (matrix, team, kernels, bias, inputs, room, &epilogue);
}

/* ---- Sums ---------------------------------------------------------------------------------- */

typedef struct
{
  const VlmKernels *kernels;
  const gfloat *addend;
  gfloat *y;
  gsize ld;
} Sum;

static void
add_tile (VlmTile *tile, gpointer user_data)
{
  const Sum *sum = user_data;
  gsize i;

  for (i = 0; i < tile->n_rows; i++) {
    gsize at = (tile->first + i) * sum->ld + tile->column;

    if (sum->addend != sum->y)
      memcpy (sum->y + at, sum->addend + at, tile->n_columns * sizeof (gfloat));
    sum->kernels->add (sum->y + at, tile->values[0] + i * tile->ld, tile->n_columns);
  }
}

gboolean
vlm_matrix_multiply_add (const VlmMatrix *matrix, VlmTeam *team, const VlmKernels *kernels,
    const gfloat *bias, const VlmInputs *inputs, const VlmTileRoom *room, const gfloat *addend,
    gfloat *y)
{
  Sum sum = { kernels, addend, y, matrix->rows };
  const VlmEpilogue epilogue = { .n_segments = 1, .func = add_tile, .user_data = &sum };

  return vlm_matrix_multiply_tiles (matrix, team, kernels, bias, inputs, room, &epilogue);
}
