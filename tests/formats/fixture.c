/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fixture.h"

#include <glib/gstdio.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/engine/test-text-toy.h"

#define VOCABULARY 272
#define HIDDEN 16
#define HEAD 8
#define ROWS 16 /* of the feed-forward matrices */
#define TOWER 16
#define TOWER_ROWS 24
#define PROJECTOR 12

gchar *
fixture_directory_new (void)
{
  g_autoptr (GError) error = NULL;
  gchar *directory = g_dir_make_tmp ("vlm-formats-XXXXXX", &error);

  g_assert_no_error (error);
  return directory;
}

void
fixture_directory_remove (gchar *directory)
{
  g_autoptr (GDir) entries = g_dir_open (directory, 0, NULL);
  const gchar *name;

  while (entries != NULL && (name = g_dir_read_name (entries)) != NULL)
    fixture_remove (directory, name);
  g_rmdir (directory);
  g_free (directory);
}

void
fixture_remove (const gchar *directory, const gchar *name)
{
  g_autofree gchar *path = g_build_filename (directory, name, NULL);

  g_assert_cmpint (g_remove (path), ==, 0);
}

void
fixture_write (const gchar *directory, const gchar *name, gconstpointer data, gsize length)
{
  g_autofree gchar *path = g_build_filename (directory, name, NULL);
  FILE *file = g_fopen (path, "wbe");

  g_assert_nonnull (file);
  g_assert_cmpuint (fwrite (data, 1, length, file), ==, length);
  g_assert_cmpint (fclose (file), ==, 0);
}

void
fixture_write_json (const gchar *directory, const gchar *name, const json_t *value)
{
  char *text = json_dumps (value, JSON_INDENT (1));

  g_assert_nonnull (text);
  fixture_write (directory, name, text, strlen (text));
  free (text);
}

void
fixture_write_raw (const gchar *directory, const gchar *name, guint64 length, const gchar *header,
    gsize header_size, gsize n_data)
{
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  guint64 field = GUINT64_TO_LE (length);
  gsize start;

  g_byte_array_append (bytes, (const guint8 *) &field, sizeof (field));
  g_byte_array_append (bytes, (const guint8 *) header, header_size);
  start = bytes->len;
  g_byte_array_set_size (bytes, start + n_data);
  memset (bytes->data + start, 0, n_data);
  fixture_write (directory, name, bytes->data, bytes->len);
}

static void
free_tensor (gpointer data)
{
  FixtureTensor *tensor = data;

  g_free (tensor->name);
  g_free (tensor);
}

void
fixture_add (FixtureModel *model, const gchar *name, VlmDType dtype, guint rank, guint64 size0,
    guint64 size1, guint64 size2)
{
  FixtureTensor *tensor = g_new0 (FixtureTensor, 1);

  tensor->name = g_strdup (name);
  tensor->dtype = dtype;
  tensor->rank = rank;
  tensor->shape[0] = size0;
  tensor->shape[1] = size1;
  tensor->shape[2] = size2;
  g_ptr_array_add (model->tensors, tensor);
}

static void
add_weight (FixtureModel *model, const gchar *prefix, const gchar *name, guint64 rows, guint64 cols)
{
  g_autofree gchar *weight = g_strconcat (prefix, name, ".weight", NULL);

  fixture_add (model, weight, VLM_DTYPE_BF16, cols > 0 ? 2 : 1, rows, cols, 0);
}

static void
add_both (FixtureModel *model, const gchar *prefix, const gchar *name, guint64 rows, guint64 cols)
{
  g_autofree gchar *bias = g_strconcat (prefix, name, ".bias", NULL);

  add_weight (model, prefix, name, rows, cols);
  fixture_add (model, bias, VLM_DTYPE_BF16, 1, rows, 0, 0);
}

static void
add_text (FixtureModel *model, const gchar *prefix)
{
  guint i;

  add_weight (model, prefix, "embed_tokens", VOCABULARY, HIDDEN);
  add_weight (model, prefix, "embedding_norm", HIDDEN, 0);
  for (i = 0; i < 2; i++) {
    g_autofree gchar *at = g_strdup_printf ("%slayers.%u.", prefix, i);

    add_weight (model, at, "operator_norm", HIDDEN, 0);
    add_weight (model, at, "ffn_norm", HIDDEN, 0);
    add_weight (model, at, "feed_forward.w1", ROWS, HIDDEN);
    add_weight (model, at, "feed_forward.w3", ROWS, HIDDEN);
    add_weight (model, at, "feed_forward.w2", HIDDEN, ROWS);
    if (i == 0) {
      g_autofree gchar *taps = g_strconcat (at, "conv.conv.weight", NULL);

      add_weight (model, at, "conv.in_proj", 3 * HIDDEN, HIDDEN);
      fixture_add (model, taps, VLM_DTYPE_F32, 3, HIDDEN, 1, 3);
      add_weight (model, at, "conv.out_proj", HIDDEN, HIDDEN);
    } else {
      add_weight (model, at, "self_attn.q_proj", 2 * HEAD, HIDDEN);
      add_weight (model, at, "self_attn.k_proj", HEAD, HIDDEN);
      add_weight (model, at, "self_attn.v_proj", HEAD, HIDDEN);
      add_weight (model, at, "self_attn.out_proj", HIDDEN, 2 * HEAD);
      add_weight (model, at, "self_attn.q_layernorm", HEAD, 0);
      add_weight (model, at, "self_attn.k_layernorm", HEAD, 0);
    }
  }
}

