/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tensors find their places by name and shape, and arrive there with their values. */

#include <string.h>

#include "engine/model/weights.h"
#include "slm-fixture.h"
#include "tests/engine/test-text-toy.h"

#define TEXT "model.language_model."
#define VISION "model.vision_tower.vision_model."
#define PROJECTOR "model.multi_modal_projector."

typedef struct
{
  VlmCheckpoint *checkpoint;
  VlmWeights *weights;
  VlmKernels kernels;
} Loaded;

static void
loaded_free (Loaded *loaded)
{
  vlm_weights_free (loaded->weights, &loaded->checkpoint->config);
  vlm_checkpoint_free (loaded->checkpoint);
  g_free (loaded);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Loaded, loaded_free)

static Loaded *
load_path (const gchar *path, VlmPrecision precision, GError **error)
{
  Loaded *loaded = g_new0 (Loaded, 1);

  g_assert_cmpint (vlm_kernels_init (&loaded->kernels, VLM_CPU_SCALAR), ==, 0);
  loaded->checkpoint = vlm_checkpoint_open (path, NULL, error);
  if (loaded->checkpoint != NULL)
    loaded->weights = vlm_weights_load (
        loaded->checkpoint, &loaded->kernels, precision, 2, NULL, NULL, NULL, error);
  if (loaded->weights != NULL)
    return loaded;
  vlm_checkpoint_free (loaded->checkpoint);
  g_free (loaded);
  return NULL;
}

static Loaded *
load (FixtureModel *model)
{
  g_autoptr (GError) error = NULL;
  Loaded *loaded;

  fixture_save (model);
  loaded = load_path (model->directory, VLM_PRECISION_AUTO, &error);
  g_assert_no_error (error);
  return loaded;
}

static void G_GNUC_NULL_TERMINATED
expect_fault (FixtureModel *model, const gchar *part, ...)
{
  g_autoptr (GError) error = NULL;
  va_list args;

  fixture_save (model);
  g_assert_null (load_path (model->directory, VLM_PRECISION_AUTO, &error));
  va_start (args, part);
  for (; part != NULL; part = va_arg (args, const gchar *))
    fixture_assert_message (error, VLM_ERROR_FORMAT, part);
  va_end (args);
}

static void
assert_vector (const gfloat *values, gsize n, const gchar *name)
{
  gsize i;

  g_assert_nonnull (values);
  for (i = 0; i < n; i++)
    g_assert_cmpfloat (values[i], ==, fixture_value (name, i));
}

/* The rows from first on are those of the tensor. */
static void
assert_rows (
    const Loaded *loaded, const VlmMatrix *matrix, guint first, guint rows, const gchar *name)
{
  g_autofree gfloat *row = g_new (gfloat, matrix->cols);
  guint r, c;

  g_assert_cmpuint (matrix->rows, >=, first + rows);
  for (r = 0; r < rows; r++) {
    vlm_matrix_get_row (matrix, &loaded->kernels, first + r, row);
    for (c = 0; c < matrix->cols; c++)
      g_assert_cmpfloat (row[c], ==, fixture_value (name, (gsize) r * matrix->cols + c));
  }
}

