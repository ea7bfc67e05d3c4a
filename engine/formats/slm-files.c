/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The files within a .slm file. */

#include "engine/vlm.h"
#include "model-files-private.h"
#include "slm.h"

static void
list_paths (gpointer data, GPtrArray *paths)
{
  g_ptr_array_add (paths, g_strdup (vlm_slm_get_path (data)));
}

static gboolean
has (gpointer data, const gchar *name)
{
  return vlm_slm_has_file (data, name);
}

static gchar *
describe (gpointer data, const gchar *name)
{
  return g_strconcat (vlm_slm_get_path (data), ": ", name, NULL);
}

static GBytes *
read_all (gpointer data, const gchar *name, gsize max_size, GError **error)
{
  return vlm_slm_read_file (data, name, max_size, error);
}

static gboolean
check (gpointer data, const gchar *name, GError **error)
{
  if (vlm_slm_has_file (data, name))
    return TRUE;
  g_set_error (
      error, VLM_ERROR, VLM_ERROR_NOT_FOUND, "%s: holds no %s", vlm_slm_get_path (data), name);
  return FALSE;
}

static gboolean
verify (gpointer data, GCancellable *cancellable, GError **error)
{
  return vlm_slm_verify_files (data, cancellable, error);
}

static gboolean
check_config (gpointer data, const VlmConfig *config, GError **error)
{
  return vlm_slm_check_config (data, config, error);
}

static VlmTensorSource *
open_tensors (gpointer data, GError **error)
{
  return vlm_slm_get_tensors (data, error);
}

VlmModelFiles *
vlm_slm_files_open (const gchar *path, GError **error)
{
  static const VlmModelFilesClass class = {
    .format = "slm",
    .version = VLM_SLM_VERSION,
    .list_paths = list_paths,
    .has = has,
    .describe = describe,
    .read = read_all,
    .check = check,
    .verify = verify,
    .check_config = check_config,
    .open_tensors = open_tensors,
    .free = (GDestroyNotify) vlm_slm_unref,
  };
  VlmSlm *slm = vlm_slm_open (path, error);

  return slm ? vlm_model_files_new (&class, path, slm) : NULL;
}
