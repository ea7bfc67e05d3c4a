/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "weights.h"

#include "bindings.h"
#include "engine/formats/floats.h"

static gboolean
fail_memory (const VlmTensorInfo *info, GError **error)
{
  g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
      "no memory for tensor %s of %" G_GUINT64_FORMAT " bytes", info->name, info->n_bytes);
  return FALSE;
}

/* Reads a whole tensor as f32. */
static gboolean
read_floats (VlmTensorSource *source, const VlmTensorInfo *info, const VlmKernels *kernels,
    gfloat *out, GCancellable *cancellable, GError **error)
{
  g_autofree guint16 *raw = NULL;

  if (info->dtype == VLM_DTYPE_F32)
    return vlm_tensor_source_read (source, info, 0, out, info->n_bytes, cancellable, error);
  raw = g_try_malloc (info->n_bytes);
  if (!raw)
    return fail_memory (info, error);
  if (!vlm_tensor_source_read (source, info, 0, raw, info->n_bytes, cancellable, error))
    return FALSE;
  vlm_floats_widen (kernels, info->dtype, raw, out, vlm_tensor_count_values (info));
  return TRUE;
}

/* All parts, one after the other. (transfer full) */
static gfloat *
load_vector (VlmTensorSource *source, const VlmBinding *binding, const VlmKernels *kernels,
    GCancellable *cancellable, GError **error)
{
  g_autofree gfloat *values = NULL;
  gsize n = 0;
  guint i;

  for (i = 0; i < binding->n_parts; i++)
    n += vlm_tensor_count_values (binding->parts[i]);
  values = g_try_new (gfloat, n);
  if (!values) {
    fail_memory (binding->parts[0], error);
    return NULL;
  }
  n = 0;
  for (i = 0; i < binding->n_parts; i++) {
    if (!read_floats (source, binding->parts[i], kernels, values + n, cancellable, error))
      return NULL;
    n += vlm_tensor_count_values (binding->parts[i]);
  }
  return g_steal_pointer (&values);
}

/* [n][1][taps] in the file, [taps][n] for the kernel. (transfer full) */
static gfloat *
load_taps (VlmTensorSource *source, const VlmBinding *binding, const VlmKernels *kernels,
    GCancellable *cancellable, GError **error)
{
  const VlmTensorInfo *info = binding->parts[0];
  gsize n = info->shape[0], n_taps = info->shape[2], i, tap;
  g_autofree gfloat *values = load_vector (source, binding, kernels, cancellable, error);
  gfloat *turned;

  if (!values)
    return NULL;
  turned = g_try_new (gfloat, n * n_taps);
  if (!turned) {
    fail_memory (info, error);
    return NULL;
  }
  for (tap = 0; tap < n_taps; tap++) {
    for (i = 0; i < n; i++)
      turned[tap * n + i] = values[i * n_taps + tap];
  }
  return turned;
}

/* Loads what one binding asks for and stores it in its target. */
static gboolean
load_binding (
    VlmWeights *weights, const VlmMatrixLoader *loader, const VlmBinding *binding, GError **error)
{
  guint i;

  if (binding->kind == VLM_BIND_MATRIX) {
    VlmMatrix *matrix =
        vlm_matrix_load (loader, binding->parts, binding->n_parts, !binding->keep_floats, error);

    if (!matrix)
      return FALSE;
    *(VlmMatrix **) binding->target = matrix;
    weights->n_bytes += vlm_matrix_get_bytes (matrix);
  } else {
    gfloat *values = binding->kind == VLM_BIND_TAPS
        ? load_taps (loader->source, binding, loader->kernels, loader->cancellable, error)
        : load_vector (loader->source, binding, loader->kernels, loader->cancellable, error);

    if (!values)
      return FALSE;
    *(gfloat **) binding->target = values;
    for (i = 0; i < binding->n_parts; i++)
      weights->n_bytes += vlm_tensor_count_values (binding->parts[i]) * sizeof (gfloat);
  }
  for (i = 0; i < binding->n_parts; i++)
    weights->n_parameters += vlm_tensor_count_values (binding->parts[i]);
  return TRUE;
}

static guint64
sum_part_bytes (const VlmBinding *binding)
{
  guint64 sum = 0;
  guint i;

  for (i = 0; i < binding->n_parts; i++)
    sum += binding->parts[i]->n_bytes;
  return sum;
}

static gboolean
load_all (VlmWeights *weights, const VlmMatrixLoader *loader, const GArray *bindings,
    VlmProgressFunc progress, gpointer user_data, GError **error)
{
  guint64 total = 0, done = 0;
  guint i;

  for (i = 0; i < bindings->len; i++)
    total += sum_part_bytes (&g_array_index (bindings, VlmBinding, i));
  for (i = 0; i < bindings->len; i++) {
    const VlmBinding *binding = &g_array_index (bindings, VlmBinding, i);

    if (g_cancellable_set_error_if_cancelled (loader->cancellable, error)
        || !load_binding (weights, loader, binding, error))
      return FALSE;
    done += sum_part_bytes (binding);
    if (progress)
      progress ((gdouble) done / total, user_data);
  }
  return TRUE;
}

