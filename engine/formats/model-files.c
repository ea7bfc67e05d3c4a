/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "model-files-private.h"

#include "cellm.h"
#include "engine/vlm.h"
#include "file.h"
#include "gguf.h"
#include "safetensors.h"

struct _VlmModelFiles
{
  gatomicrefcount references;
  const VlmModelFilesClass *class;
  gchar *path;
  gpointer data;
};

const gchar vlm_no_mmproj[] = "";

VlmModelFiles *
vlm_model_files_new (const VlmModelFilesClass *class, const gchar *path, gpointer data)
{
  VlmModelFiles *files = g_new0 (VlmModelFiles, 1);

  g_atomic_ref_count_init (&files->references);
  files->class = class;
  files->path = g_strdup (path);
  files->data = data;
  return files;
}

/* The format decides what a path without a vision part of its own can be. */
static gboolean
check_mmproj (const gchar *path, const gchar *mmproj, GError **error)
{
  if (!mmproj || mmproj == vlm_no_mmproj)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_SETTINGS,
      "%s: has its vision part in itself, expected a GGUF file to go with mmproj %s", path, mmproj);
  return FALSE;
}

/* Whether a directory holds the weights of a Hugging Face model. */
static gboolean
has_safetensors (const gchar *directory)
{
  return vlm_file_exists (directory, VLM_SAFETENSORS_FILE)
      || vlm_file_exists (directory, VLM_SAFETENSORS_INDEX);
}

/* A file is what it begins like. */
static VlmModelFiles *
open_file (const gchar *path, const gchar *mmproj, GError **error)
{
  g_autoptr (VlmModelFiles) files = NULL;

  if (vlm_gguf_probe (path))
    return vlm_gguf_files_open (path, path, mmproj, error);
  files = vlm_cellm_probe (path) ? vlm_cellm_files_open (path, error)
                                 : vlm_slm_files_open (path, error);
  return files && check_mmproj (path, mmproj, error) ? g_steal_pointer (&files) : NULL;
}

static VlmModelFiles *
open_directory (const gchar *path, const gchar *mmproj, GError **error)
{
  g_autoptr (VlmModelFiles) files = NULL;
  g_autofree gchar *text = NULL;

  if (!vlm_path_is_resource (path) && !has_safetensors (path)
      && !vlm_gguf_files_find (path, &text, error))
    return NULL;
  if (text)
    return vlm_gguf_files_open (path, text, mmproj, error);
  files = vlm_hf_files_open (path, error);
  return files && check_mmproj (path, mmproj, error) ? g_steal_pointer (&files) : NULL;
}

VlmModelFiles *
vlm_model_files_open (const gchar *path, const gchar *mmproj, GError **error)
{
  return vlm_path_is_directory (path) ? open_directory (path, mmproj, error)
                                      : open_file (path, mmproj, error);
}

VlmModelFiles *
vlm_model_files_ref (VlmModelFiles *files)
{
  g_atomic_ref_count_inc (&files->references);
  return files;
}

void
vlm_model_files_unref (VlmModelFiles *files)
{
  if (!files || !g_atomic_ref_count_dec (&files->references))
    return;
  files->class->free (files->data);
  g_free (files->path);
  g_free (files);
}

const gchar *
vlm_model_files_get_path (const VlmModelFiles *files)
{
  return files->path;
}

const gchar *
vlm_model_files_get_format (const VlmModelFiles *files)
{
  return files->class->format;
}

guint
vlm_model_files_get_version (const VlmModelFiles *files)
{
  return files->class->get_version ? files->class->get_version (files->data)
                                   : files->class->version;
}

GPtrArray *
vlm_model_files_list_paths (const VlmModelFiles *files)
{
  GPtrArray *paths = g_ptr_array_new_with_free_func (g_free);

  files->class->list_paths (files->data, paths);
  return paths;
}

gboolean
vlm_model_files_has (const VlmModelFiles *files, const gchar *name)
{
  return files->class->has (files->data, name);
}

gchar *
vlm_model_files_describe (const VlmModelFiles *files, const gchar *name)
{
  return files->class->describe (files->data, name);
}

GBytes *
vlm_model_files_read (const VlmModelFiles *files, const gchar *name, gsize max_size, GError **error)
{
  return files->class->read (files->data, name, max_size, error);
}

gboolean
vlm_model_files_check (const VlmModelFiles *files, const gchar *name, GError **error)
{
  return files->class->check (files->data, name, error);
}

gboolean
vlm_model_files_check_weights (const VlmModelFiles *files, GError **error)
{
  return !files->class->check_weights || files->class->check_weights (files->data, error);
}

gboolean
vlm_model_files_verify (const VlmModelFiles *files, GCancellable *cancellable, GError **error)
{
  return !files->class->verify || files->class->verify (files->data, cancellable, error);
}

gboolean
vlm_model_files_check_config (const VlmModelFiles *files, const VlmConfig *config, GError **error)
{
  return !files->class->check_config || files->class->check_config (files->data, config, error);
}

gboolean
vlm_model_files_check_tokenizer (
    const VlmModelFiles *files, const VlmTokenizer *tokenizer, GError **error)
{
  return !files->class->check_tokenizer
      || files->class->check_tokenizer (files->data, tokenizer, error);
}

VlmTensorSource *
vlm_model_files_open_tensors (const VlmModelFiles *files, GError **error)
{
  return files->class->open_tensors (files->data, error);
}
