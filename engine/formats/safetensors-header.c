/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "safetensors-header.h"

#include "engine/vlm.h"

#include <string.h>

/* Bytes of a name or key; real ones have less than 100. */
#define MAX_NAME 1024

/*
 * The whole grammar:
 *   header = "{" [ member *( "," member ) ] "}" *SP
 *   member = name ":" entry | "__metadata__" ":" { string : string }
 *   entry  = { "dtype": string, "shape": [ integers ], "data_offsets": [ integer, integer ] }
 * with JSON's blanks and strings. Integers are plain digits: 4.0 and 1e3 are none.
 */
typedef struct
{
  const gchar *path;
  const gchar *start, *at, *end;
  const gchar *tensor; /* being read, for messages; NULL outside of entries */
  VlmSafetensorsType last;
} Scanner;

typedef enum
{
  FIELD_DTYPE = 1,
  FIELD_SHAPE = 2,
  FIELD_OFFSETS = 4,
  FIELDS_ALL = 7
} Field;

static const struct
{
  const gchar *name;
  gsize size;
} types[] = {
  [VLM_SAFETENSORS_F32] = { "F32", 4 },
  [VLM_SAFETENSORS_F16] = { "F16", 2 },
  [VLM_SAFETENSORS_BF16] = { "BF16", 2 },
  [VLM_SAFETENSORS_U8] = { "U8", 1 },
  [VLM_SAFETENSORS_I8] = { "I8", 1 },
};

static const gchar *const unsupported_types[] = { "BOOL", "F4", "F6_E2M3", "F6_E3M2", "F8_E5M2",
  "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I16", "U16", "I32", "U32", "C64", "F64",
  "I64", "U64", NULL };

const gchar *
vlm_safetensors_type_name (VlmSafetensorsType type)
{
  return types[type].name;
}

gsize
vlm_safetensors_type_size (VlmSafetensorsType type)
{
  return types[type].size;
}

static void
clear_entry (gpointer data)
{
  VlmSafetensorsEntry *entry = data;

  g_free (entry->name);
}

GArray *
vlm_safetensors_entries_new (void)
{
  GArray *entries = g_array_new (FALSE, FALSE, sizeof (VlmSafetensorsEntry));

  g_array_set_clear_func (entries, clear_entry);
  return entries;
}

static gboolean fail (const Scanner *scanner, GError **error, const gchar *format, ...)
    G_GNUC_PRINTF (3, 4);

static gboolean
fail (const Scanner *scanner, GError **error, const gchar *format, ...)
{
  g_autofree gchar *what = NULL;
  va_list args;

  va_start (args, format);
  what = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT, "%s: header byte %" G_GSIZE_FORMAT "%s%s: %s",
      scanner->path, (gsize) (scanner->at - scanner->start), scanner->tensor ? ", tensor " : "",
      scanner->tensor ? scanner->tensor : "", what);
  return FALSE;
}

static void
skip_blanks (Scanner *scanner)
{
  while (scanner->at < scanner->end && *scanner->at && strchr (" \t\n\r", *scanner->at))
    scanner->at++;
}

/* Whether the next character that is no blank is c; it is consumed then. */
static gboolean
take (Scanner *scanner, gchar c)
{
  skip_blanks (scanner);
  if (scanner->at == scanner->end || *scanner->at != c)
    return FALSE;
  scanner->at++;
  return TRUE;
}

static gboolean
expect (Scanner *scanner, gchar c, GError **error)
{
  if (take (scanner, c))
    return TRUE;
  if (scanner->at == scanner->end)
    return fail (scanner, error, "ends where '%c' is expected", c);
  return fail (scanner, error, "'%c' expected", c);
}

