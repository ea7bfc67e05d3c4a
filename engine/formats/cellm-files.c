/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The files of a .cellm model: config.json and, unless one lies beside it, preprocessor_config.json
 * are made of its header; all others lie beside it.
 */

#include "cellm.h"
#include "engine/vlm.h"
#include "hf.h"
#include "model-files-private.h"

#include <string.h>

typedef struct
{
  VlmCellm *cellm;
  gchar *directory;
} Files;

/* What may lie beside the file. */
static const gchar *const beside[] = { VLM_HF_TOKENIZER, VLM_HF_TOKENIZER_CONFIG, VLM_HF_PROCESSOR,
  VLM_HF_PREPROCESSOR, VLM_HF_GENERATION, "chat_template.jinja", NULL };

static gboolean
lies_beside (const Files *files, const gchar *name)
{
  return g_strv_contains (beside, name) && vlm_file_exists (files->directory, name);
}

/* Whether the file called name is made of the header. */
static gboolean
is_made (const Files *files, const gchar *name)
{
  return !strcmp (name, VLM_HF_CONFIG)
      || (!strcmp (name, VLM_HF_PREPROCESSOR) && files->cellm->has_vision
          && !lies_beside (files, name));
}

static void
list_paths (gpointer data, GPtrArray *paths)
{
  const Files *files = data;
  guint i;

  g_ptr_array_add (paths, g_strdup (vlm_cellm_get_path (files->cellm)));
  for (i = 0; beside[i]; i++) {
    if (lies_beside (files, beside[i]))
      g_ptr_array_add (paths, vlm_path_join (files->directory, beside[i]));
  }
}

static gboolean
has (gpointer data, const gchar *name)
{
  return is_made (data, name) || lies_beside (data, name);
}

static gchar *
describe (gpointer data, const gchar *name)
{
  const Files *files = data;

  return is_made (files, name) ? g_strconcat (vlm_cellm_get_path (files->cellm), ": ", name, NULL)
                               : vlm_path_join (files->directory, name);
}

/* The text of a value, which is let go. max_size holds for what a caller keeps in memory. */
static GBytes *
print (const Files *files, const gchar *name, json_t *value, gsize max_size, GError **error)
{
  char *text = json_dumps (value, JSON_INDENT (2));
  gsize size = text ? strlen (text) : 0;

  json_decref (value);
  if (text && size <= max_size)
    return g_bytes_new_with_free_func (text, size, free, text);
  free (text);
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: %s has %" G_GSIZE_FORMAT " bytes, expected 1..%" G_GSIZE_FORMAT,
      vlm_cellm_get_path (files->cellm), name, size, max_size);
  return NULL;
}

static GBytes *
read_all (gpointer data, const gchar *name, gsize max_size, GError **error)
{
  const Files *files = data;
  g_autoptr (VlmFile) file = NULL;
  json_t *value;

  if (is_made (files, name)) {
    value = strcmp (name, VLM_HF_CONFIG) ? vlm_cellm_make_processor (files->cellm)
                                         : vlm_cellm_make_config (files->cellm, error);
    return value ? print (files, name, value, max_size, error) : NULL;
  }
  file = vlm_file_open (files->directory, name, error);
  return file ? vlm_file_read_all (file, max_size, error) : NULL;
}

static gboolean
check (gpointer data, const gchar *name, GError **error)
{
  const Files *files = data;
  g_autoptr (VlmFile) file = NULL;
  g_autofree gchar *path = NULL;

  if (is_made (files, name))
    return TRUE;
  if (lies_beside (files, name)) {
    file = vlm_file_open (files->directory, name, error);
    return file != NULL;
  }
  path = vlm_path_join (files->directory, name);
  g_set_error (error, VLM_ERROR, VLM_ERROR_NOT_FOUND,
      "%s: has no %s in itself, and there is none beside it: %s is missing",
      vlm_cellm_get_path (files->cellm), name, path);
  return FALSE;
}

static gboolean
check_tokenizer (gpointer data, const VlmTokenizer *tokenizer, GError **error)
{
  const Files *files = data;

  return vlm_cellm_check_tokenizer (files->cellm, tokenizer, error);
}

static VlmTensorSource *
open_tensors (gpointer data, GError **error)
{
  const Files *files = data;

  return vlm_cellm_get_tensors (files->cellm, error);
}

static void
files_free (gpointer data)
{
  Files *files = data;

  vlm_cellm_unref (files->cellm);
  g_free (files->directory);
  g_free (files);
}

VlmModelFiles *
vlm_cellm_files_open (const gchar *path, GError **error)
{
  static const VlmModelFilesClass class = {
    .format = "cellm",
    .version = VLM_CELLM_VERSION,
    .list_paths = list_paths,
    .has = has,
    .describe = describe,
    .read = read_all,
    .check = check,
    .check_tokenizer = check_tokenizer,
    .open_tensors = open_tensors,
    .free = files_free,
  };
  VlmCellm *cellm = vlm_cellm_open (path, error);
  Files *files;

  if (!cellm)
    return NULL;
  files = g_new0 (Files, 1);
  files->cellm = cellm;
  files->directory = g_path_get_dirname (path);
  return vlm_model_files_new (&class, path, files);
}
