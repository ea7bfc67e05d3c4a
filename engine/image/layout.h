/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How one picture is cut: one crop, or a grid of tiles and perhaps a thumbnail. */

#ifndef VLM_LAYOUT_H
#define VLM_LAYOUT_H

#include "processor.h"

/* No crop may pass this many patches; more is refused. The reference has no such limit. */
#define VLM_MAX_CROP_PATCHES 8192

typedef struct
{
  guint width, height;           /* of the picture */
  guint grid_columns, grid_rows; /* 1 x 1 when the picture is kept in one piece */
  gboolean tiled;                /* more than one tile */
  guint tile_width, tile_height; /* pixels of each tile, or of the single crop */
  gboolean has_thumbnail;
  guint thumbnail_width, thumbnail_height;
  guint n_crops;          /* tiles, plus one for the thumbnail */
  guint tile_tokens;      /* image tokens of each tile, or of the single crop */
  guint thumbnail_tokens; /* 0 without thumbnail */
  guint image_tokens;     /* of the whole picture, markers not counted */
} VlmLayout;

/*
 * Decides the layout of a width x height picture as the reference does.
 * VLM_ERROR_IMAGE for a side of 0 or a crop beyond VLM_MAX_CROP_PATCHES; it names both numbers.
 */
gboolean vlm_layout_plan (
    VlmLayout *layout, const VlmProcessor *processor, guint width, guint height, GError **error);

/* Size of crop number index (tiles row-major, thumbnail last). */
void vlm_layout_crop_size (const VlmLayout *layout, guint index, guint *width, guint *height);

#endif
