/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* processor_config.json and preprocessor_config.json. */

#include "hf.h"

#include "engine/vlm.h"

#define MAX_SIZE 65536

/* Three numbers, one for each colour. */
static gboolean
read_colours (const VlmJson *json, const gchar *key, gfloat *values, GError **error)
{
  const json_t *array = NULL;
  guint i;

  if (!vlm_json_get_array (json, key, &array, error))
    return FALSE;
  if (!array)
    return TRUE;
  for (i = 0; i < 3; i++) {
    const json_t *value = json_array_get (array, i);

    if (json_array_size (array) != 3 || !json_is_number (value)) {
      vlm_json_set_error (error, VLM_ERROR_FORMAT, json, key, array, "three numbers");
      return FALSE;
    }
    values[i] = (gfloat) json_number_value (value);
  }
  return TRUE;
}

/* Steps that are switched off become steps that change nothing. */
static gboolean
read_pixel_values (const VlmJson *json, VlmProcessor *processor, GError **error)
{
  gboolean do_rescale = TRUE, do_normalize = TRUE;
  guint i;

  if (!vlm_json_get_boolean (json, "do_rescale", &do_rescale, error)
      || !vlm_json_get_boolean (json, "do_normalize", &do_normalize, error)
      || !vlm_json_get_double (json, "rescale_factor", 1e-9, 1e6, &processor->rescale_factor, error)
      || !read_colours (json, "image_mean", processor->mean, error)
      || !read_colours (json, "image_std", processor->std, error))
    return FALSE;
  if (!do_rescale)
    processor->rescale_factor = 1;
  for (i = 0; i < 3 && !do_normalize; i++) {
    processor->mean[i] = 0;
    processor->std[i] = 1;
  }
  return TRUE;
}

static gboolean
read_settings (const VlmJson *json, VlmProcessor *processor, GError **error)
{
  guint filter = processor->filter;

  if (!vlm_json_get_uint (json, "encoder_patch_size", 1, MAX_SIZE, &processor->patch_size, error)
      || !vlm_json_get_uint (
          json, "downsample_factor", 1, MAX_SIZE, &processor->downsample_factor, error)
      || !vlm_json_get_uint (json, "tile_size", 1, MAX_SIZE, &processor->tile_size, error)
      || !vlm_json_get_uint (json, "min_tiles", 1, MAX_SIZE, &processor->min_tiles, error)
      || !vlm_json_get_uint (json, "max_tiles", 1, MAX_SIZE, &processor->max_tiles, error)
      || !vlm_json_get_uint (
          json, "min_image_tokens", 1, MAX_SIZE, &processor->min_image_tokens, error)
      || !vlm_json_get_uint (
          json, "max_image_tokens", 1, MAX_SIZE, &processor->max_image_tokens, error)
      || !vlm_json_get_double (
          json, "max_pixels_tolerance", 0, 1e6, &processor->max_pixels_tolerance, error)
      || !vlm_json_get_boolean (json, "do_image_splitting", &processor->do_image_splitting, error)
      || !vlm_json_get_boolean (json, "use_thumbnail", &processor->use_thumbnail, error)
      || !vlm_json_get_boolean (
          json, "use_image_special_tokens", &processor->use_image_special_tokens, error)
      || !vlm_json_get_uint (
          json, "resample", VLM_FILTER_BILINEAR, VLM_FILTER_BICUBIC, &filter, error))
    return FALSE;
  processor->filter = filter;
  return read_pixel_values (json, processor, error);
}

static gboolean
validate (const VlmProcessor *processor, const gchar *file, GError **error)
{
  if (vlm_processor_validate (processor, error))
    return TRUE;
  g_prefix_error (error, "%s: ", file);
  /* To whoever loads a model these are no settings of theirs. */
  if (error && g_error_matches (*error, VLM_ERROR, VLM_ERROR_SETTINGS))
    (*error)->code = VLM_ERROR_FORMAT;
  return FALSE;
}

/* found tells whether the file exists and has an object image_processor. */
static gboolean
read_nested (const VlmModelFiles *files, VlmProcessor *processor, gboolean *found, GError **error)
{
  g_autofree gchar *file = NULL;
  g_autoptr (VlmJsonDocument) root = NULL;
  VlmJson json, nested;

  *found = FALSE;
  if (!vlm_model_files_has (files, VLM_HF_PROCESSOR))
    return TRUE;
  root = vlm_json_load (files, VLM_HF_PROCESSOR, VLM_HF_MAX_SETTINGS, 0, &file, error);
  if (!root)
    return FALSE;
  json = (VlmJson){ file, NULL, root };
  if (!vlm_json_get_object (&json, "image_processor", &nested, error)
      || !vlm_json_get_boolean (
          &json, "use_image_special_tokens", &processor->use_image_special_tokens, error))
    return FALSE;
  *found = nested.object != NULL;
  return !*found
      || (read_settings (&nested, processor, error) && validate (processor, file, error));
}

gboolean
vlm_hf_read_processor (const VlmModelFiles *files, VlmProcessor *processor, GError **error)
{
  g_autofree gchar *file = NULL;
  g_autoptr (VlmJsonDocument) root = NULL;
  gboolean found;
  VlmJson json;

  vlm_processor_init_defaults (processor);
  if (!read_nested (files, processor, &found, error))
    return FALSE;
  if (found || !vlm_model_files_has (files, VLM_HF_PREPROCESSOR))
    return TRUE;
  root = vlm_json_load (files, VLM_HF_PREPROCESSOR, VLM_HF_MAX_SETTINGS, 0, &file, error);
  if (!root)
    return FALSE;
  json = (VlmJson){ file, NULL, root };
  return read_settings (&json, processor, error) && validate (processor, file, error);
}
