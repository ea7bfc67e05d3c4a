/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "gguf-parts.h"

#include <string.h>

#include "engine/formats/gguf.h"
#include "fuzz.h"

#define ALIGNMENT 32
/* No more data than this is made up for tensors. */
#define MAX_DATA (1u << 20)

/* Where one reads in a file. */
typedef struct
{
  const guint8 *bytes;
  gsize size, at;
} Reader;

static gboolean
skip (Reader *reader, guint64 n)
{
  if (n > reader->size - reader->at)
    return FALSE;
  reader->at += n;
  return TRUE;
}

static gboolean
read_number (Reader *reader, gsize n, guint64 *value)
{
  gsize i;

  *value = 0;
  for (i = 0; i < n && reader->at + i < reader->size; i++)
    *value |= (guint64) reader->bytes[reader->at + i] << (8 * i);
  return skip (reader, n);
}

static gboolean
skip_string (Reader *reader)
{
  guint64 n;

  return read_number (reader, 8, &n) && skip (reader, n);
}

/* Bytes of one value of the type; 0 for strings and arrays. */
static gsize
value_size (guint64 type)
{
  static const guint8 sizes[VLM_GGUF_N_TYPES] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };

  return type < VLM_GGUF_N_TYPES ? sizes[type] : 0;
}

static gboolean
skip_values (Reader *reader, guint64 type, guint64 n)
{
  guint64 i;

  if (type != VLM_GGUF_STRING)
    return value_size (type) && n <= reader->size && skip (reader, n * value_size (type));
  for (i = 0; i < n; i++) {
    if (!skip_string (reader))
      return FALSE;
  }
  return TRUE;
}

static gboolean
skip_key (Reader *reader)
{
  guint64 type, n = 1;

  if (!skip_string (reader) || !read_number (reader, 4, &type))
    return FALSE;
  if (type == VLM_GGUF_ARRAY && (!read_number (reader, 4, &type) || !read_number (reader, 8, &n)))
    return FALSE;
  return skip_values (reader, type, n);
}

static gboolean
skip_tensor (Reader *reader)
{
  guint64 rank;

  return skip_string (reader) && read_number (reader, 4, &rank) && rank <= VLM_GGUF_MAX_RANK
      && skip (reader, rank * 8 + 4 + 8);
}

static gboolean
take (Reader *reader, gboolean (*skip_one) (Reader *), guint64 n, GPtrArray *to)
{
  guint64 i;

  for (i = 0; i < n; i++) {
    gsize begin = reader->at;
    GByteArray *part;

    if (!skip_one (reader))
      return FALSE;
    part = g_byte_array_new ();
    g_byte_array_append (part, reader->bytes + begin, reader->at - begin);
    g_ptr_array_add (to, part);
  }
  return TRUE;
}

static void
free_part (gpointer part)
{
  g_byte_array_unref (part);
}