static void
assert_text_values (const Loaded *loaded, const gchar *prefix)
{
  const VlmWeights *weights = loaded->weights;
  const VlmDecoderLayer *conv = &weights->layers[0], *attention = &weights->layers[1];
  guint tap, c;

#define NAME(rest) ((const gchar *) (g_snprintf (name, sizeof (name), "%s" rest, prefix), name))
  gchar name[128];

  assert_rows (loaded, weights->embedding, 0, 272, NAME ("embed_tokens.weight"));
  assert_vector (weights->final_norm.weight, 16, NAME ("embedding_norm.weight"));
  g_assert_null (weights->final_norm.bias);

  g_assert_cmpint (conv->kind, ==, VLM_LAYER_CONV);
  assert_vector (conv->operator_norm.weight, 16, NAME ("layers.0.operator_norm.weight"));
  assert_vector (conv->ffn_norm.weight, 16, NAME ("layers.0.ffn_norm.weight"));
  assert_rows (loaded, conv->conv_in.matrix, 0, 48, NAME ("layers.0.conv.in_proj.weight"));
  g_assert_null (conv->conv_in.bias);
  NAME ("layers.0.conv.conv.weight");
  for (tap = 0; tap < 3; tap++) {
    for (c = 0; c < 16; c++)
      g_assert_cmpfloat (conv->taps[tap * 16 + c], ==, fixture_value (name, c * 3 + tap));
  }
  assert_rows (loaded, conv->conv_out.matrix, 0, 16, NAME ("layers.0.conv.out_proj.weight"));
  assert_rows (loaded, conv->gate_up, 0, 16, NAME ("layers.0.feed_forward.w1.weight"));
  assert_rows (loaded, conv->gate_up, 16, 16, NAME ("layers.0.feed_forward.w3.weight"));
  assert_rows (loaded, conv->down, 0, 16, NAME ("layers.0.feed_forward.w2.weight"));

  g_assert_cmpint (attention->kind, ==, VLM_LAYER_ATTENTION);
  g_assert_null (attention->taps);
  g_assert_cmpuint (attention->qkv.matrix->rows, ==, 32);
  assert_rows (loaded, attention->qkv.matrix, 0, 16, NAME ("layers.1.self_attn.q_proj.weight"));
  assert_rows (loaded, attention->qkv.matrix, 16, 8, NAME ("layers.1.self_attn.k_proj.weight"));
  assert_rows (loaded, attention->qkv.matrix, 24, 8, NAME ("layers.1.self_attn.v_proj.weight"));
  assert_rows (
      loaded, attention->attention_out.matrix, 0, 16, NAME ("layers.1.self_attn.out_proj.weight"));
  assert_vector (attention->q_norm.weight, 8, NAME ("layers.1.self_attn.q_layernorm.weight"));
  assert_vector (attention->k_norm.weight, 8, NAME ("layers.1.self_attn.k_layernorm.weight"));
#undef NAME
}

static void
assert_vision_values (const Loaded *loaded)
{
  const VlmWeights *weights = loaded->weights;
  const VlmVisionLayer *layer = &weights->vision_layers[0];

  assert_rows (loaded, weights->patch.matrix, 0, 16, VISION "embeddings.patch_embedding.weight");
  assert_vector (weights->patch.bias, 16, VISION "embeddings.patch_embedding.bias");
  assert_vector (weights->positions, 64, VISION "embeddings.position_embedding.weight");
  assert_vector (layer->norm1.weight, 16, VISION "encoder.layers.0.layer_norm1.weight");
  assert_vector (layer->norm1.bias, 16, VISION "encoder.layers.0.layer_norm1.bias");
  assert_vector (layer->norm2.weight, 16, VISION "encoder.layers.0.layer_norm2.weight");
  assert_rows (loaded, layer->qkv.matrix, 0, 16, VISION "encoder.layers.0.self_attn.q_proj.weight");
  assert_rows (
      loaded, layer->qkv.matrix, 16, 16, VISION "encoder.layers.0.self_attn.k_proj.weight");
  assert_rows (
      loaded, layer->qkv.matrix, 32, 16, VISION "encoder.layers.0.self_attn.v_proj.weight");
  assert_vector (layer->qkv.bias, 16, VISION "encoder.layers.0.self_attn.q_proj.bias");
  assert_vector (layer->qkv.bias + 16, 16, VISION "encoder.layers.0.self_attn.k_proj.bias");
  assert_vector (layer->qkv.bias + 32, 16, VISION "encoder.layers.0.self_attn.v_proj.bias");
  assert_rows (
      loaded, layer->out.matrix, 0, 16, VISION "encoder.layers.0.self_attn.out_proj.weight");
  assert_rows (loaded, layer->fc1.matrix, 0, 24, VISION "encoder.layers.0.mlp.fc1.weight");
  assert_vector (layer->fc1.bias, 24, VISION "encoder.layers.0.mlp.fc1.bias");
  assert_rows (loaded, layer->fc2.matrix, 0, 16, VISION "encoder.layers.0.mlp.fc2.weight");
  assert_vector (weights->post_norm.weight, 16, VISION "post_layernorm.weight");
  assert_vector (weights->post_norm.bias, 16, VISION "post_layernorm.bias");
  assert_rows (loaded, weights->projector1.matrix, 0, 12, PROJECTOR "linear_1.weight");
  assert_vector (weights->projector1.bias, 12, PROJECTOR "linear_1.bias");
  assert_rows (loaded, weights->projector2.matrix, 0, 16, PROJECTOR "linear_2.weight");
  assert_vector (weights->projector2.bias, 16, PROJECTOR "linear_2.bias");
}

