/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The tower's position table, resized to each grid that comes by and kept. */

#ifndef VLM_POSITIONS_H
#define VLM_POSITIONS_H

#include <gio/gio.h>

typedef struct
{
  GMutex lock;
  GHashTable *grids; /* rows << 16 | columns -> GBytes */
} VlmPositions;

void vlm_positions_init (VlmPositions *positions);
void vlm_positions_clear (VlmPositions *positions);

/*
 * The table [side * side][dim] for a grid: gfloat [rows * columns][dim]. May be called by any
 * thread; table must be the same in every call. NULL with VLM_ERROR_MEMORY. (transfer full)
 */
GBytes *vlm_positions_get (VlmPositions *positions, const gfloat *table, guint side, guint dim,
    guint rows, guint columns, GError **error);

#endif
