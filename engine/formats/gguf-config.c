/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* config.json of a GGUF model: the text part. */

#include "gguf-settings-private.h"

#include "engine/model/config.h"

#define KV_HEADS "lfm2.attention.head_count_kv"
#define HEADS "lfm2.attention.head_count"
#define HEAD_DIM "lfm2.attention.key_length"
#define FEED_FORWARD "lfm2.feed_forward_length"
#define TAPS "lfm2.shortconv.l_cache"
#define VOCABULARY "lfm2.vocab_size"

typedef struct
{
  guint width, n_layers, n_heads, n_kv_heads, head_dim, ff_size, taps, context, vocab_size;
  gdouble eps, theta;
  VlmLayerKind layers[VLM_MAX_LAYERS];
} Text;

/* What the network has no place for: a file that has it is another model. */
static gboolean
refuse_foreign (const VlmGguf *gguf, const Text *text, GError **error)
{
  guint window = 0, rotated = text->head_dim, value_dim = text->head_dim, out = text->width;
  gboolean causal = TRUE;

  if (vlm_gguf_find (gguf, "lfm2.rope.scaling.type")
      && !vlm_gguf_require_name (gguf, "lfm2.rope.scaling.type", "none", error))
    return FALSE;
  if (!vlm_gguf_get_small (gguf, "lfm2.attention.sliding_window", 0, G_MAXUINT32, &window, error)
      || !vlm_gguf_get_boolean (gguf, "lfm2.attention.causal", &causal, error)
      || !vlm_gguf_get_small (gguf, "lfm2.rope.dimension_count", 0, G_MAXUINT32, &rotated, error)
      || !vlm_gguf_get_small (
          gguf, "lfm2.attention.value_length", 0, G_MAXUINT32, &value_dim, error)
      || !vlm_gguf_get_small (gguf, "lfm2.embedding_length_out", 0, G_MAXUINT32, &out, error))
    return FALSE;
  if (window)
    return vlm_gguf_fail (error, VLM_ERROR_UNSUPPORTED, gguf,
        "lfm2.attention.sliding_window is %u, expected 0 or none", window);
  if (!causal)
    return vlm_gguf_fail (error, VLM_ERROR_UNSUPPORTED, gguf,
        "lfm2.attention.causal is false, expected true or none");
  if (rotated != text->head_dim)
    return vlm_gguf_fail (error, VLM_ERROR_UNSUPPORTED, gguf,
        "lfm2.rope.dimension_count is %u, expected %u, the whole head", rotated, text->head_dim);
  if (value_dim != text->head_dim)
    return vlm_gguf_fail (error, VLM_ERROR_UNSUPPORTED, gguf,
        "lfm2.attention.value_length is %u, expected %u as for keys", value_dim, text->head_dim);
  if (out != text->width)
    return vlm_gguf_fail (error, VLM_ERROR_UNSUPPORTED, gguf,
        "lfm2.embedding_length_out is %u, expected %u, as " VLM_GGUF_WIDTH, out, text->width);
  return TRUE;
}

/* One number for each layer: 0 stands for a convolution. */
static gboolean
read_kv_list (const VlmGguf *gguf, Text *text, GError **error)
{
  const VlmGgufValue *list = NULL;
  guint i;

  if (!vlm_gguf_get_integers (gguf, KV_HEADS, &list, error))
    return FALSE;
  if (list->n != text->n_layers)
    return vlm_gguf_fail (error, VLM_ERROR_FORMAT, gguf,
        KV_HEADS " has %" G_GUINT64_FORMAT " entries, expected %u (" VLM_GGUF_LAYERS ")", list->n,
        text->n_layers);
  text->n_kv_heads = 0;
  for (i = 0; i < text->n_layers; i++) {
    gint64 n = vlm_gguf_value_get_integer (list, i);

    if (n < 0 || n > VLM_MAX_HEADS)
      return vlm_gguf_fail (error, VLM_ERROR_FORMAT, gguf,
          KV_HEADS "[%u] is %" G_GINT64_FORMAT ", expected 0..%d", i, n, VLM_MAX_HEADS);
    text->layers[i] = n ? VLM_LAYER_ATTENTION : VLM_LAYER_CONV;
    if (n && text->n_kv_heads && n != text->n_kv_heads)
      return vlm_gguf_fail (error, VLM_ERROR_UNSUPPORTED, gguf,
          KV_HEADS "[%u] is %" G_GINT64_FORMAT ", expected 0 or %u, as in the layers before", i, n,
          text->n_kv_heads);
    if (n)
      text->n_kv_heads = (guint) n;
  }
  /* Without attention their number says nothing, but has to be one. */
  text->n_kv_heads = text->n_kv_heads ? text->n_kv_heads : text->n_heads;
  return TRUE;
}

