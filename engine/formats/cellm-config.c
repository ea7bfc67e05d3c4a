/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The header of a .cellm file as config.json and preprocessor_config.json would say it. What the
 * tensors tell is taken from them; the header may say it too, but must not say otherwise.
 */

#include "cellm.h"

#include "engine/vlm.h"

#include <math.h>
#include <string.h>

/* More than any claim that is compared. */
#define MAX_CLAIM G_MAXINT32

typedef struct
{
  const VlmCellm *cellm;
  VlmJson header, text, vision, projector; /* what the file says */
  json_t *made;                            /* what is being made: the text's, or the tower's */
} Maker;

/* ---- From tensors ------------------------------------------------------------------------- */

/* The side of a tensor that must be there. */
static gboolean
get_side (const Maker *maker, const gchar *part, const gchar *name, guint rank, guint side,
    guint *value, GError **error)
{
  const VlmCellmTensor *tensor = vlm_cellm_find (maker->cellm, part, name);
  g_autofree gchar *shape = NULL;

  if (!tensor) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT, "%s: tensor %s%s is missing",
        vlm_cellm_get_path (maker->cellm), part, name);
    return FALSE;
  }
  if (tensor->info.rank == rank && tensor->info.shape[side] <= MAX_CLAIM) {
    *value = tensor->info.shape[side];
    return TRUE;
  }
  shape = vlm_tensor_shape_to_string (tensor->info.shape, tensor->info.rank);
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: tensor %s has shape %s, expected %u dimensions below 2^31",
      vlm_cellm_get_path (maker->cellm), tensor->data->name, shape, rank);
  return FALSE;
}

static gboolean
has (const Maker *maker, const gchar *part, const gchar *name)
{
  return vlm_cellm_find (maker->cellm, part, name) != NULL;
}

static void
set_uint (json_t *object, const gchar *key, guint value)
{
  json_object_set_new (object, key, json_integer (value));
}

static void
set_boolean (json_t *object, const gchar *key, gboolean value)
{
  json_object_set_new (object, key, json_boolean (value));
}

/* A size of the text that the header claims under claim. */
static gboolean
set_claimed (const Maker *maker, const gchar *key, const gchar *claim, guint value, GError **error)
{
  const json_t *claimed = vlm_json_get (&maker->header, claim);
  g_autofree gchar *expected = NULL;

  set_uint (maker->made, key, value);
  if (!claimed || (json_is_number (claimed) && json_number_value (claimed) == value))
    return TRUE;
  expected = g_strdup_printf ("%u by the shapes of the tensors", value);
  vlm_json_set_error (error, VLM_ERROR_FORMAT, &maker->header, claim, claimed, expected);
  return FALSE;
}

/* A key of the header, where the configuration that it was made of does not say it. */
static void
fill_in (const Maker *maker, const gchar *key, const gchar *from)
{
  const json_t *value = vlm_json_get (&maker->header, from);
  const json_t *present = json_object_get (maker->made, key);

  if (value && (!present || json_is_null (present)))
    json_object_set (maker->made, key, (json_t *) value);
}

/* ---- Text --------------------------------------------------------------------------------- */

static gboolean
has_in_layer (const Maker *maker, guint layer, const gchar *name)
{
  g_autofree gchar *full = g_strdup_printf ("layers.%u.%s", layer, name);

  return has (maker, vlm_cellm_text_prefix (maker->cellm), full);
}

static gboolean
get_side_in_layer (const Maker *maker, guint layer, const gchar *name, guint rank, guint side,
    guint *value, GError **error)
{
  g_autofree gchar *full = g_strdup_printf ("layers.%u.%s", layer, name);

  return get_side (maker, vlm_cellm_text_prefix (maker->cellm), full, rank, side, value, error);
}

/* Kinds of layers by their tensors; where they are named too, the names are believed: a tensor of
 * the other kind then has no place. The first of each kind, n_layers where there is none. */
