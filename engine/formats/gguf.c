/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "gguf-private.h"

#include "engine/vlm.h"

#include <stdlib.h>
#include <string.h>

/* What a model that was cut into several files says in each of them. */
#define SPLIT_NO "split.no"
#define SPLIT_COUNT "split.count"
#define SPLIT_TENSORS "split.tensors.count"

/* "-00001-of-00003.gguf" */
static gchar *
split_suffix (guint64 no, guint64 count)
{
  return g_strdup_printf (
      "-%05" G_GUINT64_FORMAT "-of-%05" G_GUINT64_FORMAT ".gguf", no + 1, count);
}

/* Which of how many files the header is of; 0 of 1 for a model in one. */
static gboolean
read_split (const VlmGgufHeader *header, guint64 *no, guint64 *count, GError **error)
{
  *no = 0;
  *count = 1;
  return vlm_gguf_header_get_uint (header, SPLIT_COUNT, 0, VLM_GGUF_MAX_FILES, count, error)
      && (*count <= 1 || vlm_gguf_header_get_uint (header, SPLIT_NO, 0, *count - 1, no, error));
}

/* The name of the files up to their numbers, which path must end with. (transfer full) */
static gchar *
split_stem (const gchar *path, guint64 no, guint64 count, GError **error)
{
  g_autofree gchar *suffix = split_suffix (no, count);
  g_autofree gchar *first = split_suffix (0, count);

  if (no == 0 && g_str_has_suffix (path, suffix))
    return g_strndup (path, strlen (path) - strlen (suffix));
  if (no == 0)
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: is the first of %" G_GUINT64_FORMAT
        " files of a model, expected a name that ends with %s",
        path, count, suffix);
  else
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: is file %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
        " of a model, expected the first one, whose name ends with %s",
        path, no + 1, count, first);
  return NULL;
}

/* Adds the file called path, which must say of itself that it is that one of the model's. */
static gboolean
add_part (VlmGguf *gguf, const gchar *path, guint64 no, guint64 count, GError **error)
{
  VlmGgufHeader *header = vlm_gguf_header_open (path, error);
  guint64 found_no, found_count;

  if (!header) {
    g_prefix_error (
        error, "file %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " of a model: ", no + 1, count);
    return FALSE;
  }
  g_ptr_array_add (gguf->headers, header);
  if (!read_split (header, &found_no, &found_count, error))
    return FALSE;
  if (found_no == no && found_count == count)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: says that it is file %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
      ", expected %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT,
      path, found_no + 1, found_count, no + 1, count);
  return FALSE;
}

static gboolean
open_rest (VlmGguf *gguf, const gchar *path, GError **error)
{
  g_autofree gchar *stem = NULL;
  guint64 no, count, i;

  if (!read_split (gguf->first, &no, &count, error))
    return FALSE;
  if (count <= 1)
    return TRUE;
  stem = split_stem (path, no, count, error);
  if (!stem)
    return FALSE;
  for (i = 1; i < count; i++) {
    g_autofree gchar *suffix = split_suffix (i, count);
    g_autofree gchar *part = g_strconcat (stem, suffix, NULL);

    if (!add_part (gguf, part, i, count, error))
      return FALSE;
  }
  return TRUE;
}

/* ---- Tensors of all files ----------------------------------------------------------------- */

static gboolean
collect_tensors (VlmGguf *gguf, GError **error)
{
  guint64 expected;
  guint i, j;

  for (i = 0; i < gguf->headers->len; i++) {
    const VlmGgufHeader *header = g_ptr_array_index (gguf->headers, i);

    for (j = 0; j < header->tensors->len; j++) {
      VlmGgufTensor tensor = g_array_index (header->tensors, VlmGgufTensor, j);

      tensor.file = i;
      g_array_append_val (gguf->tensors, tensor);
    }
  }
  expected = gguf->tensors->len;
  if (gguf->headers->len > 1
      && !vlm_gguf_header_get_uint (gguf->first, SPLIT_TENSORS, 0, G_MAXUINT32, &expected, error))
    return FALSE;
  if (expected == gguf->tensors->len)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: key " SPLIT_TENSORS " is %" G_GUINT64_FORMAT ", but the %u files have %u tensors",
      vlm_gguf_get_path (gguf), expected, gguf->headers->len, gguf->tensors->len);
  return FALSE;
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  const VlmGgufTensor *x = *(const VlmGgufTensor *const *) a;
  const VlmGgufTensor *y = *(const VlmGgufTensor *const *) b;

  return strcmp (x->name, y->name);
}