static void
add_vision (FixtureModel *model, const gchar *prefix)
{
  g_autofree gchar *positions = g_strconcat (prefix, "embeddings.position_embedding.weight", NULL);
  g_autofree gchar *at = g_strconcat (prefix, "encoder.layers.0.", NULL);

  add_both (model, prefix, "embeddings.patch_embedding", TOWER, 12);
  fixture_add (model, positions, VLM_DTYPE_F16, 2, 4, TOWER, 0);
  add_both (model, at, "layer_norm1", TOWER, 0);
  add_both (model, at, "layer_norm2", TOWER, 0);
  add_both (model, at, "self_attn.q_proj", TOWER, TOWER);
  add_both (model, at, "self_attn.k_proj", TOWER, TOWER);
  add_both (model, at, "self_attn.v_proj", TOWER, TOWER);
  add_both (model, at, "self_attn.out_proj", TOWER, TOWER);
  add_both (model, at, "mlp.fc1", TOWER_ROWS, TOWER);
  add_both (model, at, "mlp.fc2", TOWER, TOWER_ROWS);
  add_both (model, prefix, "post_layernorm", TOWER, 0);
  add_both (model, "model.multi_modal_projector.", "linear_1", PROJECTOR, 4 * TOWER);
  add_both (model, "model.multi_modal_projector.", "linear_2", HIDDEN, PROJECTOR);
}

static json_t *
new_text_settings (void)
{
  return json_pack ("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:f, s:i, s:[s, s],"
                    " s:{s:f, s:s}, s:f}",
      "model_type", "lfm2", "vocab_size", VOCABULARY, "hidden_size", HIDDEN, "num_hidden_layers", 2,
      "num_attention_heads", 2, "num_key_value_heads", 1, "intermediate_size", 999, "block_ff_dim",
      24, "block_auto_adjust_ff_dim", TRUE, "block_ffn_dim_multiplier", 1.0, "block_multiple_of", 8,
      "layer_types", "conv", "full_attention", "rope_parameters", "rope_theta", 10000.0,
      "rope_type", "default", "norm_eps", 1e-6);
}

static json_t *
new_vision_settings (void)
{
  return json_pack ("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:b}", "model_type",
      "siglip2_vision_model", "hidden_size", TOWER, "intermediate_size", TOWER_ROWS,
      "num_hidden_layers", 1, "num_attention_heads", 2, "patch_size", 2, "num_patches", 4,
      "vision_use_head", FALSE);
}

FixtureModel *
fixture_model_new (gboolean has_vision)
{
  FixtureModel *model = g_new0 (FixtureModel, 1);

  model->directory = fixture_directory_new ();
  model->tensors = g_ptr_array_new_with_free_func (free_tensor);
  model->tokenizer = toy_new (TOY_REGEX);
  model->bos_id = toy_add_token (model->tokenizer, "<|startoftext|>", TRUE);
  model->im_end_id = toy_add_token (model->tokenizer, "<|im_end|>", TRUE);
  model->image_id = toy_add_token (model->tokenizer, "<image>", TRUE);
  if (!has_vision) {
    model->config = new_text_settings ();
    add_text (model, "model.");
    return model;
  }
  model->config =
      json_pack ("{s:s, s:i, s:i, s:b, s:o, s:o}", "model_type", "lfm2_vl", "image_token_id",
          model->image_id, "projector_hidden_size", PROJECTOR, "projector_use_layernorm", FALSE,
          "text_config", new_text_settings (), "vision_config", new_vision_settings ());
  model->image = json_pack (
      "{s:i, s:i, s:i}", "encoder_patch_size", 2, "tile_size", 8, "max_image_tokens", 128);
  add_text (model, "model.language_model.");
  add_vision (model, "model.vision_tower.vision_model.");
  return model;
}

void
fixture_model_free (FixtureModel *model)
{
  json_decref (model->config);
  json_decref (model->image);
  json_decref (model->generation);
  json_decref (model->tokenizer);
  g_ptr_array_unref (model->tensors);
  fixture_directory_remove (model->directory);
  g_free (model);
}

json_t *
fixture_text (FixtureModel *model)
{
  json_t *text = json_object_get (model->config, "text_config");

  return text != NULL ? text : model->config;
}

json_t *
fixture_vision (FixtureModel *model)
{
  return json_object_get (model->config, "vision_config");
}