static gboolean
set_layers (const Maker *maker, guint *conv, guint *attention, GError **error)
{
  json_t *kinds = json_array ();
  guint n_layers = 0, i;

  while (n_layers < VLM_MAX_LAYERS && has_in_layer (maker, n_layers, "operator_norm.weight"))
    n_layers++;
  *conv = *attention = n_layers;
  for (i = n_layers; i-- > 0;) {
    gboolean is_conv = has_in_layer (maker, i, "conv.conv.weight");

    *(is_conv ? conv : attention) = i;
    json_array_insert_new (kinds, 0, json_string (is_conv ? "conv" : "full_attention"));
  }
  if (!vlm_json_get (&maker->text, "layer_types") && !vlm_json_get (&maker->text, "full_attn_idxs"))
    json_object_set (maker->made, "layer_types", kinds);
  json_decref (kinds);
  return set_claimed (maker, "num_hidden_layers", "num_layers", n_layers, error);
}

/* Heads follow from the width of their norm. Without attention nobody asks for them. */
static gboolean
set_heads (const Maker *maker, guint layer, GError **error)
{
  guint head, rows, kv_rows;

  if (!has_in_layer (maker, layer, "self_attn.q_layernorm.weight")) {
    fill_in (maker, "num_attention_heads", "num_heads");
    fill_in (maker, "num_key_value_heads", "num_kv_heads");
    fill_in (maker, "head_dim", "head_dim");
    return TRUE;
  }
  return get_side_in_layer (maker, layer, "self_attn.q_layernorm.weight", 1, 0, &head, error)
      && get_side_in_layer (maker, layer, "self_attn.q_proj.weight", 2, 0, &rows, error)
      && get_side_in_layer (maker, layer, "self_attn.k_proj.weight", 2, 0, &kv_rows, error)
      && set_claimed (maker, "head_dim", "head_dim", head, error)
      && set_claimed (maker, "num_attention_heads", "num_heads", rows / head, error)
      && set_claimed (maker, "num_key_value_heads", "num_kv_heads", kv_rows / head, error);
}

/* The header has the width before or after it was adjusted; the rows are what it is. */
static gboolean
set_feed_forward (const Maker *maker, GError **error)
{
  guint rows;

  if (!get_side_in_layer (maker, 0, "feed_forward.w1.weight", 2, 0, &rows, error))
    return FALSE;
  set_uint (maker->made, "intermediate_size", rows);
  set_uint (maker->made, "block_ff_dim", rows);
  set_boolean (maker->made, "block_auto_adjust_ff_dim", FALSE);
  json_object_del (maker->made, "block_ffn_dim_multiplier");
  json_object_del (maker->made, "block_multiple_of");
  return TRUE;
}

static gboolean
set_convolution (const Maker *maker, guint layer, GError **error)
{
  guint taps;

  if (!has_in_layer (maker, layer, "conv.conv.weight"))
    return TRUE;
  if (!get_side_in_layer (maker, layer, "conv.conv.weight", 3, 2, &taps, error))
    return FALSE;
  set_uint (maker->made, "conv_L_cache", taps);
  set_boolean (maker->made, "conv_bias", has_in_layer (maker, layer, "conv.in_proj.bias"));
  return TRUE;
}

/* The rotation base stands in one of several places, or only in the header. */
static void
fill_in_rope (const Maker *maker)
{
  static const gchar *const keys[] = { "rope_parameters", "rope_scaling" };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (keys); i++) {
    const json_t *rope = vlm_json_get (&maker->text, keys[i]);

    if (json_is_number (json_object_get (rope, "rope_theta")))
      return;
  }
  fill_in (maker, "rope_theta", "rope_theta");
}

static gboolean
set_text (Maker *maker, GError **error)
{
  const gchar *part = vlm_cellm_text_prefix (maker->cellm);
  guint vocabulary, hidden, conv, attention;

  if (!get_side (maker, part, "embed_tokens.weight", 2, 0, &vocabulary, error)
      || !get_side (maker, part, "embed_tokens.weight", 2, 1, &hidden, error)
      || !set_claimed (maker, "vocab_size", "vocab_size", vocabulary, error)
      || !set_claimed (maker, "hidden_size", "hidden_dim", hidden, error)
      || !set_layers (maker, &conv, &attention, error) || !set_heads (maker, attention, error)
      || !set_feed_forward (maker, error) || !set_convolution (maker, conv, error))
    return FALSE;
  fill_in (maker, "norm_eps", "rms_norm_eps");
  fill_in_rope (maker);
  fill_in (maker, "max_position_embeddings", "max_position_embeddings");
  return TRUE;
}

/* ---- Tower and projector ------------------------------------------------------------------ */

