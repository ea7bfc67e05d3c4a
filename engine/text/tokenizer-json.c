/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tokenizer-json.h"

#include <string.h>

gboolean
vlm_reader_fail (VlmReader *reader, VlmError code, const gchar *format, ...)
{
  g_autofree gchar *message = NULL;
  va_list arguments;

  va_start (arguments, format);
  message = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_set_error (reader->error, VLM_ERROR, code, "%s: %s", reader->name, message);
  return FALSE;
}

gchar *
vlm_reader_excerpt (const gchar *text)
{
  if (g_utf8_strlen (text, -1) <= 40)
    return g_strdup (text);
  return g_utf8_substring (text, 0, 40);
}

gboolean
vlm_reader_refuse_component (VlmReader *reader, const gchar *field, const json_t *component)
{
  const json_t *type = json_object_get (component, "type");
  g_autofree gchar *excerpt = NULL;

  if (component == NULL || json_is_null (component))
    return vlm_reader_fail (
        reader, VLM_ERROR_UNSUPPORTED, "a tokenizer without %s is not implemented", field);
  if (!json_is_string (type))
    return vlm_reader_fail (reader, VLM_ERROR_FORMAT, "%s has no type", field);
  excerpt = vlm_reader_excerpt (json_string_value (type));
  return vlm_reader_fail (
      reader, VLM_ERROR_UNSUPPORTED, "%s of type \"%s\" is not implemented", field, excerpt);
}

gboolean
vlm_reader_is_type (const json_t *object, const gchar *type)
{
  const gchar *found = json_string_value (json_object_get (object, "type"));

  return found != NULL && strcmp (found, type) == 0;
}

gboolean
vlm_reader_get_boolean (
    VlmReader *reader, const json_t *object, const gchar *field, const gchar *key, gboolean *value)
{
  const json_t *found = json_object_get (object, key);

  if (found == NULL || json_is_null (found))
    return TRUE;
  if (!json_is_boolean (found))
    return vlm_reader_fail (
        reader, VLM_ERROR_FORMAT, "%s.%s is neither true nor false", field, key);
  *value = json_is_true (found);
  return TRUE;
}

gint
vlm_reader_find_piece (const VlmReader *reader, const gchar *piece)
{
  const json_t *id = json_object_get (reader->vocabulary, piece);

  return id != NULL ? (gint) json_integer_value (id) : -1;
}

static gboolean
read_root (VlmReader *reader, const json_t *root)
{
  const json_t *model = json_object_get (root, "model");

  if (!json_is_object (root) || !json_is_object (model))
    return vlm_reader_fail (reader, VLM_ERROR_FORMAT, "no object \"model\" in it");
  if (!vlm_reader_is_type (model, "BPE"))
    return vlm_reader_refuse_component (reader, "model", model);
  return vlm_read_normalizer (reader, json_object_get (root, "normalizer"))
      && vlm_read_pre_tokenizer (reader, json_object_get (root, "pre_tokenizer"))
      && vlm_read_post_processor (reader, json_object_get (root, "post_processor"))
      && vlm_read_decoder (reader, json_object_get (root, "decoder"))
      && vlm_read_vocabulary (reader, root, model) && vlm_read_added_tokens (reader, root)
      && vlm_read_model (reader, model);
}

VlmTokenizer *
vlm_tokenizer_new_from_json (GBytes *json, const gchar *name, GError **error)
{
  VlmReader reader = { name, NULL, NULL, error };
  json_error_t json_error;
  gconstpointer data;
  gsize size;
  json_t *root;

  data = g_bytes_get_data (json, &size);
  root = json_loadb (data != NULL ? data : "", size, JSON_REJECT_DUPLICATES, &json_error);
  if (root == NULL) {
    g_autofree gchar *text = g_utf8_make_valid (json_error.text, -1);

    vlm_reader_fail (&reader, VLM_ERROR_FORMAT, "line %d, column %d: %s", json_error.line,
        json_error.column, text);
    return NULL;
  }
  reader.tokenizer = vlm_tokenizer_new ();
  if (!read_root (&reader, root))
    g_clear_pointer (&reader.tokenizer, vlm_tokenizer_unref);
  json_decref (root);
  return reader.tokenizer;
}
