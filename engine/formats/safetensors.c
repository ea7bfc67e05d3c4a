/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "safetensors.h"

#include "engine/vlm.h"
#include "json.h"
#include "safetensors-header.h"
#include "tensors-private.h"

#include <string.h>

#define PREFIX_SIZE 8
/* The format's own limit. */
#define MAX_HEADER 100000000
#define MAX_INDEX_SIZE (16u << 20)
/* Each shard stays open. */
#define MAX_SHARDS 256

static gint
compare_offsets (gconstpointer a, gconstpointer b)
{
  const VlmTensorInfo *x = a, *y = b;

  if (x->offset != y->offset)
    return x->offset < y->offset ? -1 : 1;
  /* An empty tensor stands before the one that begins where it does. */
  if (x->n_bytes != y->n_bytes)
    return x->n_bytes < y->n_bytes ? -1 : 1;
  return 0;
}

/* Sorts by place and checks that the data are covered from end to end, each byte once. */
static gboolean
check_layout (GArray *infos, guint64 data_size, const gchar *path, GError **error)
{
  guint64 covered = 0;
  guint i;

  g_array_sort (infos, compare_offsets);
  for (i = 0; i < infos->len; i++) {
    const VlmTensorInfo *info = &g_array_index (infos, VlmTensorInfo, i);

    if (info->offset > data_size || info->n_bytes > data_size - info->offset) {
      g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
          "%s: tensor %s has data_offsets [%" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT
          "], but the file holds %" G_GUINT64_FORMAT " bytes of data",
          path, info->name, info->offset, info->offset + info->n_bytes, data_size);
      return FALSE;
    }
    if (info->offset != covered) {
      g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
          "%s: tensor %s begins at %" G_GUINT64_FORMAT ", expected %" G_GUINT64_FORMAT ": %s", path,
          info->name, info->offset, covered,
          info->offset < covered ? "it overlaps the one before" : "there is a gap");
      return FALSE;
    }
    covered += info->n_bytes;
  }
  if (covered != data_size) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: the tensors end at byte %" G_GUINT64_FORMAT
        " of the data, the file at %" G_GUINT64_FORMAT,
        path, covered, data_size);
    return FALSE;
  }
  return TRUE;
}

/* The length of the header, checked against the file. */
static gboolean
read_header_length (const VlmFile *file, guint64 *length, GError **error)
{
  const gchar *path = vlm_file_get_path (file);
  guint64 size = vlm_file_get_size (file);
  guint8 prefix[PREFIX_SIZE];

  if (size < PREFIX_SIZE) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: has %" G_GUINT64_FORMAT " bytes, too short for a safetensors file", path, size);
    return FALSE;
  }
  if (!vlm_file_read (file, 0, prefix, PREFIX_SIZE, NULL, error))
    return FALSE;
  memcpy (length, prefix, PREFIX_SIZE);
  *length = GUINT64_FROM_LE (*length);
  if (*length > MAX_HEADER || *length > size - PREFIX_SIZE) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: header length is %" G_GUINT64_FORMAT ", expected at most %" G_GUINT64_FORMAT, path,
        *length, MIN (size - PREFIX_SIZE, MAX_HEADER));
    return FALSE;
  }
  return TRUE;
}

static void
clear_name (gpointer data)
{
  VlmTensorInfo *info = data;

  g_free (info->name);
}

/* Judges one file and adds its tensors. Its number in source goes to number. */
static gboolean
add_file (VlmTensorSource *source, const gchar *directory, const gchar *name, guint *number,
    GError **error)
{
  g_autoptr (VlmFile) file = vlm_file_open (directory, name, error);
  g_autoptr (GArray) infos = g_array_new (FALSE, FALSE, sizeof (VlmTensorInfo));
  g_autofree gchar *header = NULL;
  const gchar *path;
  guint64 length;
  guint i;

  g_array_set_clear_func (infos, clear_name);
  if (!file || !read_header_length (file, &length, error))
    return FALSE;
  path = vlm_file_get_path (file);
  header = g_try_malloc (length + 1);
  if (!header) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
        "%s: no memory for its header of %" G_GUINT64_FORMAT " bytes", path, length);
    return FALSE;
  }
  if (!vlm_file_read (file, PREFIX_SIZE, header, length, NULL, error)
      || !vlm_safetensors_parse_header (header, length, path, infos, error)
      || !check_layout (infos, vlm_file_get_size (file) - PREFIX_SIZE - length, path, error))
    return FALSE;

  *number = vlm_tensor_source_add_file (source, g_steal_pointer (&file));
  for (i = 0; i < infos->len; i++) {
    VlmTensorInfo *info = &g_array_index (infos, VlmTensorInfo, i);

    info->offset += PREFIX_SIZE + length;
    info->file = *number;
    vlm_tensor_source_add (source, info);
    info->name = NULL;
  }
  return TRUE;
}

