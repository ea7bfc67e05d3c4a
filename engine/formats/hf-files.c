/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The files of a Hugging Face directory: they are what they are called. */

#include <string.h>

#include "engine/vlm.h"
#include "file.h"
#include "model-files-private.h"
#include "safetensors.h"

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const gchar *const *) a, *(const gchar *const *) b);
}

/* Settings and weights, whether this program reads them or not. */
static void
list_paths (gpointer data, GPtrArray *paths)
{
  g_autoptr (GDir) directory = g_dir_open (data, 0, NULL);
  const gchar *name;

  while (directory && (name = g_dir_read_name (directory))) {
    if (g_str_has_suffix (name, ".json") || g_str_has_suffix (name, ".jinja")
        || g_str_has_suffix (name, ".safetensors"))
      g_ptr_array_add (paths, g_build_filename (data, name, NULL));
  }
  g_ptr_array_sort (paths, compare_names);
}

static gboolean
has (gpointer data, const gchar *name)
{
  return vlm_file_exists (data, name);
}

static gchar *
describe (gpointer data, const gchar *name)
{
  return vlm_path_join (data, name);
}

static GBytes *
read_all (gpointer data, const gchar *name, gsize max_size, GError **error)
{
  g_autoptr (VlmFile) file = vlm_file_open (data, name, error);

  return file ? vlm_file_read_all (file, max_size, error) : NULL;
}

static gboolean
check (gpointer data, const gchar *name, GError **error)
{
  g_autoptr (VlmFile) file = vlm_file_open (data, name, error);

  return file != NULL;
}

static gboolean
check_weights (gpointer data, GError **error)
{
  gboolean sharded = !has (data, VLM_SAFETENSORS_FILE) && has (data, VLM_SAFETENSORS_INDEX);

  return check (data, sharded ? VLM_SAFETENSORS_INDEX : VLM_SAFETENSORS_FILE, error);
}

static VlmTensorSource *
open_tensors (gpointer data, GError **error)
{
  return vlm_safetensors_open (data, error);
}

VlmModelFiles *
vlm_hf_files_open (const gchar *path, GError **error)
{
  static const VlmModelFilesClass class = {
    .format = "safetensors",
    .list_paths = list_paths,
    .has = has,
    .describe = describe,
    .read = read_all,
    .check = check,
    .check_weights = check_weights,
    .open_tensors = open_tensors,
    .free = g_free,
  };

  if (!vlm_directory_check (path, error))
    return NULL;
  return vlm_model_files_new (&class, path, g_strdup (path));
}