/* The number whose square is value; value itself where there is none, which will not fit. */
static guint
root_of (guint value)
{
  guint root = (guint) lround (sqrt (value));

  return (guint64) root * root == value ? root : value;
}

static guint
count_vision_layers (const Maker *maker)
{
  guint n;

  for (n = 0; n < VLM_MAX_LAYERS; n++) {
    g_autofree gchar *name = g_strdup_printf ("encoder.layers.%u.layer_norm1.weight", n);

    if (!has (maker, VLM_CELLM_VISION_PREFIX, name))
      break;
  }
  return n;
}

static gboolean
set_vision (Maker *maker, GError **error)
{
  static const gchar part[] = VLM_CELLM_VISION_PREFIX;
  guint hidden, values, positions, rows;

  /* No tensor tells it. */
  if (!json_is_integer (vlm_json_get (&maker->vision, "num_attention_heads"))) {
    vlm_json_set_error (error, VLM_ERROR_FORMAT, &maker->vision, "num_attention_heads",
        vlm_json_get (&maker->vision, "num_attention_heads"), "an integer");
    return FALSE;
  }
  if (!get_side (maker, part, "embeddings.patch_embedding.weight", 2, 0, &hidden, error)
      || !get_side (maker, part, "embeddings.patch_embedding.weight", 2, 1, &values, error)
      || !get_side (maker, part, "embeddings.position_embedding.weight", 2, 0, &positions, error)
      || !get_side (maker, part, "encoder.layers.0.mlp.fc1.weight", 2, 0, &rows, error))
    return FALSE;
  set_uint (maker->made, "hidden_size", hidden);
  set_uint (maker->made, "num_patches", positions);
  set_uint (maker->made, "patch_size", values % 3 ? values : root_of (values / 3));
  set_uint (maker->made, "intermediate_size", rows);
  if (!vlm_json_get (&maker->vision, "num_hidden_layers"))
    set_uint (maker->made, "num_hidden_layers", count_vision_layers (maker));
  return TRUE;
}

/* At the top of config.json. */
static gboolean
set_projector (const Maker *maker, json_t *config, GError **error)
{
  static const gchar part[] = VLM_CELLM_PROJECTOR_PREFIX;
  guint rows, cols, hidden;

  if (!get_side (maker, part, "linear_1.weight", 2, 0, &rows, error)
      || !get_side (maker, part, "linear_1.weight", 2, 1, &cols, error)
      || !get_side (maker, VLM_CELLM_VISION_PREFIX, "embeddings.patch_embedding.weight", 2, 0,
          &hidden, error))
    return FALSE;
  json_object_update (config, (json_t *) maker->projector.object);
  set_uint (config, "projector_hidden_size", rows);
  set_uint (config, "downsample_factor", cols % hidden ? cols : root_of (cols / hidden));
  set_boolean (config, "projector_bias", has (maker, part, "linear_1.bias"));
  set_boolean (config, "projector_use_layernorm", has (maker, part, "layer_norm.weight"));
  return TRUE;
}

/* ---- Both --------------------------------------------------------------------------------- */

/* Ids and the tied head, which config.json has at its top. */
static void
set_common (const Maker *maker, json_t *config)
{
  static const gchar *const ids[] = { "bos_token_id", "eos_token_id" };
  static const gchar *const keys[] = { "tie_embedding", "tie_word_embeddings" };
  const json_t *tied = vlm_json_get (&maker->header, "tie_word_embeddings");
  guint i;

  for (i = 0; i < G_N_ELEMENTS (ids); i++) {
    const json_t *id = vlm_json_get (&maker->header, ids[i]);

    if (id)
      json_object_set (config, ids[i], (json_t *) id);
  }
  for (i = 0; i < G_N_ELEMENTS (keys) && !tied; i++)
    tied = vlm_json_get (&maker->text, keys[i]);
  json_object_del (config, "tie_embedding");
  if (tied)
    json_object_set (config, "tie_word_embeddings", (json_t *) tied);
  else
    set_boolean (config, "tie_word_embeddings", !has (maker, "", "lm_head.weight"));
}

static gboolean
read_sources (Maker *maker, GError **error)
{
  maker->header = vlm_cellm_get_header (maker->cellm);
  return vlm_json_get_object (&maker->header, "source_text_config", &maker->text, error)
      && vlm_json_get_object (&maker->header, "source_vision_config", &maker->vision, error)
      && vlm_json_get_object (&maker->header, "source_projector_config", &maker->projector, error);
}

