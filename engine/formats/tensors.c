/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tensors-private.h"

#include "engine/vlm.h"

#include <string.h>

struct _VlmTensorSource
{
  GPtrArray *files; /* of VlmFile */
  GArray *infos;    /* of VlmTensorInfo; fixed once by_name exists */
  /* Elements of infos sorted by name. No hash table: its time would be up to who made the file. */
  GPtrArray *by_name;
};

gsize
vlm_dtype_size (VlmDType dtype)
{
  return dtype == VLM_DTYPE_F32 ? 4 : 2;
}

const gchar *
vlm_dtype_name (VlmDType dtype)
{
  static const gchar *const names[] = { "F32", "F16", "BF16" };

  return names[dtype];
}

gchar *
vlm_tensor_shape_to_string (const guint64 *shape, guint rank)
{
  GString *text = g_string_new ("[");
  guint i;

  for (i = 0; i < rank; i++)
    g_string_append_printf (text, "%s%" G_GUINT64_FORMAT, i ? ", " : "", shape[i]);
  g_string_append_c (text, ']');
  return g_string_free (text, FALSE);
}

static void
clear_info (gpointer data)
{
  VlmTensorInfo *info = data;

  g_free (info->name);
}

VlmTensorSource *
vlm_tensor_source_new (void)
{
  VlmTensorSource *source = g_new0 (VlmTensorSource, 1);

  source->files = g_ptr_array_new_with_free_func ((GDestroyNotify) vlm_file_free);
  source->infos = g_array_new (FALSE, FALSE, sizeof (VlmTensorInfo));
  g_array_set_clear_func (source->infos, clear_info);
  return source;
}

void
vlm_tensor_source_free (VlmTensorSource *source)
{
  if (!source)
    return;
  g_clear_pointer (&source->by_name, g_ptr_array_unref);
  g_array_unref (source->infos);
  g_ptr_array_unref (source->files);
  g_free (source);
}

guint
vlm_tensor_source_add_file (VlmTensorSource *source, VlmFile *file)
{
  g_ptr_array_add (source->files, file);
  return source->files->len - 1;
}

void
vlm_tensor_source_add (VlmTensorSource *source, const VlmTensorInfo *info)
{
  g_assert (!source->by_name);
  g_array_append_val (source->infos, *info);
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  const VlmTensorInfo *x = *(const VlmTensorInfo *const *) a;
  const VlmTensorInfo *y = *(const VlmTensorInfo *const *) b;

  return strcmp (x->name, y->name);
}

gboolean
vlm_tensor_source_index (VlmTensorSource *source, GError **error)
{
  guint i;

  source->by_name = g_ptr_array_sized_new (source->infos->len);
  for (i = 0; i < source->infos->len; i++)
    g_ptr_array_add (source->by_name, &g_array_index (source->infos, VlmTensorInfo, i));
  g_ptr_array_sort (source->by_name, compare_names);

  for (i = 1; i < source->by_name->len; i++) {
    const VlmTensorInfo *one = g_ptr_array_index (source->by_name, i - 1);
    const VlmTensorInfo *other = g_ptr_array_index (source->by_name, i);

    if (!strcmp (one->name, other->name)) {
      g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT, "tensor %s is there twice: in %s and in %s",
          one->name, vlm_tensor_source_get_path (source, one),
          vlm_tensor_source_get_path (source, other));
      return FALSE;
    }
  }
  return TRUE;
}

guint
vlm_tensor_source_get_count (const VlmTensorSource *source)
{
  return source->infos->len;
}

const VlmTensorInfo *
vlm_tensor_source_get_nth (const VlmTensorSource *source, guint n)
{
  g_return_val_if_fail (n < source->infos->len, NULL);
  return &g_array_index (source->infos, VlmTensorInfo, n);
}

const VlmTensorInfo *
vlm_tensor_source_lookup (const VlmTensorSource *source, const gchar *name)
{
  guint low = 0, high = source->by_name->len;

  while (low < high) {
    guint middle = low + (high - low) / 2;
    const VlmTensorInfo *info = g_ptr_array_index (source->by_name, middle);
    gint order = strcmp (name, info->name);

    if (order == 0)
      return info;
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

const gchar *
vlm_tensor_source_get_path (const VlmTensorSource *source, const VlmTensorInfo *info)
{
  return vlm_file_get_path (g_ptr_array_index (source->files, info->file));
}

gboolean
vlm_tensor_source_read (VlmTensorSource *source, const VlmTensorInfo *info, guint64 offset,
    gpointer buffer, gsize length, GCancellable *cancellable, GError **error)
{
  g_return_val_if_fail (offset <= info->n_bytes && length <= info->n_bytes - offset, FALSE);
  return vlm_file_read (g_ptr_array_index (source->files, info->file), info->offset + offset,
      buffer, length, cancellable, error);
}
