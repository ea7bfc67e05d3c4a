/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The header of one GGUF file. It is copied piece by piece as far as it reaches: a count or length
 * in it is held against the bytes that the file still has before anything is allocated or read
 * for it.
 */

#include "gguf-private.h"

#include "engine/vlm.h"

#include <string.h>

/* Bytes that are read at first; then twice as many each time. */
#define FIRST_READ (64u << 10)

#define DEFAULT_ALIGNMENT 32
#define ALIGNMENT_KEY "general.alignment"

/* The least that a key with its value can take: name of one byte, type, value of one byte. */
#define MIN_KEY (8 + 1 + 4 + 1)
/* And a tensor: name of one byte, rank, one dimension, type, offset. */
#define MIN_TENSOR (8 + 1 + 4 + 8 + 4 + 8)

typedef struct
{
  VlmGgufHeader *header;
  const gchar *path;
  guint64 size;      /* of the file */
  gsize have, at;    /* bytes in memory, bytes read */
  const gchar *what; /* is being read, for messages */
  const gchar *name; /* of it, or NULL */
} Scanner;

static gboolean fail (const Scanner *scanner, VlmError code, GError **error, const gchar *format,
    ...) G_GNUC_PRINTF (4, 5);

static gboolean
fail (const Scanner *scanner, VlmError code, GError **error, const gchar *format, ...)
{
  g_autofree gchar *what = NULL;
  va_list args;

  va_start (args, format);
  what = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, VLM_ERROR, code, "%s: header byte %" G_GSIZE_FORMAT ", %s%s%s: %s",
      scanner->path, scanner->at, scanner->what, scanner->name ? " " : "",
      scanner->name ? scanner->name : "", what);
  return FALSE;
}

/* Makes the memory hold the next n bytes, which the file has. */
static gboolean
fetch (Scanner *scanner, gsize n, GError **error)
{
  gsize end = scanner->at + n, goal = MAX (end, MAX (FIRST_READ, 2 * scanner->have));
  guint8 *bytes;

  if (end <= scanner->have)
    return TRUE;
  goal = MIN (goal, MIN (scanner->size, VLM_GGUF_MAX_HEADER));
  bytes = g_try_realloc (scanner->header->bytes, goal);
  if (!bytes) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
        "%s: no memory for its header of at least %" G_GSIZE_FORMAT " bytes", scanner->path, goal);
    return FALSE;
  }
  scanner->header->bytes = bytes;
  if (!vlm_file_read (scanner->header->file, scanner->have, bytes + scanner->have,
          goal - scanner->have, NULL, error))
    return FALSE;
  scanner->have = goal;
  return TRUE;
}

/* Looks whether n more bytes can be, and fetches them. */
static gboolean
need (Scanner *scanner, guint64 n, GError **error)
{
  if (n > scanner->size - scanner->at)
    return fail (scanner, VLM_ERROR_FORMAT, error,
        "needs %" G_GUINT64_FORMAT " bytes, but the file has only %" G_GUINT64_FORMAT " more", n,
        scanner->size - scanner->at);
  if (n > VLM_GGUF_MAX_HEADER - scanner->at)
    return fail (scanner, VLM_ERROR_FORMAT, error,
        "needs %" G_GUINT64_FORMAT " bytes, expected headers of at most %u", n,
        VLM_GGUF_MAX_HEADER);
  return fetch (scanner, n, error);
}

static gboolean
scan_u32 (Scanner *scanner, guint32 *value, GError **error)
{
  if (!need (scanner, sizeof (*value), error))
    return FALSE;
  memcpy (value, scanner->header->bytes + scanner->at, sizeof (*value));
  *value = GUINT32_FROM_LE (*value);
  scanner->at += sizeof (*value);
  return TRUE;
}

static gboolean
scan_u64 (Scanner *scanner, guint64 *value, GError **error)
{
  if (!need (scanner, sizeof (*value), error))
    return FALSE;
  memcpy (value, scanner->header->bytes + scanner->at, sizeof (*value));
  *value = GUINT64_FROM_LE (*value);
  scanner->at += sizeof (*value);
  return TRUE;
}

