/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The vision part of a GGUF model: what config.json and processor_config.json say of pictures. */

#include "gguf-settings-private.h"

#include "engine/image/processor.h"
#include "engine/model/config.h"

#define PROJECTOR "clip.projector_type"
#define PATCH "clip.vision.patch_size"
#define WIDTH "clip.vision.embedding_length"
#define PROJECTION "clip.vision.projection_dim"
#define SCALE "clip.vision.projector.scale_factor"
#define MIN_TILES "clip.vision.preproc_min_tiles"
#define MAX_TILES "clip.vision.preproc_max_tiles"

#define PATCH_EMBEDDING "v.patch_embd.weight"
#define POSITIONS "v.position_embd.weight"
#define LINEAR_1 "mm.1.weight"
#define PROJECTOR_NORM "mm.input_norm.weight"

#define COLOURS 3

/* Of the text model in LFM2-VL-3B and LFM2.5-VL-3B. */
#define WIDTH_3B 2048
#define LAYERS_3B 30

/* Names of the kind of network, and switches that must be as here. */
static gboolean
check_kind (const VlmGguf *mmproj, GError **error)
{
  /* The key is another one in files for more than pictures. */
  const gchar *projector =
      vlm_gguf_find (mmproj, PROJECTOR) ? PROJECTOR : "clip.vision.projector_type";
  gboolean has_vision = TRUE, use_gelu = FALSE;

  if (!vlm_gguf_require_name (mmproj, VLM_GGUF_ARCHITECTURE, "clip", error)
      || !vlm_gguf_require_name (mmproj, projector, "lfm2", error)
      || !vlm_gguf_get_boolean (mmproj, "clip.has_vision_encoder", &has_vision, error)
      || !vlm_gguf_require (mmproj, "clip.use_gelu", "true", error)
      || !vlm_gguf_get_boolean (mmproj, "clip.use_gelu", &use_gelu, error))
    return FALSE;
  if (!has_vision)
    return vlm_gguf_fail (
        error, VLM_ERROR_UNSUPPORTED, mmproj, "clip.has_vision_encoder is false, expected true");
  return use_gelu
      || vlm_gguf_fail (
          error, VLM_ERROR_UNSUPPORTED, mmproj, "clip.use_gelu is false, expected true");
}

/* Both halves of a model must have been made for each other. */
static gboolean
check_projection (const VlmGguf *text, const VlmGguf *mmproj, GError **error)
{
  guint projection = 0, width = 0;

  if (!vlm_gguf_require_uint (mmproj, PROJECTION, 1, VLM_MAX_WIDTH, &projection, error)
      || !vlm_gguf_require_uint (text, VLM_GGUF_WIDTH, 1, VLM_MAX_WIDTH, &width, error))
    return FALSE;
  return projection == width
      || vlm_gguf_fail (error, VLM_ERROR_FORMAT, mmproj,
          PROJECTION " is %u, expected %u, which is " VLM_GGUF_WIDTH " of %s", projection, width,
          vlm_gguf_get_path (text));
}