GgufParts *
gguf_parts_new (const guint8 *bytes, gsize size)
{
  Reader reader = { bytes, size, 0 };
  guint64 magic, version, n_tensors, n_keys;
  GgufParts *parts = g_new0 (GgufParts, 1);

  parts->keys = g_ptr_array_new_with_free_func (free_part);
  parts->tensors = g_ptr_array_new_with_free_func (free_part);
  parts->data = g_byte_array_new ();
  if (!read_number (&reader, 4, &magic) || !read_number (&reader, 4, &version)
      || !read_number (&reader, 8, &n_tensors) || !read_number (&reader, 8, &n_keys)
      || !take (&reader, skip_key, n_keys, parts->keys)
      || !take (&reader, skip_tensor, n_tensors, parts->tensors)) {
    gguf_parts_free (parts);
    return NULL;
  }
  parts->version = version;
  reader.at = MIN (size, (reader.at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  g_byte_array_append (parts->data, bytes + reader.at, size - reader.at);
  return parts;
}

void
gguf_parts_free (GgufParts *parts)
{
  g_ptr_array_unref (parts->keys);
  g_ptr_array_unref (parts->tensors);
  g_byte_array_unref (parts->data);
  g_free (parts);
}

/* ---- Changes ------------------------------------------------------------------------------ */

static void
put_number (guint8 *bytes, gsize n, guint64 value)
{
  gsize i;

  for (i = 0; i < n; i++)
    bytes[i] = value >> (8 * i);
}

static guint64
odd_number (unsigned int *state)
{
  static const guint64 numbers[] = { 0, 1, 2, 3, 8, 15, 16, 31, 32, 33, 64, 255, 256, 65535, 65536,
    G_MAXINT32, G_MAXUINT32, G_GUINT64_CONSTANT (1) << 32, G_MAXINT64, G_MAXUINT64 };

  return numbers[fuzz_random (state, G_N_ELEMENTS (numbers))];
}

/* The string at an offset gets other bytes, with or without its length being told. */
static void
change_string (GByteArray *part, gsize at, unsigned int *state)
{
  Reader reader = { part->data, part->len, at };
  guint64 n;
  gsize size = part->len, room = size + 32, end;
  g_autofree guint8 *bytes = NULL;

  if (!read_number (&reader, 8, &n) || n > part->len - reader.at)
    return;
  bytes = g_malloc (room);
  memcpy (bytes, part->data, size);
  end = fuzz_mutate_range (bytes, &size, room, at + 8, at + 8 + n);
  put_number (bytes + at, 8, fuzz_random (state, 8) ? end - at - 8 : odd_number (state));
  g_byte_array_set_size (part, 0);
  g_byte_array_append (part, bytes, size);
}

/* One of the values behind a key: a number by another, a string by another. */
static void
change_value (GByteArray *key, unsigned int *state)
{
  Reader reader = { key->data, key->len, 0 };
  guint64 type, n = 1, chosen;

  if (!skip_string (&reader) || !read_number (&reader, 4, &type))
    return;
  if (type == VLM_GGUF_ARRAY && (!read_number (&reader, 4, &type) || !read_number (&reader, 8, &n)))
    return;
  if (n == 0 || n > key->len)
    return;
  chosen = fuzz_random (state, n);
  if (type == VLM_GGUF_STRING) {
    if (skip_values (&reader, type, chosen))
      change_string (key, reader.at, state);
  } else if (value_size (type)) {
    put_number (key->data + reader.at + chosen * value_size (type), value_size (type),
        fuzz_random (state, 2) ? odd_number (state) : fuzz_random (state, G_MAXINT32));
  }
}

static void
change_key (GByteArray *key, unsigned int *state)
{
  Reader reader = { key->data, key->len, 0 };

  switch (fuzz_random (state, 8)) {
    case 0:
      change_string (key, 0, state);
      break;
    case 1: /* its type */
      if (skip_string (&reader) && reader.at + 4 <= key->len)
        put_number (key->data + reader.at, 4, fuzz_random (state, VLM_GGUF_N_TYPES + 1));
      break;
    default:
      change_value (key, state);
  }
}

/* Name, number of dims, one of them, type or offset. */
static void
change_tensor (GByteArray *tensor, unsigned int *state)
{
  static const guint8 types[] = { 0, 1, 2, 3, 6, 7, 8, 12, 13, 14, 30, 9, 40 };
  Reader reader = { tensor->data, tensor->len, 0 };
  guint64 rank;
  gsize at;

  if (!skip_string (&reader) || !read_number (&reader, 4, &rank) || rank == 0)
    return;
  at = reader.at;
  switch (fuzz_random (state, 6)) {
    case 0:
      change_string (tensor, 0, state);
      break;
    case 1:
      put_number (tensor->data + at - 4, 4, odd_number (state));
      break;
    case 2:
      put_number (tensor->data + at + rank * 8 + 4, 8, odd_number (state));
      break;
    case 3:
      put_number (tensor->data + at + rank * 8, 4, types[fuzz_random (state, sizeof (types))]);
      break;
    default:
      put_number (tensor->data + at + fuzz_random (state, rank) * 8, 8,
          fuzz_random (state, 2) ? odd_number (state) : 1 + fuzz_random (state, 512));
  }
}

/* One more or one less. */
static void
change_list (GPtrArray *list, unsigned int *state)
{
  guint i = fuzz_random (state, list->len);
  GByteArray *part = g_ptr_array_index (list, i);

  if (fuzz_random (state, 2)) {
    g_ptr_array_remove_index (list, i);
  } else {
    GByteArray *copy = g_byte_array_new ();

    g_byte_array_append (copy, part->data, part->len);
    g_ptr_array_insert (list, fuzz_random (state, list->len), copy);
  }
}

void
gguf_parts_mutate (GgufParts *parts, unsigned int *state)
{
  GPtrArray *list = fuzz_random (state, 2) ? parts->keys : parts->tensors;
  gsize size = parts->data->len;

  if (fuzz_random (state, 6) == 0 && size) {
    g_byte_array_set_size (parts->data, size + 64);
    fuzz_mutate_range (parts->data->data, &size, size + 64, 0, size);
    g_byte_array_set_size (parts->data, size);
    return;
  }
  if (list->len == 0)
    return;
  if (fuzz_random (state, 10) == 0)
    change_list (list, state);
  else if (list == parts->keys)
    change_key (g_ptr_array_index (list, fuzz_random (state, list->len)), state);
  else
    change_tensor (g_ptr_array_index (list, fuzz_random (state, list->len)), state);
}

/* ---- Putting together --------------------------------------------------------------------- */

/* Elements and bytes of a block of ggml's types; FALSE for one that is not known here. */
static gboolean
find_block (guint64 type, guint64 *elements, guint64 *bytes)
{
  static const struct
  {
    guint8 type;
    guint16 elements, bytes;
  } blocks[] = { { 0, 1, 4 }, { 1, 1, 2 }, { 30, 1, 2 }, { 8, 32, 34 }, { 2, 32, 18 },
    { 3, 32, 20 }, { 6, 32, 22 }, { 7, 32, 24 }, { 12, 256, 144 }, { 13, 256, 176 },
    { 14, 256, 210 } };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (blocks); i++) {
    if (blocks[i].type == type) {
      *elements = blocks[i].elements;
      *bytes = blocks[i].bytes;
      return TRUE;
    }
  }
  return FALSE;
}

/* Sets the offset and moves it on. FALSE, once sizes are absurd. */
static gboolean
place_tensor (GByteArray *tensor, guint64 *offset)
{
  Reader reader = { tensor->data, tensor->len, 0 };
  guint64 rank, dim, type, elements, bytes, n = 1, i;

  if (!skip_string (&reader) || !read_number (&reader, 4, &rank) || rank > VLM_GGUF_MAX_RANK)
    return FALSE;
  for (i = 0; i < rank; i++) {
    if (!read_number (&reader, 8, &dim) || dim > MAX_DATA || (n *= dim) > MAX_DATA)
      return FALSE;
  }
  if (!read_number (&reader, 4, &type) || !find_block (type, &elements, &bytes)
      || reader.at + 8 > tensor->len)
    return FALSE;
  put_number (tensor->data + reader.at, 8, *offset);
  *offset += (n / elements * bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return *offset <= MAX_DATA;
}

static void
append_number (GByteArray *all, gsize n, guint64 value)
{
  guint8 bytes[8];

  put_number (bytes, n, value);
  g_byte_array_append (all, bytes, n);
}

static void
append_parts (GByteArray *all, const GPtrArray *parts)
{
  guint i;

  for (i = 0; i < parts->len; i++) {
    const GByteArray *part = g_ptr_array_index (parts, i);

    g_byte_array_append (all, part->data, part->len);
  }
}

static void
set_size (GByteArray *bytes, gsize size)
{
  gsize old = bytes->len;

  g_byte_array_set_size (bytes, size);
  if (size > old)
    memset (bytes->data + old, 0x11, size - old);
}

GByteArray *
gguf_parts_print (const GgufParts *parts, gboolean offsets)
{
  GByteArray *all = g_byte_array_new ();
  guint64 offset = 0;
  guint i;

  for (i = 0; offsets && i < parts->tensors->len; i++)
    offsets = place_tensor (g_ptr_array_index (parts->tensors, i), &offset);
  if (offsets)
    set_size (parts->data, offset);
  g_byte_array_append (all, (const guint8 *) VLM_GGUF_MAGIC, strlen (VLM_GGUF_MAGIC));
  append_number (all, 4, parts->version);
  append_number (all, 8, parts->tensors->len);
  append_number (all, 8, parts->keys->len);
  append_parts (all, parts->keys);
  append_parts (all, parts->tensors);
  while (all->len % ALIGNMENT)
    append_number (all, 1, 0);
  if (parts->data->len)
    g_byte_array_append (all, parts->data->data, parts->data->len);
  return all;
}