/* Steps over a string. */
static gboolean
skip_string (Scanner *scanner, GError **error)
{
  guint64 length;

  if (!scan_u64 (scanner, &length, error) || !need (scanner, length, error))
    return FALSE;
  scanner->at += length;
  return TRUE;
}

/* A name of 1 .. max_length bytes of text; it stays with the header. NULL on error */
static const gchar *
scan_name (Scanner *scanner, gsize max_length, GError **error)
{
  const gchar *bytes;
  guint64 length;

  if (!scan_u64 (scanner, &length, error))
    return NULL;
  if (length == 0 || length > max_length) {
    fail (scanner, VLM_ERROR_FORMAT, error,
        "its name has %" G_GUINT64_FORMAT " bytes, expected 1..%" G_GSIZE_FORMAT, length,
        max_length);
    return NULL;
  }
  if (!need (scanner, length, error))
    return NULL;
  bytes = (const gchar *) scanner->header->bytes + scanner->at;
  if (!g_utf8_validate_len (bytes, length, NULL)) {
    fail (scanner, VLM_ERROR_FORMAT, error, "its name is no UTF-8, or has a zero byte");
    return NULL;
  }
  scanner->at += length;
  return g_string_chunk_insert_len (scanner->header->names, bytes, length);
}

/* ---- Keys --------------------------------------------------------------------------------- */

static gboolean
scan_type (Scanner *scanner, VlmGgufType *type, GError **error)
{
  guint32 number;

  if (!scan_u32 (scanner, &number, error))
    return FALSE;
  if (number >= VLM_GGUF_N_TYPES)
    return fail (scanner, VLM_ERROR_FORMAT, error, "its type is %u, expected 0..%d", number,
        VLM_GGUF_N_TYPES - 1);
  *type = number;
  return TRUE;
}

/* Element type and count of an array. */
static gboolean
scan_array (Scanner *scanner, VlmGgufValue *value, GError **error)
{
  if (!scan_type (scanner, &value->element, error) || !scan_u64 (scanner, &value->n, error))
    return FALSE;
  if (value->element == VLM_GGUF_ARRAY)
    return fail (
        scanner, VLM_ERROR_FORMAT, error, "is an array of arrays, expected plain elements");
  return TRUE;
}

