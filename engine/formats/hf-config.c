/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* config.json. */

#include "hf.h"

#include "engine/vlm.h"

#include <math.h>
#include <string.h>

#define MAX_BLOCK (1u << 20)

/* Those of the reference's configuration classes. */
static void
init_defaults (VlmConfig *config)
{
  VlmTextConfig *text = &config->text;
  VlmVisionConfig *vision = &config->vision;
  VlmProjectorConfig *projector = &config->projector;

  memset (config, 0, sizeof (*config));
  text->vocab_size = 65536;
  text->hidden_size = 2560;
  text->n_layers = 32;
  text->n_heads = 32;
  text->n_kv_heads = 8;
  text->conv_taps = 3;
  text->max_context = 128000;
  text->norm_eps = 1e-5f;
  text->rope_theta = 1e6;
  text->tied_head = TRUE;

  vision->hidden_size = 768;
  vision->ff_size = 3072;
  vision->n_layers = 12;
  vision->n_heads = 12;
  vision->patch_size = 16;
  vision->n_positions = 256;
  vision->norm_eps = 1e-6f;

  projector->hidden_size = 2560;
  projector->layer_norm = TRUE;
  projector->bias = TRUE;
  projector->downsample_factor = 2;
  config->image_token_id = 396;
}

/* A key that names a kind; absent is fine. values: NULL-terminated. */
static gboolean
require_name (const VlmJson *json, const gchar *key, const gchar *const *values, GError **error)
{
  const gchar *name = NULL;
  g_autofree gchar *expected = NULL;

  if (!vlm_json_get_string (json, key, &name, error))
    return FALSE;
  if (!name || g_strv_contains (values, name))
    return TRUE;
  expected = g_strjoinv (" or ", (gchar **) values);
  vlm_json_set_error (error, VLM_ERROR_UNSUPPORTED, json, key, vlm_json_get (json, key), expected);
  return FALSE;
}

/* A number that the network has no place for unless it is the one that changes nothing. */
static gboolean
require_number (const VlmJson *json, const gchar *key, gdouble neutral, GError **error)
{
  gdouble number = neutral;
  g_autofree gchar *expected = NULL;

  if (!vlm_json_get_double (json, key, -G_MAXDOUBLE, G_MAXDOUBLE, &number, error))
    return FALSE;
  if (number == neutral)
    return TRUE;
  expected = g_strdup_printf ("%g or none", neutral);
  vlm_json_set_error (error, VLM_ERROR_UNSUPPORTED, json, key, vlm_json_get (json, key), expected);
  return FALSE;
}

/* rope_parameters and the older rope_scaling: only the plain rotation is implemented. */
static gboolean
read_rope_object (const VlmJson *json, const gchar *key, gdouble *theta, GError **error)
{
  static const gchar *const types[] = { "default", NULL };
  VlmJson rope;

  return vlm_json_get_object (json, key, &rope, error)
      && require_name (&rope, "rope_type", types, error)
      && require_name (&rope, "type", types, error)
      && require_number (&rope, "partial_rotary_factor", 1, error)
      && vlm_json_get_double (&rope, "rope_theta", 1, VLM_MAX_THETA, theta, error);
}

static gboolean
read_rope (const VlmJson *json, VlmTextConfig *text, GError **error)
{
  return vlm_json_get_double (json, "rope_theta", 1, VLM_MAX_THETA, &text->rope_theta, error)
      && read_rope_object (json, "rope_scaling", &text->rope_theta, error)
      && read_rope_object (json, "rope_parameters", &text->rope_theta, error)
      && require_number (json, "partial_rotary_factor", 1, error);
}

static gboolean
read_layer_types (const VlmJson *json, const json_t *types, VlmTextConfig *text, GError **error)
{
  g_autofree gchar *expected = g_strdup_printf ("%u entries (num_hidden_layers)", text->n_layers);
  gsize i;

  if (json_array_size (types) != text->n_layers) {
    vlm_json_set_error (error, VLM_ERROR_FORMAT, json, "layer_types", types, expected);
    return FALSE;
  }
  for (i = 0; i < text->n_layers; i++) {
    const json_t *type = json_array_get (types, i);
    const gchar *name = json_string_value (type);

    if (!g_strcmp0 (name, "conv")) {
      text->layers[i] = VLM_LAYER_CONV;
    } else if (!g_strcmp0 (name, "full_attention")) {
      text->layers[i] = VLM_LAYER_ATTENTION;
    } else {
      g_autofree gchar *key = g_strdup_printf ("layer_types[%" G_GSIZE_FORMAT "]", i);

      vlm_json_set_error (
          error, VLM_ERROR_UNSUPPORTED, json, key, type, "\"conv\" or \"full_attention\"");
      return FALSE;
    }
  }
  return TRUE;
}

