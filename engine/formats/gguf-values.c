/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The values of GGUF keys, each taken only as what it is. */

#include "gguf-private.h"

#include "engine/vlm.h"

#include <math.h>
#include <string.h>

/* Names of types with an article, as messages have them. */
static const gchar *const type_names[VLM_GGUF_N_TYPES] = { "a u8", "an i8", "a u16", "an i16",
  "a u32", "an i32", "an f32", "a bool", "a string", "an array", "a u64", "an i64", "an f64" };

static gboolean
is_integer (VlmGgufType type)
{
  return type <= VLM_GGUF_I32 || type == VLM_GGUF_U64 || type == VLM_GGUF_I64;
}

static gboolean
is_number (VlmGgufType type)
{
  return is_integer (type) || type == VLM_GGUF_F32 || type == VLM_GGUF_F64;
}

static gboolean
fail_type (const VlmGgufHeader *header, const gchar *key, const VlmGgufValue *value,
    const gchar *expected, GError **error)
{
  gboolean array = value->type == VLM_GGUF_ARRAY;

  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT, "%s: key %s is %s%s, expected %s",
      vlm_file_get_path (header->file), key, array ? "an array, each element " : "",
      type_names[value->element], expected);
  return FALSE;
}

/* The bits of element i, of a type of fixed size. */
static guint64
bits_of (const VlmGgufValue *value, guint64 i)
{
  gsize size = vlm_gguf_value_size (value->element);
  guint64 bits = 0;
  gsize byte;

  g_return_val_if_fail (size > 0 && i < value->n, 0);
  for (byte = 0; byte < size; byte++)
    bits |= (guint64) value->data[i * size + byte] << 8 * byte;
  return bits;
}

gint64
vlm_gguf_value_get_integer (const VlmGgufValue *value, guint64 i)
{
  guint64 bits = bits_of (value, i);

  switch (value->element) {
    case VLM_GGUF_I8:
      return (gint8) bits;
    case VLM_GGUF_I16:
      return (gint16) bits;
    case VLM_GGUF_I32:
      return (gint32) bits;
    case VLM_GGUF_I64:
      return (gint64) bits;
    default:
      return MIN (bits, G_MAXINT64);
  }
}

gdouble
vlm_gguf_value_get_number (const VlmGgufValue *value, guint64 i)
{
  guint64 bits = bits_of (value, i);
  guint32 low = bits;
  gfloat single;
  gdouble number;

  switch (value->element) {
    case VLM_GGUF_F32:
      memcpy (&single, &low, sizeof (single));
      return single;
    case VLM_GGUF_F64:
      memcpy (&number, &bits, sizeof (number));
      return number;
    case VLM_GGUF_U64:
      return bits;
    default:
      return vlm_gguf_value_get_integer (value, i);
  }
}

gboolean
vlm_gguf_value_next_string (
    const VlmGgufValue *value, gsize *position, const gchar **bytes, gsize *length)
{
  guint64 n;

  g_return_val_if_fail (value->element == VLM_GGUF_STRING, FALSE);
  if (*position >= value->n_bytes)
    return FALSE;
  memcpy (&n, value->data + *position, sizeof (n));
  *length = GUINT64_FROM_LE (n);
  *bytes = (const gchar *) value->data + *position + sizeof (n);
  *position += sizeof (n) + *length;
  return TRUE;
}

gboolean
vlm_gguf_header_get_uint (const VlmGgufHeader *header, const gchar *key, guint64 min, guint64 max,
    guint64 *result, GError **error)
{
  const VlmGgufValue *value = vlm_gguf_header_find (header, key);
  g_autofree gchar *found = NULL;

  if (!value)
    return TRUE;
  if (!is_integer (value->type))
    return fail_type (header, key, value, "an integer", error);
  if (value->type == VLM_GGUF_U64 || vlm_gguf_value_get_integer (value, 0) >= 0) {
    guint64 number = bits_of (value, 0);

    if (number >= min && number <= max) {
      *result = number;
      return TRUE;
    }
    found = g_strdup_printf ("%" G_GUINT64_FORMAT, number);
  } else {
    found = g_strdup_printf ("%" G_GINT64_FORMAT, vlm_gguf_value_get_integer (value, 0));
  }
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: key %s is %s, expected %" G_GUINT64_FORMAT "..%" G_GUINT64_FORMAT,
      vlm_file_get_path (header->file), key, found, min, max);
  return FALSE;
}

