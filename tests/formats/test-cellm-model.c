/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Whole models in .cellm files say what the same models say in other files. */

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "cellm-models.h"
#include "engine/formats/checkpoint.h"
#include "fixture.h"
#include "tests/engine/test-text-toy.h"

/* The small model with all that a chat needs. */
static FixtureModel *
new_model (gboolean has_vision)
{
  FixtureModel *model = fixture_model_new (has_vision);

  toy_add_token (model->tokenizer, "<|im_start|>", TRUE);
  toy_add_token (model->tokenizer, "<|image_start|>", TRUE);
  toy_add_token (model->tokenizer, "<|image_end|>", TRUE);
  fixture_save (model);
  return model;
}

/* A directory with tokenizer.json and victim.cellm, which path becomes the name of. */
static gchar *
save_alone (FixtureModel *model, CellmFixture *fixture, gchar **path)
{
  gchar *directory = fixture_directory_new ();

  fixture_write_json (directory, "tokenizer.json", model->tokenizer);
  *path = g_build_filename (directory, "victim.cellm", NULL);
  cellm_fixture_save (fixture, *path);
  return directory;
}

/* The published image settings do not fit the small tower: what the header has must be right. */
static CellmFixture *
convert (FixtureModel *model, CellmSpelling spelling)
{
  g_autoptr (VlmTensorSource) source = cellm_models_open (model->directory);
  CellmFixture *fixture =
      cellm_models_convert (model->directory, source, spelling, CELLM_N_KINDS, NULL);
  json_t *projector = json_object_get (fixture->header, "source_projector_config");

  if (model->image != NULL)
    json_object_update (projector, model->image);
  return fixture;
}

/* The file, alone with its tokenizer, answers as the directory of model does. */
static void
assert_same (FixtureModel *model, CellmFixture *fixture)
{
  g_autofree gchar *path = NULL;
  gchar *directory = save_alone (model, fixture, &path);
  g_autoptr (CellmAnswer) one = cellm_models_ask (model->directory, VLM_PRECISION_AUTO);
  g_autoptr (CellmAnswer) other = cellm_models_ask (path, VLM_PRECISION_AUTO);

  cellm_answer_compare (one, other, 0);
  fixture_directory_remove (directory);
}

static void
expect_fault (FixtureModel *model, CellmFixture *fixture, gint code, const gchar *part)
{
  g_autofree gchar *path = NULL;
  gchar *directory = save_alone (model, fixture, &path);
  g_autoptr (GError) error = NULL;

  g_assert_null (vlm_model_load (path, NULL, NULL, NULL, NULL, &error));
  fixture_assert_message (error, code, part);
  fixture_assert_message (error, code, "victim.cellm");
  fixture_directory_remove (directory);
}

/* ---- The same model ----------------------------------------------------------------------- */

static void
test_spellings (void)
{
  g_autoptr (FixtureModel) model = new_model (TRUE);
  CellmSpelling spelling;

  for (spelling = 0; spelling < CELLM_N_SPELLINGS; spelling++) {
    g_autoptr (CellmFixture) fixture = convert (model, spelling);

    assert_same (model, fixture);
  }
}

static void
test_text_model (void)
{
  g_autoptr (FixtureModel) model = new_model (FALSE);
  g_autoptr (CellmFixture) fixture = convert (model, CELLM_KEPT);

  assert_same (model, fixture);
}

/* What a header may say in passing without being right. */
static void
test_hints (void)
{
  g_autoptr (FixtureModel) model = new_model (TRUE);
  g_autoptr (CellmFixture) fixture = convert (model, CELLM_PUBLISHED);
  json_t *header = fixture->header;

  json_object_set_new (header, "intermediate_size", json_integer (6656));
  json_object_set_new (header, "quantization", json_string ("int4_symmetric_per_row_text"));
  json_object_set_new (header, "source_torch_dtype", json_string ("bfloat16"));
  json_object_set_new (header, "rope_interleaved", json_true ());
  json_object_set_new (header, "text_tensor_prefix", json_string ("somewhere."));
  assert_same (model, fixture);
}

