/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "gguf-fixture.h"

#include <stdlib.h>
#include <string.h>

/* ---- Bytes -------------------------------------------------------------------------------- */

static void
append_number (GByteArray *bytes, guint64 value, guint size)
{
  guint64 little = GUINT64_TO_LE (value);

  g_byte_array_append (bytes, (const guint8 *) &little, size);
}

static void
append_string (GByteArray *bytes, const gchar *text)
{
  append_number (bytes, strlen (text), 8);
  g_byte_array_append (bytes, (const guint8 *) text, strlen (text));
}

static void
append_zeros (GByteArray *bytes, gsize n)
{
  gsize length = bytes->len;

  g_byte_array_set_size (bytes, length + n);
  memset (bytes->data + length, 0, n);
}

static void
append_padding (GByteArray *bytes, gsize alignment)
{
  append_zeros (bytes, (alignment - bytes->len % alignment) % alignment);
}

static guint64
parse_number (const gchar *text)
{
  return *text == '-' ? (guint64) g_ascii_strtoll (text, NULL, 0)
                      : g_ascii_strtoull (text, NULL, 0);
}

static void
append_word (GByteArray *bytes, const gchar *word)
{
  const gchar *colon = strchr (word, ':');

  if (g_str_has_prefix (word, "s:"))
    append_string (bytes, word + 2);
  else if (g_str_has_prefix (word, "zeros:"))
    append_zeros (bytes, parse_number (colon + 1));
  else if (g_str_has_prefix (word, "pad:"))
    append_padding (bytes, parse_number (colon + 1));
  else if (*word == 'u' && colon)
    append_number (bytes, parse_number (colon + 1), atoi (word + 1) / 8);
  else
    g_byte_array_append (bytes, (const guint8 *) word, strlen (word));
}

static void
append_recipe (GByteArray *bytes, const gchar *recipe)
{
  g_auto (GStrv) words = g_strsplit (recipe, " ", -1);
  guint i;

  for (i = 0; words[i]; i++)
    append_word (bytes, words[i]);
}

GByteArray *
gguf_bytes_new (const gchar *recipe)
{
  GByteArray *bytes = g_byte_array_new ();

  append_recipe (bytes, recipe);
  return bytes;
}

/* ---- Writer ------------------------------------------------------------------------------- */

GgufWriter *
gguf_writer_new (void)
{
  GgufWriter *writer = g_new0 (GgufWriter, 1);

  writer->version = 3;
  writer->alignment = 32;
  writer->keys = g_byte_array_new ();
  writer->tensors = g_byte_array_new ();
  writer->data = g_byte_array_new ();
  return writer;
}

void
gguf_writer_free (GgufWriter *writer)
{
  g_byte_array_unref (writer->keys);
  g_byte_array_unref (writer->tensors);
  g_byte_array_unref (writer->data);
  g_free (writer);
}

static void
begin_key (GgufWriter *writer, const gchar *key, VlmGgufType type)
{
  append_string (writer->keys, key);
  append_number (writer->keys, type, 4);
  writer->n_keys++;
}

static void
begin_array (GgufWriter *writer, const gchar *key, VlmGgufType element, guint64 n)
{
  begin_key (writer, key, VLM_GGUF_ARRAY);
  append_number (writer->keys, element, 4);
  append_number (writer->keys, n, 8);
}

static guint32
bits_of (gfloat value)
{
  guint32 bits;

  memcpy (&bits, &value, sizeof (bits));
  return bits;
}

void
gguf_put_u32 (GgufWriter *writer, const gchar *key, guint32 value)
{
  begin_key (writer, key, VLM_GGUF_U32);
  append_number (writer->keys, value, 4);
}

void
gguf_put_u16 (GgufWriter *writer, const gchar *key, guint16 value)
{
  begin_key (writer, key, VLM_GGUF_U16);
  append_number (writer->keys, value, 2);
}

void
gguf_put_f32 (GgufWriter *writer, const gchar *key, gfloat value)
{
  begin_key (writer, key, VLM_GGUF_F32);
  append_number (writer->keys, bits_of (value), 4);
}

void
gguf_put_bool (GgufWriter *writer, const gchar *key, gboolean value)
{
  begin_key (writer, key, VLM_GGUF_BOOL);
  append_number (writer->keys, value, 1);
}

void
gguf_put_string (GgufWriter *writer, const gchar *key, const gchar *value)
{
  begin_key (writer, key, VLM_GGUF_STRING);
  append_string (writer->keys, value);
}

void
gguf_put_i32s (GgufWriter *writer, const gchar *key, const gint32 *values, guint64 n)
{
  guint64 i;

  begin_array (writer, key, VLM_GGUF_I32, n);
  for (i = 0; i < n; i++)
    append_number (writer->keys, (guint32) values[i], 4);
}

void
gguf_put_f32s (GgufWriter *writer, const gchar *key, const gfloat *values, guint64 n)
{
  guint64 i;

  begin_array (writer, key, VLM_GGUF_F32, n);
  for (i = 0; i < n; i++)
    append_number (writer->keys, bits_of (values[i]), 4);
}

void
gguf_put_strings (GgufWriter *writer, const gchar *key, const gchar *const *values, guint64 n)
{
  guint64 i;

  begin_array (writer, key, VLM_GGUF_STRING, n);
  for (i = 0; i < n; i++)
    append_string (writer->keys, values[i]);
}

void
gguf_put_raw (GgufWriter *writer, const gchar *key, const gchar *recipe)
{
  append_string (writer->keys, key);
  append_recipe (writer->keys, recipe);
  writer->n_keys++;
}

void
gguf_add_tensor (GgufWriter *writer, const gchar *name, guint type, guint rank, const guint64 *dims,
    gconstpointer data, gsize n_bytes)
{
  guint i;

  append_string (writer->tensors, name);
  append_number (writer->tensors, rank, 4);
  for (i = 0; i < rank; i++)
    append_number (writer->tensors, dims[i], 8);
  append_number (writer->tensors, type, 4);
  append_number (writer->tensors, writer->data->len, 8);
  writer->n_tensors++;
  g_byte_array_append (writer->data, data, n_bytes);
  append_padding (writer->data, writer->alignment);
}

GByteArray *
gguf_writer_get_bytes (const GgufWriter *writer)
{
  GByteArray *bytes = g_byte_array_new ();

  append_recipe (bytes, VLM_GGUF_MAGIC);
  append_number (bytes, writer->version, 4);
  append_number (bytes, writer->n_tensors, 8);
  append_number (bytes, writer->n_keys, 8);
  g_byte_array_append (bytes, writer->keys->data, writer->keys->len);
  g_byte_array_append (bytes, writer->tensors->data, writer->tensors->len);
  append_padding (bytes, writer->alignment);
  g_byte_array_append (bytes, writer->data->data, writer->data->len);
  return bytes;
}

void
gguf_writer_save (const GgufWriter *writer, const gchar *directory, const gchar *name)
{
  g_autoptr (GByteArray) bytes = gguf_writer_get_bytes (writer);

  fixture_write (directory, name, bytes->data, bytes->len);
}
