/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "processor.h"

#include <math.h>

#include "engine/vlm.h"

/* Wide enough for every published model and far from where a product of two could wrap. */
#define MAX_PATCH_SIZE 128
#define MAX_DOWNSAMPLE 8
#define MAX_TILE_SIZE 4096
#define MAX_TILES 100 /* there are tokens for ten rows and ten columns */
#define MAX_IMAGE_TOKENS 65536
#define MAX_TOLERANCE 1e6

void
vlm_processor_init_defaults (VlmProcessor *processor)
{
  guint c;

  processor->patch_size = 16;
  processor->downsample_factor = 2;
  processor->tile_size = 512;
  processor->min_tiles = 2;
  processor->max_tiles = 10;
  processor->min_image_tokens = 64;
  processor->max_image_tokens = 256;
  processor->max_pixels_tolerance = 2.0;
  processor->do_image_splitting = TRUE;
  processor->use_thumbnail = TRUE;
  processor->use_image_special_tokens = TRUE;
  processor->filter = VLM_FILTER_BILINEAR;
  processor->path = VLM_RESAMPLE_INTEGER;
  processor->rescale_factor = 1.0 / 255.0;
  for (c = 0; c < 3; c++) {
    processor->mean[c] = 0.5f;
    processor->std[c] = 0.5f;
  }
}

static gboolean
check_range (const gchar *field, guint value, guint max, GError **error)
{
  if (value >= 1 && value <= max)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_SETTINGS, "Image processor: %s is %u, expected 1 to %u",
      field, value, max);
  return FALSE;
}

static gboolean
check_sizes (const VlmProcessor *processor, GError **error)
{
  guint factor;

  if (!check_range ("encoder_patch_size", processor->patch_size, MAX_PATCH_SIZE, error)
      || !check_range ("downsample_factor", processor->downsample_factor, MAX_DOWNSAMPLE, error)
      || !check_range ("tile_size", processor->tile_size, MAX_TILE_SIZE, error)
      || !check_range ("min_image_tokens", processor->min_image_tokens, MAX_IMAGE_TOKENS, error)
      || !check_range ("max_image_tokens", processor->max_image_tokens, MAX_IMAGE_TOKENS, error))
    return FALSE;

  if (processor->min_image_tokens > processor->max_image_tokens) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_SETTINGS,
        "Image processor: min_image_tokens %u is above max_image_tokens %u",
        processor->min_image_tokens, processor->max_image_tokens);
    return FALSE;
  }
  factor = processor->patch_size * processor->downsample_factor;
  if (processor->tile_size % factor != 0) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
        "Image processor: tile_size %u is no multiple of %u (encoder_patch_size times "
        "downsample_factor)",
        processor->tile_size, factor);
    return FALSE;
  }
  return TRUE;
}

static gboolean
check_tiles (const VlmProcessor *processor, GError **error)
{
  if (!check_range ("min_tiles", processor->min_tiles, MAX_TILES, error)
      || !check_range ("max_tiles", processor->max_tiles, MAX_TILES, error))
    return FALSE;
  if (processor->min_tiles > processor->max_tiles) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_SETTINGS,
        "Image processor: min_tiles %u is above max_tiles %u", processor->min_tiles,
        processor->max_tiles);
    return FALSE;
  }
  return TRUE;
}

static gboolean
check_number (const gchar *field, gdouble value, gboolean positive, gdouble max, GError **error)
{
  if (isfinite (value) && fabs (value) <= max && (!positive || value > 0))
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_SETTINGS,
      "Image processor: %s is %g, expected a %s number up to %g", field, value,
      positive ? "positive" : "finite", max);
  return FALSE;
}

static gboolean
check_pixel_values (const VlmProcessor *processor, GError **error)
{
  guint c;

  if (!check_number (
          "max_pixels_tolerance", processor->max_pixels_tolerance, TRUE, MAX_TOLERANCE, error)
      || !check_number ("rescale_factor", processor->rescale_factor, TRUE, 1e6, error))
    return FALSE;
  for (c = 0; c < 3; c++) {
    if (!check_number ("image_mean", processor->mean[c], FALSE, 1e6, error)
        || !check_number ("image_std", processor->std[c], TRUE, 1e6, error))
      return FALSE;
  }
  if (!isfinite (1.0f / (gfloat) processor->rescale_factor)) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_SETTINGS,
        "Image processor: rescale_factor %g is too small", processor->rescale_factor);
    return FALSE;
  }
  return TRUE;
}

gboolean
vlm_processor_validate (const VlmProcessor *processor, GError **error)
{
  if (!check_sizes (processor, error) || !check_tiles (processor, error)
      || !check_pixel_values (processor, error))
    return FALSE;

  if (processor->filter != VLM_FILTER_BILINEAR && processor->filter != VLM_FILTER_BICUBIC) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
        "Image processor: resample is %d, expected %d (bilinear) or %d (bicubic)",
        (gint) processor->filter, VLM_FILTER_BILINEAR, VLM_FILTER_BICUBIC);
    return FALSE;
  }
  if (processor->path == VLM_RESAMPLE_FLOAT && processor->filter != VLM_FILTER_BILINEAR) {
    g_set_error_literal (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
        "Image processor: the float path knows the bilinear filter only");
    return FALSE;
  }
  return TRUE;
}
