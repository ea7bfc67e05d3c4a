/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "gguf-settings-private.h"

#include <string.h>

#include "hf.h"

gboolean
vlm_gguf_fail (GError **error, VlmError code, const VlmGguf *gguf, const gchar *format, ...)
{
  g_autofree gchar *message = NULL;
  va_list arguments;

  va_start (arguments, format);
  message = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  g_set_error (error, VLM_ERROR, code, "%s: %s", vlm_gguf_get_path (gguf), message);
  return FALSE;
}

gboolean
vlm_gguf_require (const VlmGguf *gguf, const gchar *key, const gchar *expected, GError **error)
{
  return vlm_gguf_find (gguf, key)
      || vlm_gguf_fail (error, VLM_ERROR_FORMAT, gguf, "%s is missing, expected %s", key, expected);
}

gboolean
vlm_gguf_get_small (
    const VlmGguf *gguf, const gchar *key, guint min, guint max, guint *value, GError **error)
{
  guint64 wide = *value;

  if (!vlm_gguf_get_uint (gguf, key, min, max, &wide, error))
    return FALSE;
  *value = (guint) wide;
  return TRUE;
}

gboolean
vlm_gguf_require_uint (
    const VlmGguf *gguf, const gchar *key, guint min, guint max, guint *value, GError **error)
{
  g_autofree gchar *expected = g_strdup_printf ("%u..%u", min, max);

  return vlm_gguf_require (gguf, key, expected, error)
      && vlm_gguf_get_small (gguf, key, min, max, value, error);
}

gboolean
vlm_gguf_require_double (
    const VlmGguf *gguf, const gchar *key, gdouble min, gdouble max, gdouble *value, GError **error)
{
  g_autofree gchar *expected = g_strdup_printf ("%g..%g", min, max);

  if (!vlm_gguf_require (gguf, key, expected, error)
      || !vlm_gguf_get_double (gguf, key, min, max, value, error))
    return FALSE;
  *value = vlm_gguf_shorten (*value);
  return TRUE;
}

gboolean
vlm_gguf_require_name (const VlmGguf *gguf, const gchar *key, const gchar *name, GError **error)
{
  g_autofree gchar *found = NULL;
  g_autofree gchar *shown = NULL;

  if (!vlm_gguf_require (gguf, key, name, error) || !vlm_gguf_get_string (gguf, key, &found, error))
    return FALSE;
  if (!strcmp (found, name))
    return TRUE;
  shown = g_utf8_substring (found, 0, MIN (g_utf8_strlen (found, -1), 40));
  return vlm_gguf_fail (
      error, VLM_ERROR_UNSUPPORTED, gguf, "%s is \"%s\", expected \"%s\"", key, shown, name);
}

gboolean
vlm_gguf_require_tokens (const VlmGguf *gguf, const VlmGgufValue **tokens, GError **error)
{
  if (!vlm_gguf_require (gguf, VLM_GGUF_TOKENS, "the vocabulary", error)
      || !vlm_gguf_get_strings (gguf, VLM_GGUF_TOKENS, tokens, error))
    return FALSE;
  return ((*tokens)->n > 0 && (*tokens)->n <= VLM_MAX_VOCABULARY)
      || vlm_gguf_fail (error, VLM_ERROR_FORMAT, gguf,
          VLM_GGUF_TOKENS " has %" G_GUINT64_FORMAT " entries, expected 1..%u", (*tokens)->n,
          VLM_MAX_VOCABULARY);
}

gboolean
vlm_gguf_require_dims (
    const VlmGguf *gguf, const gchar *name, guint n, guint64 *dims, GError **error)
{
  const VlmGgufTensor *tensor = vlm_gguf_find_tensor (gguf, name);
  guint i;

  if (!tensor)
    return vlm_gguf_fail (error, VLM_ERROR_FORMAT, gguf, "the tensor %s is missing", name);
  for (i = 0; i < MAX (n, tensor->rank); i++) {
    guint64 side = i < tensor->rank ? tensor->dims[i] : 1;

    if (i < n)
      dims[i] = side;
    else if (side != 1)
      return vlm_gguf_fail (error, VLM_ERROR_FORMAT, gguf,
          "the tensor %s has %u sides, expected %u", name, tensor->rank, n);
  }
  return TRUE;
}

gdouble
vlm_gguf_shorten (gdouble value)
{
  gchar text[G_ASCII_DTOSTR_BUF_SIZE];
  gint digits;

  if ((gdouble) (gfloat) value != value)
    return value;
  for (digits = 6; digits <= 9; digits++) {
    gchar format[] = "%.6g";
    gdouble shorter;

    format[2] = (gchar) ('0' + digits);
    shorter = g_ascii_strtod (g_ascii_formatd (text, sizeof text, format, value), NULL);
    if ((gfloat) shorter == (gfloat) value)
      return shorter;
  }
  return value;
}

/* Whether the file called name is there, by the key or part that it is made of. */
gboolean
vlm_gguf_has_file (const VlmGguf *text, const VlmGguf *mmproj, const gchar *name)
{
  if (!strcmp (name, VLM_HF_CHAT_TEMPLATE))
    return vlm_gguf_find (text, VLM_GGUF_TEMPLATE) != NULL;
  if (!strcmp (name, VLM_HF_PROCESSOR))
    return mmproj != NULL;
  return !strcmp (name, VLM_HF_CONFIG) || !strcmp (name, VLM_HF_TOKENIZER)
      || !strcmp (name, VLM_HF_TOKENIZER_CONFIG) || !strcmp (name, VLM_HF_GENERATION);
}

/* Takes the object. */
static GString *
print_json (json_t *object)
{
  g_autoptr (VlmJsonDocument) root = object;
  char *text = root ? json_dumps (root, JSON_INDENT (1)) : NULL;
  GString *string = NULL;

  if (text) {
    string = g_string_new (text);
    g_string_append_c (string, '\n');
  }
  free (text);
  return string;
}

static GString *
make_template (const VlmGguf *text, GError **error)
{
  g_autofree gchar *content = NULL;

  if (!vlm_gguf_require (text, VLM_GGUF_TEMPLATE, "a chat template", error)
      || !vlm_gguf_get_string (text, VLM_GGUF_TEMPLATE, &content, error))
    return NULL;
  return g_string_new (content);
}

GBytes *
vlm_gguf_make_file (const VlmGguf *text, const VlmGguf *mmproj, const gchar *name, GError **error)
{
  GString *content = NULL;
  gsize length;

  if (!vlm_gguf_has_file (text, mmproj, name))
    g_set_error (error, VLM_ERROR, VLM_ERROR_NOT_FOUND, "%s: no settings for %s",
        vlm_gguf_get_path (text), name);
  else if (!strcmp (name, VLM_HF_CONFIG))
    content = print_json (vlm_gguf_make_config (text, mmproj, error));
  else if (!strcmp (name, VLM_HF_TOKENIZER))
    content = vlm_gguf_make_tokenizer (text, error);
  else if (!strcmp (name, VLM_HF_TOKENIZER_CONFIG))
    content = print_json (vlm_gguf_make_tokenizer_config (text, error));
  else if (!strcmp (name, VLM_HF_GENERATION))
    content = print_json (vlm_gguf_make_generation (text, error));
  else if (!strcmp (name, VLM_HF_PROCESSOR))
    content = print_json (vlm_gguf_make_processor (text, mmproj, error));
  else
    content = make_template (text, error);
  if (!content)
    return NULL;
  length = content->len;
  return g_bytes_new_take (g_string_free (content, FALSE), length);
}
