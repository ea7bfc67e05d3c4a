/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "crops.h"

#include <math.h>
#include <string.h>

/* Weights of one output position: those of table entries start .. start + count - 1. */
typedef struct
{
  guint start, count;
  gfloat *weights; /* [side] */
} Position;

/* A triangle around the position's centre, as wide as the step between positions if that is > 1. */
static void
position_set (Position *position, guint index, guint n, guint side)
{
  gfloat scale = (gfloat) side / (gfloat) n;
  gfloat support = MAX (scale, 1.0f);
  gfloat centre = ((gfloat) index + 0.5f) * scale - 0.5f;
  gfloat total = 0.0f;
  guint i;

  position->start = position->count = 0;
  for (i = 0; i < side; i++) {
    gfloat w = 1.0f - fabsf ((gfloat) i - centre) / support;

    if (w <= 0.0f)
      continue;
    if (position->count == 0)
      position->start = i;
    position->weights[position->count++] = w;
    total += w;
  }
  for (i = 0; i < position->count; i++)
    position->weights[i] /= total;
}

static void
mix (gfloat *out, const gfloat *table, guint side, guint dim, const Position *row,
    const Position *column)
{
  guint r, c, d;

  memset (out, 0, dim * sizeof *out);
  for (r = 0; r < row->count; r++) {
    for (c = 0; c < column->count; c++) {
      const gfloat *entry = table + ((gsize) (row->start + r) * side + column->start + c) * dim;
      gfloat w = row->weights[r] * column->weights[c];

      for (d = 0; d < dim; d++)
        out[d] += w * entry[d];
    }
  }
}

void
vlm_position_table_resize (
    const gfloat *table, guint side, guint dim, guint grid_rows, guint grid_columns, gfloat *out)
{
  Position row = { 0, 0, g_new (gfloat, side) };
  Position column = { 0, 0, g_new (gfloat, side) };
  guint r, c;

  for (r = 0; r < grid_rows; r++) {
    position_set (&row, r, grid_rows, side);
    for (c = 0; c < grid_columns; c++) {
      position_set (&column, c, grid_columns, side);
      mix (out, table, side, dim, &row, &column);
      out += dim;
    }
  }
  g_free (row.weights);
  g_free (column.weights);
}
