/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "slm-fixture.h"

#include <string.h>
#include <xxhash.h>

const SlmFixtureTensor slm_fixture_tensors[] = {
  { "norm.weight", VLM_SLM_F16, 1, { 5 } },
  { "rows.weight", VLM_SLM_INT8, 2, { 3, 7 } },
  { "groups.weight", VLM_SLM_INT4, 2, { 4, 130 } },
  { "odd.weight", VLM_SLM_INT4, 2, { 2, 5 } },
  { "taps.weight", VLM_SLM_F16, 3, { 16, 1, 2 } },
};

void
slm_fixture_init_config (VlmConfig *config)
{
  memset (config, 0, sizeof (*config));
  config->text.n_layers = 2;
  config->text.layers[0] = VLM_LAYER_CONV;
  config->text.layers[1] = VLM_LAYER_ATTENTION;
}

static void
add_file (VlmSlmWriter *writer, const gchar *name, const gchar *text)
{
  g_autoptr (GBytes) bytes = g_bytes_new (text, strlen (text));
  g_autoptr (GError) error = NULL;

  g_assert_true (vlm_slm_writer_add_file (writer, name, bytes, &error));
  g_assert_no_error (error);
}

VlmSlmWriter *
slm_fixture_begin (const gchar *path)
{
  g_autoptr (GError) error = NULL;
  VlmSlmWriter *writer;
  VlmConfig config;
  guint i;

  slm_fixture_init_config (&config);
  writer = vlm_slm_writer_new (path, &config, &error);
  g_assert_no_error (error);
  add_file (writer, "config.json", "{\"model_type\": \"lfm2\"}\n");
  add_file (writer, "tokenizer.json", "{}");
  for (i = 0; i < SLM_FIXTURE_N; i++) {
    const SlmFixtureTensor *tensor = &slm_fixture_tensors[i];

    g_assert_true (vlm_slm_writer_add_tensor (
        writer, tensor->name, tensor->type, tensor->shape, tensor->rank, &error));
    g_assert_no_error (error);
  }
  g_assert_true (vlm_slm_writer_begin (writer, &error));
  g_assert_no_error (error);
  return writer;
}

/* Two rows at a time, so that more than one call is needed. */
static void
put_values (VlmSlmWriter *writer, const gchar *name, guint64 rows, guint64 row_size)
{
  g_autofree gfloat *values = g_new (gfloat, rows * row_size);
  g_autoptr (GError) error = NULL;
  guint64 i;

  for (i = 0; i < rows * row_size; i++)
    values[i] = fixture_value (name, i);
  for (i = 0; i < rows; i += 2) {
    g_assert_true (
        vlm_slm_writer_put_floats (writer, values + i * row_size, MIN (2, rows - i), &error));
    g_assert_no_error (error);
  }
}

static guint64
count_row (const guint64 *shape, guint rank)
{
  guint64 n = 1;
  guint i;

  for (i = 1; i < rank; i++)
    n *= shape[i];
  return n;
}

void
slm_fixture_put (VlmSlmWriter *writer, const SlmFixtureTensor *tensor)
{
  put_values (writer, tensor->name, tensor->shape[0], count_row (tensor->shape, tensor->rank));
}

static void
finish (VlmSlmWriter *writer)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (vlm_slm_writer_finish (writer, &error));
  g_assert_no_error (error);
  vlm_slm_writer_free (writer);
}

void
slm_fixture_write (const gchar *path)
{
  VlmSlmWriter *writer = slm_fixture_begin (path);
  guint i;

  for (i = 0; i < SLM_FIXTURE_N; i++)
    slm_fixture_put (writer, &slm_fixture_tensors[i]);
  finish (writer);
}

static VlmSlmType
choose_type (const FixtureTensor *tensor, VlmSlmType text_type)
{
  if (tensor->rank != 2 || strstr (tensor->name, "embeddings."))
    return VLM_SLM_F16;
  if (strstr (tensor->name, "vision_tower") || strstr (tensor->name, "multi_modal_projector"))
    return text_type == VLM_SLM_F16 ? VLM_SLM_F16 : VLM_SLM_INT8;
  return text_type;
}

/* name is that of a tensor which is INT8 in any case, or NULL. */
static void
convert (FixtureModel *model, const gchar *path, VlmSlmType text_type, const gchar *name)
{
  g_autoptr (VlmCheckpoint) checkpoint = vlm_checkpoint_open (model->directory, NULL, NULL);
  g_autoptr (GError) error = NULL;
  VlmSlmWriter *writer;
  guint i;

  g_assert_nonnull (checkpoint);
  writer = vlm_slm_writer_new (path, &checkpoint->config, &error);
  for (i = 0; vlm_slm_file_names[i] != NULL; i++) {
    g_autofree gchar *file = g_build_filename (model->directory, vlm_slm_file_names[i], NULL);
    g_autofree gchar *text = NULL;

    if (g_file_get_contents (file, &text, NULL, NULL))
      add_file (writer, vlm_slm_file_names[i], text);
  }
  for (i = 0; i < model->tensors->len; i++) {
    const FixtureTensor *tensor = g_ptr_array_index (model->tensors, i);

    VlmSlmType type =
        g_strcmp0 (tensor->name, name) == 0 ? VLM_SLM_INT8 : choose_type (tensor, text_type);

    g_assert_true (vlm_slm_writer_add_tensor (
        writer, tensor->name, type, tensor->shape, tensor->rank, &error));
  }
  g_assert_true (vlm_slm_writer_begin (writer, &error));
  g_assert_no_error (error);
  for (i = 0; i < model->tensors->len; i++) {
    const FixtureTensor *tensor = g_ptr_array_index (model->tensors, i);

    put_values (writer, tensor->name, tensor->shape[0], count_row (tensor->shape, tensor->rank));
  }
  finish (writer);
}