static gboolean
read_attention_indices (
    const VlmJson *json, const json_t *indices, VlmTextConfig *text, GError **error)
{
  gsize i;

  for (i = 0; i < text->n_layers; i++)
    text->layers[i] = VLM_LAYER_CONV;
  for (i = 0; i < json_array_size (indices); i++) {
    const json_t *index = json_array_get (indices, i);
    json_int_t layer = json_integer_value (index);

    if (!json_is_integer (index) || layer < 0 || layer >= text->n_layers) {
      g_autofree gchar *key = g_strdup_printf ("full_attn_idxs[%" G_GSIZE_FORMAT "]", i);
      g_autofree gchar *expected = g_strdup_printf ("a layer 0..%u", text->n_layers - 1);

      vlm_json_set_error (error, VLM_ERROR_FORMAT, json, key, index, expected);
      return FALSE;
    }
    text->layers[layer] = VLM_LAYER_ATTENTION;
  }
  return TRUE;
}

static gboolean
read_layers (const VlmJson *json, VlmTextConfig *text, GError **error)
{
  const json_t *types = NULL, *indices = NULL;
  guint i;

  if (!vlm_json_get_array (json, "layer_types", &types, error)
      || !vlm_json_get_array (json, "full_attn_idxs", &indices, error))
    return FALSE;
  if (types)
    return read_layer_types (json, types, text, error);
  if (indices)
    return read_attention_indices (json, indices, text, error);
  for (i = 0; i < text->n_layers; i++)
    text->layers[i] = VLM_LAYER_ATTENTION;
  return TRUE;
}

static gboolean
read_feed_forward (const VlmJson *json, VlmTextConfig *text, GError **error)
{
  guint plain = 12288, multiple_of = 256, adjusted;
  gboolean adjust = TRUE;
  gdouble multiplier = 1;

  if (!vlm_json_get_uint (json, "intermediate_size", 1, VLM_MAX_FEED_FORWARD, &plain, error)
      || !vlm_json_get_uint (json, "block_ff_dim", 1, VLM_MAX_FEED_FORWARD, &plain, error)
      || !vlm_json_get_boolean (json, "block_auto_adjust_ff_dim", &adjust, error)
      || !vlm_json_get_uint (json, "block_multiple_of", 1, MAX_BLOCK, &multiple_of, error)
      || !vlm_json_get_double (json, "block_ffn_dim_multiplier", 0, 1e6, &multiplier, error))
    return FALSE;
  if (json_is_null (json_object_get (json->object, "block_ffn_dim_multiplier")))
    multiplier = NAN;
  adjusted = vlm_config_adjust_feed_forward (plain, multiplier, multiple_of);
  text->ff_size = adjust ? adjusted : plain;
  text->ff_size_other = adjust ? plain : adjusted;
  if (text->ff_size)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: a feed-forward width of %u, adjusted by block_ffn_dim_multiplier %g and "
      "block_multiple_of %u, is not within 1..%u",
      json->file, plain, multiplier, multiple_of, VLM_MAX_FEED_FORWARD);
  return FALSE;
}

/* Things that this architecture does not have: a file that asks for them is another model. */
static gboolean
refuse_foreign_text (const VlmJson *json, GError **error)
{
  static const gchar *const models[] = { "lfm2", NULL };
  static const gchar *const activations[] = { "silu", "swish", NULL };
  const json_t *window = vlm_json_get (json, "sliding_window");
  gboolean use_window = TRUE;

  if (!require_name (json, "hidden_act", activations, error)
      || !vlm_json_get_boolean (json, "use_sliding_window", &use_window, error))
    return FALSE;
  if (window && use_window) {
    vlm_json_set_error (error, VLM_ERROR_UNSUPPORTED, json, "sliding_window", window, "none");
    return FALSE;
  }
  return !json->section || require_name (json, "model_type", models, error);
}

static gboolean
read_text (const VlmJson *json, VlmTextConfig *text, GError **error)
{
  if (!refuse_foreign_text (json, error)
      || !vlm_json_get_uint (json, "vocab_size", 1, VLM_MAX_VOCABULARY, &text->vocab_size, error)
      || !vlm_json_get_uint (json, "hidden_size", 1, VLM_MAX_WIDTH, &text->hidden_size, error)
      || !vlm_json_get_uint (json, "num_hidden_layers", 1, VLM_MAX_LAYERS, &text->n_layers, error)
      || !vlm_json_get_uint (json, "num_attention_heads", 1, VLM_MAX_HEADS, &text->n_heads, error)
      || !vlm_json_get_uint (
          json, "num_key_value_heads", 1, VLM_MAX_HEADS, &text->n_kv_heads, error))
    return FALSE;
  if (!vlm_json_get (json, "head_dim") && text->hidden_size % text->n_heads) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: hidden_size is %u, expected a multiple of num_attention_heads, which is %u",
        json->file, text->hidden_size, text->n_heads);
    return FALSE;
  }
  text->head_dim = text->hidden_size / text->n_heads;
  return vlm_json_get_uint (json, "head_dim", 1, VLM_MAX_WIDTH, &text->head_dim, error)
      && read_feed_forward (json, text, error)
      && vlm_json_get_uint (
          json, "conv_L_cache", VLM_MIN_CONV_TAPS, VLM_MAX_CONV_TAPS, &text->conv_taps, error)
      && vlm_json_get_boolean (json, "conv_bias", &text->conv_bias, error)
      && vlm_json_get_uint (
          json, "max_position_embeddings", 1, VLM_MAX_CONTEXT, &text->max_context, error)
      && vlm_json_get_float (json, "norm_eps", VLM_MIN_EPS, VLM_MAX_EPS, &text->norm_eps, error)
      && read_rope (json, text, error) && read_layers (json, text, error);
}

