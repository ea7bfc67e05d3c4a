/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "json.h"

#include "engine/vlm.h"

#include <math.h>
#include <string.h>

/* Of a found value in a message. */
#define MAX_SHOWN 80

json_t *
vlm_json_parse (GBytes *bytes, const gchar *file, gsize flags, GError **error)
{
  json_error_t fault;
  gsize size;
  const gchar *data = g_bytes_get_data (bytes, &size);
  json_t *root = json_loadb (data, size, JSON_REJECT_DUPLICATES | flags, &fault);

  if (!root) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT, "%s:%d:%d: not valid JSON: %s", file,
        MAX (fault.line, 1), MAX (fault.column, 0), fault.text);
    return NULL;
  }
  if (!json_is_object (root)) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT, "%s: not a JSON object", file);
    json_decref (root);
    return NULL;
  }
  return root;
}

json_t *
vlm_json_load (const VlmModelFiles *files, const gchar *name, gsize max_size, gsize flags,
    gchar **file, GError **error)
{
  g_autoptr (GBytes) bytes = vlm_model_files_read (files, name, max_size, error);
  g_autofree gchar *path = vlm_model_files_describe (files, name);
  json_t *root = bytes ? vlm_json_parse (bytes, path, flags, error) : NULL;

  if (root)
    *file = g_steal_pointer (&path);
  return root;
}

const json_t *
vlm_json_get (const VlmJson *json, const gchar *key)
{
  const json_t *value = json_object_get (json->object, key);

  return json_is_null (value) ? NULL : value;
}

/* A value as it stands in the file, cut short. */
static gchar *
show_value (const json_t *value)
{
  char *text = json_dumps (value, JSON_ENCODE_ANY | JSON_COMPACT);
  g_autofree gchar *shown = NULL;

  if (text && strlen (text) > MAX_SHOWN) {
    g_autofree gchar *head = g_strndup (text, MAX_SHOWN);

    /* The cut may have gone through a character. */
    shown = g_utf8_make_valid (head, -1);
    free (text);
    return g_strconcat (shown, "...", NULL);
  }
  shown = g_strdup (text ? text : "(unprintable)");
  free (text);
  return g_steal_pointer (&shown);
}

void
vlm_json_set_error (GError **error, gint code, const VlmJson *json, const gchar *key,
    const json_t *found, const gchar *expected)
{
  g_autofree gchar *shown = found ? show_value (found) : g_strdup ("absent");

  g_set_error (error, VLM_ERROR, code, "%s: %s%s%s is %s, expected %s", json->file,
      json->section ? json->section : "", json->section ? "." : "", key, shown, expected);
}

static gboolean
get_integer (
    const VlmJson *json, const gchar *key, gint64 min, gint64 max, gint64 *value, GError **error)
{
  const json_t *found = vlm_json_get (json, key);
  g_autofree gchar *expected = NULL;

  if (!found)
    return TRUE;
  if (json_is_integer (found) && json_integer_value (found) >= min
      && json_integer_value (found) <= max) {
    *value = json_integer_value (found);
    return TRUE;
  }
  expected = g_strdup_printf ("an integer %" G_GINT64_FORMAT "..%" G_GINT64_FORMAT, min, max);
  vlm_json_set_error (error, VLM_ERROR_FORMAT, json, key, found, expected);
  return FALSE;
}

gboolean
vlm_json_get_uint (
    const VlmJson *json, const gchar *key, guint min, guint max, guint *value, GError **error)
{
  gint64 wide = *value;

  if (!get_integer (json, key, min, max, &wide, error))
    return FALSE;
  *value = (guint) wide;
  return TRUE;
}

gboolean
vlm_json_get_int (
    const VlmJson *json, const gchar *key, gint min, gint max, gint *value, GError **error)
{
  gint64 wide = *value;

  if (!get_integer (json, key, min, max, &wide, error))
    return FALSE;
  *value = (gint) wide;
  return TRUE;
}

gboolean
vlm_json_get_double (
    const VlmJson *json, const gchar *key, gdouble min, gdouble max, gdouble *value, GError **error)
{
  const json_t *found = vlm_json_get (json, key);
  g_autofree gchar *expected = NULL;
  gdouble number;

  if (!found)
    return TRUE;
  number = json_number_value (found);
  if (json_is_number (found) && isfinite (number) && number >= min && number <= max) {
    *value = number;
    return TRUE;
  }
  expected = g_strdup_printf ("a number %g..%g", min, max);
  vlm_json_set_error (error, VLM_ERROR_FORMAT, json, key, found, expected);
  return FALSE;
}

gboolean
vlm_json_get_float (
    const VlmJson *json, const gchar *key, gdouble min, gdouble max, gfloat *value, GError **error)
{
  gdouble wide = *value;

  if (!vlm_json_get_double (json, key, min, max, &wide, error))
    return FALSE;
  *value = (gfloat) wide;
  return TRUE;
}

gboolean
vlm_json_get_boolean (const VlmJson *json, const gchar *key, gboolean *value, GError **error)
{
  const json_t *found = vlm_json_get (json, key);

  if (!found)
    return TRUE;
  if (!json_is_boolean (found)) {
    vlm_json_set_error (error, VLM_ERROR_FORMAT, json, key, found, "true or false");
    return FALSE;
  }
  *value = json_is_true (found);
  return TRUE;
}

gboolean
vlm_json_get_string (const VlmJson *json, const gchar *key, const gchar **value, GError **error)
{
  const json_t *found = vlm_json_get (json, key);

  if (!found)
    return TRUE;
  if (!json_is_string (found)) {
    vlm_json_set_error (error, VLM_ERROR_FORMAT, json, key, found, "a string");
    return FALSE;
  }
  *value = json_string_value (found);
  return TRUE;
}

gboolean
vlm_json_get_object (const VlmJson *json, const gchar *key, VlmJson *child, GError **error)
{
  const json_t *found = vlm_json_get (json, key);

  if (found && !json_is_object (found)) {
    vlm_json_set_error (error, VLM_ERROR_FORMAT, json, key, found, "an object");
    return FALSE;
  }
  child->file = json->file;
  child->section = key;
  child->object = found;
  return TRUE;
}

gboolean
vlm_json_get_array (const VlmJson *json, const gchar *key, const json_t **value, GError **error)
{
  const json_t *found = vlm_json_get (json, key);

  if (!found)
    return TRUE;
  if (!json_is_array (found)) {
    vlm_json_set_error (error, VLM_ERROR_FORMAT, json, key, found, "an array");
    return FALSE;
  }
  *value = found;
  return TRUE;
}
