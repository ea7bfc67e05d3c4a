/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* From a picture to the pixels and patch rows that the vision tower reads. */

#ifndef VLM_CROPS_H
#define VLM_CROPS_H

#include <gio/gio.h>

#include "kernels/kernels.h"
#include "layout.h"
#include "engine/vlm.h"

/*
 * Resamples src (RGB, 8 bits, width x height, stride bytes a row) to out_width x out_height into
 * dst (tightly packed RGB). Equal sizes are copied byte for byte.
 * Errors: VLM_ERROR_IMAGE for zero sides or sizes whose product overflows; VLM_ERROR_UNSUPPORTED
 * for the float path with the bicubic filter.
 */
gboolean vlm_resample_rgb (const VlmKernels *kernels, const guint8 *src, gsize stride, guint width,
    guint height, guint8 *dst, guint out_width, guint out_height, VlmFilter filter,
    VlmResamplePath path, GError **error);

/*
 * Cuts all crops of a picture: returns (transfer full) an array of layout->n_crops GBytes, each
 * height x width x 3 bytes, tiles row-major, thumbnail last (made from the original picture).
 */
GPtrArray *vlm_image_crops (const VlmKernels *kernels, const VlmProcessor *processor,
    const VlmLayout *layout, const VlmImage *image, GError **error);

/*
 * Normalises a crop and cuts it into patch rows: rows[py * (width / patch) + px]
 * [(ky * patch + kx) * 3 + c], (width / patch) * (height / patch) rows of patch * patch * 3 values.
 */
void vlm_crop_patches (
    const VlmProcessor *processor, const guint8 *crop, guint width, guint height, gfloat *rows);

/*
 * Resizes a position table [side * side][dim] to [grid_rows * grid_columns][dim]: bilinear,
 * half-pixel centres, antialiased where the grid is smaller than the table, float32.
 */
void vlm_position_table_resize (
    const gfloat *table, guint side, guint dim, guint grid_rows, guint grid_columns, gfloat *out);

#endif