/* Steps over value->n elements, in time that the bytes of the file justify. */
static gboolean
skip_elements (Scanner *scanner, const VlmGgufValue *value, GError **error)
{
  gsize size = vlm_gguf_value_size (value->element);
  guint64 n_bytes, i;

  /* Strings have at least their lengths. */
  if (!g_uint64_checked_mul (&n_bytes, value->n, size ? size : sizeof (guint64)))
    n_bytes = G_MAXUINT64;
  if (!need (scanner, n_bytes, error))
    return FALSE;
  if (size) {
    scanner->at += n_bytes;
    return TRUE;
  }
  for (i = 0; i < value->n; i++) {
    if (!skip_string (scanner, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
scan_key (Scanner *scanner, GError **error)
{
  VlmGgufKey key = { 0 };

  scanner->name = NULL;
  key.name = scan_name (scanner, VLM_GGUF_MAX_KEY, error);
  if (!key.name)
    return FALSE;
  scanner->name = key.name;
  if (!scan_type (scanner, &key.value.type, error))
    return FALSE;
  key.value.element = key.value.type;
  key.value.n = 1;
  if (key.value.type == VLM_GGUF_ARRAY && !scan_array (scanner, &key.value, error))
    return FALSE;
  key.at = scanner->at;
  if (!skip_elements (scanner, &key.value, error))
    return FALSE;
  key.value.n_bytes = scanner->at - key.at;
  g_array_append_val (scanner->header->keys, key);
  return TRUE;
}

static gint
compare_keys (gconstpointer a, gconstpointer b)
{
  return strcmp (((const VlmGgufKey *) a)->name, ((const VlmGgufKey *) b)->name);
}

/* Sorts them: no hash table, whose time would be up to who made the file. */
static gboolean
sort_keys (const Scanner *scanner, GError **error)
{
  GArray *keys = scanner->header->keys;
  guint i;

  g_array_sort (keys, compare_keys);
  for (i = 0; i < keys->len; i++) {
    VlmGgufKey *key = &g_array_index (keys, VlmGgufKey, i);

    key->value.data = scanner->header->bytes + key->at;
    if (i == 0 || compare_keys (key, key - 1))
      continue;
    g_set_error (
        error, VLM_ERROR, VLM_ERROR_FORMAT, "%s: key %s is there twice", scanner->path, key->name);
    return FALSE;
  }
  return TRUE;
}

/* ---- Tensors ------------------------------------------------------------------------------ */

/* Multiplies *n_values by the dimensions. */
static gboolean
scan_dims (Scanner *scanner, VlmGgufTensor *tensor, guint64 *n_values, GError **error)
{
  guint32 rank;
  guint i;

  if (!scan_u32 (scanner, &rank, error))
    return FALSE;
  if (rank == 0 || rank > VLM_GGUF_MAX_RANK)
    return fail (scanner, VLM_ERROR_FORMAT, error, "has %u dimensions, expected 1..%d", rank,
        VLM_GGUF_MAX_RANK);
  tensor->rank = rank;
  for (i = 0; i < rank; i++) {
    if (!scan_u64 (scanner, &tensor->dims[i], error))
      return FALSE;
    if (tensor->dims[i] == 0 || tensor->dims[i] > G_MAXINT64)
      return fail (scanner, VLM_ERROR_FORMAT, error,
          "dimension %u is %" G_GINT64_FORMAT ", expected 1 or above", i, tensor->dims[i]);
    if (!g_uint64_checked_mul (n_values, *n_values, tensor->dims[i]) || *n_values > G_MAXINT64)
      return fail (
          scanner, VLM_ERROR_FORMAT, error, "its dimensions have a product beyond 2^63 - 1");
  }
  return TRUE;
}

/* Type and, with it, the bytes that the tensor has. */
static gboolean
scan_tensor_type (Scanner *scanner, VlmGgufTensor *tensor, guint64 n_values, GError **error)
{
  guint32 number;
  guint block, n_bytes;

  if (!scan_u32 (scanner, &number, error))
    return FALSE;
  if (!vlm_gguf_type_block (number, &block, &n_bytes))
    return fail (
        scanner, VLM_ERROR_UNSUPPORTED, error, "is of type %u, which is not known", number);
  tensor->type = number;
  if (tensor->dims[0] % block)
    return fail (scanner, VLM_ERROR_FORMAT, error,
        "has rows of %" G_GUINT64_FORMAT " values, expected a multiple of %u for type %s",
        tensor->dims[0], block, vlm_gguf_type_name (number));
  if (!g_uint64_checked_mul (&tensor->n_bytes, n_values / block, n_bytes)
      || tensor->n_bytes > G_MAXINT64)
    return fail (scanner, VLM_ERROR_FORMAT, error, "has more than 2^63 - 1 bytes");
  return TRUE;
}

static gboolean
scan_tensor (Scanner *scanner, GError **error)
{
  VlmGgufTensor tensor = { 0 };
  guint64 n_values = 1;

  scanner->name = NULL;
  tensor.name = scan_name (scanner, VLM_GGUF_MAX_NAME, error);
  if (!tensor.name)
    return FALSE;
  scanner->name = tensor.name;
  if (!scan_dims (scanner, &tensor, &n_values, error)
      || !scan_tensor_type (scanner, &tensor, n_values, error)
      || !scan_u64 (scanner, &tensor.offset, error))
    return FALSE;
  g_array_append_val (scanner->header->tensors, tensor);
  return TRUE;
}

/* ---- The whole ---------------------------------------------------------------------------- */

static gboolean
fail_version (const Scanner *scanner, guint32 version, GError **error)
{
  guint32 swapped = GUINT32_SWAP_LE_BE (version);

  if (version > 0xffff && swapped <= 0xffff)
    g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
        "%s: is big-endian (version %u), expected a little-endian GGUF file", scanner->path,
        swapped);
  else
    g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
        "%s: is of GGUF version %u, expected 2 or 3", scanner->path, version);
  return FALSE;
}

static gboolean
scan_version (Scanner *scanner, GError **error)
{
  guint32 version;

  scanner->what = "start";
  if (!need (scanner, strlen (VLM_GGUF_MAGIC), error))
    return FALSE;
  if (memcmp (scanner->header->bytes, VLM_GGUF_MAGIC, strlen (VLM_GGUF_MAGIC)))
    return fail (scanner, VLM_ERROR_FORMAT, error, "no \"" VLM_GGUF_MAGIC "\" there");
  scanner->at += strlen (VLM_GGUF_MAGIC);
  if (!scan_u32 (scanner, &version, error))
    return FALSE;
  if (version != 2 && version != 3)
    return fail_version (scanner, version, error);
  scanner->header->version = version;
  return TRUE;
}

/* A count of things of at least min_size bytes. */
static gboolean
scan_count (Scanner *scanner, const gchar *what, guint64 max, guint64 min_size, guint64 *count,
    GError **error)
{
  scanner->what = what;
  if (!scan_u64 (scanner, count, error))
    return FALSE;
  if (*count > max)
    return fail (scanner, VLM_ERROR_FORMAT, error,
        "is %" G_GUINT64_FORMAT ", expected at most %" G_GUINT64_FORMAT, *count, max);
  if (*count > (scanner->size - scanner->at) / min_size)
    return fail (scanner, VLM_ERROR_FORMAT, error,
        "is %" G_GUINT64_FORMAT ", but the file has only %" G_GUINT64_FORMAT " more bytes", *count,
        scanner->size - scanner->at);
  return TRUE;
}

static gboolean
read_alignment (const Scanner *scanner, guint64 *alignment, GError **error)
{
  const VlmGgufValue *value = vlm_gguf_header_find (scanner->header, ALIGNMENT_KEY);

  *alignment = DEFAULT_ALIGNMENT;
  if (!vlm_gguf_header_get_uint (scanner->header, ALIGNMENT_KEY, 1, G_MAXUINT32, alignment, error))
    return FALSE;
  if ((!value || value->type == VLM_GGUF_U32) && (*alignment & (*alignment - 1)) == 0)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: key " ALIGNMENT_KEY " is %" G_GUINT64_FORMAT
      ", expected a power of two of 32 bits without sign",
      scanner->path, *alignment);
  return FALSE;
}

/* Tensors lie one behind the other, each padded; start is where the first may begin. Offsets
 * become absolute. */
static gboolean
place_tensors (const Scanner *scanner, guint64 start, guint64 alignment, GError **error)
{
  GArray *tensors = scanner->header->tensors;
  guint64 left = start > scanner->size ? 0 : scanner->size - start, expected = 0;
  guint i;

  for (i = 0; i < tensors->len; i++) {
    VlmGgufTensor *tensor = &g_array_index (tensors, VlmGgufTensor, i);
    guint64 padded = tensor->n_bytes + (alignment - tensor->n_bytes % alignment) % alignment;

    if (tensor->offset != expected) {
      g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
          "%s: tensor %s has offset %" G_GUINT64_FORMAT ", expected %" G_GUINT64_FORMAT
          ", where the one before ends",
          scanner->path, tensor->name, tensor->offset, expected);
      return FALSE;
    }
    if (padded > left - expected) {
      g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
          "%s: tensor %s needs %" G_GUINT64_FORMAT " bytes of data from %" G_GUINT64_FORMAT
          " on, but the file has only %" G_GUINT64_FORMAT ": it is cut off",
          scanner->path, tensor->name, padded, start + expected, left - expected);
      return FALSE;
    }
    expected += padded;
    tensor->offset += start;
  }
  return TRUE;
}