/* Four hexadecimal digits, or -1. */
static gint
scan_hex4 (Scanner *scanner)
{
  gint value = 0;
  guint i;

  if (scanner->end - scanner->at < 4)
    return -1;
  for (i = 0; i < 4; i++) {
    gint digit = g_ascii_xdigit_value (scanner->at[i]);

    if (digit < 0)
      return -1;
    value = value << 4 | digit;
  }
  scanner->at += 4;
  return value;
}

/* What stands behind "\u": a character other than zero, or a pair of surrogates. */
static gboolean
scan_unicode_escape (Scanner *scanner, GString *text, GError **error)
{
  gint unit = scan_hex4 (scanner);

  if (unit >= 0xd800 && unit < 0xdc00 && scanner->end - scanner->at >= 2 && scanner->at[0] == '\\'
      && scanner->at[1] == 'u') {
    gint low;

    scanner->at += 2;
    low = scan_hex4 (scanner);
    if (low >= 0xdc00 && low < 0xe000)
      unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
  }
  if (unit <= 0 || (unit >= 0xd800 && unit < 0xe000))
    return fail (scanner, error, "\\u escape that is no character");
  g_string_append_unichar (text, unit);
  return TRUE;
}

static gboolean
scan_escape (Scanner *scanner, GString *text, GError **error)
{
  static const gchar from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  const gchar *found;
  gchar c;

  if (scanner->at == scanner->end)
    return fail (scanner, error, "ends within a string");
  c = *scanner->at++;
  if (c == 'u')
    return scan_unicode_escape (scanner, text, error);
  found = c ? strchr (from, c) : NULL;
  if (!found)
    return fail (scanner, error, "unknown escape in a string");
  g_string_append_c (text, to[found - from]);
  return TRUE;
}

/* At most max_length bytes without escapes. (transfer full), NULL on error */
static gchar *
scan_string (Scanner *scanner, gsize max_length, GError **error)
{
  GString *text;

  if (!expect (scanner, '"', error))
    return NULL;
  text = g_string_new (NULL);
  while (scanner->at < scanner->end) {
    const gchar *run = scanner->at;

    while (scanner->at < scanner->end && *scanner->at != '"' && *scanner->at != '\\'
        && (guchar) *scanner->at >= 0x20)
      scanner->at++;
    g_string_append_len (text, run, scanner->at - run);
    if (scanner->at == scanner->end)
      break;
    if (text->len > max_length) {
      fail (scanner, error, "string of more than %" G_GSIZE_FORMAT " bytes", max_length);
      goto fault;
    }
    if (*scanner->at == '"') {
      scanner->at++;
      return g_string_free (text, FALSE);
    }
    if (*scanner->at++ != '\\') {
      fail (scanner, error, "control character in a string");
      goto fault;
    }
    if (!scan_escape (scanner, text, error))
      goto fault;
  }
  fail (scanner, error, "ends within a string");
fault:
  g_string_free (text, TRUE);
  return NULL;
}

static gboolean
scan_integer (Scanner *scanner, guint64 *value, GError **error)
{
  const gchar *first;
  guint64 number = 0;

  skip_blanks (scanner);
  first = scanner->at;
  for (; scanner->at < scanner->end && g_ascii_isdigit (*scanner->at); scanner->at++) {
    if (!g_uint64_checked_mul (&number, number, 10)
        || !g_uint64_checked_add (&number, number, *scanner->at - '0'))
      return fail (scanner, error, "number above 2^64 - 1");
  }
  if (scanner->at == first || (*first == '0' && scanner->at - first > 1)
      || (scanner->at < scanner->end && *scanner->at && strchr (".eE", *scanner->at)))
    return fail (scanner, error, "integer from 0 on expected");
  *value = number;
  return TRUE;
}

/* [ integer, ... ], at most max_count of them. */
static gboolean
scan_integers (Scanner *scanner, const gchar *what, guint64 *values, guint max_count, guint *count,
    GError **error)
{
  *count = 0;
  if (!expect (scanner, '[', error))
    return FALSE;
  if (take (scanner, ']'))
    return TRUE;
  do {
    if (*count == max_count)
      return fail (scanner, error, "%s has more than %u numbers", what, max_count);
    if (!scan_integer (scanner, &values[*count], error))
      return FALSE;
    ++*count;
  } while (take (scanner, ','));
  return expect (scanner, ']', error);
}