static json_t *
make_tower (const VlmGguf *mmproj, guint *width, GError **error)
{
  guint ff_size = 0, n_layers = 0, n_heads = 0, patch = 0;
  guint64 table[2], taps[4];
  gdouble eps = 0;

  if (!vlm_gguf_require_uint (mmproj, WIDTH, 1, VLM_MAX_WIDTH, width, error)
      || !vlm_gguf_require_uint (
          mmproj, "clip.vision.feed_forward_length", 1, VLM_MAX_FEED_FORWARD, &ff_size, error)
      || !vlm_gguf_require_uint (
          mmproj, "clip.vision.block_count", 1, VLM_MAX_LAYERS, &n_layers, error)
      || !vlm_gguf_require_uint (
          mmproj, "clip.vision.attention.head_count", 1, VLM_MAX_HEADS, &n_heads, error)
      || !vlm_gguf_require_double (
          mmproj, "clip.vision.attention.layer_norm_epsilon", VLM_MIN_EPS, VLM_MAX_EPS, &eps, error)
      || !vlm_gguf_require_uint (mmproj, PATCH, 1, VLM_MAX_PATCH, &patch, error)
      || !vlm_gguf_require_dims (mmproj, PATCH_EMBEDDING, 4, taps, error)
      || !vlm_gguf_require_dims (mmproj, POSITIONS, 2, table, error))
    return NULL;
  if (taps[0] != patch || taps[1] != patch) {
    vlm_gguf_fail (error, VLM_ERROR_FORMAT, mmproj,
        PATCH " is %u, but the patches of " PATCH_EMBEDDING " have %" G_GUINT64_FORMAT
              " x %" G_GUINT64_FORMAT " pixels",
        patch, taps[0], taps[1]);
    return NULL;
  }
  if (table[1] > VLM_MAX_POSITIONS) {
    vlm_gguf_fail (error, VLM_ERROR_FORMAT, mmproj,
        "the tensor " POSITIONS " has %" G_GUINT64_FORMAT " rows, expected at most %u", table[1],
        VLM_MAX_POSITIONS);
    return NULL;
  }
  return json_pack ("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:b}", "model_type",
      "siglip2_vision_model", "hidden_size", *width, "intermediate_size", ff_size,
      "num_hidden_layers", n_layers, "num_attention_heads", n_heads, "patch_size", patch,
      "num_patches", (guint) table[1], "layer_norm_eps", eps, "vision_use_head", FALSE);
}

/* The side of the square of patches that becomes one token. */
static gboolean
read_scale (const VlmGguf *mmproj, guint *scale, GError **error)
{
  *scale = 2;
  return vlm_gguf_get_small (mmproj, SCALE, 1, VLM_MAX_DOWNSAMPLE, scale, error);
}

/* Width and norm of the projector are where its tensors are. */
static gboolean
add_projector (json_t *config, const VlmGguf *mmproj, guint width, GError **error)
{
  guint64 dims[2];
  guint scale, wide;

  if (!read_scale (mmproj, &scale, error)
      || !vlm_gguf_require_dims (mmproj, LINEAR_1, 2, dims, error))
    return FALSE;
  wide = width * scale * scale;
  if (dims[0] != wide)
    return vlm_gguf_fail (error, VLM_ERROR_FORMAT, mmproj,
        "the tensor " LINEAR_1 " takes %" G_GUINT64_FORMAT " values, expected %u, which is " WIDTH
        " %u times the square of " SCALE " %u",
        dims[0], wide, width, scale);
  if (dims[1] > VLM_MAX_WIDTH)
    return vlm_gguf_fail (error, VLM_ERROR_FORMAT, mmproj,
        "the tensor " LINEAR_1 " has %" G_GUINT64_FORMAT " rows, expected at most %d", dims[1],
        VLM_MAX_WIDTH);
  json_object_set_new (config, "projector_hidden_size", json_integer ((json_int_t) dims[1]));
  json_object_set_new (config, "projector_use_layernorm",
      json_boolean (vlm_gguf_find_tensor (mmproj, PROJECTOR_NORM) != NULL));
  json_object_set_new (
      config, "projector_bias", json_boolean (vlm_gguf_find_tensor (mmproj, "mm.1.bias") != NULL));
  json_object_set_new (config, "downsample_factor", json_integer (scale));
  return TRUE;
}

gboolean
vlm_gguf_add_vision (json_t *config, const VlmGguf *text, const VlmGguf *mmproj, GError **error)
{
  gint64 image = vlm_gguf_find_token (text, "<image>");
  guint width = 0;
  json_t *tower;

  if (!check_kind (mmproj, error) || !check_projection (text, mmproj, error))
    return FALSE;
  tower = make_tower (mmproj, &width, error);
  if (!tower)
    return FALSE;
  json_object_set_new (config, "vision_config", tower);
  if (image >= 0)
    json_object_set_new (config, "image_token_id", json_integer (image));
  return add_projector (config, mmproj, width, error);
}

/*
 * No key tells the filter, and most files do not tell the tiles. Bicubic are the models whose
 * projector has a norm, which are those before LFM2.5, and the one of 3B. Of LFM2.5, the one of 3B
 * takes a single tile where the others take two at least.
 */