static json_t *
copy_object (const json_t *object)
{
  return object ? json_deep_copy (object) : json_object ();
}

json_t *
vlm_cellm_make_config (const VlmCellm *cellm, GError **error)
{
  Maker maker = { .cellm = cellm };
  g_autoptr (VlmJsonDocument) text = NULL;
  g_autoptr (VlmJsonDocument) vision = NULL;
  g_autoptr (VlmJsonDocument) config = NULL;

  if (!read_sources (&maker, error))
    return NULL;
  maker.made = text = copy_object (maker.text.object);
  json_object_set_new (text, "model_type", json_string ("lfm2"));
  if (!set_text (&maker, error))
    return NULL;
  if (!cellm->has_vision) {
    set_common (&maker, text);
    return g_steal_pointer (&text);
  }
  config = json_object ();
  maker.made = vision = copy_object (maker.vision.object);
  if (!set_vision (&maker, error) || !set_projector (&maker, config, error))
    return NULL;
  json_object_set_new (config, "model_type", json_string ("lfm2_vl"));
  json_object_set (config, "text_config", text);
  json_object_set (config, "vision_config", vision);
  set_common (&maker, config);
  return g_steal_pointer (&config);
}

/* ---- Pictures ----------------------------------------------------------------------------- */

json_t *
vlm_cellm_make_processor (const VlmCellm *cellm)
{
  static const gchar *const keys[] = { "tile_size", "min_tiles", "max_tiles", "min_image_tokens",
    "max_image_tokens", "max_pixels_tolerance", "do_image_splitting", "use_thumbnail",
    "use_image_special_tokens", "resample", "do_rescale", "rescale_factor", "do_normalize",
    "image_mean", "image_std", "encoder_patch_size", "downsample_factor" };
  const json_t *source = json_object_get (cellm->header, "source_projector_config");
  g_autoptr (VlmJsonDocument) config = vlm_cellm_make_config (cellm, NULL);
  const json_t *vision = json_object_get (config, "vision_config");
  json_t *processor = json_object ();
  guint i;

  for (i = 0; i < G_N_ELEMENTS (keys) && json_is_object (source); i++) {
    const json_t *value = json_object_get (source, keys[i]);

    if (value && !json_is_null (value))
      json_object_set (processor, keys[i], (json_t *) value);
  }
  if (!vision)
    return processor;
  if (!json_object_get (processor, "encoder_patch_size"))
    json_object_set (processor, "encoder_patch_size", json_object_get (vision, "patch_size"));
  if (!json_object_get (processor, "downsample_factor"))
    json_object_set (processor, "downsample_factor", json_object_get (config, "downsample_factor"));
  return processor;
}

/* ---- Tokenizer ---------------------------------------------------------------------------- */

/* Rows of the embedding that have no token, in eighths of all at most: it is padded by less. */
#define MAX_SPARE_EIGHTHS 1

gboolean
vlm_cellm_check_tokenizer (const VlmCellm *cellm, const VlmTokenizer *tokenizer, GError **error)
{
  const VlmCellmTensor *embedding =
      vlm_cellm_find (cellm, vlm_cellm_text_prefix (cellm), "embed_tokens.weight");
  guint64 rows = embedding ? embedding->info.shape[0] : 0;
  guint n_ids = vlm_tokenizer_get_size (tokenizer);
  const json_t *claim = json_object_get (
      json_object_get (cellm->header, "source_projector_config"), "image_token_id");
  gint image = vlm_tokenizer_lookup (tokenizer, "<image>");

  if (n_ids > rows || n_ids < rows - rows * MAX_SPARE_EIGHTHS / 8) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: the tokenizer.json beside it has %u ids, but tensor %s has %" G_GUINT64_FORMAT
        " rows: it is of another vocabulary",
        vlm_cellm_get_path (cellm), n_ids,
        embedding ? embedding->data->name : "embed_tokens.weight", rows);
    return FALSE;
  }
  if (!cellm->has_vision || image < 0 || !json_is_integer (claim)
      || json_integer_value (claim) == image)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: source_projector_config.image_token_id is %" JSON_INTEGER_FORMAT
      ", but <image> is %d in the tokenizer.json beside it: it is of another vocabulary",
      vlm_cellm_get_path (cellm), json_integer_value (claim), image);
  return FALSE;
}