/* Without the configuration that it was made of, the header's own fields say the rest. */
static void
test_header_alone (void)
{
  g_autoptr (FixtureModel) model = new_model (TRUE);
  g_autoptr (CellmFixture) fixture = convert (model, CELLM_PUBLISHED);
  g_autoptr (FixtureModel) text = new_model (FALSE);
  g_autoptr (CellmFixture) text_fixture = convert (text, CELLM_KEPT);

  json_object_set_new (fixture->header, "source_text_config", json_null ());
  assert_same (model, fixture);
  json_object_del (text_fixture->header, "source_text_config");
  assert_same (text, text_fixture);
}

/* Taps may stand with their channels last. */
static void
test_turned_taps (void)
{
  g_autoptr (FixtureModel) model = new_model (FALSE);
  g_autoptr (CellmFixture) fixture = convert (model, CELLM_KEPT);
  CellmPart *taps = cellm_fixture_find (fixture, "model.layers.0.conv.conv.weight");

  taps->shape[1] = 3;
  taps->shape[2] = 1;
  assert_same (model, fixture);
}

/* A number, null or a list. */
static void
test_end_ids (void)
{
  g_autoptr (FixtureModel) model = new_model (TRUE);
  const gint im_end = model->im_end_id;
  const struct
  {
    json_t *value;
    guint n;
    gint ids[2];
  } cases[] = { { json_integer (7), 1, { 7 } }, { json_null (), 1, { im_end } },
    { json_pack ("[ii]", 7, 2), 2, { 7, 2 } } };
  guint i, j;

  for (i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (CellmFixture) fixture = convert (model, CELLM_PUBLISHED);
    g_autoptr (VlmCheckpoint) checkpoint = NULL;
    g_autoptr (GError) error = NULL;
    g_autofree gchar *path = NULL;
    gchar *directory;

    json_object_set_new (fixture->header, "eos_token_id", cases[i].value);
    json_object_set_new (fixture->header, "bos_token_id", json_integer (model->bos_id));
    directory = save_alone (model, fixture, &path);
    checkpoint = vlm_checkpoint_open (path, NULL, &error);
    g_assert_no_error (error);
    g_assert_cmpuint (checkpoint->generation.n_eos, ==, cases[i].n);
    for (j = 0; j < cases[i].n; j++)
      g_assert_cmpint (checkpoint->generation.eos_ids[j], ==, cases[i].ids[j]);
    g_assert_cmpint (checkpoint->generation.bos_id, ==, model->bos_id);
    fixture_directory_remove (directory);
  }
}

/* ---- The reference's small models --------------------------------------------------------- */

static const gchar *const golden_models[] = { "attn-first", "ids-moved", "lfm2-first", "lfm25",
  "sharded", "text-only", "untied", "vl-3b" };

static gchar *
golden_model (const gchar *name)
{
  return g_test_build_filename (G_TEST_DIST, "golden", "models", name, NULL);
}

/* Floats as they are, and the settings files of the model beside them. */
static void
test_golden_models (void)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (golden_models); i++) {
    g_autofree gchar *original = golden_model (golden_models[i]);
    gchar *directory = cellm_models_copy_settings (original);
    g_autofree gchar *path = g_build_filename (directory, "model.cellm", NULL);
    g_autoptr (VlmTensorSource) source = cellm_models_open (original);
    g_autoptr (CellmFixture) fixture =
        cellm_models_convert (original, source, CELLM_PUBLISHED, CELLM_N_KINDS, NULL);
    g_autoptr (CellmAnswer) one = NULL, other = NULL;

    fixture_remove (directory, "config.json");
    cellm_fixture_save (fixture, path);
    one = cellm_models_ask (original, VLM_PRECISION_AUTO);
    other = cellm_models_ask (path, VLM_PRECISION_AUTO);
    cellm_answer_compare (one, other, 0);
    fixture_directory_remove (directory);
  }
}