/* Only plain names: an index must not lead out of its directory. */
static gboolean
is_shard_name (const gchar *name)
{
  return g_str_has_suffix (name, ".safetensors") && *name != '.' && !strpbrk (name, "/\\");
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const gchar *const *) a, *(const gchar *const *) b);
}

/* The distinct file names of the weight map, sorted; borrowed from it. NULL on error. */
static GPtrArray *
list_shards (const VlmJson *map, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GPtrArray) shards = g_ptr_array_new ();
  const gchar *tensor;
  json_t *value;

  json_object_foreach ((json_t *) map->object, tensor, value) {
    if (!json_is_string (value) || !is_shard_name (json_string_value (value))) {
      vlm_json_set_error (
          error, VLM_ERROR_FORMAT, map, tensor, value, "the plain name of a .safetensors file");
      return NULL;
    }
    if (g_hash_table_add (seen, (gpointer) json_string_value (value)))
      g_ptr_array_add (shards, (gpointer) json_string_value (value));
    if (shards->len > MAX_SHARDS) {
      g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
          "%s: weight_map names more than %d files", map->file, MAX_SHARDS);
      return NULL;
    }
  }
  if (shards->len == 0) {
    g_set_error (
        error, VLM_ERROR, VLM_ERROR_FORMAT, "%s: weight_map is empty or absent", map->file);
    return NULL;
  }
  g_ptr_array_sort (shards, compare_names);
  return g_steal_pointer (&shards);
}

/* The map and the shards must tell the same. numbers: shard names to file numbers. */
static gboolean
check_map (const VlmTensorSource *source, const VlmJson *map, GHashTable *numbers, GError **error)
{
  const gchar *tensor;
  json_t *value;
  guint i;

  for (i = 0; i < vlm_tensor_source_get_count (source); i++) {
    const VlmTensorInfo *info = vlm_tensor_source_get_nth (source, i);

    if (!json_object_get (map->object, info->name)) {
      g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
          "%s: tensor %s is not in the weight_map of %s", vlm_tensor_source_get_path (source, info),
          info->name, map->file);
      return FALSE;
    }
  }
  json_object_foreach ((json_t *) map->object, tensor, value) {
    const VlmTensorInfo *info = vlm_tensor_source_lookup (source, tensor);
    const gchar *shard = json_string_value (value);

    if (!info || info->file != GPOINTER_TO_UINT (g_hash_table_lookup (numbers, shard))) {
      g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
          "%s: tensor %s is not in %s, where the weight_map puts it, but in %s", map->file, tensor,
          shard, info ? vlm_tensor_source_get_path (source, info) : "none of the files");
      return FALSE;
    }
  }
  return TRUE;
}

static VlmTensorSource *
open_shards (const gchar *directory, GError **error)
{
  g_autoptr (VlmTensorSource) source = vlm_tensor_source_new ();
  g_autoptr (GHashTable) numbers = g_hash_table_new (g_str_hash, g_str_equal);
  g_autofree gchar *file = NULL;
  g_autoptr (VlmJsonDocument) root = NULL;
  g_autoptr (GPtrArray) shards = NULL;
  VlmJson index, map;
  guint i;

  root = vlm_json_load (directory, VLM_SAFETENSORS_INDEX, MAX_INDEX_SIZE, 0, &file, error);
  if (!root)
    return NULL;
  index = (VlmJson){ file, NULL, root };
  if (!vlm_json_get_object (&index, "weight_map", &map, error))
    return NULL;
  shards = list_shards (&map, error);
  if (!shards)
    return NULL;
  for (i = 0; i < shards->len; i++) {
    gchar *name = g_ptr_array_index (shards, i);
    guint number;

    if (!add_file (source, directory, name, &number, error)) {
      g_prefix_error (error, "%s: ", file);
      return NULL;
    }
    g_hash_table_insert (numbers, name, GUINT_TO_POINTER (number));
  }
  if (!vlm_tensor_source_index (source, error) || !check_map (source, &map, numbers, error))
    return NULL;
  return g_steal_pointer (&source);
}

VlmTensorSource *
vlm_safetensors_open (const gchar *directory, GError **error)
{
  g_autoptr (VlmTensorSource) source = NULL;
  guint number;

  if (!vlm_file_exists (directory, VLM_SAFETENSORS_FILE)
      && vlm_file_exists (directory, VLM_SAFETENSORS_INDEX))
    return open_shards (directory, error);
  source = vlm_tensor_source_new ();
  if (!add_file (source, directory, VLM_SAFETENSORS_FILE, &number, error)
      || !vlm_tensor_source_index (source, error))
    return NULL;
  return g_steal_pointer (&source);
}
