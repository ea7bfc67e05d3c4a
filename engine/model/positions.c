/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "positions.h"

#include "engine/image/crops.h"
#include "engine/runtime/alloc.h"

/* A video has one or two grids; pictures of all shapes must not pile up tables. */
#define MAX_GRIDS 16

void
vlm_positions_init (VlmPositions *positions)
{
  g_mutex_init (&positions->lock);
  positions->grids = g_hash_table_new_full (NULL, NULL, NULL, (GDestroyNotify) g_bytes_unref);
}

void
vlm_positions_clear (VlmPositions *positions)
{
  g_hash_table_unref (positions->grids);
  g_mutex_clear (&positions->lock);
}

GBytes *
vlm_positions_get (VlmPositions *positions, const gfloat *table, guint side, guint dim, guint rows,
    guint columns, GError **error)
{
  gpointer key = GUINT_TO_POINTER (rows << 16 | columns);
  gsize row_bytes = dim * sizeof (gfloat);
  gfloat *values = NULL;
  GBytes *grid;

  g_mutex_lock (&positions->lock);
  grid = g_hash_table_lookup (positions->grids, key);
  if (grid == NULL)
    values = vlm_alloc ((gsize) rows * columns, row_bytes, "a position table", error);
  if (values != NULL) {
    vlm_position_table_resize (table, side, dim, rows, columns, values);
    grid = g_bytes_new_take (values, (gsize) rows * columns * row_bytes);
    if (g_hash_table_size (positions->grids) >= MAX_GRIDS)
      g_hash_table_remove_all (positions->grids);
    g_hash_table_insert (positions->grids, key, grid);
  }
  if (grid != NULL)
    g_bytes_ref (grid);
  g_mutex_unlock (&positions->lock);
  return grid;
}