gboolean
vlm_gguf_get_uint (
    const VlmGguf *gguf, const gchar *key, guint64 min, guint64 max, guint64 *value, GError **error)
{
  return vlm_gguf_header_get_uint (gguf->first, key, min, max, value, error);
}

gboolean
vlm_gguf_get_double (const VlmGguf *gguf, const gchar *key, gdouble min, gdouble max,
    gdouble *result, GError **error)
{
  const VlmGgufValue *value = vlm_gguf_find (gguf, key);
  gdouble number;

  if (!value)
    return TRUE;
  if (!is_number (value->type))
    return fail_type (gguf->first, key, value, "a number", error);
  number = vlm_gguf_value_get_number (value, 0);
  if (isfinite (number) && number >= min && number <= max) {
    *result = number;
    return TRUE;
  }
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT, "%s: key %s is %g, expected %g..%g",
      vlm_gguf_get_path (gguf), key, number, min, max);
  return FALSE;
}

gboolean
vlm_gguf_get_boolean (const VlmGguf *gguf, const gchar *key, gboolean *result, GError **error)
{
  const VlmGgufValue *value = vlm_gguf_find (gguf, key);

  if (!value)
    return TRUE;
  if (value->type != VLM_GGUF_BOOL)
    return fail_type (gguf->first, key, value, "a bool", error);
  if (value->data[0] > 1) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT, "%s: key %s is a bool of %u, expected 0 or 1",
        vlm_gguf_get_path (gguf), key, value->data[0]);
    return FALSE;
  }
  *result = value->data[0];
  return TRUE;
}

gboolean
vlm_gguf_get_string (const VlmGguf *gguf, const gchar *key, gchar **result, GError **error)
{
  const VlmGgufValue *value = vlm_gguf_find (gguf, key);
  const gchar *bytes = NULL;
  gsize position = 0, length = 0;

  if (!value)
    return TRUE;
  if (value->type != VLM_GGUF_STRING)
    return fail_type (gguf->first, key, value, "a string", error);
  vlm_gguf_value_next_string (value, &position, &bytes, &length);
  if (!g_utf8_validate_len (bytes, length, NULL)) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT, "%s: key %s is no UTF-8, or has a zero byte",
        vlm_gguf_get_path (gguf), key);
    return FALSE;
  }
  *result = g_strndup (bytes, length);
  return TRUE;
}

/* An array whose elements are accepted. */
static gboolean
get_array (const VlmGguf *gguf, const gchar *key, gboolean (*accepts) (VlmGgufType type),
    const gchar *expected, const VlmGgufValue **result, GError **error)
{
  const VlmGgufValue *value = vlm_gguf_find (gguf, key);

  if (!value)
    return TRUE;
  if (value->type != VLM_GGUF_ARRAY || !accepts (value->element))
    return fail_type (gguf->first, key, value, expected, error);
  *result = value;
  return TRUE;
}

static gboolean
is_string (VlmGgufType type)
{
  return type == VLM_GGUF_STRING;
}

gboolean
vlm_gguf_get_integers (
    const VlmGguf *gguf, const gchar *key, const VlmGgufValue **value, GError **error)
{
  return get_array (gguf, key, is_integer, "an array of integers", value, error);
}

gboolean
vlm_gguf_get_numbers (
    const VlmGguf *gguf, const gchar *key, const VlmGgufValue **value, GError **error)
{
  return get_array (gguf, key, is_number, "an array of numbers", value, error);
}

gboolean
vlm_gguf_get_strings (
    const VlmGguf *gguf, const gchar *key, const VlmGgufValue **value, GError **error)
{
  return get_array (gguf, key, is_string, "an array of strings", value, error);
}