static gboolean
sort_tensors (VlmGguf *gguf, GError **error)
{
  guint i;

  for (i = 0; i < gguf->tensors->len; i++)
    g_ptr_array_add (gguf->by_name, &g_array_index (gguf->tensors, VlmGgufTensor, i));
  g_ptr_array_sort (gguf->by_name, compare_names);
  for (i = 1; i < gguf->by_name->len; i++) {
    const VlmGgufTensor *one = g_ptr_array_index (gguf->by_name, i - 1);
    const VlmGgufTensor *other = g_ptr_array_index (gguf->by_name, i);

    if (strcmp (one->name, other->name))
      continue;
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT, "tensor %s is there twice: in %s and in %s",
        one->name, vlm_file_get_path (vlm_gguf_get_file (gguf, one->file)),
        vlm_file_get_path (vlm_gguf_get_file (gguf, other->file)));
    return FALSE;
  }
  return TRUE;
}

/* ---- The whole ---------------------------------------------------------------------------- */

gboolean
vlm_gguf_probe (const gchar *path)
{
  g_autoptr (VlmFile) file = vlm_file_open (path, NULL, NULL);
  gchar magic[sizeof (VLM_GGUF_MAGIC) - 1];

  return file && vlm_file_read (file, 0, magic, sizeof (magic), NULL, NULL)
      && !memcmp (magic, VLM_GGUF_MAGIC, sizeof (magic));
}

VlmGguf *
vlm_gguf_open (const gchar *path, GError **error)
{
  g_autoptr (VlmGguf) gguf = g_new0 (VlmGguf, 1);

  g_atomic_ref_count_init (&gguf->references);
  gguf->headers = g_ptr_array_new_with_free_func ((GDestroyNotify) vlm_gguf_header_free);
  gguf->tensors = g_array_new (FALSE, FALSE, sizeof (VlmGgufTensor));
  gguf->by_name = g_ptr_array_new ();
  gguf->first = vlm_gguf_header_open (path, error);
  if (!gguf->first)
    return NULL;
  g_ptr_array_add (gguf->headers, gguf->first);
  if (!open_rest (gguf, path, error) || !collect_tensors (gguf, error)
      || !sort_tensors (gguf, error))
    return NULL;
  return g_steal_pointer (&gguf);
}

VlmGguf *
vlm_gguf_ref (VlmGguf *gguf)
{
  g_atomic_ref_count_inc (&gguf->references);
  return gguf;
}

void
vlm_gguf_unref (VlmGguf *gguf)
{
  if (!gguf || !g_atomic_ref_count_dec (&gguf->references))
    return;
  g_ptr_array_unref (gguf->by_name);
  g_array_unref (gguf->tensors);
  g_ptr_array_unref (gguf->headers);
  g_free (gguf);
}

const gchar *
vlm_gguf_get_path (const VlmGguf *gguf)
{
  return vlm_file_get_path (gguf->first->file);
}

guint
vlm_gguf_get_version (const VlmGguf *gguf)
{
  return gguf->first->version;
}

guint
vlm_gguf_get_n_files (const VlmGguf *gguf)
{
  return gguf->headers->len;
}

VlmFile *
vlm_gguf_get_file (const VlmGguf *gguf, guint i)
{
  return ((const VlmGgufHeader *) g_ptr_array_index (gguf->headers, i))->file;
}

const VlmGgufValue *
vlm_gguf_find (const VlmGguf *gguf, const gchar *key)
{
  return vlm_gguf_header_find (gguf->first, key);
}

guint
vlm_gguf_get_n_tensors (const VlmGguf *gguf)
{
  return gguf->tensors->len;
}

const VlmGgufTensor *
vlm_gguf_get_tensor (const VlmGguf *gguf, guint i)
{
  g_return_val_if_fail (i < gguf->tensors->len, NULL);
  return &g_array_index (gguf->tensors, VlmGgufTensor, i);
}

const VlmGgufTensor *
vlm_gguf_find_tensor (const VlmGguf *gguf, const gchar *name)
{
  const VlmGgufTensor wanted = { .name = name };
  const VlmGgufTensor *key = &wanted;
  const VlmGgufTensor *const *found = NULL;

  if (gguf->by_name->len > 0)
    found =
        bsearch (&key, gguf->by_name->pdata, gguf->by_name->len, sizeof (gpointer), compare_names);
  return found ? *found : NULL;
}