/* What was said in a directory, in a .slm and in a .cellm file with the same numbers: the last. */
static CellmAnswer *
check_forms (const gchar *original, VlmWeightType type)
{
  gchar *directory = cellm_models_copy_settings (original);
  g_autofree gchar *slm = g_build_filename (directory, "model.slm", NULL);
  g_autofree gchar *cellm = g_build_filename (directory, "model.cellm", NULL);
  const VlmConvertOptions options = { type, VLM_WEIGHT_AUTO, FALSE, 1, NULL };
  g_autoptr (VlmTensorSource) source = NULL;
  g_autoptr (CellmFixture) fixture = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (CellmAnswer) one = NULL, two = NULL, three = NULL;

  g_assert_true (vlm_model_convert (original, slm, &options, NULL, NULL, NULL, &error));
  g_assert_no_error (error);
  source = cellm_models_open (slm);
  fixture = cellm_models_convert (directory, source, CELLM_PUBLISHED, CELLM_N_KINDS, NULL);
  cellm_fixture_save (fixture, cellm);
  cellm_models_write_floats (directory, source, NULL);

  one = cellm_models_ask (directory, VLM_PRECISION_EXACT);
  two = cellm_models_ask (slm, VLM_PRECISION_EXACT);
  three = cellm_models_ask (cellm, VLM_PRECISION_EXACT);
  cellm_answer_compare (two, three, 0);
  cellm_answer_compare (one, three, 1e-5f);
  fixture_directory_remove (directory);
  return g_steal_pointer (&three);
}

static void
test_three_forms (void)
{
  static const VlmWeightType types[] = { VLM_WEIGHT_F16, VLM_WEIGHT_INT8, VLM_WEIGHT_INT4 };
  static const gchar *const names[] = { "lfm25", "text-only" };
  guint i, j;

  for (i = 0; i < G_N_ELEMENTS (types); i++) {
    for (j = 0; j < G_N_ELEMENTS (names); j++) {
      g_autofree gchar *original = golden_model (names[j]);

      cellm_answer_free (check_forms (original, types[i]));
    }
  }
}

/* And in the GGUF pair that they are made of. */
static void
test_four_forms (void)
{
  g_autofree gchar *original = golden_model ("gguf-f16");
  g_autoptr (CellmAnswer) gguf = cellm_models_ask (original, VLM_PRECISION_EXACT);
  g_autoptr (CellmAnswer) other = check_forms (original, VLM_WEIGHT_F16);

  /* Norms and biases, which the pair has as f32, are halves in the others. */
  cellm_answer_compare (gguf, other, 1e-3f);
}

/* Matrices of every kind, against a directory with the values that they stand for. */
static void
test_kinds (void)
{
  g_autofree gchar *original = golden_model ("lfm25");
  g_autoptr (VlmTensorSource) source = cellm_models_open (original);
  CellmKind kind;

  for (kind = 0; kind < CELLM_N_KINDS; kind++) {
    gchar *directory = cellm_models_copy_settings (original);
    g_autofree gchar *path = g_build_filename (directory, "model.cellm", NULL);
    g_autoptr (GHashTable) values = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr (CellmFixture) fixture =
        cellm_models_convert (original, source, CELLM_PUBLISHED, kind, values);
    g_autoptr (CellmAnswer) one = NULL, other = NULL, rough = NULL;

    g_assert_cmpuint (g_hash_table_size (values), >, 20);
    cellm_fixture_save (fixture, path);
    cellm_models_write_floats (directory, source, values);
    one = cellm_models_ask (directory, VLM_PRECISION_EXACT);
    other = cellm_models_ask (path, VLM_PRECISION_EXACT);
    cellm_answer_compare (one, other, 1e-5f);
    /* Integer products end as well. */
    rough = cellm_models_ask (path, VLM_PRECISION_AUTO);
    g_assert_cmpuint (rough->n_ids, >, 0);
    fixture_directory_remove (directory);
  }
}