/* All before the first key. */
static gboolean
scan_start (Scanner *scanner, guint64 *n_tensors, guint64 *n_keys, GError **error)
{
  if (!scan_version (scanner, error)
      || !scan_count (
          scanner, "number of tensors", VLM_GGUF_MAX_TENSORS, MIN_TENSOR, n_tensors, error)
      || !scan_count (scanner, "number of keys", VLM_GGUF_MAX_KEYS, MIN_KEY, n_keys, error))
    return FALSE;
  scanner->what = "key";
  return TRUE;
}

static gboolean
scan (Scanner *scanner, GError **error)
{
  guint64 n_tensors, n_keys, alignment, i;

  if (!scan_start (scanner, &n_tensors, &n_keys, error))
    return FALSE;
  for (i = 0; i < n_keys; i++) {
    if (!scan_key (scanner, error))
      return FALSE;
  }
  scanner->what = "tensor";
  for (i = 0; i < n_tensors; i++) {
    if (!scan_tensor (scanner, error))
      return FALSE;
  }
  return sort_keys (scanner, error) && read_alignment (scanner, &alignment, error)
      && place_tensors (
          scanner, (scanner->at + alignment - 1) / alignment * alignment, alignment, error);
}

/* Opens the file with nothing of it read. */
static gboolean
scanner_init (Scanner *scanner, VlmGgufHeader *header, const gchar *path, GError **error)
{
  header->file = vlm_file_open (path, NULL, error);
  if (!header->file)
    return FALSE;
  header->names = g_string_chunk_new (4096);
  header->keys = g_array_new (FALSE, FALSE, sizeof (VlmGgufKey));
  header->tensors = g_array_new (FALSE, FALSE, sizeof (VlmGgufTensor));
  *scanner = (Scanner){ .header = header, .path = path, .size = vlm_file_get_size (header->file) };
  return TRUE;
}

