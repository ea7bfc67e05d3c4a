/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which grid of tiles fits a picture best. */

#ifndef VLM_GRID_H
#define VLM_GRID_H

#include <glib.h>

typedef struct
{
  guint columns, rows;
} VlmGrid;

/*
 * All grids of min_tiles to max_tiles tiles (1 <= min_tiles <= max_tiles <= 100), smallest product
 * first and, inside one product, in the order in which the reference meets them.
 * Returns (transfer full) an array of VlmGrid.
 */
GArray *vlm_grid_candidates (guint min_tiles, guint max_tiles);

/* The grid for a width x height picture; sides are not zero. */
VlmGrid vlm_grid_choose (
    guint width, guint height, guint min_tiles, guint max_tiles, guint tile_size);

#endif
