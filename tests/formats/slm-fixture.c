/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "slm-fixture.h"

#include "rows-fixture.h"

#include <string.h>
#include <xxhash.h>

const SlmFixtureTensor slm_fixture_tensors[] = {
  { "norm.weight", VLM_SLM_F16, 1, { 5 }, { 0 } },
  { "rows.weight", VLM_SLM_INT8, 2, { 3, 7 }, { 0 } },
  { "groups.weight", VLM_SLM_INT4, 2, { 4, 130 }, { 0 } },
  { "odd.weight", VLM_SLM_INT4, 2, { 2, 5 }, { 0 } },
  { "taps.weight", VLM_SLM_F16, 3, { 16, 1, 2 }, { 0 } },
};

const SlmFixtureTensor slm_fixture_integers[] = {
  { "five.weight", VLM_SLM_F16, 2, { 3, 37 }, { 5, VLM_SCALE_F16, TRUE, 16 } },
  { "codes.weight", VLM_SLM_F16, 2, { 2, 33 }, { 4, VLM_SCALE_CODES, TRUE, 32 } },
  { "row.weight", VLM_SLM_F16, 2, { 3, 5 }, { 6, VLM_SCALE_ROW, FALSE, 0 } },
  { "bytes.weight", VLM_SLM_F16, 2, { 2, 18 }, { 8, VLM_SCALE_F32, FALSE, 16 } },
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

static VlmSlmWriter *
begin (const gchar *path, const SlmFixtureTensor *tensors, guint n)
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
  for (i = 0; i < n; i++) {
    const SlmFixtureTensor *tensor = &tensors[i];

    g_assert_true (tensor->format.bits ? vlm_slm_writer_add_integers (
                       writer, tensor->name, &tensor->format, tensor->shape, &error)
                                       : vlm_slm_writer_add_tensor (writer, tensor->name,
                                           tensor->type, tensor->shape, tensor->rank, &error));
    g_assert_no_error (error);
  }
  g_assert_true (vlm_slm_writer_begin (writer, &error));
  g_assert_no_error (error);
  return writer;
}

VlmSlmWriter *
slm_fixture_begin (const gchar *path)
{
  return begin (path, slm_fixture_tensors, SLM_FIXTURE_N);
}

/* Random integers that are those of name, also two rows at a time. */
static void
put_integers (
    VlmSlmWriter *writer, const gchar *name, const VlmIntFormat *format, const guint64 *shape)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (g_str_hash (name));
  g_autoptr (GError) error = NULL;
  VlmQuantRows rows;
  guint64 i;

  g_assert_true (vlm_quant_rows_init (&rows, format, shape[0], shape[1], NULL));
  rows_fixture_fill (&rows, shape[0], random);
  for (i = 0; i < shape[0]; i += 2) {
    vlm_slm_writer_put_quantised (writer, &rows, i, MIN (2, shape[0] - i), &error);
    g_assert_no_error (error);
  }
  vlm_quant_rows_clear (&rows);
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

void
slm_fixture_write_integers (const gchar *path)
{
  VlmSlmWriter *writer = begin (path, slm_fixture_integers, SLM_FIXTURE_N_INTEGERS);
  guint i;

  for (i = 0; i < SLM_FIXTURE_N_INTEGERS; i++)
    put_integers (writer, slm_fixture_integers[i].name, &slm_fixture_integers[i].format,
        slm_fixture_integers[i].shape);
  finish (writer);
}

static gboolean
is_matrix (const FixtureTensor *tensor)
{
  return tensor->rank == 2 && !strstr (tensor->name, "embeddings.");
}

static VlmSlmType
choose_type (const FixtureTensor *tensor, VlmSlmType text_type)
{
  if (!is_matrix (tensor))
    return VLM_SLM_F16;
  if (strstr (tensor->name, "vision_tower") || strstr (tensor->name, "multi_modal_projector"))
    return text_type == VLM_SLM_F16 ? VLM_SLM_F16 : VLM_SLM_INT8;
  return text_type;
}

/* What the tensors of a conversion become. */
typedef struct
{
  gboolean mixed; /* matrices are integers of all formats, and the rest does not count */
  VlmSlmType text_type;
  const gchar *name; /* of a tensor which is INT8 in any case, or NULL */
} Target;

/* The format of the integers that a tensor becomes, its number given; NULL for other types. */
static const VlmIntFormat *
choose_format (const Target *target, const FixtureTensor *tensor, guint number)
{
  return target->mixed && is_matrix (tensor)
      ? &rows_fixture_formats[number % rows_fixture_n_formats]
      : NULL;
}

static void
announce (VlmSlmWriter *writer, const Target *target, const FixtureTensor *tensor, guint number)
{
  const VlmIntFormat *format = choose_format (target, tensor, number);
  VlmSlmType type = g_strcmp0 (tensor->name, target->name) == 0
      ? VLM_SLM_INT8
      : choose_type (tensor, target->text_type);
  g_autoptr (GError) error = NULL;

  if (format != NULL)
    vlm_slm_writer_add_integers (writer, tensor->name, format, tensor->shape, &error);
  else
    vlm_slm_writer_add_tensor (writer, tensor->name, type, tensor->shape, tensor->rank, &error);
  g_assert_no_error (error);
}

static void
convert (FixtureModel *model, const gchar *path, const Target *target)
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
  for (i = 0; i < model->tensors->len; i++)
    announce (writer, target, g_ptr_array_index (model->tensors, i), i);
  g_assert_true (vlm_slm_writer_begin (writer, &error));
  g_assert_no_error (error);
  for (i = 0; i < model->tensors->len; i++) {
    const FixtureTensor *tensor = g_ptr_array_index (model->tensors, i);
    const VlmIntFormat *format = choose_format (target, tensor, i);

    if (format != NULL)
      put_integers (writer, tensor->name, format, tensor->shape);
    else
      put_values (writer, tensor->name, tensor->shape[0], count_row (tensor->shape, tensor->rank));
  }
  finish (writer);
}

void
slm_fixture_convert (FixtureModel *model, const gchar *path, VlmSlmType text_type)
{
  const Target target = { .text_type = text_type };

  convert (model, path, &target);
}

void
slm_fixture_convert_mixed (FixtureModel *model, const gchar *path)
{
  const Target target = { .mixed = TRUE, .text_type = VLM_SLM_F16 };

  convert (model, path, &target);
}

void
slm_fixture_convert_one (FixtureModel *model, const gchar *path, const gchar *name)
{
  const Target target = { .text_type = VLM_SLM_F16, .name = name };

  convert (model, path, &target);
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