FixtureTensor *
fixture_find (FixtureModel *model, const gchar *name)
{
  guint i;

  for (i = 0; i < model->tensors->len; i++) {
    FixtureTensor *tensor = g_ptr_array_index (model->tensors, i);

    if (strcmp (tensor->name, name) == 0)
      return tensor;
  }
  g_error ("the small model has no tensor %s", name);
}

void
fixture_drop (FixtureModel *model, const gchar *name)
{
  g_ptr_array_remove (model->tensors, fixture_find (model, name));
}

void
fixture_rename (FixtureModel *model, const gchar *from, const gchar *to)
{
  FixtureTensor *tensor = fixture_find (model, from);

  g_free (tensor->name);
  tensor->name = g_strdup (to);
}

gfloat
fixture_value (const gchar *name, gsize index)
{
  return ((gint) ((g_str_hash (name) % 1000 + index * 7) % 17) - 8) / 4.0f;
}

/* Only values that need no rounding. */
static guint16
to_half (gfloat value)
{
  gint exponent;
  gfloat mantissa = frexpf (fabsf (value), &exponent);

  if (value == 0)
    return 0;
  return (value < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | (guint) ((2 * mantissa - 1) * 1024);
}

void
fixture_append_values (GByteArray *bytes, const FixtureTensor *tensor)
{
  gsize n = 1, i;

  for (i = 0; i < tensor->rank; i++)
    n *= tensor->shape[i];
  for (i = 0; i < n; i++) {
    gfloat value = fixture_value (tensor->name, i);
    guint32 word;
    guint16 half;

    memcpy (&word, &value, sizeof (word));
    half = GUINT16_TO_LE (tensor->dtype == VLM_DTYPE_F16 ? to_half (value) : word >> 16);
    word = GUINT32_TO_LE (word);
    if (tensor->dtype == VLM_DTYPE_F32)
      g_byte_array_append (bytes, (const guint8 *) &word, sizeof (word));
    else
      g_byte_array_append (bytes, (const guint8 *) &half, sizeof (half));
  }
}

void
fixture_save_tensors (FixtureModel *model, const gchar *file, guint first, guint n)
{
  static const gchar *const dtypes[] = { "F32", "F16", "BF16" };
  json_t *header = json_pack ("{s:{s:s}}", "__metadata__", "format", "pt");
  g_autoptr (GByteArray) data = g_byte_array_new ();
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  char *text;
  guint64 length;
  guint i, d;

  for (i = first; i < first + n; i++) {
    const FixtureTensor *tensor = g_ptr_array_index (model->tensors, i);
    json_int_t begin = data->len;
    json_t *shape = json_array ();

    for (d = 0; d < tensor->rank; d++)
      json_array_append_new (shape, json_integer (tensor->shape[d]));
    fixture_append_values (data, tensor);
    json_object_set_new (header, tensor->name,
        json_pack ("{s:s, s:o, s:[I, I]}", "dtype", dtypes[tensor->dtype], "shape", shape,
            "data_offsets", begin, (json_int_t) data->len));
  }
  text = json_dumps (header, JSON_COMPACT);
  length = GUINT64_TO_LE (strlen (text));
  g_byte_array_append (bytes, (const guint8 *) &length, sizeof (length));
  g_byte_array_append (bytes, (const guint8 *) text, strlen (text));
  g_byte_array_append (bytes, data->data, data->len);
  fixture_write (model->directory, file, bytes->data, bytes->len);
  free (text);
  json_decref (header);
}

void
fixture_save (FixtureModel *model)
{
  fixture_write_json (model->directory, "config.json", model->config);
  fixture_write_json (model->directory, "tokenizer.json", model->tokenizer);
  if (model->image != NULL) {
    json_t *processor = json_pack ("{s:O}", "image_processor", model->image);

    fixture_write_json (model->directory, "processor_config.json", processor);
    json_decref (processor);
  }
  if (model->generation != NULL)
    fixture_write_json (model->directory, "generation_config.json", model->generation);
  fixture_save_tensors (model, "model.safetensors", 0, model->tensors->len);
}

VlmCheckpoint *
fixture_open (FixtureModel *model)
{
  g_autoptr (GError) error = NULL;
  VlmCheckpoint *checkpoint;

  fixture_save (model);
  checkpoint = vlm_checkpoint_open (model->directory, NULL, &error);
  g_assert_no_error (error);
  g_assert_nonnull (checkpoint);
  return checkpoint;
}

void
fixture_assert_message (const GError *error, gint code, const gchar *part)
{
  g_assert_error (error, VLM_ERROR, code);
  if (strstr (error->message, part) == NULL)
    g_error ("\"%s\" does not say \"%s\"", error->message, part);
}

void
fixture_expect (FixtureModel *model, gint code, const gchar *part, ...)
{
  g_autoptr (GError) error = NULL;
  VlmCheckpoint *checkpoint;
  va_list args;

  fixture_save (model);
  checkpoint = vlm_checkpoint_open (model->directory, NULL, &error);
  g_assert_null (checkpoint);
  va_start (args, part);
  for (; part != NULL; part = va_arg (args, const gchar *))
    fixture_assert_message (error, code, part);
  va_end (args);
}