/* i8 is no f16: the embedding is that of the original within half a step. */
static void
test_int8_embedding (void)
{
  g_autofree gchar *original = golden_model ("lfm25");
  g_autoptr (VlmTensorSource) source = cellm_models_open (original), copy = NULL;
  gchar *directory = cellm_models_copy_settings (original);
  g_autofree gchar *path = g_build_filename (directory, "model.cellm", NULL);
  g_autoptr (CellmFixture) fixture =
      cellm_models_convert (original, source, CELLM_PUBLISHED, CELLM_I8, NULL);
  const gchar *name = "model.language_model.embed_tokens.weight";
  const VlmTensorInfo *info = vlm_tensor_source_lookup (source, name);
  g_autofree gfloat *before = cellm_models_read (source, info), *after = NULL;
  gsize row, i;

  cellm_fixture_save (fixture, path);
  copy = cellm_models_open (path);
  after = cellm_models_read (copy, vlm_tensor_source_lookup (copy, name));
  for (row = 0; row < info->shape[0]; row++) {
    gfloat largest = 0;

    for (i = 0; i < info->shape[1]; i++)
      largest = fmaxf (largest, fabsf (before[row * info->shape[1] + i]));
    for (i = 0; i < info->shape[1]; i++)
      g_assert_cmpfloat_with_epsilon (before[row * info->shape[1] + i],
          after[row * info->shape[1] + i], largest * (0.5f / 127 + 1.0f / 2048));
  }
  fixture_directory_remove (directory);
}

/* ---- Claims ------------------------------------------------------------------------------- */

/* Sizes that contradict the tensors. */
static void
test_claims (void)
{
  static const struct
  {
    const gchar *key;
    gint value;
    const gchar *part;
  } cases[] = {
    { "vocab_size", 273, "vocab_size is 273, expected 272 by the shapes of the tensors" },
    { "hidden_dim", 32, "hidden_dim is 32, expected 16" },
    { "num_layers", 3, "num_layers is 3, expected 2" },
    { "num_heads", 4, "num_heads is 4, expected 2" },
    { "num_kv_heads", 2, "num_kv_heads is 2, expected 1" },
    { "head_dim", 16, "head_dim is 16, expected 8" },
  };
  g_autoptr (FixtureModel) model = new_model (TRUE);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (CellmFixture) fixture = convert (model, CELLM_PUBLISHED);

    json_object_set_new (fixture->header, cases[i].key, json_integer (cases[i].value));
    expect_fault (model, fixture, VLM_ERROR_FORMAT, cases[i].part);
  }
}

static void
test_missing_tensors (void)
{
  static const struct
  {
    const gchar *name, *part;
  } cases[] = {
    { "model.embed_tokens.weight", "embed_tokens.weight is missing" },
    { "model.layers.0.feed_forward.w1.weight", "layers.0.feed_forward.w1.weight is missing" },
    { "model.layers.1.operator_norm.weight", "num_layers is 2, expected 1" },
    { "model.layers.1.ffn_norm.weight", "layers.1.ffn_norm.weight is missing" },
    { "model.vision_tower.vision_model.embeddings.patch_embedding.weight",
        "embeddings.patch_embedding.weight is missing" },
    { "model.multi_modal_projector.linear_1.weight", "linear_1.weight is missing" },
  };
  g_autoptr (FixtureModel) model = new_model (TRUE);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (CellmFixture) fixture = convert (model, CELLM_PUBLISHED);

    cellm_fixture_drop (fixture, cases[i].name);
    expect_fault (model, fixture, VLM_ERROR_FORMAT, cases[i].part);
  }
}