VlmGgufHeader *
vlm_gguf_header_open (const gchar *path, GError **error)
{
  g_autoptr (VlmGgufHeader) header = g_new0 (VlmGgufHeader, 1);
  Scanner scanner;

  if (!scanner_init (&scanner, header, path, error) || !scan (&scanner, error))
    return NULL;
  return g_steal_pointer (&header);
}

/* The key that was scanned last, if it is called name and is text. (transfer full) */
static gchar *
last_text (const VlmGgufHeader *header, const gchar *name)
{
  const VlmGgufKey *key = &g_array_index (header->keys, VlmGgufKey, header->keys->len - 1);
  const gchar *text = (const gchar *) header->bytes + key->at + sizeof (guint64);
  gsize length = key->value.n_bytes - sizeof (guint64);

  if (strcmp (key->name, name) || key->value.type != VLM_GGUF_STRING
      || !g_utf8_validate_len (text, length, NULL))
    return NULL;
  return g_strndup (text, length);
}

gboolean
vlm_gguf_peek (const gchar *path, gchar **architecture, gchar **type, GError **error)
{
  g_autoptr (VlmGgufHeader) header = g_new0 (VlmGgufHeader, 1);
  g_autofree gchar *found_architecture = NULL, *found_type = NULL;
  guint64 n_tensors, n_keys, i;
  Scanner scanner;

  if (!scanner_init (&scanner, header, path, error)
      || !scan_start (&scanner, &n_tensors, &n_keys, error))
    return FALSE;
  for (i = 0; i < n_keys && !(found_architecture && found_type); i++) {
    if (!scan_key (&scanner, error))
      return FALSE;
    if (!found_architecture)
      found_architecture = last_text (header, VLM_GGUF_ARCHITECTURE_KEY);
    if (!found_type)
      found_type = last_text (header, VLM_GGUF_TYPE_KEY);
    /* Writers put those two before the vocabulary, which is long. */
    if (found_architecture && g_str_has_prefix (scanner.name, "tokenizer."))
      break;
  }
  *architecture = g_steal_pointer (&found_architecture);
  *type = g_steal_pointer (&found_type);
  return TRUE;
}

void
vlm_gguf_header_free (VlmGgufHeader *header)
{
  if (!header)
    return;
  vlm_file_unref (header->file);
  g_free (header->bytes);
  g_clear_pointer (&header->names, g_string_chunk_free);
  g_clear_pointer (&header->keys, g_array_unref);
  g_clear_pointer (&header->tensors, g_array_unref);
  g_free (header);
}

const VlmGgufValue *
vlm_gguf_header_find (const VlmGgufHeader *header, const gchar *name)
{
  VlmGgufKey wanted = { .name = name };
  guint at;

  if (!g_array_binary_search (header->keys, &wanted, compare_keys, &at))
    return NULL;
  return &g_array_index (header->keys, VlmGgufKey, at).value;
}