static guint64
count_parameters (FixtureModel *model)
{
  guint64 sum = 0;
  guint i, d;

  for (i = 0; i < model->tensors->len; i++) {
    const FixtureTensor *tensor = g_ptr_array_index (model->tensors, i);
    guint64 n = 1;

    for (d = 0; d < tensor->rank; d++)
      n *= tensor->shape[d];
    sum += n;
  }
  return sum;
}

static void
test_values (void)
{
  static const VlmDType dtypes[] = { VLM_DTYPE_BF16, VLM_DTYPE_F16, VLM_DTYPE_F32 };
  gsize i;
  guint t;

  for (i = 0; i < G_N_ELEMENTS (dtypes); i++) {
    g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
    g_autoptr (Loaded) loaded = NULL;

    /* The first round has several types in one file. */
    for (t = 0; i > 0 && t < model->tensors->len; t++)
      ((FixtureTensor *) g_ptr_array_index (model->tensors, t))->dtype = dtypes[i];
    loaded = load (model);
    assert_text_values (loaded, TEXT);
    assert_vision_values (loaded);
    g_assert_true (loaded->weights->head == loaded->weights->embedding);
    g_assert_null (loaded->weights->projector_norm.weight);
    g_assert_cmpuint (loaded->weights->n_parameters, ==, count_parameters (model));
    g_assert_cmpuint (loaded->weights->n_bytes, >=, 2 * count_parameters (model));
  }
}

static void
test_text_model (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (FALSE);
  g_autoptr (Loaded) loaded = load (model);

  assert_text_values (loaded, "model.");
  g_assert_null (loaded->weights->vision_layers);
  g_assert_cmpuint (loaded->weights->n_parameters, ==, count_parameters (model));
}

static void
rename_vision (FixtureModel *model)
{
  guint i;

  for (i = 0; i < model->tensors->len; i++) {
    FixtureTensor *tensor = g_ptr_array_index (model->tensors, i);

    if (g_str_has_prefix (tensor->name, VISION)) {
      g_autofree gchar *name =
          g_strconcat ("model.vision_tower.", tensor->name + strlen (VISION), NULL);

      fixture_rename (model, tensor->name, name);
    }
  }
}

static void
test_prefix_level (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autoptr (Loaded) loaded = NULL;

  rename_vision (model);
  loaded = load (model);
  assert_vector (loaded->weights->post_norm.bias, 16, "model.vision_tower.post_layernorm.bias");

  /* Both at once is one tower too many. */
  fixture_add (model, VISION "post_layernorm.bias", VLM_DTYPE_F32, 1, 16, 0, 0);
  expect_fault (
      model, "tensor " VISION "post_layernorm.bias has shape [16], expected no tensor", NULL);
}

static void
test_shards (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autoptr (GError) error = NULL;
  g_autoptr (Loaded) loaded = NULL;
  json_t *map = json_object (),
         *root = json_pack ("{s:{s:i}, s:o}", "metadata", "total_size", 1, "weight_map", map);
  guint i, half = model->tensors->len / 2;

  fixture_save (model);
  fixture_remove (model->directory, "model.safetensors");
  fixture_save_tensors (model, "model-00001-of-00002.safetensors", 0, half);
  fixture_save_tensors (
      model, "model-00002-of-00002.safetensors", half, model->tensors->len - half);
  for (i = 0; i < model->tensors->len; i++) {
    const FixtureTensor *tensor = g_ptr_array_index (model->tensors, i);

    json_object_set_new (map, tensor->name,
        json_string (
            i < half ? "model-00001-of-00002.safetensors" : "model-00002-of-00002.safetensors"));
  }
  fixture_write_json (model->directory, "model.safetensors.index.json", root);
  json_decref (root);
  loaded = load_path (model->directory, VLM_PRECISION_AUTO, &error);
  g_assert_no_error (error);
  assert_text_values (loaded, TEXT);
  assert_vision_values (loaded);
}

