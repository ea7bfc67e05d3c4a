/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The files of a GGUF model: made of its keys, but for image settings that lie beside it. */

#include <string.h>
#include <sys/stat.h>

#include "engine/vlm.h"
#include "gguf-settings.h"
#include "gguf-tensors.h"
#include "hf.h"
#include "model-files-private.h"

#define VISION_ARCHITECTURE "clip"
#define MODEL_TYPE "model"

typedef struct
{
  VlmGguf *text, *mmproj; /* mmproj may be NULL */
  gchar *directory;       /* of the text file */
} Files;

/* ---- Which file is which ------------------------------------------------------------------- */

/* The GGUF models in a directory: names of text files, and of vision parts; of other GGUF files,
 * what they are. */
typedef struct
{
  GPtrArray *texts, *visions, *others;
} Parts;

static void
parts_clear (Parts *parts)
{
  g_clear_pointer (&parts->texts, g_ptr_array_unref);
  g_clear_pointer (&parts->visions, g_ptr_array_unref);
  g_clear_pointer (&parts->others, g_ptr_array_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Parts, parts_clear)

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const gchar *const *) a, *(const gchar *const *) b);
}

/* Looks at one file; those of no GGUF model, and further files of a model in several, are passed
 * over. */
static gboolean
add_part (Parts *parts, const gchar *directory, const gchar *name, GError **error)
{
  g_autofree gchar *path = g_build_filename (directory, name, NULL);
  g_autofree gchar *architecture = NULL, *type = NULL;
  g_autoptr (GError) fault = NULL;
  struct stat status;

  if (stat (path, &status) || !S_ISREG (status.st_mode) || !vlm_gguf_probe (path))
    return TRUE;
  if (!vlm_gguf_peek (path, &architecture, &type, &fault)) {
    if (!g_error_matches (fault, VLM_ERROR, VLM_ERROR_UNSUPPORTED)) {
      g_propagate_error (error, g_steal_pointer (&fault));
      return FALSE;
    }
    g_info ("%s; it is left alone", fault->message);
    g_ptr_array_add (parts->others, g_strdup (fault->message));
    return TRUE;
  }
  if (!g_strcmp0 (architecture, VISION_ARCHITECTURE))
    g_ptr_array_add (parts->visions, g_strdup (name));
  else if (architecture && (!type || !strcmp (type, MODEL_TYPE)))
    g_ptr_array_add (parts->texts, g_strdup (name));
  else
    g_ptr_array_add (parts->others,
        g_strdup_printf ("%s: " VLM_GGUF_ARCHITECTURE_KEY " \"%s\", " VLM_GGUF_TYPE_KEY " \"%s\"",
            path, architecture ? architecture : "", type ? type : ""));
  return TRUE;
}

static gboolean
find_parts (Parts *parts, const gchar *directory, GError **error)
{
  g_autoptr (GDir) entries = g_dir_open (directory, 0, NULL);
  const gchar *name;

  parts->texts = g_ptr_array_new_with_free_func (g_free);
  parts->visions = g_ptr_array_new_with_free_func (g_free);
  parts->others = g_ptr_array_new_with_free_func (g_free);
  /* One that may not be listed holds nothing that can be found. */
  while (entries && (name = g_dir_read_name (entries))) {
    if (!add_part (parts, directory, name, error))
      return FALSE;
  }
  g_ptr_array_sort (parts->texts, compare_names);
  g_ptr_array_sort (parts->visions, compare_names);
  g_ptr_array_sort (parts->others, compare_names);
  return TRUE;
}

/* "a, b, c", as separator says (transfer full) */
static gchar *
join (const GPtrArray *names, const gchar *separator)
{
  g_autoptr (GString) text = g_string_new (NULL);
  guint i;

  for (i = 0; i < names->len; i++)
    g_string_append_printf (
        text, "%s%s", i ? separator : "", (const gchar *) g_ptr_array_index (names, i));
  return g_strdup (text->str);
}

/* There are GGUF files, but none is the text part of a model. */
static void
set_no_text (const Parts *parts, const gchar *directory, GError **error)
{
  g_autofree gchar *visions = join (parts->visions, ", ");
  g_autofree gchar *others = join (parts->others, "; ");

  if (parts->visions->len == 0)
    g_set_error (error, VLM_ERROR, VLM_ERROR_NOT_FOUND,
        "%s: holds no text part of a GGUF model, but other GGUF files: %s", directory, others);
  else
    g_set_error (error, VLM_ERROR, VLM_ERROR_NOT_FOUND,
        "%s: holds the vision part of a GGUF model (%s), but no text part%s%s", directory, visions,
        *others ? "; other GGUF files: " : "", others);
}