/* What no tensor tells, and what the network has no place for. */
static void
test_settings (void)
{
  g_autoptr (FixtureModel) model = new_model (TRUE);
  g_autoptr (CellmFixture) heads = convert (model, CELLM_PUBLISHED);
  g_autoptr (CellmFixture) act = convert (model, CELLM_PUBLISHED);
  g_autoptr (CellmFixture) kinds = convert (model, CELLM_PUBLISHED);
  g_autoptr (CellmFixture) surplus = convert (model, CELLM_PUBLISHED);
  g_autoptr (CellmFixture) untied = convert (model, CELLM_PUBLISHED);
  const guint64 shape[] = { 1 };

  json_object_del (json_object_get (heads->header, "source_vision_config"), "num_attention_heads");
  expect_fault (model, heads, VLM_ERROR_FORMAT,
      "source_vision_config.num_attention_heads is absent, expected an integer");
  json_object_set_new (json_object_get (act->header, "source_projector_config"),
      "projector_hidden_act", json_string ("relu"));
  expect_fault (model, act, VLM_ERROR_UNSUPPORTED, "projector_hidden_act is \"relu\"");
  json_object_set_new (json_object_get (kinds->header, "source_text_config"), "layer_types",
      json_pack ("[ss]", "conv", "conv"));
  expect_fault (model, kinds, VLM_ERROR_FORMAT, "layers.1.conv.in_proj.weight is missing");
  cellm_fixture_add (surplus, "more.weight", "f16", 1, shape, "\0\0", 2);
  expect_fault (model, surplus, VLM_ERROR_FORMAT, "tensor more.weight has shape [1], expected no");
  json_object_set_new (untied->header, "tie_word_embeddings", json_false ());
  expect_fault (model, untied, VLM_ERROR_FORMAT, "lm_head.weight is missing");
}

/* ---- Files beside ------------------------------------------------------------------------- */

static void
test_tokenizer (void)
{
  g_autoptr (FixtureModel) model = new_model (TRUE);
  g_autoptr (CellmFixture) fixture = convert (model, CELLM_PUBLISHED);
  g_autofree gchar *path = NULL;
  gchar *directory = save_alone (model, fixture, &path);
  g_autoptr (GError) error = NULL;
  guint i;

  fixture_remove (directory, "tokenizer.json");
  g_assert_false (vlm_model_check_path (path, NULL, &error));
  fixture_assert_message (error, VLM_ERROR_NOT_FOUND, "victim.cellm: has no tokenizer.json");
  fixture_assert_message (error, VLM_ERROR_NOT_FOUND, "tokenizer.json is missing");
  g_clear_error (&error);
  g_assert_null (vlm_model_load (path, NULL, NULL, NULL, NULL, &error));
  fixture_assert_message (error, VLM_ERROR_NOT_FOUND, "tokenizer.json is missing");
  fixture_directory_remove (directory);

  /* 272 rows: 262 ids are fine, and so are 272; 273 are not. */
  for (i = 0; i < 10; i++) {
    g_autofree gchar *text = g_strdup_printf ("<|more%u|>", i);

    toy_add_token (model->tokenizer, text, TRUE);
  }
  assert_same (model, fixture);
  toy_add_token (model->tokenizer, "<|surplus|>", TRUE);
  expect_fault (model, fixture, VLM_ERROR_FORMAT, "tokenizer.json has 273 ids, expected at most");
}