static void
test_projector_norm (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autoptr (Loaded) loaded = NULL;

  json_object_del (model->config, "projector_use_layernorm");
  expect_fault (
      model, "projector_use_layernorm", "absent", PROJECTOR "layer_norm.weight is missing", NULL);

  fixture_add (model, PROJECTOR "layer_norm.weight", VLM_DTYPE_BF16, 1, 64, 0, 0);
  fixture_add (model, PROJECTOR "layer_norm.bias", VLM_DTYPE_BF16, 1, 64, 0, 0);
  loaded = load (model);
  g_assert_true (loaded->checkpoint->config.projector.layer_norm);
  assert_vector (loaded->weights->projector_norm.weight, 64, PROJECTOR "layer_norm.weight");
  assert_vector (loaded->weights->projector_norm.bias, 64, PROJECTOR "layer_norm.bias");

  json_object_set_new (model->config, "projector_use_layernorm", json_false ());
  expect_fault (
      model, "projector_use_layernorm is false", PROJECTOR "layer_norm.weight is present", NULL);
}

static void
test_projector_bias (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autoptr (Loaded) loaded = NULL;

  json_object_set_new (model->config, "projector_bias", json_false ());
  expect_fault (model, PROJECTOR "linear_1.bias has shape [12], expected no tensor", NULL);
  fixture_drop (model, PROJECTOR "linear_1.bias");
  fixture_drop (model, PROJECTOR "linear_2.bias");
  loaded = load (model);
  g_assert_null (loaded->weights->projector1.bias);
}

static void
test_head (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autoptr (Loaded) untied = NULL;

  fixture_add (model, "lm_head.weight", VLM_DTYPE_BF16, 2, 272, 16, 0);
  expect_fault (
      model, "tie_word_embeddings is true", "lm_head.weight is present and differs", NULL);

  json_object_set_new (model->config, "tie_word_embeddings", json_false ());
  untied = load (model);
  g_assert_false (untied->checkpoint->config.text.tied_head);
  g_assert_true (untied->weights->head != untied->weights->embedding);
  assert_rows (untied, untied->weights->head, 0, 272, "lm_head.weight");
  g_assert_cmpuint (untied->weights->n_parameters, ==, count_parameters (model));

  fixture_drop (model, "lm_head.weight");
  expect_fault (model, "tie_word_embeddings is false", "lm_head.weight is missing",
      "expected shape [272, 16]", NULL);
}

/* A head that repeats the embedding says nothing new. */
static void
test_repeated_head (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autoptr (Loaded) loaded = NULL;
  g_autofree gchar *path = g_build_filename (model->directory, "model.safetensors", NULL);
  g_autofree gchar *bytes = NULL;
  g_autoptr (GError) error = NULL;
  guint64 length;
  gsize size, part = 272 * 16 * 2;

  /* The embedding is the first tensor of the file, the head the last. */
  fixture_add (model, "lm_head.weight", VLM_DTYPE_BF16, 2, 272, 16, 0);
  fixture_save (model);
  g_assert_true (g_file_get_contents (path, &bytes, &size, NULL));
  memcpy (&length, bytes, sizeof (length));
  memcpy (bytes + size - part, bytes + 8 + GUINT64_FROM_LE (length), part);
  fixture_write (model->directory, "model.safetensors", bytes, size);
  loaded = load_path (model->directory, VLM_PRECISION_AUTO, &error);
  g_assert_no_error (error);
  g_assert_true (loaded->weights->head == loaded->weights->embedding);
  g_assert_cmpuint (loaded->weights->n_parameters, ==, count_parameters (model) - 272 * 16);
}

static void
set_rows (FixtureModel *model, guint rows)
{
  guint i;

  for (i = 0; i < 2; i++) {
    g_autofree gchar *w1 = g_strdup_printf (TEXT "layers.%u.feed_forward.w1.weight", i);
    g_autofree gchar *w2 = g_strdup_printf (TEXT "layers.%u.feed_forward.w2.weight", i);
    g_autofree gchar *w3 = g_strdup_printf (TEXT "layers.%u.feed_forward.w3.weight", i);

    fixture_find (model, w1)->shape[0] = rows;
    fixture_find (model, w2)->shape[1] = rows;
    fixture_find (model, w3)->shape[0] = rows;
  }
}

