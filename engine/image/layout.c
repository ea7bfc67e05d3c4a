/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Sizes are worked out in IEEE double with the reference's order of operations: a different order
 * rounds differently and moves some pictures to another size.
 */

#include "layout.h"

#include <math.h>

#include "engine/vlm.h"
#include "grid.h"

/* A size in pixels while it may still be absurdly large. */
typedef struct
{
  gdouble width, height;
} Size;

/* The nearest multiple of factor, halves to the even one. */
static gdouble
round_to_factor (gdouble value, gdouble factor)
{
  return rint (value / factor) * factor;
}

static gdouble
pixels_per_token (const VlmProcessor *processor)
{
  gdouble factor = (gdouble) processor->patch_size * processor->downsample_factor;

  return factor * factor;
}

static gboolean
is_large (const VlmProcessor *processor, guint width, guint height)
{
  gdouble factor = (gdouble) processor->patch_size * processor->downsample_factor;
  gdouble w = MAX ((gdouble) processor->patch_size, round_to_factor (width, factor));
  gdouble h = MAX ((gdouble) processor->patch_size, round_to_factor (height, factor));

  return h * w > processor->max_image_tokens * pixels_per_token (processor)
      * processor->max_pixels_tolerance;
}

/* The size of a picture kept in one piece: within the token range, sides whole token cells. */
static Size
single_size (const VlmProcessor *processor, guint width, guint height)
{
  gdouble factor = (gdouble) processor->patch_size * processor->downsample_factor;
  gdouble min_pixels = processor->min_image_tokens * pixels_per_token (processor);
  gdouble max_pixels = processor->max_image_tokens * pixels_per_token (processor);
  gdouble area = (gdouble) height * width;
  gdouble w = width, h = height;
  Size size;

  size.width = MAX (factor, round_to_factor (w, factor));
  size.height = MAX (factor, round_to_factor (h, factor));
  if (size.height * size.width > max_pixels) {
    gdouble beta = sqrt (area / max_pixels);

    size.height = MAX (factor, floor (h / beta / factor) * factor);
    size.width = MAX (factor, floor (w / beta / factor) * factor);
  } else if (size.height * size.width < min_pixels) {
    gdouble beta = sqrt (min_pixels / area);

    size.height = ceil (h * beta / factor) * factor;
    size.width = ceil (w * beta / factor) * factor;
  }
  return size;
}

static gboolean
check_patches (const VlmProcessor *processor, guint width, guint height, Size crop, GError **error)
{
  gdouble patches = crop.width / processor->patch_size * (crop.height / processor->patch_size);

  if (patches <= VLM_MAX_CROP_PATCHES)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_IMAGE,
      "A picture of %ux%u pixels needs a crop of %.0fx%.0f pixels, which are %.0f patches; at "
      "most %d are computed",
      width, height, crop.width, crop.height, patches, VLM_MAX_CROP_PATCHES);
  return FALSE;
}

static guint
crop_tokens (const VlmProcessor *processor, guint width, guint height)
{
  guint factor = processor->patch_size * processor->downsample_factor;

  return (width / factor) * (height / factor);
}

/*
 * With min_tiles 1 a nearly square picture can be called large and still get a 1 x 1 grid. The
 * reference then cuts one tile of tile_size, without thumbnail, but counts the tokens of the size
 * of single_size(), and fails where they differ. Here the tokens are those of the tile.
 */
static void
fill_crops (VlmLayout *plan, const VlmProcessor *processor, Size single, gboolean split)
{
  guint n_tiles;

  if (split) {
    VlmGrid grid = vlm_grid_choose (plan->width, plan->height, processor->min_tiles,
        processor->max_tiles, processor->tile_size);

    plan->grid_columns = grid.columns;
    plan->grid_rows = grid.rows;
    plan->tile_width = processor->tile_size;
    plan->tile_height = processor->tile_size;
  } else {
    plan->grid_columns = plan->grid_rows = 1;
    plan->tile_width = (guint) single.width;
    plan->tile_height = (guint) single.height;
  }
  n_tiles = plan->grid_columns * plan->grid_rows;
  plan->tiled = n_tiles > 1;
  plan->tile_tokens = crop_tokens (processor, plan->tile_width, plan->tile_height);
  plan->n_crops = n_tiles;
  plan->image_tokens = n_tiles * plan->tile_tokens;

  if (plan->tiled && processor->use_thumbnail) {
    plan->has_thumbnail = TRUE;
    plan->thumbnail_width = (guint) single.width;
    plan->thumbnail_height = (guint) single.height;
    plan->thumbnail_tokens = crop_tokens (processor, plan->thumbnail_width, plan->thumbnail_height);
    plan->n_crops++;
    plan->image_tokens += plan->thumbnail_tokens;
  }
}

gboolean
vlm_layout_plan (
    VlmLayout *layout, const VlmProcessor *processor, guint width, guint height, GError **error)
{
  VlmLayout plan = { 0 };
  gboolean split;
  Size single;
  Size tile = { processor->tile_size, processor->tile_size };

  if (width == 0 || height == 0) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_IMAGE,
        "A picture of %ux%u pixels cannot be described: both sides must be at least 1", width,
        height);
    return FALSE;
  }

  split = processor->do_image_splitting && !(processor->min_tiles == 1 && processor->max_tiles == 1)
      && is_large (processor, width, height);
  single = single_size (processor, width, height);
  if (split && !check_patches (processor, width, height, tile, error))
    return FALSE;
  if ((!split || processor->use_thumbnail)
      && !check_patches (processor, width, height, single, error))
    return FALSE;

  plan.width = width;
  plan.height = height;
  fill_crops (&plan, processor, single, split);
  *layout = plan;
  return TRUE;
}

void
vlm_layout_crop_size (const VlmLayout *layout, guint index, guint *width, guint *height)
{
  gboolean thumbnail = layout->has_thumbnail && index == layout->n_crops - 1;

  *width = thumbnail ? layout->thumbnail_width : layout->tile_width;
  *height = thumbnail ? layout->thumbnail_height : layout->tile_height;
}