/* Other vocabularies show in how many ids they have, or in the id of <image>. */
static void
test_other_vocabulary (void)
{
  g_autoptr (FixtureModel) model = new_model (TRUE);
  g_autoptr (CellmFixture) fixture = convert (model, CELLM_PUBLISHED);
  json_t *vocabulary = json_object_get (json_object_get (model->tokenizer, "model"), "vocab");
  json_t *added = json_object_get (model->tokenizer, "added_tokens");
  const gchar *key;
  json_t *id;
  gsize i;
  void *next;

  json_object_set_new (json_object_get (fixture->header, "source_projector_config"),
      "image_token_id", json_integer (396));
  expect_fault (model, fixture, VLM_ERROR_FORMAT, "image_token_id is 396, but <image> is 258");

  json_object_foreach_safe (vocabulary, next, key, id)
  {
    if (json_integer_value (id) >= 200)
      json_object_del (vocabulary, key);
  }
  json_array_foreach (added, i, id)
    json_object_set_new (id, "id", json_integer (200 + i));
  expect_fault (model, fixture, VLM_ERROR_FORMAT,
      "the tokenizer.json beside it has 206 ids, but tensor model.embed_tokens.weight has 272 "
      "rows");
}

static VlmCheckpoint *
open_checkpoint (const gchar *path)
{
  g_autoptr (GError) error = NULL;
  VlmCheckpoint *checkpoint = vlm_checkpoint_open (path, NULL, &error);

  g_assert_no_error (error);
  return checkpoint;
}

/* The header says how pictures are cut, a file beside says it with more right. */
static void
test_pictures (void)
{
  g_autoptr (FixtureModel) model = new_model (TRUE);
  g_autoptr (CellmFixture) fixture = convert (model, CELLM_PUBLISHED);
  json_t *projector = json_object_get (fixture->header, "source_projector_config");
  g_autofree gchar *path = NULL;
  gchar *directory;
  json_t *image, *processor;
  g_autoptr (VlmCheckpoint) made = NULL, beside = NULL, nested = NULL;

  json_object_set_new (projector, "min_image_tokens", json_integer (5));
  json_object_set_new (projector, "max_tiles", json_integer (4));
  json_object_set_new (projector, "resample", json_integer (3));
  json_object_del (projector, "encoder_patch_size");
  json_object_del (projector, "downsample_factor");
  directory = save_alone (model, fixture, &path);
  made = open_checkpoint (path);
  g_assert_cmpuint (made->processor.tile_size, ==, 8);
  g_assert_cmpuint (made->processor.min_image_tokens, ==, 5);
  g_assert_cmpuint (made->processor.max_image_tokens, ==, 128);
  g_assert_cmpuint (made->processor.max_tiles, ==, 4);
  g_assert_cmpint (made->processor.filter, ==, VLM_FILTER_BICUBIC);
  g_assert_cmpuint (made->processor.patch_size, ==, 2);
  g_assert_cmpuint (made->processor.downsample_factor, ==, 2);

  image = json_pack ("{s:i, s:i}", "encoder_patch_size", 2, "tile_size", 16);
  fixture_write_json (directory, "preprocessor_config.json", image);
  beside = open_checkpoint (path);
  g_assert_cmpuint (beside->processor.tile_size, ==, 16);
  g_assert_cmpuint (beside->processor.min_image_tokens, ==, 64);
  json_object_set_new (image, "tile_size", json_integer (24));
  processor = json_pack ("{s:o}", "image_processor", image);
  fixture_write_json (directory, "processor_config.json", processor);
  nested = open_checkpoint (path);
  g_assert_cmpuint (nested->processor.tile_size, ==, 24);
  json_decref (processor);
  fixture_directory_remove (directory);
}

/* Ends and sampling too may be said beside. */
static void
test_generation (void)
{
  g_autoptr (FixtureModel) model = new_model (TRUE);
  g_autoptr (CellmFixture) fixture = convert (model, CELLM_PUBLISHED);
  g_autofree gchar *path = NULL;
  gchar *directory = save_alone (model, fixture, &path);
  json_t *generation = json_pack ("{s:i, s:f}", "eos_token_id", 9, "temperature", 0.5);
  g_autoptr (VlmCheckpoint) checkpoint = NULL;
  g_autoptr (GPtrArray) paths = NULL;

  fixture_write_json (directory, "generation_config.json", generation);
  json_decref (generation);
  checkpoint = open_checkpoint (path);
  g_assert_cmpuint (checkpoint->generation.n_eos, ==, 1);
  g_assert_cmpint (checkpoint->generation.eos_ids[0], ==, 9);
  g_assert_cmpfloat (checkpoint->generation.temperature, ==, 0.5);
  paths = vlm_model_files_list_paths (checkpoint->files);
  g_assert_cmpuint (paths->len, ==, 3);
  g_assert_cmpstr (paths->pdata[0], ==, path);
  fixture_directory_remove (directory);
}