/* The tensors win when the rule explains them, else the file is refused. */
static void
test_feed_forward (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autoptr (Loaded) plain = NULL, adjusted = NULL;

  set_rows (model, 24);
  plain = load (model);
  g_assert_cmpuint (plain->checkpoint->config.text.ff_size, ==, 24);
  g_assert_cmpuint (plain->weights->layers[1].gate_up->rows, ==, 48);

  json_object_set_new (fixture_text (model), "block_auto_adjust_ff_dim", json_false ());
  set_rows (model, 16);
  adjusted = load (model);
  g_assert_cmpuint (adjusted->checkpoint->config.text.ff_size, ==, 16);

  set_rows (model, 20);
  expect_fault (model, TEXT "layers.0.feed_forward.w1.weight has shape [20, 16]",
      "expected [24, 16]", "[16, 16]", NULL);

  set_rows (model, 24);
  fixture_find (model, TEXT "layers.1.feed_forward.w3.weight")->shape[0] = 16;
  expect_fault (
      model, TEXT "layers.1.feed_forward.w3.weight has shape [16, 16], expected [24, 16]", NULL);
}

static void
test_conv_bias (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (FALSE);
  g_autoptr (Loaded) loaded = NULL;

  json_object_set_new (model->config, "conv_bias", json_true ());
  expect_fault (model, "model.layers.0.conv.in_proj.bias is missing, expected shape [48]", NULL);
  fixture_add (model, "model.layers.0.conv.in_proj.bias", VLM_DTYPE_F16, 1, 48, 0, 0);
  fixture_add (model, "model.layers.0.conv.out_proj.bias", VLM_DTYPE_F16, 1, 16, 0, 0);
  fixture_add (model, "model.layers.0.conv.conv.bias", VLM_DTYPE_F16, 1, 16, 0, 0);
  loaded = load (model);
  assert_vector (loaded->weights->layers[0].conv_in.bias, 48, "model.layers.0.conv.in_proj.bias");
  assert_vector (loaded->weights->layers[0].conv_out.bias, 16, "model.layers.0.conv.out_proj.bias");
  assert_vector (loaded->weights->layers[0].taps_bias, 16, "model.layers.0.conv.conv.bias");
}

/* Every tensor is needed, and no other. */
static void
test_missing_and_surplus (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  guint i;

  fixture_save (model);
  for (i = 0; i < model->tensors->len; i++) {
    FixtureTensor *tensor = g_ptr_array_index (model->tensors, i);
    g_autofree gchar *name = g_strdup (tensor->name);
    g_autofree gchar *shape = vlm_tensor_shape_to_string (tensor->shape, tensor->rank);
    g_autofree gchar *missing = g_strdup_printf ("%s is missing, expected shape %s", name, shape);

    fixture_rename (model, name, "other");
    expect_fault (model, missing, NULL);
    fixture_rename (model, "other", name);
  }
  fixture_add (model, "model.language_model.layers.2.ffn_norm.weight", VLM_DTYPE_F32, 1, 16, 0, 0);
  expect_fault (
      model, "layers.2.ffn_norm.weight has shape [16], expected no tensor of this name", NULL);
}

/* Every tensor with one more row, and turned over. */
static void
test_misshapen (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  guint i;

  for (i = 0; i < model->tensors->len; i++) {
    FixtureTensor *tensor = g_ptr_array_index (model->tensors, i);
    g_autofree gchar *expected = vlm_tensor_shape_to_string (tensor->shape, tensor->rank);
    g_autofree gchar *found = NULL;

    tensor->shape[0]++;
    found = vlm_tensor_shape_to_string (tensor->shape, tensor->rank);
    expect_fault (model, tensor->name, found, expected, "model.safetensors", NULL);
    tensor->shape[0]--;
  }

  fixture_find (model, PROJECTOR "linear_1.weight")->shape[0] = 64;
  fixture_find (model, PROJECTOR "linear_1.weight")->shape[1] = 12;
  expect_fault (model, "linear_1.weight has shape [64, 12], expected [12, 64]", NULL);
  fixture_find (model, PROJECTOR "linear_1.weight")->rank = 1;
  expect_fault (model, "linear_1.weight has shape [64], expected [12, 64]", NULL);
  fixture_find (model, PROJECTOR "linear_1.weight")->rank = 3;
  fixture_find (model, PROJECTOR "linear_1.weight")->shape[0] = 12;
  fixture_find (model, PROJECTOR "linear_1.weight")->shape[1] = 64;
  fixture_find (model, PROJECTOR "linear_1.weight")->shape[2] = 1;
  expect_fault (model, "linear_1.weight has shape [12, 64, 1], expected [12, 64]", NULL);
}

