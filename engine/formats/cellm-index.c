/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The beginning of a .cellm file and the places of its payloads. */

#include "cellm.h"

#include "engine/vlm.h"

#include <string.h>

#define MAGIC "CELLM"
#define MAGIC_SIZE (sizeof (MAGIC) - 1)

/* In front of the JSON: the magic, the version as a byte, the length as u32. */
#define PREFIX_SIZE (MAGIC_SIZE + 1 + 4)

/* Published headers have 80 kB. A tree of JSON takes some twenty times its text. */
#define MAX_HEADER (4u << 20)

/* Bytes between two payloads that may belong to none: writers align to 64, pages are the most. */
#define MAX_GAP 4095

#define MAX_NAME 500

gboolean
vlm_cellm_probe (const gchar *path)
{
  g_autoptr (VlmFile) file = vlm_file_open (path, NULL, NULL);
  gchar magic[MAGIC_SIZE];

  return file && vlm_file_get_size (file) >= MAGIC_SIZE
      && vlm_file_read (file, 0, magic, MAGIC_SIZE, NULL, NULL)
      && !memcmp (magic, MAGIC, MAGIC_SIZE);
}

/* ---- One entry ---------------------------------------------------------------------------- */

static gboolean
read_size (const VlmJson *json, const gchar *key, guint64 *size, GError **error)
{
  const json_t *value = vlm_json_get (json, key);

  if (json_is_integer (value) && json_integer_value (value) >= 0) {
    *size = json_integer_value (value);
    return TRUE;
  }
  vlm_json_set_error (error, VLM_ERROR_FORMAT, json, key, value, "an integer of 0 or above");
  return FALSE;
}

static gboolean
read_shape (const VlmJson *json, VlmCellmEntry *entry, GError **error)
{
  const json_t *shape = vlm_json_get (json, "shape");
  gboolean good = json_is_array (shape) && json_array_size (shape) >= 1
      && json_array_size (shape) <= VLM_MAX_RANK;
  guint i;

  entry->rank = good ? json_array_size (shape) : 0;
  for (i = 0; i < entry->rank; i++) {
    const json_t *side = json_array_get (shape, i);

    good = good && json_is_integer (side) && json_integer_value (side) > 0;
    entry->shape[i] = json_integer_value (side);
  }
  if (!good)
    vlm_json_set_error (
        error, VLM_ERROR_FORMAT, json, "shape", shape, "1 to 8 integers of 1 or above");
  return good;
}

static gboolean
read_name (const VlmJson *json, VlmCellmEntry *entry, GError **error)
{
  const json_t *value = vlm_json_get (json, "name");
  const gchar *name = json_string_value (value);

  if (!name || !*name || strlen (name) > MAX_NAME) {
    vlm_json_set_error (error, VLM_ERROR_FORMAT, json, "name", value, "a name of 1 to 500 bytes");
    return FALSE;
  }
  entry->name = g_strdup (name);
  return TRUE;
}

static gboolean
read_type (const VlmJson *json, VlmCellmEntry *entry, const gchar *path, GError **error)
{
  const json_t *value = vlm_json_get (json, "dtype");
  const gchar *name = json_string_value (value);
  guint type;

  if (!name) {
    vlm_json_set_error (error, VLM_ERROR_FORMAT, json, "dtype", value, "a string");
    return FALSE;
  }
  for (type = 0; type <= VLM_CELLM_U32; type++) {
    if (!strcmp (name, vlm_cellm_type_name (type))) {
      entry->type = type;
      return TRUE;
    }
  }
  g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
      "%s: tensor %s has dtype %.40s, expected f16, f32, bf16, i8, i4 or u32", path, entry->name,
      name);
  return FALSE;
}

/* Bytes that the shape needs; FALSE when that is no 64-bit number. */
static gboolean
count_bytes (const VlmCellmEntry *entry, guint64 *n_bytes)
{
  static const guint sizes[] = { 2, 4, 2, 1, 1, 4 };
  guint64 n = sizes[entry->type];
  guint i;

  for (i = 0; i < entry->rank; i++) {
    guint64 side = entry->shape[i];

    /* Each row begins with a byte of its own. */
    if (entry->type == VLM_CELLM_I4 && i + 1 == entry->rank)
      side = side / 2 + side % 2;
    if (!g_uint64_checked_mul (&n, n, side))
      return FALSE;
  }
  *n_bytes = n;
  return TRUE;
}

static gboolean
check_size (const VlmCellmEntry *entry, const gchar *path, GError **error)
{
  g_autofree gchar *shape = vlm_tensor_shape_to_string (entry->shape, entry->rank);
  guint64 expected = 0;

  if (vlm_cellm_type_dtype (entry->type) == VLM_DTYPE_QUANTISED && entry->rank != 2) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: tensor %s of %s has shape %s, expected two dimensions", path, entry->name,
        vlm_cellm_type_name (entry->type), shape);
    return FALSE;
  }
  if (!count_bytes (entry, &expected)) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: tensor %s has shape %s, which no file can hold", path, entry->name, shape);
    return FALSE;
  }
  if (entry->n_bytes == expected)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: tensor %s has nbytes %" G_GUINT64_FORMAT ", expected %" G_GUINT64_FORMAT
      " for %s of shape %s",
      path, entry->name, entry->n_bytes, expected, vlm_cellm_type_name (entry->type), shape);
  return FALSE;
}