gboolean
vlm_gguf_files_find (const gchar *directory, gchar **text, GError **error)
{
  g_auto (Parts) parts = { 0 };
  g_autofree gchar *names = NULL;

  *text = NULL;
  if (!find_parts (&parts, directory, error))
    return FALSE;
  if (parts.texts->len == 1) {
    *text = g_build_filename (directory, g_ptr_array_index (parts.texts, 0), NULL);
    return TRUE;
  }
  if (parts.texts->len > 1) {
    names = join (parts.texts, ", ");
    g_set_error (error, VLM_ERROR, VLM_ERROR_SETTINGS,
        "%s: holds %u GGUF models, expected one, or the path of one of them: %s", directory,
        parts.texts->len, names);
    return FALSE;
  }
  if (parts.visions->len + parts.others->len == 0 || vlm_file_exists (directory, VLM_HF_CONFIG))
    return TRUE;
  set_no_text (&parts, directory, error);
  return FALSE;
}

/* The only vision part in the directory, in *mmproj; NULL when there is none. (transfer full) */
static gboolean
find_vision (const gchar *text, const gchar *directory, gchar **mmproj, GError **error)
{
  g_auto (Parts) parts = { 0 };
  g_autofree gchar *names = NULL;

  if (!find_parts (&parts, directory, error))
    return FALSE;
  if (parts.visions->len == 1)
    *mmproj = g_build_filename (directory, g_ptr_array_index (parts.visions, 0), NULL);
  if (parts.visions->len <= 1)
    return TRUE;
  names = join (parts.visions, ", ");
  g_set_error (error, VLM_ERROR, VLM_ERROR_SETTINGS,
      "%s: there are %u vision parts beside it, expected one, or mmproj to name one of them: %s",
      text, parts.visions->len, names);
  return FALSE;
}

static gboolean
check_text (const VlmGguf *gguf, GError **error)
{
  g_autofree gchar *architecture = NULL, *type = NULL;

  if (!vlm_gguf_get_string (gguf, VLM_GGUF_ARCHITECTURE_KEY, &architecture, error)
      || !vlm_gguf_get_string (gguf, VLM_GGUF_TYPE_KEY, &type, error))
    return FALSE;
  if (!g_strcmp0 (architecture, VISION_ARCHITECTURE))
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: is the vision part of a model, expected the text part; this one is what mmproj names",
        vlm_gguf_get_path (gguf));
  else if (type && strcmp (type, MODEL_TYPE))
    g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
        "%s: key " VLM_GGUF_TYPE_KEY " is \"%s\", expected \"" MODEL_TYPE "\"",
        vlm_gguf_get_path (gguf), type);
  else
    return TRUE;
  return FALSE;
}

static gboolean
check_vision (const VlmGguf *gguf, GError **error)
{
  g_autofree gchar *architecture = NULL;

  if (!vlm_gguf_get_string (gguf, VLM_GGUF_ARCHITECTURE_KEY, &architecture, error))
    return FALSE;
  if (!g_strcmp0 (architecture, VISION_ARCHITECTURE))
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "mmproj %s: key " VLM_GGUF_ARCHITECTURE_KEY " is \"%s\", expected \"" VISION_ARCHITECTURE
      "\", the vision part of a model",
      vlm_gguf_get_path (gguf), architecture ? architecture : "");
  return FALSE;
}

/* ---- Files --------------------------------------------------------------------------------- */

/* Whether the file is one that the user may lay beside the model, and has. */
static gboolean
lies_beside (const Files *files, const gchar *name)
{
  return files->mmproj && (!strcmp (name, VLM_HF_PROCESSOR) || !strcmp (name, VLM_HF_PREPROCESSOR))
      && vlm_file_exists (files->directory, name);
}

static gboolean
has (gpointer data, const gchar *name)
{
  const Files *files = data;

  if (lies_beside (files, name))
    return TRUE;
  /* What is made here must not win over the flat file of a user. */
  if (!strcmp (name, VLM_HF_PROCESSOR) && lies_beside (files, VLM_HF_PREPROCESSOR))
    return FALSE;
  return vlm_gguf_has_file (files->text, files->mmproj, name);
}