static gboolean
read_vision (const VlmJson *json, VlmVisionConfig *vision, GError **error)
{
  static const gchar *const models[] = { "siglip2_vision_model", "siglip2", NULL };
  static const gchar *const activations[] = { "gelu_pytorch_tanh", NULL };

  if (!require_name (json, "model_type", models, error)
      || !require_name (json, "hidden_act", activations, error)
      || !require_number (json, "num_channels", 3, error)
      || !vlm_json_get_uint (json, "hidden_size", 1, VLM_MAX_WIDTH, &vision->hidden_size, error)
      || !vlm_json_get_uint (
          json, "intermediate_size", 1, VLM_MAX_FEED_FORWARD, &vision->ff_size, error)
      || !vlm_json_get_uint (json, "num_hidden_layers", 1, VLM_MAX_LAYERS, &vision->n_layers, error)
      || !vlm_json_get_uint (json, "num_attention_heads", 1, VLM_MAX_HEADS, &vision->n_heads, error)
      || !vlm_json_get_uint (json, "patch_size", 1, VLM_MAX_PATCH, &vision->patch_size, error)
      || !vlm_json_get_uint (json, "num_patches", 1, VLM_MAX_POSITIONS, &vision->n_positions, error)
      || !vlm_json_get_float (
          json, "layer_norm_eps", VLM_MIN_EPS, VLM_MAX_EPS, &vision->norm_eps, error))
    return FALSE;
  vision->head_dim = vision->hidden_size / vision->n_heads;
  return TRUE;
}

static gboolean
read_projector (const VlmJson *json, VlmProjectorConfig *projector, GError **error)
{
  static const gchar *const activations[] = { "gelu", NULL };

  return require_name (json, "projector_hidden_act", activations, error)
      && vlm_json_get_uint (
          json, "projector_hidden_size", 1, VLM_MAX_WIDTH, &projector->hidden_size, error)
      && vlm_json_get_boolean (json, "projector_bias", &projector->bias, error)
      && vlm_json_get_boolean (json, "projector_use_layernorm", &projector->layer_norm, error)
      && vlm_json_get_uint (
          json, "downsample_factor", 1, VLM_MAX_DOWNSAMPLE, &projector->downsample_factor, error);
}

static gboolean
read_model_type (const VlmJson *json, gboolean *has_vision, GError **error)
{
  const gchar *type = NULL;

  if (!vlm_json_get_string (json, "model_type", &type, error))
    return FALSE;
  *has_vision = !g_strcmp0 (type, "lfm2_vl") || !g_strcmp0 (type, "lfm2-vl");
  if (*has_vision || !g_strcmp0 (type, "lfm2"))
    return TRUE;
  vlm_json_set_error (error, VLM_ERROR_UNSUPPORTED, json, "model_type",
      vlm_json_get (json, "model_type"), "\"lfm2_vl\", \"lfm2-vl\" or \"lfm2\"");
  return FALSE;
}

gboolean
vlm_hf_read_config (const VlmJson *json, VlmConfig *config, GError **error)
{
  VlmJson text = *json, vision;

  init_defaults (config);
  /* Tying follows the top level, and the older key wins, as in the reference. */
  if (!read_model_type (json, &config->has_vision, error)
      || !vlm_json_get_boolean (json, "tie_word_embeddings", &config->text.tied_head, error)
      || !vlm_json_get_boolean (json, "tie_embedding", &config->text.tied_head, error))
    return FALSE;
  if (config->has_vision
      && (!vlm_json_get_object (json, "text_config", &text, error)
          || !vlm_json_get_object (json, "vision_config", &vision, error)
          || !read_vision (&vision, &config->vision, error)
          || !read_projector (json, &config->projector, error)
          || !vlm_json_get_int (
              json, "image_token_index", 0, G_MAXINT, &config->image_token_id, error)
          || !vlm_json_get_int (
              json, "image_token_id", 0, G_MAXINT, &config->image_token_id, error)))
    return FALSE;
  if (!read_text (&text, &config->text, error))
    return FALSE;
  if (!vlm_config_validate (config, error)) {
    g_prefix_error (error, "%s: ", json->file);
    return FALSE;
  }
  return TRUE;
}