static gboolean
check_place (const VlmCellmEntry *entry, const VlmFile *file, guint64 header_end, GError **error)
{
  static const guint alignments[] = { 2, 4, 2, 1, 1, 4 };
  const gchar *path = vlm_file_get_path (file);
  guint64 end;

  if (entry->offset < header_end) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: tensor %s has offset_bytes %" G_GUINT64_FORMAT ", expected at least %" G_GUINT64_FORMAT
        ", where the header ends",
        path, entry->name, entry->offset, header_end);
    return FALSE;
  }
  if (!g_uint64_checked_add (&end, entry->offset, entry->n_bytes)
      || end > vlm_file_get_size (file)) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: tensor %s has %" G_GUINT64_FORMAT " bytes from byte %" G_GUINT64_FORMAT
        " on, expected them within the %" G_GUINT64_FORMAT " bytes of the file",
        path, entry->name, entry->n_bytes, entry->offset, vlm_file_get_size (file));
    return FALSE;
  }
  if (entry->offset % alignments[entry->type] == 0)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: tensor %s of %s has offset_bytes %" G_GUINT64_FORMAT ", expected a multiple of %u", path,
      entry->name, vlm_cellm_type_name (entry->type), entry->offset, alignments[entry->type]);
  return FALSE;
}

static gboolean
read_entry (const VlmJson *json, VlmCellmEntry *entry, const VlmFile *file, guint64 header_end,
    GError **error)
{
  const gchar *path = vlm_file_get_path (file);

  if (!json_is_object (json->object)) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: %s is no object, expected one of the index", path, json->section);
    return FALSE;
  }
  return read_name (json, entry, error) && read_type (json, entry, path, error)
      && read_shape (json, entry, error) && read_size (json, "offset_bytes", &entry->offset, error)
      && read_size (json, "nbytes", &entry->n_bytes, error) && check_size (entry, path, error)
      && check_place (entry, file, header_end, error);
}

/* ---- All of them -------------------------------------------------------------------------- */

static gint
compare_offsets (gconstpointer a, gconstpointer b)
{
  const VlmCellmEntry *x = a, *y = b;

  return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  const VlmCellmEntry *x = *(const VlmCellmEntry *const *) a;
  const VlmCellmEntry *y = *(const VlmCellmEntry *const *) b;

  return strcmp (x->name, y->name);
}

static gboolean
check_names (const VlmCellm *cellm, GError **error)
{
  g_autoptr (GPtrArray) names = g_ptr_array_sized_new (cellm->entries->len);
  guint i;

  for (i = 0; i < cellm->entries->len; i++)
    g_ptr_array_add (names, &g_array_index (cellm->entries, VlmCellmEntry, i));
  g_ptr_array_sort (names, compare_names);
  for (i = 1; i < names->len; i++) {
    if (compare_names (&names->pdata[i - 1], &names->pdata[i]) == 0) {
      g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT, "%s: tensor %s is in the index twice",
          vlm_cellm_get_path (cellm), ((const VlmCellmEntry *) names->pdata[i])->name);
      return FALSE;
    }
  }
  return TRUE;
}

/* Bytes that belong to nothing, in front of where: few, and zeros. Else an index is wrong. */
static gboolean
check_gap (const VlmCellm *cellm, guint64 begin, guint64 end, const gchar *where, GError **error)
{
  guint8 bytes[MAX_GAP];
  gsize i, n = end - begin;

  if (end - begin > MAX_GAP) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: %" G_GUINT64_FORMAT " bytes in front of %s belong to no tensor, expected at most %d",
        vlm_cellm_get_path (cellm), end - begin, where, MAX_GAP);
    return FALSE;
  }
  if (!vlm_file_read (cellm->file, begin, bytes, n, NULL, error))
    return FALSE;
  for (i = 0; i < n; i++) {
    if (bytes[i] == 0)
      continue;
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: byte %" G_GUINT64_FORMAT " in front of %s is %u and belongs to no tensor, expected 0",
        vlm_cellm_get_path (cellm), begin + i, where, bytes[i]);
    return FALSE;
  }
  return TRUE;
}

/* Entries are in the order of their offsets, each within the file. */
static gboolean
check_order (const VlmCellm *cellm, guint64 header_end, GError **error)
{
  guint64 end = header_end;
  guint i;

  for (i = 0; i < cellm->entries->len; i++) {
    const VlmCellmEntry *entry = &g_array_index (cellm->entries, VlmCellmEntry, i);
    g_autofree gchar *where = g_strdup_printf ("tensor %s", entry->name);

    if (entry->offset < end) {
      g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
          "%s: tensor %s begins at byte %" G_GUINT64_FORMAT
          ", in tensor %s, which ends at byte %" G_GUINT64_FORMAT,
          vlm_cellm_get_path (cellm), entry->name, entry->offset, entry[-1].name, end);
      return FALSE;
    }
    if (!check_gap (cellm, end, entry->offset, where, error))
      return FALSE;
    end = entry->offset + entry->n_bytes;
  }
  return check_gap (cellm, end, vlm_file_get_size (cellm->file), "the end of the file", error);
}

