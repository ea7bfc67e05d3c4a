/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "slm-writer-private.h"

#include "engine/vlm.h"
#include "safetensors-file.h"

#include <string.h>

G_STATIC_ASSERT ((int) VLM_SLM_F16 == (int) VLM_SLM_PLAIN);
G_STATIC_ASSERT ((int) VLM_SLM_INT8 == (int) VLM_SLM_INT8_ROW);
G_STATIC_ASSERT ((int) VLM_SLM_INT4 == (int) VLM_SLM_INT4_GROUP_64);

VlmSlmWriter *
vlm_slm_writer_new (const gchar *path, const VlmConfig *config, GError **error)
{
  VlmSlmWriter *writer = g_new0 (VlmSlmWriter, 1);
  guint i;

  writer->path = g_strdup (path);
  writer->contents = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
  writer->buffer = g_malloc (VLM_SLM_CHUNK);
  vlm_slm_manifest_init (&writer->manifest);
  writer->manifest.has_vision = config->has_vision;
  writer->manifest.n_layers = config->text.n_layers;
  memcpy (writer->manifest.layers, config->text.layers, sizeof (writer->manifest.layers));
  for (i = 0; i < VLM_SLM_N_FIELDS; i++) {
    writer->hashes[i] = XXH3_createState ();
    if (writer->hashes[i])
      continue;
    g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY, "%s: no memory for a checksum", path);
    vlm_slm_writer_free (writer);
    return NULL;
  }
  return writer;
}

void
vlm_slm_writer_free (VlmSlmWriter *writer)
{
  guint i;

  if (!writer)
    return;
  g_clear_pointer (&writer->file, vlm_atomic_file_free);
  vlm_slm_manifest_clear (&writer->manifest);
  g_ptr_array_unref (writer->contents);
  g_clear_pointer (&writer->layout, g_array_unref);
  for (i = 0; i < VLM_SLM_N_FIELDS; i++) {
    if (writer->hashes[i])
      XXH3_freeState (writer->hashes[i]);
  }
  g_free (writer->buffer);
  g_free (writer->path);
  g_free (writer);
}

/* ---- What there will be ------------------------------------------------------------------- */

gboolean
vlm_slm_writer_add_file (VlmSlmWriter *writer, const gchar *name, GBytes *bytes, GError **error)
{
  gsize size = g_bytes_get_size (bytes);
  VlmSlmEntry entry = { .type = VLM_SAFETENSORS_U8, .rank = 1, .shape = { size } };

  g_return_val_if_fail (!writer->file && vlm_slm_is_file_name (name), FALSE);
  if (size < 1 || size > VLM_SLM_MAX_FILE) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: %s has %" G_GSIZE_FORMAT " bytes, expected 1..%u", writer->path, name, size,
        VLM_SLM_MAX_FILE);
    return FALSE;
  }
  vlm_slm_entry_measure (&entry);
  entry.name = g_strconcat (VLM_SLM_FILES, name, NULL);
  g_array_insert_val (writer->manifest.entries, writer->contents->len, entry);
  g_ptr_array_add (writer->contents, g_bytes_ref (bytes));
  return TRUE;
}

static gboolean
check_name (const VlmSlmWriter *writer, const gchar *name, GError **error)
{
  if (vlm_slm_is_weight_name (name))
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: a tensor cannot be called \"%.*s\", expected 1..%d plain ASCII characters", writer->path,
      80, name, VLM_SLM_MAX_NAME);
  return FALSE;
}

static gboolean
fail_shape (
    const VlmSlmWriter *writer, const gchar *name, const guint64 *shape, guint rank, GError **error)
{
  g_autofree gchar *shown = vlm_tensor_shape_to_string (shape, rank);

  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: tensor %s has shape %s, expected sides of at least 1 and a size within bounds",
      writer->path, name, shown);
  return FALSE;
}

/* A matrix of integers, with all its fields. */
static gboolean
add_matrix (VlmSlmWriter *writer, const gchar *name, VlmSlmScheme scheme,
    const VlmIntFormat *format, const guint64 *shape, GError **error)
{
  VlmSlmEntry fields[VLM_SLM_N_FIELDS];
  guint n = vlm_slm_entry_init_matrix (fields, scheme, format, shape[0], shape[1]), i;

  if (n == 0)
    return fail_shape (writer, name, shape, 2, error);
  for (i = 0; i < n; i++) {
    fields[i].name = g_strconcat (name, vlm_slm_field_suffix (fields[i].field), NULL);
    g_array_append_val (writer->manifest.entries, fields[i]);
  }
  return TRUE;
}

gboolean
vlm_slm_writer_add_tensor (VlmSlmWriter *writer, const gchar *name, VlmSlmType type,
    const guint64 *shape, guint rank, GError **error)
{
  VlmSlmEntry entry = { .type = VLM_SAFETENSORS_F16, .rank = rank };

  g_return_val_if_fail (
      !writer->file && rank <= VLM_MAX_RANK && (type == VLM_SLM_F16 || rank == 2), FALSE);
  if (!check_name (writer, name, error))
    return FALSE;
  if (type != VLM_SLM_F16)
    return add_matrix (writer, name, (VlmSlmScheme) type, NULL, shape, error);
  memcpy (entry.shape, shape, rank * sizeof (*shape));
  if (!vlm_slm_entry_measure (&entry))
    return fail_shape (writer, name, shape, rank, error);
  entry.name = g_strdup (name);
  g_array_append_val (writer->manifest.entries, entry);
  return TRUE;
}

