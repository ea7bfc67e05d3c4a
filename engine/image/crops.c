/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "crops.h"

#include <string.h>

/* (transfer full) tightly packed RGB of out_width x out_height, or NULL */
static guint8 *
resize (const VlmKernels *kernels, const VlmProcessor *processor, const VlmImage *image,
    guint out_width, guint out_height, GError **error)
{
  guint8 *pixels;
  gsize size;

  if (!g_size_checked_mul (&size, out_width, (gsize) out_height)
      || !g_size_checked_mul (&size, size, 3) || (pixels = g_try_malloc (size)) == NULL) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY, "No memory for a picture of %ux%u pixels",
        out_width, out_height);
    return NULL;
  }
  if (!vlm_resample_rgb (kernels, image->pixels, image->stride, image->width, image->height, pixels,
          out_width, out_height, processor->filter, processor->path, error)) {
    g_free (pixels);
    return NULL;
  }
  return pixels;
}

static gboolean
add_whole (GPtrArray *crops, const VlmKernels *kernels, const VlmProcessor *processor,
    const VlmImage *image, guint width, guint height, GError **error)
{
  guint8 *pixels = resize (kernels, processor, image, width, height, error);

  if (pixels == NULL)
    return FALSE;
  g_ptr_array_add (crops, g_bytes_new_take (pixels, (gsize) width * height * 3));
  return TRUE;
}

/* The whole grid is resampled in one go: tiles share the pixels at their borders' two sides. */
static gboolean
add_tiles (GPtrArray *crops, const VlmKernels *kernels, const VlmProcessor *processor,
    const VlmLayout *layout, const VlmImage *image, GError **error)
{
  guint width = layout->tile_width * layout->grid_columns;
  gsize row_bytes = (gsize) layout->tile_width * 3;
  guint8 *grid =
      resize (kernels, processor, image, width, layout->tile_height * layout->grid_rows, error);
  guint row, column, y;

  if (grid == NULL)
    return FALSE;
  for (row = 0; row < layout->grid_rows; row++) {
    for (column = 0; column < layout->grid_columns; column++) {
      const guint8 *src = grid + (gsize) row * layout->tile_height * width * 3 + column * row_bytes;
      guint8 *tile = g_try_malloc (row_bytes * layout->tile_height);

      if (tile == NULL) {
        g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY, "No memory for a tile of %ux%u pixels",
            layout->tile_width, layout->tile_height);
        g_free (grid);
        return FALSE;
      }
      for (y = 0; y < layout->tile_height; y++)
        memcpy (tile + y * row_bytes, src + (gsize) y * width * 3, row_bytes);
      g_ptr_array_add (crops, g_bytes_new_take (tile, row_bytes * layout->tile_height));
    }
  }
  g_free (grid);
  return TRUE;
}

GPtrArray *
vlm_image_crops (const VlmKernels *kernels, const VlmProcessor *processor, const VlmLayout *layout,
    const VlmImage *image, GError **error)
{
  GPtrArray *crops;
  gboolean done;

  if (image->width != layout->width || image->height != layout->height) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_IMAGE,
        "The picture has %ux%u pixels, its layout was made for %ux%u", image->width, image->height,
        layout->width, layout->height);
    return NULL;
  }

  crops = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
  if (layout->tiled)
    done = add_tiles (crops, kernels, processor, layout, image, error);
  else
    done = add_whole (
        crops, kernels, processor, image, layout->tile_width, layout->tile_height, error);
  if (done && layout->has_thumbnail)
    done = add_whole (
        crops, kernels, processor, image, layout->thumbnail_width, layout->thumbnail_height, error);
  if (!done)
    g_clear_pointer (&crops, g_ptr_array_unref);
  return crops;
}

void
vlm_crop_patches (
    const VlmProcessor *processor, const guint8 *crop, guint width, guint height, gfloat *rows)
{
  guint patch = processor->patch_size;
  gfloat unit = (gfloat) (1.0 / processor->rescale_factor);
  gfloat table[3][256];
  guint c, value, px, py, ky, i;

  /* The reference folds the rescaling into mean and deviation, in float32. */
  for (c = 0; c < 3; c++) {
    gfloat mean = processor->mean[c] * unit;
    gfloat std = processor->std[c] * unit;

    for (value = 0; value < 256; value++)
      table[c][value] = ((gfloat) value - mean) / std;
  }

  for (py = 0; py < height / patch; py++) {
    for (px = 0; px < width / patch; px++) {
      for (ky = 0; ky < patch; ky++) {
        const guint8 *src = crop + (((gsize) py * patch + ky) * width + (gsize) px * patch) * 3;

        for (i = 0; i < patch; i++) {
          for (c = 0; c < 3; c++)
            *rows++ = table[c][*src++];
        }
      }
    }
  }
}