/* The only key that tells the kinds of layers; one number for all has every layer attend. */
static gboolean
read_kv_heads (const VlmGguf *gguf, Text *text, GError **error)
{
  const VlmGgufValue *value;
  guint i;

  if (!vlm_gguf_require (gguf, KV_HEADS, "a number for each layer", error))
    return FALSE;
  value = vlm_gguf_find (gguf, KV_HEADS);
  if (value->type == VLM_GGUF_ARRAY)
    return read_kv_list (gguf, text, error);
  for (i = 0; i < text->n_layers; i++)
    text->layers[i] = VLM_LAYER_ATTENTION;
  return vlm_gguf_get_small (gguf, KV_HEADS, 1, VLM_MAX_HEADS, &text->n_kv_heads, error);
}

/* The tensors must be of the kinds that the key tells, and have as many taps. */
static gboolean
check_convolutions (const VlmGguf *gguf, const Text *text, GError **error)
{
  guint i;

  for (i = 0; i < text->n_layers; i++) {
    g_autofree gchar *name = g_strdup_printf ("blk.%u.shortconv.conv.weight", i);
    gboolean conv = text->layers[i] == VLM_LAYER_CONV;
    guint64 dims[2];

    if (!conv && vlm_gguf_find_tensor (gguf, name))
      return vlm_gguf_fail (error, VLM_ERROR_FORMAT, gguf,
          KV_HEADS " says %u for layer %u, expected 0, as there is a tensor %s", text->n_kv_heads,
          i, name);
    if (!conv)
      continue;
    if (!vlm_gguf_require_dims (gguf, name, 2, dims, error))
      return FALSE;
    if (dims[0] != text->taps)
      return vlm_gguf_fail (error, VLM_ERROR_FORMAT, gguf,
          TAPS " is %u, expected %" G_GUINT64_FORMAT ", as the tensor %s has", text->taps, dims[0],
          name);
  }
  return TRUE;
}

/* Files are known that state more than they have: the tensor is what there is. */
static gboolean
read_feed_forward (const VlmGguf *gguf, Text *text, GError **error)
{
  static const gchar name[] = "blk.0.ffn_gate.weight";
  guint64 dims[2];
  guint stated = 0;

  if (!vlm_gguf_get_small (gguf, FEED_FORWARD, 1, G_MAXUINT32, &stated, error)
      || !vlm_gguf_require_dims (gguf, name, 2, dims, error))
    return FALSE;
  if (dims[1] > VLM_MAX_FEED_FORWARD)
    return vlm_gguf_fail (error, VLM_ERROR_FORMAT, gguf,
        "the tensor %s has %" G_GUINT64_FORMAT " rows, expected at most %u", name, dims[1],
        VLM_MAX_FEED_FORWARD);
  text->ff_size = (guint) dims[1];
  if (stated && stated != text->ff_size)
    g_info ("%s: " FEED_FORWARD " is %u, but %s has %u rows, which count", vlm_gguf_get_path (gguf),
        stated, name, text->ff_size);
  return TRUE;
}

/* Stated, listed and embedded: three numbers that must be one. */
static gboolean
read_vocabulary (const VlmGguf *gguf, Text *text, GError **error)
{
  const VlmGgufValue *tokens = NULL;
  guint64 dims[2];
  guint stated;

  if (!vlm_gguf_require_tokens (gguf, &tokens, error)
      || !vlm_gguf_require_dims (gguf, VLM_GGUF_EMBEDDING, 2, dims, error))
    return FALSE;
  if (tokens->n != dims[1])
    return vlm_gguf_fail (error, VLM_ERROR_FORMAT, gguf,
        VLM_GGUF_TOKENS " has %" G_GUINT64_FORMAT " entries, expected %" G_GUINT64_FORMAT
                        ", the rows of " VLM_GGUF_EMBEDDING,
        tokens->n, dims[1]);
  stated = text->vocab_size = (guint) tokens->n;
  if (!vlm_gguf_get_small (gguf, VOCABULARY, 0, G_MAXUINT32, &stated, error))
    return FALSE;
  return stated == text->vocab_size
      || vlm_gguf_fail (error, VLM_ERROR_FORMAT, gguf,
          VOCABULARY " is %u, expected %u, the rows of " VLM_GGUF_EMBEDDING, stated,
          text->vocab_size);
}

