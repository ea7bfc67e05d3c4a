/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bindings.h"

#include "resolve.h"

#include <string.h>

#define PROJECTOR_PREFIX "model.multi_modal_projector."

typedef struct
{
  VlmTensorSource *source;
  const VlmConfig *config;
  const VlmTensorNames *names;
  VlmWeights *weights;
  const gchar *path; /* of the checkpoint, for messages */
  GString *prefix;   /* of the names being bound */
  GArray *bindings;
  GHashTable *used; /* of const VlmTensorInfo * */
} Binder;

/* Adds the tensor called prefix + name + suffix to binding, if it has the shape and a usable type. */
static gboolean
add_part (Binder *binder, VlmBinding *binding, const gchar *name, const gchar *suffix,
    const guint64 *shape, guint rank, GError **error)
{
  g_autofree gchar *full = g_strconcat (binder->prefix->str, name, suffix, NULL);
  const VlmTensorInfo *info = vlm_tensor_source_lookup (binder->source, full);
  g_autofree gchar *expected = vlm_tensor_shape_to_string (shape, rank);
  g_autofree gchar *found = NULL;

  if (!info) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT, "%s: tensor %s is missing, expected shape %s",
        binder->path, full, expected);
    return FALSE;
  }
  if (info->rank != rank || memcmp (info->shape, shape, rank * sizeof (*shape))) {
    found = vlm_tensor_shape_to_string (info->shape, info->rank);
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT, "%s: tensor %s has shape %s, expected %s",
        vlm_tensor_source_get_path (binder->source, info), full, found, expected);
    return FALSE;
  }
  if (binding->kind != VLM_BIND_MATRIX && info->dtype == VLM_DTYPE_QUANTISED) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
        "%s: tensor %s holds integers of %u bits, expected floats",
        vlm_tensor_source_get_path (binder->source, info), full, info->format.bits);
    return FALSE;
  }
  g_hash_table_add (binder->used, (gpointer) info);
  binding->parts[binding->n_parts++] = info;
  return TRUE;
}

/* Matrices [rows[i], cols], one under the other; bias may be NULL for a layer that has none. */
static gboolean
bind_stack (Binder *binder, VlmMatrix **matrix, gfloat **bias, const gchar *const *names,
    const guint *rows, guint n, guint cols, GError **error)
{
  VlmBinding weight = { .kind = VLM_BIND_MATRIX, .target = matrix };
  VlmBinding vector = { .kind = VLM_BIND_VECTOR, .target = bias };
  guint i;

  for (i = 0; i < n; i++) {
    guint64 shape[] = { rows[i], cols };

    if (!add_part (binder, &weight, names[i], ".weight", shape, 2, error)
        || (bias && !add_part (binder, &vector, names[i], ".bias", shape, 1, error)))
      return FALSE;
  }
  g_array_append_val (binder->bindings, weight);
  if (bias)
    g_array_append_val (binder->bindings, vector);
  return TRUE;
}

static gboolean
bind_matrix (
    Binder *binder, VlmMatrix **matrix, const gchar *name, guint rows, guint cols, GError **error)
{
  return bind_stack (binder, matrix, NULL, &name, &rows, 1, cols, error);
}

static gboolean
bind_linear (Binder *binder, VlmLinear *linear, const gchar *name, guint rows, guint cols,
    gboolean has_bias, GError **error)
{
  return bind_stack (
      binder, &linear->matrix, has_bias ? &linear->bias : NULL, &name, &rows, 1, cols, error);
}

static gboolean
bind_vector (Binder *binder, gfloat **vector, const gchar *name, const gchar *suffix, guint n,
    GError **error)
{
  VlmBinding binding = { .kind = VLM_BIND_VECTOR, .target = vector };
  guint64 shape[] = { n };

  if (!add_part (binder, &binding, name, suffix, shape, 1, error))
    return FALSE;
  g_array_append_val (binder->bindings, binding);
  return TRUE;
}

static gboolean
bind_rms_norm (Binder *binder, VlmNorm *norm, const gchar *name, guint n, GError **error)
{
  return bind_vector (binder, &norm->weight, name, ".weight", n, error);
}

static gboolean
bind_layer_norm (Binder *binder, VlmNorm *norm, const gchar *name, guint n, GError **error)
{
  return bind_vector (binder, &norm->weight, name, ".weight", n, error)
      && bind_vector (binder, &norm->bias, name, ".bias", n, error);
}