gboolean
vlm_slm_writer_add_integers (VlmSlmWriter *writer, const gchar *name, const VlmIntFormat *format,
    const guint64 *shape, GError **error)
{
  g_return_val_if_fail (!writer->file && vlm_int_format_is_valid (format), FALSE);
  return check_name (writer, name, error)
      && add_matrix (writer, name, VLM_SLM_SCHEME_INTEGERS, format, shape, error);
}

/* ---- Header ------------------------------------------------------------------------------- */

/* As it stands in the file: length, JSON, and spaces up to where the data begin. */
static GString *
print_header (VlmSlmWriter *writer)
{
  g_autofree gchar *manifest = vlm_slm_manifest_print (&writer->manifest);
  g_auto (GStrv) pieces = g_strsplit (manifest, "\"", -1);
  g_autofree gchar *escaped = g_strjoinv ("\\\"", pieces);
  GString *header = g_string_new (NULL);
  gchar hash[VLM_SLM_HASH_TEXT];
  guint64 length;
  guint i;

  vlm_slm_hash_print (XXH3_128bits (manifest, strlen (manifest)), hash);
  g_string_append_len (header, "\0\0\0\0\0\0\0\0", VLM_SAFETENSORS_PREFIX);
  g_string_append_printf (header,
      "{\"__metadata__\":{\"" VLM_SLM_KEY_FORMAT "\":\"" VLM_SLM_FORMAT "\",\"" VLM_SLM_KEY_HASH
      "\":\"%s\",\"" VLM_SLM_KEY_MANIFEST "\":\"",
      hash);
  g_string_append (header, escaped);
  g_string_append (header, "\"}");
  for (i = 0; i < writer->layout->len; i++) {
    const VlmSafetensorsEntry *entry = &g_array_index (writer->layout, VlmSafetensorsEntry, i);
    g_autofree gchar *shape = vlm_tensor_shape_to_string (entry->shape, entry->rank);

    g_string_append_printf (header,
        ",\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%" G_GUINT64_FORMAT
        ",%" G_GUINT64_FORMAT "]}",
        entry->name, vlm_safetensors_type_name (entry->type), shape, entry->offset,
        entry->offset + entry->n_bytes);
  }
  g_string_append_c (header, '}');
  while (header->len % VLM_SLM_ALIGNMENT)
    g_string_append_c (header, ' ');
  length = GUINT64_TO_LE (header->len - VLM_SAFETENSORS_PREFIX);
  memcpy (header->str, &length, sizeof (length));
  return header;
}

static gboolean
lay_out (VlmSlmWriter *writer, GError **error)
{
  const VlmSafetensorsEntry *last;
  GString *header;

  writer->layout = vlm_slm_lay_out (&writer->manifest, writer->path, error);
  if (!writer->layout)
    return FALSE;
  g_return_val_if_fail (writer->layout->len > 0, FALSE);
  /* Hashes are not known yet, but all have the same length. */
  header = print_header (writer);
  writer->data_start = header->len;
  g_string_free (header, TRUE);
  last = &g_array_index (writer->layout, VlmSafetensorsEntry, writer->layout->len - 1);
  writer->size = writer->data_start + last->offset + last->n_bytes;
  if (writer->data_start - VLM_SAFETENSORS_PREFIX <= VLM_SLM_MAX_HEADER)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: the header would have %" G_GUINT64_FORMAT " bytes, expected at most %u", writer->path,
      writer->data_start, VLM_SLM_MAX_HEADER);
  return FALSE;
}

guint64
vlm_slm_writer_get_size (const VlmSlmWriter *writer)
{
  return writer->size;
}

/* ---- Beginning and end ------------------------------------------------------------------- */

gboolean
vlm_slm_writer_begin (VlmSlmWriter *writer, GError **error)
{
  guint i;

  g_return_val_if_fail (!writer->file, FALSE);
  if (!lay_out (writer, error))
    return FALSE;
  writer->file = vlm_atomic_file_new (writer->path, writer->size, error);
  if (!writer->file)
    return FALSE;
  for (i = 0; i < writer->contents->len; i++) {
    gsize size;
    gconstpointer data = g_bytes_get_data (writer->contents->pdata[i], &size);

    if (!vlm_slm_writer_put_entry (writer, data, size, error))
      return FALSE;
  }
  return vlm_slm_writer_open_tensor (writer, error);
}

gboolean
vlm_slm_writer_finish (VlmSlmWriter *writer, GError **error)
{
  GString *header;
  gboolean good;

  g_return_val_if_fail (writer->file && writer->current == writer->manifest.entries->len, FALSE);
  header = print_header (writer);
  g_assert (header->len == writer->data_start);
  good = vlm_atomic_file_write (writer->file, 0, header->str, header->len, error)
      && vlm_atomic_file_commit (writer->file, error);
  g_string_free (header, TRUE);
  return good;
}
