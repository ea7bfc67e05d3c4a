/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bench-work.h"

#include <jansson.h>

/* A number at root.part.key; 0 where there is none. */
static gdouble
number (const json_t *root, const gchar *part, const gchar *key)
{
  return json_number_value (json_object_get (json_object_get (root, part), key));
}

static void
read_text (BenchShape *shape, const json_t *root)
{
  const json_t *kinds = json_object_get (json_object_get (root, "text"), "layer_types");
  const gdouble width = number (root, "text", "hidden_size");
  const gdouble ff = number (root, "text", "ff_size");
  const gdouble dim = number (root, "text", "head_dim");
  gdouble looking;
  gsize i;

  shape->query_width = number (root, "text", "n_heads") * dim;
  shape->key_width = number (root, "text", "n_kv_heads") * dim;
  shape->conv_values = number (root, "text", "conv_taps") * width;
  shape->head_weights = number (root, "text", "vocab_size") * width;
  for (i = 0; i < json_array_size (kinds); i++) {
    gboolean is_conv = g_strcmp0 (json_string_value (json_array_get (kinds, i)), "conv") == 0;

    shape->n_conv += is_conv;
    shape->n_attention += !is_conv;
    shape->n_last_conv = is_conv ? shape->n_last_conv + 1 : 0;
  }
  looking = width * (shape->query_width + 2 * shape->key_width);
  shape->looked_weights = width * shape->query_width + 3 * width * ff;
  shape->looked_inputs = shape->query_width + width + ff;
  shape->conv_weights = 4 * width * width + 3 * width * ff;
  shape->conv_inputs = 3 * width + ff;
  shape->conv_past = (guint) number (root, "text", "conv_taps") - 1;
  shape->layer_weights =
      shape->n_attention * (looking + shape->looked_weights) + shape->n_conv * shape->conv_weights;
  shape->inputs =
      shape->n_attention * (width + shape->looked_inputs) + shape->n_conv * shape->conv_inputs;
}

static void
read_vision (BenchShape *shape, const json_t *root)
{
  const gdouble width = number (root, "vision", "hidden_size");
  const gdouble ff = number (root, "vision", "ff_size");
  const gdouble patch = number (root, "vision", "patch_size");
  const gdouble side = number (root, "projector", "downsample_factor");
  const gdouble middle = number (root, "projector", "hidden_size");

  shape->n_vision_layers = (guint) number (root, "vision", "n_layers");
  shape->vision_width = width;
  shape->patch_weights =
      3 * patch * patch * width + shape->n_vision_layers * (4 * width * width + 2 * width * ff);
  shape->patch_values = 3 * patch * patch;
  shape->patch_inputs = shape->n_vision_layers * (3 * width + ff);
  shape->patches_a_token = (guint) (side * side);
  shape->token_side = (guint) (side * patch);
  shape->tile_side = (guint) number (root, "image", "tile_size");
  shape->projector_weights = middle * (side * side * width + number (root, "text", "hidden_size"));
  shape->projector_inputs = side * side * width + middle;
}

gboolean
bench_shape_find (BenchShape *shape, const gchar *path, const gchar *mmproj,
    const VlmModelInfo *info, GError **error)
{
  g_autofree gchar *text = vlm_model_describe (path, mmproj, error);
  json_t *root;

  if (text == NULL)
    return FALSE;
  root = json_loads (text, 0, NULL);
  *shape = (BenchShape){ .layer_bytes = (gdouble) (info->token_bytes - info->head_bytes),
    .head_bytes = (gdouble) info->head_bytes,
    .crop_bytes = (gdouble) info->crop_bytes,
    .input_bytes = info->fast ? 1 : sizeof (gfloat),
    .patch_input_bytes = info->fast_vision ? 1 : sizeof (gfloat) };
  read_text (shape, root);
  if (info->has_vision)
    read_vision (shape, root);
  json_decref (root);
  return TRUE;
}

BenchCost
bench_crop_cost (const BenchShape *shape, guint n_patches)
{
  const gdouble n = n_patches, tokens = n / shape->patches_a_token;
  const gdouble attended = shape->n_vision_layers * n * shape->vision_width;
  BenchCost cost;

  cost.operations =
      2 * n * shape->patch_weights + 4 * attended * n + 2 * tokens * shape->projector_weights;
  cost.bytes = shape->crop_bytes + (n * shape->patch_values + 3 * attended) * sizeof (gfloat)
      + shape->patch_input_bytes * (n * shape->patch_inputs + tokens * shape->projector_inputs);
  return cost;
}

/* n tokens behind before others through all layers. */
static BenchCost
layers_cost (const BenchShape *shape, gdouble n, gdouble before)
{
  const gdouble seen = n * before + n * (n + 1) / 2; /* pairs of a token and one that it sees */
  const gdouble widths = n * shape->query_width + 2 * (before + n) * shape->key_width;
  BenchCost cost;

  cost.operations = 2 * n * shape->layer_weights
      + shape->n_attention * 4 * seen * shape->query_width
      + shape->n_conv * 2 * n * shape->conv_values;
  cost.bytes = shape->layer_bytes + shape->input_bytes * n * shape->inputs
      + shape->n_attention * widths * sizeof (gfloat);
  return cost;
}

/* Takes out of the cost of n tokens behind before others what nobody asks the last layers for. */
static void
spare_last_layers (BenchCost *cost, const BenchShape *shape, gdouble n, gdouble before)
{
  gdouble needed = 1, rows;
  guint i;

  for (i = 0; i < shape->n_last_conv; i++) {
    needed = MIN (n, needed + shape->conv_past);
    rows = n - needed;
    cost->operations -= 2 * rows * (shape->conv_weights + shape->conv_values);
    cost->bytes -= shape->input_bytes * rows * shape->conv_inputs;
  }
  if (shape->n_attention == 0)
    return;
  rows = n - needed;
  cost->operations -= 2 * rows * shape->looked_weights
      + 4 * (rows * before + rows * (rows + 1) / 2) * shape->query_width;
  cost->bytes -= shape->input_bytes * rows * shape->looked_inputs
      + rows * shape->query_width * sizeof (gfloat);
}

static void
add_head (BenchCost *cost, const BenchShape *shape)
{
  cost->operations += 2 * shape->head_weights;
  cost->bytes += shape->head_bytes;
}

BenchCost
bench_prefill_cost (const BenchShape *shape, guint n_kept, guint n_tokens, guint chunk)
{
  BenchCost sum = { 0 };
  guint first;

  for (first = n_kept; first < n_tokens; first += chunk) {
    const guint n = MIN (chunk, n_tokens - first);
    BenchCost cost = layers_cost (shape, n, first);

    spare_last_layers (&cost, shape, n, first);
    sum.operations += cost.operations;
    sum.bytes += cost.bytes;
  }
  add_head (&sum, shape);
  return sum;
}

BenchCost
bench_token_cost (const BenchShape *shape, gdouble n_tokens)
{
  BenchCost cost = layers_cost (shape, 1, n_tokens);

  add_head (&cost, shape);
  return cost;
}