/* ---- Describing, verifying, converting ---------------------------------------------------- */

static void
test_describe (void)
{
  g_autofree gchar *original = golden_model ("lfm25");
  g_autoptr (VlmTensorSource) source = cellm_models_open (original);
  gchar *directory = cellm_models_copy_settings (original);
  g_autofree gchar *path = g_build_filename (directory, "model.cellm", NULL);
  g_autoptr (CellmFixture) fixture =
      cellm_models_convert (original, source, CELLM_PUBLISHED, CELLM_I4_64, NULL);
  g_autofree gchar *text = NULL;
  json_t *root, *group;

  cellm_fixture_save (fixture, path);
  text = vlm_model_describe (path, NULL, NULL);
  root = json_loads (text, 0, NULL);
  g_assert_cmpstr (json_string_value (json_object_get (root, "format")), ==, "cellm");
  g_assert_cmpint (json_integer_value (json_object_get (root, "version")), ==, 1);
  g_assert_cmpstr (json_string_value (json_object_get (root, "family")), ==, "lfm2_vl");
  group = json_array_get (json_object_get (root, "weights"), 0);
  g_assert_cmpstr (json_string_value (json_object_get (group, "type")), ==, "int4");
  json_decref (root);
  fixture_directory_remove (directory);
}

static void
on_problem (VlmFindingKind kind, const gchar *text, gpointer user_data)
{
  g_string_append_printf (user_data, "%s\n", text);
}

static void
test_verify (void)
{
  g_autofree gchar *original = golden_model ("text-only");
  g_autoptr (VlmTensorSource) source = cellm_models_open (original);
  gchar *directory = cellm_models_copy_settings (original);
  g_autofree gchar *path = g_build_filename (directory, "model.cellm", NULL);
  g_autoptr (CellmFixture) fixture =
      cellm_models_convert (original, source, CELLM_KEPT, CELLM_I8, NULL);
  const gchar *norm = "model.embedding_norm.weight";
  const gchar *scale = "model.embed_tokens.weight.qscale";
  g_autoptr (GString) problems = g_string_new (NULL);

  cellm_fixture_save (fixture, path);
  g_assert_true (vlm_model_verify (path, NULL, on_problem, NULL, problems, NULL, NULL));
  g_assert_cmpstr (problems->str, ==, "");
  memset (cellm_fixture_find (fixture, norm)->data->data, 0xff, 2);
  memset (cellm_fixture_find (fixture, scale)->data->data + 4, 0xff, 2);
  cellm_fixture_save (fixture, path);
  g_assert_true (vlm_model_verify (path, NULL, on_problem, NULL, problems, NULL, NULL));
  g_assert_nonnull (strstr (problems->str, "embedding_norm.weight has NaN at [0]"));
  g_assert_nonnull (strstr (problems->str, "value 2 of tensor model.embed_tokens.weight.qscale"));
  fixture_directory_remove (directory);
}

/*
 * Integers go over as they are; others than asked for are not rounded again. lowest: with -128 or -8,
 * which a symmetric writer never makes.
 */