static gboolean
fail_type (const Scanner *scanner, const gchar *name, GError **error)
{
  g_autoptr (GString) expected = g_string_new (NULL);
  guint i;

  for (i = 0; i <= scanner->last; i++)
    g_string_append_printf (expected, "%s%s",
        i == 0                   ? ""
            : i == scanner->last ? " or "
                                 : ", ",
        types[i].name);
  g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED, "%s: tensor %s has dtype %s, expected %s",
      scanner->path, scanner->tensor, name, expected->str);
  return FALSE;
}

static gboolean
scan_type (Scanner *scanner, VlmSafetensorsType *type, GError **error)
{
  g_autofree gchar *name = scan_string (scanner, MAX_NAME, error);
  guint i;

  if (!name)
    return FALSE;
  for (i = 0; i < G_N_ELEMENTS (types); i++) {
    if (strcmp (name, types[i].name))
      continue;
    *type = i;
    return i <= scanner->last || fail_type (scanner, name, error);
  }
  if (g_strv_contains (unsupported_types, name))
    return fail_type (scanner, name, error);
  return fail (scanner, error, "unknown dtype \"%s\"", name);
}

static gboolean
scan_field (Scanner *scanner, VlmSafetensorsEntry *entry, guint *seen, GError **error)
{
  g_autofree gchar *key = scan_string (scanner, MAX_NAME, error);
  guint64 offsets[2];
  guint count;
  Field field;

  if (!key || !expect (scanner, ':', error))
    return FALSE;
  if (!strcmp (key, "dtype"))
    field = FIELD_DTYPE;
  else if (!strcmp (key, "shape"))
    field = FIELD_SHAPE;
  else if (!strcmp (key, "data_offsets"))
    field = FIELD_OFFSETS;
  else
    return fail (scanner, error, "unknown key \"%s\"", key);
  if (*seen & field)
    return fail (scanner, error, "key \"%s\" is there twice", key);
  *seen |= field;

  if (field == FIELD_DTYPE)
    return scan_type (scanner, &entry->type, error);
  if (field == FIELD_SHAPE)
    return scan_integers (scanner, key, entry->shape, VLM_MAX_RANK, &entry->rank, error);
  if (!scan_integers (scanner, key, offsets, 2, &count, error))
    return FALSE;
  if (count != 2)
    return fail (scanner, error, "data_offsets has %u numbers, expected 2", count);
  if (offsets[0] > offsets[1])
    return fail (scanner, error,
        "data_offsets [%" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT "] end before they begin",
        offsets[0], offsets[1]);
  entry->offset = offsets[0];
  entry->n_bytes = offsets[1] - offsets[0];
  return TRUE;
}

/* The span must be what type and shape need. */
static gboolean
check_span (const Scanner *scanner, const VlmSafetensorsEntry *entry, GError **error)
{
  g_autofree gchar *shape = vlm_tensor_shape_to_string (entry->shape, entry->rank);
  guint64 needed = types[entry->type].size;
  guint i;

  for (i = 0; i < entry->rank; i++) {
    if (!g_uint64_checked_mul (&needed, needed, entry->shape[i]))
      return fail (scanner, error, "shape %s is beyond all bounds", shape);
  }
  if (needed != entry->n_bytes)
    return fail (scanner, error,
        "data_offsets span %" G_GUINT64_FORMAT " bytes, expected %" G_GUINT64_FORMAT " for %s %s",
        entry->n_bytes, needed, types[entry->type].name, shape);
  return TRUE;
}