void
slm_fixture_convert (FixtureModel *model, const gchar *path, VlmSlmType text_type)
{
  convert (model, path, text_type, NULL);
}

void
slm_fixture_convert_one (FixtureModel *model, const gchar *path, const gchar *name)
{
  convert (model, path, VLM_SLM_F16, name);
}

/* ---- Parts -------------------------------------------------------------------------------- */

SlmParts *
slm_parts_load (const gchar *path)
{
  SlmParts *parts = g_new0 (SlmParts, 1);
  g_autofree gchar *bytes = NULL;
  json_t *metadata;
  guint64 length;
  gsize size;

  g_assert_true (g_file_get_contents (path, &bytes, &size, NULL));
  memcpy (&length, bytes, 8);
  length = GUINT64_FROM_LE (length);
  parts->header = json_loadb (bytes + 8, length, 0, NULL);
  metadata = json_object_get (parts->header, "__metadata__");
  parts->manifest =
      json_loads (json_string_value (json_object_get (metadata, "slm.manifest")), 0, NULL);
  g_assert_nonnull (parts->manifest);
  json_object_del (metadata, "slm.manifest");
  json_object_del (metadata, "slm.manifest.xxh3");
  parts->data = g_byte_array_new ();
  g_byte_array_append (parts->data, (guint8 *) bytes + 8 + length, size - 8 - length);
  return parts;
}

static json_t *
new_hash (gconstpointer data, gsize size)
{
  XXH128_canonical_t canonical;
  GString *text = g_string_new (NULL);
  json_t *value;
  guint i;

  XXH128_canonicalFromHash (&canonical, XXH3_128bits (data, size));
  for (i = 0; i < sizeof (canonical.digest); i++)
    g_string_append_printf (text, "%02x", canonical.digest[i]);
  value = json_string (text->str);
  g_string_free (text, TRUE);
  return value;
}

void
slm_parts_save (const SlmParts *parts, const gchar *path)
{
  char *text = parts->text ? strdup (parts->text) : json_dumps (parts->manifest, JSON_COMPACT);
  json_t *header = json_deep_copy (parts->header);
  json_t *metadata = json_object_get (header, "__metadata__");
  g_autoptr (GString) bytes = g_string_new (NULL);
  guint64 length;
  char *printed;

  if (metadata != NULL) {
    json_object_set_new (metadata, "slm.manifest", json_string (text));
    json_object_set_new (metadata, "slm.manifest.xxh3", new_hash (text, strlen (text)));
  }
  printed = json_dumps (header, JSON_COMPACT);
  length = (8 + strlen (printed) + 63) / 64 * 64 - 8;
  length = GUINT64_TO_LE (length);
  g_string_append_len (bytes, (const gchar *) &length, 8);
  g_string_append (bytes, printed);
  while (bytes->len % 64 != 0)
    g_string_append_c (bytes, ' ');
  g_string_append_len (bytes, (const gchar *) parts->data->data, parts->data->len);
  g_assert_true (g_file_set_contents (path, bytes->str, bytes->len, NULL));
  json_decref (header);
  free (printed);
  free (text);
}

void
slm_parts_free (SlmParts *parts)
{
  json_decref (parts->header);
  json_decref (parts->manifest);
  g_free (parts->text);
  g_byte_array_unref (parts->data);
  g_free (parts);
}

json_t *
slm_parts_find (SlmParts *parts, const gchar *name)
{
  json_t *entry;
  gsize i;

  json_array_foreach (json_object_get (parts->manifest, "tensors"), i, entry) {
    if (strcmp (json_string_value (json_object_get (entry, "name")), name) == 0)
      return entry;
  }
  g_error ("the manifest has no tensor %s", name);
}

static gsize
get_offset (const SlmParts *parts, const gchar *name, guint end)
{
  const json_t *entry = json_object_get (parts->header, name);

  g_assert_nonnull (entry);
  return json_integer_value (json_array_get (json_object_get (entry, "data_offsets"), end));
}

guint8 *
slm_parts_payload (SlmParts *parts, const gchar *name)
{
  return parts->data->data + get_offset (parts, name, 0);
}

void
slm_parts_rehash (SlmParts *parts, const gchar *name)
{
  gsize size = get_offset (parts, name, 1) - get_offset (parts, name, 0);

  json_object_set_new (
      slm_parts_find (parts, name), "xxh3", new_hash (slm_parts_payload (parts, name), size));
}

gboolean
slm_read_all (const gchar *path, GError **error)
{
  g_autoptr (VlmSlm) slm = vlm_slm_open (path, error);
  g_autoptr (VlmTensorSource) source = NULL;

  if (slm == NULL || !vlm_slm_verify_files (slm, NULL, error))
    return FALSE;
  source = vlm_slm_get_tensors (slm, error);
  return source != NULL && vlm_tensor_source_verify_rest (source, NULL, error);
}