static gboolean
add_defaults (VlmProcessor *processor, const VlmGguf *text, const VlmGguf *mmproj, GError **error)
{
  gboolean has_norm = vlm_gguf_find_tensor (mmproj, PROJECTOR_NORM) != NULL;
  guint width = 0, n_layers = 0;
  gboolean is_3b;

  if (!vlm_gguf_require_uint (text, VLM_GGUF_WIDTH, 1, VLM_MAX_WIDTH, &width, error)
      || !vlm_gguf_require_uint (text, VLM_GGUF_LAYERS, 1, VLM_MAX_LAYERS, &n_layers, error))
    return FALSE;
  is_3b = width == WIDTH_3B && n_layers == LAYERS_3B;
  processor->filter = has_norm || is_3b ? VLM_FILTER_BICUBIC : VLM_FILTER_BILINEAR;
  if (is_3b && !has_norm)
    processor->min_tiles = 1;
  return TRUE;
}

/* Three numbers, one for each colour. */
static json_t *
make_colours (const VlmGguf *mmproj, const gchar *key, gdouble low, GError **error)
{
  const VlmGgufValue *value = NULL;
  json_t *colours;
  guint i;

  if (!vlm_gguf_require (mmproj, key, "three numbers", error)
      || !vlm_gguf_get_numbers (mmproj, key, &value, error))
    return NULL;
  if (value->n != COLOURS) {
    vlm_gguf_fail (error, VLM_ERROR_FORMAT, mmproj,
        "%s has %" G_GUINT64_FORMAT " entries, expected %d", key, value->n, COLOURS);
    return NULL;
  }
  colours = json_array ();
  for (i = 0; i < COLOURS; i++) {
    gdouble number = vlm_gguf_shorten (vlm_gguf_value_get_number (value, i));

    if (!(number >= low && number <= 1e6)) {
      vlm_gguf_fail (
          error, VLM_ERROR_FORMAT, mmproj, "%s[%u] is %g, expected %g..1e+06", key, i, number, low);
      json_decref (colours);
      return NULL;
    }
    json_array_append_new (colours, json_real (number));
  }
  return colours;
}

static json_t *
print_processor (const VlmProcessor *processor, json_t *mean, json_t *std)
{
  json_t *settings = json_pack ("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:b, s:b, s:i, s:o, s:o}",
      "encoder_patch_size", processor->patch_size, "downsample_factor",
      processor->downsample_factor, "tile_size", processor->tile_size, "min_tiles",
      processor->min_tiles, "max_tiles", processor->max_tiles, "min_image_tokens",
      processor->min_image_tokens, "max_image_tokens", processor->max_image_tokens,
      "max_pixels_tolerance", processor->max_pixels_tolerance, "do_image_splitting",
      processor->do_image_splitting, "use_thumbnail", processor->use_thumbnail, "resample",
      processor->filter, "image_mean", mean, "image_std", std);

  return json_pack (
      "{s:o, s:s}", "image_processor", settings, "processor_class", "Lfm2VlProcessor");
}

json_t *
vlm_gguf_make_processor (const VlmGguf *text, const VlmGguf *mmproj, GError **error)
{
  VlmProcessor processor;
  json_t *mean, *std;

  vlm_processor_init_defaults (&processor);
  if (!add_defaults (&processor, text, mmproj, error)
      || !vlm_gguf_require_uint (mmproj, PATCH, 1, VLM_MAX_PATCH, &processor.patch_size, error)
      || !read_scale (mmproj, &processor.downsample_factor, error)
      || !vlm_gguf_get_small (mmproj, MIN_TILES, 1, 100, &processor.min_tiles, error)
      || !vlm_gguf_get_small (mmproj, MAX_TILES, 1, 100, &processor.max_tiles, error))
    return NULL;
  mean = make_colours (mmproj, "clip.vision.image_mean", -1e6, error);
  if (!mean)
    return NULL;
  std = make_colours (mmproj, "clip.vision.image_std", 1e-6, error);
  if (!std) {
    json_decref (mean);
    return NULL;
  }
  return print_processor (&processor, mean, std);
}