static gboolean
bind_taps (Binder *binder, VlmDecoderLayer *layer, GError **error)
{
  const VlmTextConfig *text = &binder->config->text;
  VlmBinding binding = { .kind = VLM_BIND_TAPS, .target = &layer->taps };
  guint64 shape[] = { text->hidden_size, 1, text->conv_taps };

  if (!add_part (binder, &binding, "conv.conv", ".weight", shape, 3, error))
    return FALSE;
  g_array_append_val (binder->bindings, binding);
  return !text->conv_bias
      || bind_vector (binder, &layer->taps_bias, "conv.conv", ".bias", text->hidden_size, error);
}

static gboolean
bind_convolution (Binder *binder, VlmDecoderLayer *layer, GError **error)
{
  const VlmTextConfig *text = &binder->config->text;
  guint hidden = text->hidden_size;

  return bind_linear (
             binder, &layer->conv_in, "conv.in_proj", 3 * hidden, hidden, text->conv_bias, error)
      && bind_taps (binder, layer, error)
      && bind_linear (
          binder, &layer->conv_out, "conv.out_proj", hidden, hidden, text->conv_bias, error);
}

static gboolean
bind_attention (Binder *binder, VlmDecoderLayer *layer, GError **error)
{
  static const gchar *const names[] = { "self_attn.q_proj", "self_attn.k_proj",
    "self_attn.v_proj" };
  const VlmTextConfig *text = &binder->config->text;
  guint queries = text->n_heads * text->head_dim, keys = text->n_kv_heads * text->head_dim;
  guint rows[] = { queries, keys, keys };

  return bind_stack (binder, &layer->qkv.matrix, NULL, names, rows, 3, text->hidden_size, error)
      && bind_linear (binder, &layer->attention_out, "self_attn.out_proj", text->hidden_size,
          queries, FALSE, error)
      && bind_rms_norm (binder, &layer->q_norm, "self_attn.q_layernorm", text->head_dim, error)
      && bind_rms_norm (binder, &layer->k_norm, "self_attn.k_layernorm", text->head_dim, error);
}

static gboolean
bind_decoder_layer (Binder *binder, guint index, GError **error)
{
  static const gchar *const names[] = { "feed_forward.w1", "feed_forward.w3" };
  const VlmTextConfig *text = &binder->config->text;
  VlmDecoderLayer *layer = &binder->weights->layers[index];
  guint hidden = text->hidden_size, rows[] = { text->ff_size, text->ff_size };

  layer->kind = text->layers[index];
  g_string_printf (binder->prefix, "%slayers.%u.", binder->names->text, index);
  return bind_rms_norm (binder, &layer->operator_norm, "operator_norm", hidden, error)
      && (layer->kind == VLM_LAYER_CONV ? bind_convolution (binder, layer, error)
                                        : bind_attention (binder, layer, error))
      && bind_rms_norm (binder, &layer->ffn_norm, "ffn_norm", hidden, error)
      && bind_stack (binder, &layer->gate_up, NULL, names, rows, 2, hidden, error)
      && bind_matrix (binder, &layer->down, "feed_forward.w2", hidden, text->ff_size, error);
}

static gboolean
bind_text (Binder *binder, GError **error)
{
  const VlmTextConfig *text = &binder->config->text;
  VlmWeights *weights = binder->weights;
  guint i;

  g_string_assign (binder->prefix, binder->names->text);
  if (!bind_matrix (
          binder, &weights->embedding, "embed_tokens", text->vocab_size, text->hidden_size, error)
      || !bind_rms_norm (binder, &weights->final_norm, "embedding_norm", text->hidden_size, error))
    return FALSE;
  for (i = 0; i < text->n_layers; i++) {
    if (!bind_decoder_layer (binder, i, error))
      return FALSE;
  }
  g_string_assign (binder->prefix, "");
  return text->tied_head
      || bind_matrix (
          binder, &weights->head, "lm_head", text->vocab_size, text->hidden_size, error);
}

static gboolean
bind_vision_layer (Binder *binder, guint index, GError **error)
{
  static const gchar *const names[] = { "self_attn.q_proj", "self_attn.k_proj",
    "self_attn.v_proj" };
  const VlmVisionConfig *vision = &binder->config->vision;
  VlmVisionLayer *layer = &binder->weights->vision_layers[index];
  guint hidden = vision->hidden_size, rows[] = { hidden, hidden, hidden };

  g_string_printf (binder->prefix, "%sencoder.layers.%u.", binder->names->vision, index);
  return bind_layer_norm (binder, &layer->norm1, "layer_norm1", hidden, error)
      && bind_stack (binder, &layer->qkv.matrix, &layer->qkv.bias, names, rows, 3, hidden, error)
      && bind_linear (binder, &layer->out, "self_attn.out_proj", hidden, hidden, TRUE, error)
      && bind_layer_norm (binder, &layer->norm2, "layer_norm2", hidden, error)
      && bind_linear (binder, &layer->fc1, "mlp.fc1", vision->ff_size, hidden, TRUE, error)
      && bind_linear (binder, &layer->fc2, "mlp.fc2", hidden, vision->ff_size, TRUE, error);
}