static guint64
matrix_bytes (const VlmMatrix *matrix)
{
  return matrix ? vlm_matrix_get_bytes (matrix) : 0;
}

/* Every matrix of the decoder once, and the head; of the embedding only a row. */
static guint64
count_token_bytes (const VlmWeights *weights, guint n_layers)
{
  guint64 sum = matrix_bytes (weights->head);
  guint i;

  for (i = 0; i < n_layers; i++) {
    const VlmDecoderLayer *layer = &weights->layers[i];

    sum += matrix_bytes (layer->qkv.matrix) + matrix_bytes (layer->attention_out.matrix)
        + matrix_bytes (layer->conv_in.matrix) + matrix_bytes (layer->conv_out.matrix)
        + matrix_bytes (layer->gate_up) + matrix_bytes (layer->down);
  }
  return sum;
}

/* Every matrix of tower and projector once. */
static guint64
count_crop_bytes (const VlmWeights *weights, guint n_layers)
{
  guint64 sum = matrix_bytes (weights->patch.matrix) + matrix_bytes (weights->projector1.matrix)
      + matrix_bytes (weights->projector2.matrix);
  guint i;

  for (i = 0; i < n_layers; i++) {
    const VlmVisionLayer *layer = &weights->vision_layers[i];

    sum += matrix_bytes (layer->qkv.matrix) + matrix_bytes (layer->out.matrix)
        + matrix_bytes (layer->fc1.matrix) + matrix_bytes (layer->fc2.matrix);
  }
  return sum;
}

VlmWeights *
vlm_weights_load (VlmCheckpoint *checkpoint, const VlmKernels *kernels, VlmPrecision precision,
    guint n_threads, VlmProgressFunc progress, gpointer user_data, GCancellable *cancellable,
    GError **error)
{
  VlmWeights *weights = g_new0 (VlmWeights, 1);
  VlmMatrixLoader loader = { checkpoint->tensors, kernels, precision, NULL, NULL, cancellable };
  g_autoptr (GArray) bindings = NULL;
  gboolean ok;

  weights->layers = g_new0 (VlmDecoderLayer, checkpoint->config.text.n_layers);
  if (checkpoint->config.has_vision)
    weights->vision_layers = g_new0 (VlmVisionLayer, checkpoint->config.vision.n_layers);
  loader.slab = weights->slab = vlm_slab_new ();
  loader.team = vlm_team_new (n_threads, cancellable);
  bindings = vlm_bindings_new (checkpoint, weights, cancellable, error);
  ok = bindings && load_all (weights, &loader, bindings, progress, user_data, error);
  vlm_team_free (loader.team);
  if (!ok) {
    vlm_weights_free (weights, &checkpoint->config);
    return NULL;
  }
  if (checkpoint->config.text.tied_head)
    weights->head = weights->embedding;
  weights->token_bytes = count_token_bytes (weights, checkpoint->config.text.n_layers);
  weights->head_bytes = matrix_bytes (weights->head);
  if (checkpoint->config.has_vision)
    weights->crop_bytes = count_crop_bytes (weights, checkpoint->config.vision.n_layers);
  return weights;
}

static void
clear_norm (VlmNorm *norm)
{
  g_free (norm->weight);
  g_free (norm->bias);
}

static void
clear_linear (VlmLinear *linear)
{
  vlm_matrix_free (linear->matrix);
  g_free (linear->bias);
}

static void
clear_decoder_layer (VlmDecoderLayer *layer)
{
  clear_norm (&layer->operator_norm);
  clear_norm (&layer->ffn_norm);
  clear_linear (&layer->qkv);
  clear_linear (&layer->attention_out);
  clear_norm (&layer->q_norm);
  clear_norm (&layer->k_norm);
  clear_linear (&layer->conv_in);
  clear_linear (&layer->conv_out);
  g_free (layer->taps);
  g_free (layer->taps_bias);
  vlm_matrix_free (layer->gate_up);
  vlm_matrix_free (layer->down);
}

static void
clear_vision_layer (VlmVisionLayer *layer)
{
  clear_norm (&layer->norm1);
  clear_norm (&layer->norm2);
  clear_linear (&layer->qkv);
  clear_linear (&layer->out);
  clear_linear (&layer->fc1);
  clear_linear (&layer->fc2);
}

void
vlm_weights_free (VlmWeights *weights, const VlmConfig *config)
{
  guint i;

  if (!weights)
    return;
  for (i = 0; i < config->text.n_layers; i++)
    clear_decoder_layer (&weights->layers[i]);
  g_free (weights->layers);
  for (i = 0; weights->vision_layers && i < config->vision.n_layers; i++)
    clear_vision_layer (&weights->vision_layers[i]);
  g_free (weights->vision_layers);

  if (weights->head != weights->embedding)
    vlm_matrix_free (weights->head);
  vlm_matrix_free (weights->embedding);
  clear_norm (&weights->final_norm);
  clear_linear (&weights->patch);
  g_free (weights->positions);
  clear_norm (&weights->post_norm);
  clear_norm (&weights->projector_norm);
  clear_linear (&weights->projector1);
  clear_linear (&weights->projector2);
  vlm_slab_free (weights->slab);
  g_free (weights);
}