static gboolean
read_heads (const VlmGguf *gguf, Text *text, GError **error)
{
  if (!vlm_gguf_require_uint (gguf, HEADS, 1, VLM_MAX_HEADS, &text->n_heads, error))
    return FALSE;
  if (!vlm_gguf_find (gguf, HEAD_DIM) && text->width % text->n_heads)
    return vlm_gguf_fail (error, VLM_ERROR_FORMAT, gguf,
        VLM_GGUF_WIDTH " is %u, expected a multiple of " HEADS ", which is %u", text->width,
        text->n_heads);
  text->head_dim = text->width / text->n_heads;
  return vlm_gguf_get_small (gguf, HEAD_DIM, 1, VLM_MAX_WIDTH, &text->head_dim, error)
      && read_kv_heads (gguf, text, error);
}

static gboolean
read_text (const VlmGguf *gguf, Text *text, GError **error)
{
  return vlm_gguf_require_name (gguf, VLM_GGUF_ARCHITECTURE, "lfm2", error)
      && vlm_gguf_require_uint (gguf, VLM_GGUF_LAYERS, 1, VLM_MAX_LAYERS, &text->n_layers, error)
      && vlm_gguf_require_uint (gguf, VLM_GGUF_WIDTH, 1, VLM_MAX_WIDTH, &text->width, error)
      && vlm_gguf_require_uint (
          gguf, "lfm2.context_length", 1, VLM_MAX_CONTEXT, &text->context, error)
      && vlm_gguf_require_uint (
          gguf, TAPS, VLM_MIN_CONV_TAPS, VLM_MAX_CONV_TAPS, &text->taps, error)
      && vlm_gguf_require_double (gguf, "lfm2.attention.layer_norm_rms_epsilon", VLM_MIN_EPS,
          VLM_MAX_EPS, &text->eps, error)
      && vlm_gguf_require_double (
          gguf, "lfm2.rope.freq_base", 1, VLM_MAX_THETA, &text->theta, error)
      && read_heads (gguf, text, error) && read_vocabulary (gguf, text, error)
      && read_feed_forward (gguf, text, error) && check_convolutions (gguf, text, error)
      && refuse_foreign (gguf, text, error);
}

static json_t *
print_text (const Text *text)
{
  json_t *layers = json_array ();
  guint i;

  for (i = 0; i < text->n_layers; i++)
    json_array_append_new (layers, json_string (vlm_layer_kind_names[text->layers[i]]));
  return json_pack ("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:i, s:b, s:i, s:f, "
                    "s:{s:f, s:s}, s:o}",
      "model_type", "lfm2", "vocab_size", text->vocab_size, "hidden_size", text->width,
      "num_hidden_layers", text->n_layers, "num_attention_heads", text->n_heads,
      "num_key_value_heads", text->n_kv_heads, "head_dim", text->head_dim, "intermediate_size",
      text->ff_size, "block_auto_adjust_ff_dim", FALSE, "conv_L_cache", text->taps, "conv_bias",
      FALSE, "max_position_embeddings", text->context, "norm_eps", text->eps, "rope_parameters",
      "rope_theta", text->theta, "rope_type", "default", "layer_types", layers);
}

json_t *
vlm_gguf_make_config (const VlmGguf *gguf, const VlmGguf *mmproj, GError **error)
{
  Text text = { 0 };
  json_t *config;

  if (!read_text (gguf, &text, error))
    return NULL;
  config = print_text (&text);
  if (mmproj) {
    config = json_pack ("{s:s, s:o}", "model_type", "lfm2_vl", "text_config", config);
    if (!vlm_gguf_add_vision (config, gguf, mmproj, error)) {
      json_decref (config);
      return NULL;
    }
  }
  json_object_set_new (config, "tie_word_embeddings",
      json_boolean (vlm_gguf_find_tensor (gguf, "output.weight") == NULL));
  return config;
}
