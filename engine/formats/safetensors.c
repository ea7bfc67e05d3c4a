/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "safetensors.h"

#include "engine/vlm.h"
#include "json.h"
#include "model-files-private.h"
#include "safetensors-file.h"
#include "tensors-private.h"

#include <string.h>

#define MAX_INDEX_SIZE (16u << 20)
/* Each shard stays open. */
#define MAX_SHARDS 256

static void
add_entry (VlmTensorSource *source, VlmSafetensorsEntry *entry, guint64 data_start, guint file)
{
  static const VlmDType dtypes[] = {
    [VLM_SAFETENSORS_F32] = VLM_DTYPE_F32,
    [VLM_SAFETENSORS_F16] = VLM_DTYPE_F16,
    [VLM_SAFETENSORS_BF16] = VLM_DTYPE_BF16,
  };
  VlmTensorInfo info = { .name = g_steal_pointer (&entry->name),
    .dtype = dtypes[entry->type],
    .rank = entry->rank,
    .n_bytes = entry->n_bytes,
    .offset = data_start + entry->offset,
    .file = file };

  memcpy (info.shape, entry->shape, sizeof (info.shape));
  vlm_tensor_source_add (source, &info);
}

/* Judges one file and adds its tensors. */
static gboolean
add_file (VlmTensorSource *source, const gchar *directory, const gchar *name, GError **error)
{
  g_autoptr (VlmFile) file = vlm_file_open (directory, name, error);
  g_autoptr (GArray) entries = vlm_safetensors_entries_new ();
  guint64 data_start;
  guint i, number;

  if (!file
      || !vlm_safetensors_read_header (file, VLM_SAFETENSORS_MAX_HEADER, VLM_SAFETENSORS_BF16,
          entries, NULL, &data_start, error))
    return FALSE;
  number = vlm_tensor_source_add_file (source, g_steal_pointer (&file));
  for (i = 0; i < entries->len; i++)
    add_entry (source, &g_array_index (entries, VlmSafetensorsEntry, i), data_start, number);
  return TRUE;
}

/* Only plain names: an index must not lead out of its directory. */
static gboolean
is_shard_name (const gchar *name)
{
  return g_str_has_suffix (name, ".safetensors") && *name != '.' && !strpbrk (name, "/\\");
}

/*
 * Where name stands among the sorted names, or would stand. Names of a file are not hashed: whoever
 * wrote it could have chosen them to meet in one place.
 */
static gboolean
find_shard (const GPtrArray *shards, const gchar *name, guint *place)
{
  guint low = 0, high = shards->len;

  while (low < high) {
    guint middle = (low + high) / 2;
    gint order = strcmp (name, g_ptr_array_index (shards, middle));

    if (order == 0) {
      *place = middle;
      return TRUE;
    }
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  *place = low;
  return FALSE;
}

/* The distinct file names of the weight map, sorted; borrowed from it. NULL on error. */
static GPtrArray *
list_shards (const VlmJson *map, GError **error)
{
  g_autoptr (GPtrArray) shards = g_ptr_array_new ();
  const gchar *tensor;
  guint place;
  json_t *value;

  json_object_foreach ((json_t *) map->object, tensor, value) {
    if (!json_is_string (value) || !is_shard_name (json_string_value (value))) {
      vlm_json_set_error (
          error, VLM_ERROR_FORMAT, map, tensor, value, "the plain name of a .safetensors file");
      return NULL;
    }
    if (!find_shard (shards, json_string_value (value), &place))
      g_ptr_array_insert (shards, (gint) place, (gpointer) json_string_value (value));
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
  return g_steal_pointer (&shards);
}

/* The map and the shards must tell the same. The files of source are the shards, in this order. */
static gboolean
check_map (
    const VlmTensorSource *source, const VlmJson *map, const GPtrArray *shards, GError **error)
{
  const gchar *tensor;
  json_t *value;
  guint i, number;

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

    if (!info || !find_shard (shards, shard, &number) || info->file != number) {
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
  g_autofree gchar *file = NULL;
  g_autoptr (VlmJsonDocument) root = NULL;
  g_autoptr (GPtrArray) shards = NULL;
  g_autoptr (VlmModelFiles) files = NULL;
  VlmJson index, map;
  guint i;

  files = vlm_hf_files_open (directory, error);
  root =
      files ? vlm_json_load (files, VLM_SAFETENSORS_INDEX, MAX_INDEX_SIZE, 0, &file, error) : NULL;
  if (!root)
    return NULL;
  index = (VlmJson){ file, NULL, root };
  if (!vlm_json_get_object (&index, "weight_map", &map, error))
    return NULL;
  shards = list_shards (&map, error);
  if (!shards)
    return NULL;
  for (i = 0; i < shards->len; i++) {
    if (!add_file (source, directory, g_ptr_array_index (shards, i), error)) {
      g_prefix_error (error, "%s: ", file);
      return NULL;
    }
  }
  if (!vlm_tensor_source_index (source, error) || !check_map (source, &map, shards, error))
    return NULL;
  return g_steal_pointer (&source);
}

VlmTensorSource *
vlm_safetensors_open (const gchar *directory, GError **error)
{
  g_autoptr (VlmTensorSource) source = NULL;

  if (!vlm_file_exists (directory, VLM_SAFETENSORS_FILE)
      && vlm_file_exists (directory, VLM_SAFETENSORS_INDEX))
    return open_shards (directory, error);
  source = vlm_tensor_source_new ();
  if (!add_file (source, directory, VLM_SAFETENSORS_FILE, error)
      || !vlm_tensor_source_index (source, error))
    return NULL;
  return g_steal_pointer (&source);
}
