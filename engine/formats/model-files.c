/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "model-files.h"

#include "engine/vlm.h"
#include "file.h"
#include "safetensors.h"

struct _VlmModelFiles
{
  gchar *path;
  VlmSlm *slm; /* NULL: path is a directory */
};

VlmModelFiles *
vlm_model_files_open_directory (const gchar *path, GError **error)
{
  VlmModelFiles *files;

  if (!vlm_directory_check (path, error))
    return NULL;
  files = g_new0 (VlmModelFiles, 1);
  files->path = g_strdup (path);
  return files;
}

VlmModelFiles *
vlm_model_files_open (const gchar *path, GError **error)
{
  VlmModelFiles *files;
  VlmSlm *slm;

  if (vlm_path_is_directory (path))
    return vlm_model_files_open_directory (path, error);
  slm = vlm_slm_open (path, error);
  if (!slm)
    return NULL;
  files = g_new0 (VlmModelFiles, 1);
  files->path = g_strdup (path);
  files->slm = slm;
  return files;
}

void
vlm_model_files_free (VlmModelFiles *files)
{
  if (!files)
    return;
  vlm_slm_unref (files->slm);
  g_free (files->path);
  g_free (files);
}

gboolean
vlm_model_files_has (const VlmModelFiles *files, const gchar *name)
{
  return files->slm ? vlm_slm_has_file (files->slm, name) : vlm_file_exists (files->path, name);
}

gchar *
vlm_model_files_describe (const VlmModelFiles *files, const gchar *name)
{
  return files->slm ? g_strconcat (files->path, ": ", name, NULL)
                    : vlm_path_join (files->path, name);
}

GBytes *
vlm_model_files_read (const VlmModelFiles *files, const gchar *name, gsize max_size, GError **error)
{
  g_autoptr (VlmFile) file = NULL;

  if (files->slm)
    return vlm_slm_read_file (files->slm, name, max_size, error);
  file = vlm_file_open (files->path, name, error);
  return file ? vlm_file_read_all (file, max_size, error) : NULL;
}

gboolean
vlm_model_files_check (const VlmModelFiles *files, const gchar *name, GError **error)
{
  g_autoptr (VlmFile) file = NULL;

  if (!files->slm) {
    file = vlm_file_open (files->path, name, error);
    return file != NULL;
  }
  if (vlm_slm_has_file (files->slm, name))
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_NOT_FOUND, "%s: holds no %s", files->path, name);
  return FALSE;
}

VlmSlm *
vlm_model_files_get_slm (const VlmModelFiles *files)
{
  return files->slm;
}

VlmTensorSource *
vlm_model_files_open_tensors (const VlmModelFiles *files, GError **error)
{
  return files->slm ? vlm_slm_get_tensors (files->slm, error)
                    : vlm_safetensors_open (files->path, error);
}