static gboolean
scan_entry (Scanner *scanner, VlmSafetensorsEntry *entry, GError **error)
{
  guint seen = 0;

  if (!expect (scanner, '{', error))
    return FALSE;
  if (!take (scanner, '}')) {
    do {
      if (!scan_field (scanner, entry, &seen, error))
        return FALSE;
    } while (take (scanner, ','));
    if (!expect (scanner, '}', error))
      return FALSE;
  }
  if (seen != FIELDS_ALL)
    return fail (scanner, error, "no %s",
        !(seen & FIELD_DTYPE)       ? "dtype"
            : !(seen & FIELD_SHAPE) ? "shape"
                                    : "data_offsets");
  return check_span (scanner, entry, error);
}

static gint
compare_strings (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const gchar *const *) a, *(const gchar *const *) b);
}

static gboolean
scan_metadata (Scanner *scanner, GPtrArray *metadata, GError **error)
{
  g_autoptr (GPtrArray) keys = g_ptr_array_new_with_free_func (g_free);
  guint i;

  if (!expect (scanner, '{', error))
    return FALSE;
  if (take (scanner, '}'))
    return TRUE;
  do {
    gchar *key = scan_string (scanner, MAX_NAME, error);
    g_autofree gchar *value = NULL;

    if (!key)
      return FALSE;
    g_ptr_array_add (keys, key);
    if (!expect (scanner, ':', error))
      return FALSE;
    value = scan_string (scanner, G_MAXSIZE, error);
    if (!value)
      return FALSE;
    if (metadata) {
      g_ptr_array_add (metadata, g_strdup (key));
      g_ptr_array_add (metadata, g_steal_pointer (&value));
    }
  } while (take (scanner, ','));

  g_ptr_array_sort (keys, compare_strings);
  for (i = 1; i < keys->len; i++) {
    if (!strcmp (g_ptr_array_index (keys, i - 1), g_ptr_array_index (keys, i)))
      return fail (scanner, error, "key \"%s\" of __metadata__ is there twice",
          (const gchar *) g_ptr_array_index (keys, i));
  }
  return expect (scanner, '}', error);
}

static gboolean
scan_member (
    Scanner *scanner, gboolean *has_metadata, GArray *entries, GPtrArray *metadata, GError **error)
{
  g_autofree gchar *name = scan_string (scanner, MAX_NAME, error);
  VlmSafetensorsEntry entry = { 0 };

  if (!name || !expect (scanner, ':', error))
    return FALSE;
  if (!strcmp (name, "__metadata__")) {
    if (*has_metadata)
      return fail (scanner, error, "__metadata__ is there twice");
    *has_metadata = TRUE;
    return scan_metadata (scanner, metadata, error);
  }
  scanner->tensor = name;
  if (!scan_entry (scanner, &entry, error))
    return FALSE;
  scanner->tensor = NULL;
  entry.name = g_steal_pointer (&name);
  g_array_append_val (entries, entry);
  return TRUE;
}

gboolean
vlm_safetensors_parse_header (const gchar *header, gsize length, const gchar *path,
    VlmSafetensorsType last, GArray *entries, GPtrArray *metadata, GError **error)
{
  Scanner scanner = { path, header, header, header + length, NULL, last };
  gboolean has_metadata = FALSE;

  if (length == 0 || *header != '{')
    return fail (&scanner, error, "'{' expected");
  if (!g_utf8_validate_len (header, length, &scanner.at))
    return fail (&scanner, error, "not UTF-8");
  scanner.at = header + 1;
  if (!take (&scanner, '}')) {
    do {
      if (!scan_member (&scanner, &has_metadata, entries, metadata, error))
        return FALSE;
    } while (take (&scanner, ','));
    if (!expect (&scanner, '}', error))
      return FALSE;
  }
  for (; scanner.at < scanner.end; scanner.at++) {
    if (*scanner.at != ' ')
      return fail (&scanner, error, "something other than spaces behind the closing brace");
  }
  return TRUE;
}