static gboolean
bind_positions (Binder *binder, GError **error)
{
  const VlmVisionConfig *vision = &binder->config->vision;
  VlmBinding binding = { .kind = VLM_BIND_VECTOR, .target = &binder->weights->positions };
  guint64 shape[] = { vision->n_positions, vision->hidden_size };

  if (!add_part (binder, &binding, "embeddings.position_embedding", ".weight", shape, 2, error))
    return FALSE;
  g_array_append_val (binder->bindings, binding);
  return TRUE;
}

static gboolean
bind_patch (Binder *binder, GError **error)
{
  const VlmVisionConfig *vision = &binder->config->vision;
  guint first = binder->bindings->len;

  if (!bind_linear (binder, &binder->weights->patch, "embeddings.patch_embedding",
          vision->hidden_size, vision->patch_size * vision->patch_size * 3, TRUE, error))
    return FALSE;
  g_array_index (binder->bindings, VlmBinding, first).keep_floats = TRUE;
  return TRUE;
}

static gboolean
bind_vision (Binder *binder, GError **error)
{
  const VlmVisionConfig *vision = &binder->config->vision;
  VlmWeights *weights = binder->weights;
  guint i;

  g_string_assign (binder->prefix, binder->names->vision);
  if (!bind_patch (binder, error) || !bind_positions (binder, error)
      || !bind_layer_norm (
          binder, &weights->post_norm, "post_layernorm", vision->hidden_size, error))
    return FALSE;
  for (i = 0; i < vision->n_layers; i++) {
    if (!bind_vision_layer (binder, i, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
bind_projector (Binder *binder, GError **error)
{
  const VlmProjectorConfig *projector = &binder->config->projector;
  VlmWeights *weights = binder->weights;
  guint factor = projector->downsample_factor;
  guint wide = factor * factor * binder->config->vision.hidden_size;

  g_string_assign (binder->prefix, PROJECTOR_PREFIX);
  return (!projector->layer_norm
             || bind_layer_norm (binder, &weights->projector_norm, "layer_norm", wide, error))
      && bind_linear (binder, &weights->projector1, "linear_1", projector->hidden_size, wide,
          projector->bias, error)
      && bind_linear (binder, &weights->projector2, "linear_2", binder->config->text.hidden_size,
          projector->hidden_size, projector->bias, error);
}

/* Every tensor must have found its place. */
static gboolean
check_surplus (Binder *binder, GError **error)
{
  g_autofree gchar *pooling = g_strconcat (binder->names->vision, "head.", NULL);
  guint i;

  for (i = 0; i < vlm_tensor_source_get_count (binder->source); i++) {
    const VlmTensorInfo *info = vlm_tensor_source_get_nth (binder->source, i);
    g_autofree gchar *found = NULL;

    if (g_hash_table_contains (binder->used, info) || info == binder->names->repeated_head)
      continue;
    if (binder->config->has_vision && g_str_has_prefix (info->name, pooling)) {
      g_info ("%s: tensor %s is not used: captions need no pooling head", binder->path, info->name);
      continue;
    }
    found = vlm_tensor_shape_to_string (info->shape, info->rank);
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: tensor %s has shape %s, expected no tensor of this name",
        vlm_tensor_source_get_path (binder->source, info), info->name, found);
    return FALSE;
  }
  return TRUE;
}

GArray *
vlm_bindings_new (
    VlmCheckpoint *checkpoint, VlmWeights *weights, GCancellable *cancellable, GError **error)
{
  g_autoptr (GArray) bindings = g_array_new (FALSE, FALSE, sizeof (VlmBinding));
  g_autoptr (GHashTable) used = g_hash_table_new (NULL, NULL);
  VlmTensorNames names;
  Binder binder = { .source = checkpoint->tensors,
    .config = &checkpoint->config,
    .names = &names,
    .weights = weights,
    .path = checkpoint->path,
    .bindings = bindings,
    .used = used };
  gboolean bound;

  if (!vlm_resolve_tensors (checkpoint, &names, cancellable, error))
    return NULL;
  binder.prefix = g_string_new (NULL);
  bound = bind_text (&binder, error)
      && (!checkpoint->config.has_vision
          || (bind_vision (&binder, error) && bind_projector (&binder, error)))
      && check_surplus (&binder, error);
  g_string_free (binder.prefix, TRUE);
  return bound ? g_steal_pointer (&bindings) : NULL;
}