static void
check_convert (CellmKind kind, VlmWeightType type, gboolean lowest, gboolean possible)
{
  g_autofree gchar *original = golden_model ("text-only");
  g_autoptr (VlmTensorSource) source = cellm_models_open (original);
  gchar *directory = cellm_models_copy_settings (original);
  g_autofree gchar *path = g_build_filename (directory, "model.cellm", NULL);
  g_autofree gchar *slm = g_build_filename (directory, "model.slm", NULL);
  const VlmConvertOptions options = { type, VLM_WEIGHT_AUTO, FALSE, 1, NULL };
  g_autoptr (CellmFixture) fixture =
      cellm_models_convert (original, source, CELLM_KEPT, kind, NULL);
  g_autoptr (CellmAnswer) one = NULL, other = NULL;
  g_autoptr (GError) error = NULL;

  /* Rounding never gives the lowest integer, but files may have it. */
  if (lowest)
    *cellm_fixture_find (fixture, "model.layers.0.feed_forward.w1.weight")->data->data =
        kind == CELLM_I8 ? 0x80 : 0;
  fixture_remove (directory, "config.json");
  cellm_fixture_save (fixture, path);
  g_assert_cmpint (vlm_model_convert (path, slm, &options, NULL, NULL, NULL, &error), ==, possible);
  if (possible) {
    one = cellm_models_ask (path, VLM_PRECISION_EXACT);
    other = cellm_models_ask (slm, VLM_PRECISION_EXACT);
    cellm_answer_compare (one, other, 0);
  } else {
    fixture_assert_message (error, VLM_ERROR_UNSUPPORTED, "quantised a second time");
  }
  fixture_directory_remove (directory);
}

static void
test_convert (void)
{
  check_convert (CELLM_F16, VLM_WEIGHT_F16, FALSE, TRUE);
  check_convert (CELLM_I8, VLM_WEIGHT_INT8, FALSE, TRUE);
  check_convert (CELLM_I8, VLM_WEIGHT_INT8, TRUE, TRUE);
  check_convert (CELLM_I8, VLM_WEIGHT_INT4, FALSE, FALSE);
  check_convert (CELLM_U32, VLM_WEIGHT_INT4, FALSE, FALSE);
}

/* Every kind of integers as it is. */
static void
test_keep (void)
{
  CellmKind kind;

  for (kind = CELLM_I8; kind < CELLM_N_KINDS; kind++) {
    check_convert (kind, VLM_WEIGHT_KEEP, FALSE, TRUE);
    check_convert (kind, VLM_WEIGHT_KEEP, TRUE, TRUE);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cellm/model/spellings", test_spellings);
  g_test_add_func ("/cellm/model/text", test_text_model);
  g_test_add_func ("/cellm/model/hints", test_hints);
  g_test_add_func ("/cellm/model/header-alone", test_header_alone);
  g_test_add_func ("/cellm/model/turned-taps", test_turned_taps);
  g_test_add_func ("/cellm/model/end-ids", test_end_ids);
  g_test_add_func ("/cellm/model/golden", test_golden_models);
  g_test_add_func ("/cellm/model/three-forms", test_three_forms);
  g_test_add_func ("/cellm/model/four-forms", test_four_forms);
  g_test_add_func ("/cellm/model/kinds", test_kinds);
  g_test_add_func ("/cellm/model/int8-embedding", test_int8_embedding);
  g_test_add_func ("/cellm/model/claims", test_claims);
  g_test_add_func ("/cellm/model/missing", test_missing_tensors);
  g_test_add_func ("/cellm/model/settings", test_settings);
  g_test_add_func ("/cellm/model/tokenizer", test_tokenizer);
  g_test_add_func ("/cellm/model/other-vocabulary", test_other_vocabulary);
  g_test_add_func ("/cellm/model/pictures", test_pictures);
  g_test_add_func ("/cellm/model/generation", test_generation);
  g_test_add_func ("/cellm/model/describe", test_describe);
  g_test_add_func ("/cellm/model/verify", test_verify);
  g_test_add_func ("/cellm/model/convert", test_convert);
  g_test_add_func ("/cellm/model/keep", test_keep);
  return g_test_run ();
}