/* The pooling head has no part in captions. */
static void
test_pooling_head (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autoptr (Loaded) loaded = NULL;

  json_object_set_new (fixture_vision (model), "vision_use_head", json_true ());
  fixture_add (model, VISION "head.probe", VLM_DTYPE_BF16, 3, 1, 1, 16);
  fixture_add (model, VISION "head.layernorm.weight", VLM_DTYPE_BF16, 1, 16, 0, 0);
  loaded = load (model);
  g_assert_nonnull (loaded);
}

/* Tensors that are one product, each of a type of its own: each stays what it is. */
static void
test_mixed_types (void)
{
  static const gchar *const names[] = { TEXT "layers.1.self_attn.q_proj.weight",
    TEXT "layers.1.self_attn.k_proj.weight", TEXT "layers.1.self_attn.v_proj.weight" };
  static const VlmDType dtypes[] = { VLM_DTYPE_F16, VLM_DTYPE_F32, VLM_DTYPE_BF16 };
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  guint precision, i;

  for (i = 0; i < G_N_ELEMENTS (names); i++)
    fixture_find (model, names[i])->dtype = dtypes[i];
  fixture_save (model);
  for (precision = VLM_PRECISION_AUTO; precision <= VLM_PRECISION_FAST; precision++) {
    gboolean fast = precision == VLM_PRECISION_FAST;
    g_autoptr (GError) error = NULL;
    g_autoptr (Loaded) loaded = load_path (model->directory, precision, &error);
    const VlmMatrix *matrix;
    gfloat row[16];

    g_assert_no_error (error);
    matrix = loaded->weights->layers[1].qkv.matrix;
    g_assert_cmpuint (matrix->n_parts, ==, fast ? 1 : G_N_ELEMENTS (names));
    for (i = 0; i < matrix->n_parts; i++)
      g_assert_cmpint (matrix->parts[i].dtype, ==, fast ? VLM_DTYPE_QUANTISED : dtypes[i]);
    vlm_matrix_get_row (matrix, &loaded->kernels, 24, row);
    g_assert_cmpfloat (ABS (row[3] - fixture_value (names[2], 3)), <=, fast ? 0.01f : 0);
  }
}

static void
on_problem (VlmFindingKind kind, const gchar *text, gpointer user_data)
{
  g_assert_cmpint (kind, ==, VLM_FINDING_PROBLEM);
  g_string_append (user_data, text);
}

/* A file may hold integers wherever there are two dimensions; the network has not everywhere a use
 * for them. */
static void
test_integers_for_floats (void)
{
  static const gchar positions[] = VISION "embeddings.position_embedding.weight";
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autofree gchar *path = g_build_filename (model->directory, "m.slm", NULL);
  g_autoptr (GString) problems = g_string_new (NULL);
  g_autoptr (GError) error = NULL;
  guint i;

  toy_add_token (model->tokenizer, "<|im_start|>", TRUE);
  fixture_save (model);
  slm_fixture_convert_one (model, path, VISION "embeddings.patch_embedding.weight");
  for (i = VLM_PRECISION_AUTO; i <= VLM_PRECISION_FAST; i++) {
    g_autoptr (Loaded) loaded = load_path (path, i, &error);

    g_assert_no_error (error);
    g_assert_cmpint (loaded->weights->patch.matrix->parts[0].dtype, ==, VLM_DTYPE_F32);
  }

  slm_fixture_convert_one (model, path, positions);
  g_assert_null (load_path (path, VLM_PRECISION_AUTO, &error));
  fixture_assert_message (error, VLM_ERROR_UNSUPPORTED, positions);
  fixture_assert_message (error, VLM_ERROR_UNSUPPORTED, "integers of 8 bits, expected floats");
  g_assert_true (vlm_model_verify (path, NULL, on_problem, NULL, problems, NULL, NULL));
  g_assert_cmpstr (problems->str, ==, error->message);
}