static gboolean
read_entries (VlmCellm *cellm, const json_t *list, guint64 header_end, GError **error)
{
  gsize i;

  for (i = 0; i < json_array_size (list); i++) {
    g_autofree gchar *section = g_strdup_printf ("tensors[%" G_GSIZE_FORMAT "]", i);
    VlmJson json = { vlm_cellm_get_path (cellm), section, json_array_get (list, i) };
    VlmCellmEntry entry = { 0 };
    gboolean good = read_entry (&json, &entry, cellm->file, header_end, error);

    g_array_append_val (cellm->entries, entry);
    if (!good)
      return FALSE;
  }
  if (!check_names (cellm, error))
    return FALSE;
  g_array_sort (cellm->entries, compare_offsets);
  return check_order (cellm, header_end, error);
}

/* ---- The header --------------------------------------------------------------------------- */

/* Reads what stands in front of the JSON. */
static gboolean
read_prefix (const VlmFile *file, guint32 *length, GError **error)
{
  const gchar *path = vlm_file_get_path (file);
  guint64 size = vlm_file_get_size (file);
  guint8 prefix[PREFIX_SIZE];

  if (size < PREFIX_SIZE) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: has %" G_GUINT64_FORMAT " bytes, expected at least %" G_GSIZE_FORMAT, path, size,
        PREFIX_SIZE);
    return FALSE;
  }
  if (!vlm_file_read (file, 0, prefix, PREFIX_SIZE, NULL, error))
    return FALSE;
  if (prefix[MAGIC_SIZE] != VLM_CELLM_VERSION) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
        "%s: is of version %u of the .cellm format, expected %d", path, prefix[MAGIC_SIZE],
        VLM_CELLM_VERSION);
    return FALSE;
  }
  memcpy (length, prefix + MAGIC_SIZE + 1, sizeof (*length));
  *length = GUINT32_FROM_LE (*length);
  if (*length <= size - PREFIX_SIZE && *length <= MAX_HEADER)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: the header has %u bytes by its length, expected at most %" G_GUINT64_FORMAT, path,
      *length, MIN (size - PREFIX_SIZE, MAX_HEADER));
  return FALSE;
}

static gboolean
require (const VlmJson *json, const gchar *key, gboolean number, GError **error)
{
  const json_t *value = vlm_json_get (json, key);

  if (number ? json_is_number (value) : json_is_string (value))
    return TRUE;
  vlm_json_set_error (error, VLM_ERROR_FORMAT, json, key, value, number ? "a number" : "a string");
  return FALSE;
}

/* The keys that no file may lack, and that the model is one for this program. */
static gboolean
check_required (const VlmJson *json, GError **error)
{
  static const gchar *const numbers[] = { "vocab_size", "hidden_dim", "intermediate_size",
    "num_layers", "num_heads", "num_kv_heads", "rms_norm_eps", "rope_theta" };
  const gchar *type;
  guint i;

  if (!require (json, "model_type", FALSE, error))
    return FALSE;
  type = json_string_value (vlm_json_get (json, "model_type"));
  if (strcmp (type, "lfm2") && strcmp (type, "lfm2_vl") && strcmp (type, "lfm2-vl")) {
    vlm_json_set_error (error, VLM_ERROR_UNSUPPORTED, json, "model_type",
        vlm_json_get (json, "model_type"), "\"lfm2\"");
    return FALSE;
  }
  for (i = 0; i < G_N_ELEMENTS (numbers); i++) {
    if (!require (json, numbers[i], TRUE, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
vlm_cellm_read_index (VlmCellm *cellm, GError **error)
{
  const gchar *path = vlm_cellm_get_path (cellm);
  g_autoptr (GBytes) bytes = NULL;
  g_autofree gchar *text = NULL;
  const json_t *list = NULL;
  guint32 length;
  VlmJson json;

  if (!read_prefix (cellm->file, &length, error))
    return FALSE;
  text = g_malloc (length + 1);
  if (!vlm_file_read (cellm->file, PREFIX_SIZE, text, length, NULL, error))
    return FALSE;
  bytes = g_bytes_new_take (g_steal_pointer (&text), length);
  cellm->header = vlm_json_parse (bytes, path, 0, error);
  json = vlm_cellm_get_header (cellm);
  if (!cellm->header || !check_required (&json, error)
      || !vlm_json_get_array (&json, "tensors", &list, error))
    return FALSE;
  if (!list) {
    vlm_json_set_error (error, VLM_ERROR_FORMAT, &json, "tensors", NULL, "an array");
    return FALSE;
  }
  return read_entries (cellm, list, PREFIX_SIZE + length, error);
}