static gchar *
describe (gpointer data, const gchar *name)
{
  const Files *files = data;

  if (lies_beside (files, name))
    return vlm_path_join (files->directory, name);
  return g_strconcat (vlm_gguf_get_path (files->text), ": ", name, NULL);
}

static gboolean
check (gpointer data, const gchar *name, GError **error)
{
  const Files *files = data;

  if (has (data, name))
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_NOT_FOUND, "%s: makes no %s",
      vlm_gguf_get_path (files->text), name);
  return FALSE;
}

static GBytes *
read_beside (const Files *files, const gchar *name, gsize max_size, GError **error)
{
  g_autoptr (VlmFile) file = vlm_file_open (files->directory, name, error);

  return file ? vlm_file_read_all (file, max_size, error) : NULL;
}

static GBytes *
read_all (gpointer data, const gchar *name, gsize max_size, GError **error)
{
  const Files *files = data;
  g_autoptr (GBytes) bytes = NULL;

  if (!check (data, name, error))
    return NULL;
  if (lies_beside (files, name))
    return read_beside (files, name, max_size, error);
  bytes = vlm_gguf_make_file (files->text, files->mmproj, name, error);
  if (!bytes || g_bytes_get_size (bytes) <= max_size)
    return g_steal_pointer (&bytes);
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: makes a %s of %" G_GSIZE_FORMAT " bytes, expected at most %" G_GSIZE_FORMAT,
      vlm_gguf_get_path (files->text), name, g_bytes_get_size (bytes), max_size);
  return NULL;
}

static guint
get_version (gpointer data)
{
  return vlm_gguf_get_version (((const Files *) data)->text);
}

static void
add_paths (GPtrArray *paths, const VlmGguf *gguf)
{
  guint i;

  for (i = 0; gguf && i < vlm_gguf_get_n_files (gguf); i++)
    g_ptr_array_add (paths, g_strdup (vlm_file_get_path (vlm_gguf_get_file (gguf, i))));
}

static void
list_paths (gpointer data, GPtrArray *paths)
{
  static const gchar *const names[] = { VLM_HF_PROCESSOR, VLM_HF_PREPROCESSOR };
  const Files *files = data;
  gsize i;

  add_paths (paths, files->text);
  add_paths (paths, files->mmproj);
  for (i = 0; i < G_N_ELEMENTS (names); i++) {
    if (lies_beside (files, names[i]))
      g_ptr_array_add (paths, vlm_path_join (files->directory, names[i]));
  }
}

static VlmTensorSource *
open_tensors (gpointer data, GError **error)
{
  const Files *files = data;

  return vlm_gguf_tensors_new (files->text, files->mmproj, error);
}

static void
files_free (gpointer data)
{
  Files *files = data;

  vlm_gguf_unref (files->text);
  vlm_gguf_unref (files->mmproj);
  g_free (files->directory);
  g_free (files);
}

static gboolean
open_vision (Files *files, const gchar *text, const gchar *mmproj, GError **error)
{
  g_autofree gchar *found = NULL;

  if (mmproj == vlm_no_mmproj)
    return TRUE;
  found = g_strdup (mmproj);
  if (!found && !find_vision (text, files->directory, &found, error))
    return FALSE;
  if (!found) {
    g_info ("%s: no vision part beside it: a model for text alone", text);
    return TRUE;
  }
  files->mmproj = vlm_gguf_open (found, error);
  return files->mmproj && check_vision (files->mmproj, error);
}

VlmModelFiles *
vlm_gguf_files_open (const gchar *path, const gchar *text, const gchar *mmproj, GError **error)
{
  static const VlmModelFilesClass class = {
    .format = "gguf",
    .get_version = get_version,
    .list_paths = list_paths,
    .has = has,
    .describe = describe,
    .read = read_all,
    .check = check,
    .open_tensors = open_tensors,
    .free = files_free,
  };
  Files *files = g_new0 (Files, 1);

  files->directory = g_path_get_dirname (text);
  files->text = vlm_gguf_open (text, error);
  if (!files->text || !check_text (files->text, error)
      || !open_vision (files, text, mmproj, error)) {
    files_free (files);
    return NULL;
  }
  return vlm_model_files_new (&class, path, files);
}