static void
on_progress (gdouble fraction, gpointer user_data)
{
  gdouble *last = user_data;

  g_assert_cmpfloat (fraction, >=, *last);
  g_assert_cmpfloat (fraction, <=, 1);
  *last = fraction;
}

typedef struct
{
  GCancellable *cancellable;
  guint calls;
} Canceller;

static void
on_progress_cancel (gdouble fraction, gpointer user_data)
{
  Canceller *canceller = user_data;

  canceller->calls++;
  if (fraction > 0.5)
    g_cancellable_cancel (canceller->cancellable);
}

static void
test_progress_and_cancel (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autoptr (VlmCheckpoint) checkpoint = fixture_open (model);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  Canceller canceller = { cancellable, 0 };
  VlmWeights *weights;
  VlmKernels kernels;
  gdouble last = 0;

  g_assert_cmpint (vlm_kernels_init (&kernels, VLM_CPU_SCALAR), ==, 0);
  weights = vlm_weights_load (
      checkpoint, &kernels, VLM_PRECISION_AUTO, 0, on_progress, &last, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (last, ==, 1);
  vlm_weights_free (weights, &checkpoint->config);

  /* From the middle of the loading: what is loaded by then is freed. */
  g_assert_null (vlm_weights_load (checkpoint, &kernels, VLM_PRECISION_AUTO, 0, on_progress_cancel,
      &canceller, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_cmpuint (canceller.calls, >, 0);
}

/* The small checkpoints of the reference, written by its own code. */
static void
test_reference_models (void)
{
  static const struct
  {
    const gchar *name;
    guint64 n_parameters;
  } models[] = { { "attn-first", 754512 }, { "ids-moved", 131152 }, { "lfm2-first", 405776 },
    { "lfm25", 476960 }, { "sharded", 764784 }, { "text-only", 242848 }, { "untied", 327560 },
    { "vl-3b", 603264 } };
  gsize i;

  for (i = 0; i < G_N_ELEMENTS (models); i++) {
    g_autofree gchar *path =
        g_test_build_filename (G_TEST_DIST, "golden", "models", models[i].name, NULL);
    g_autoptr (GError) error = NULL;
    g_autoptr (Loaded) loaded = load_path (path, VLM_PRECISION_AUTO, &error);

    g_assert_no_error (error);
    g_assert_cmpuint (loaded->weights->n_parameters, ==, models[i].n_parameters);
  }
}

static void
test_builtin_model (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (Loaded) loaded = load_path (vlm_builtin_model (), VLM_PRECISION_AUTO, &error);

  g_assert_no_error (error);
  g_assert_true (loaded->checkpoint->config.has_vision);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/weights/values", test_values);
  g_test_add_func ("/weights/text-model", test_text_model);
  g_test_add_func ("/weights/prefix-level", test_prefix_level);
  g_test_add_func ("/weights/shards", test_shards);
  g_test_add_func ("/weights/projector-norm", test_projector_norm);
  g_test_add_func ("/weights/projector-bias", test_projector_bias);
  g_test_add_func ("/weights/head", test_head);
  g_test_add_func ("/weights/repeated-head", test_repeated_head);
  g_test_add_func ("/weights/feed-forward", test_feed_forward);
  g_test_add_func ("/weights/conv-bias", test_conv_bias);
  g_test_add_func ("/weights/missing-and-surplus", test_missing_and_surplus);
  g_test_add_func ("/weights/misshapen", test_misshapen);
  g_test_add_func ("/weights/pooling-head", test_pooling_head);
  g_test_add_func ("/weights/mixed-types", test_mixed_types);
  g_test_add_func ("/weights/integers-for-floats", test_integers_for_floats);
  g_test_add_func ("/weights/progress-and-cancel", test_progress_and_cancel);
  g_test_add_func ("/weights/reference-models", test_reference_models);
  g_test_add_func ("/weights/builtin-model", test_builtin_model);
  return g_test_run ();
}
