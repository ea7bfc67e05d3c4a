/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tensors-private.h"

#include "engine/vlm.h"

#include <stdlib.h>
#include <string.h>

/* Bytes or values that are verified at a time. */
#define VERIFY_CHUNK (256u << 10)

struct _VlmTensorSource
{
  GPtrArray *files; /* of VlmFile */
  GArray *infos;    /* of VlmTensorInfo; fixed once by_name exists */
  /* Elements of infos sorted by name. No hash table: its time would be up to who made the file. */
  GPtrArray *by_name;
  const VlmTensorReader *reader; /* NULL: payloads are copied from the files */
  gpointer reader_data;
};

gsize
vlm_dtype_size (VlmDType dtype)
{
  static const gsize sizes[] = { 4, 2, 2, 0 };

  return sizes[dtype];
}

const gchar *
vlm_dtype_name (VlmDType dtype)
{
  static const gchar *const names[] = { "F32", "F16", "BF16", "integers" };

  return names[dtype];
}

guint64
vlm_tensor_count_values (const VlmTensorInfo *info)
{
  guint64 n = 1;
  guint i;

  for (i = 0; i < info->rank; i++)
    n *= info->shape[i];
  return n;
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

  source->files = g_ptr_array_new_with_free_func ((GDestroyNotify) vlm_file_unref);
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
  if (source->reader)
    source->reader->free (source->reader_data);
  g_array_unref (source->infos);
  g_ptr_array_unref (source->files);
  g_free (source);
}

void
vlm_tensor_source_set_reader (VlmTensorSource *source, const VlmTensorReader *reader, gpointer data)
{
  source->reader = reader;
  source->reader_data = data;
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
  const VlmTensorInfo wanted = { .name = (gchar *) name };
  const VlmTensorInfo *key = &wanted;
  const VlmTensorInfo *const *found = NULL;

  if (source->by_name->len > 0)
    found = bsearch (
        &key, source->by_name->pdata, source->by_name->len, sizeof (gpointer), compare_names);
  return found ? *found : NULL;
}

const gchar *
vlm_tensor_source_get_path (const VlmTensorSource *source, const VlmTensorInfo *info)
{
  return vlm_file_get_path (g_ptr_array_index (source->files, info->file));
}

static guint
number_of (const VlmTensorSource *source, const VlmTensorInfo *info)
{
  return info - (const VlmTensorInfo *) source->infos->data;
}

gboolean
vlm_tensor_source_read (VlmTensorSource *source, const VlmTensorInfo *info, guint64 offset,
    gpointer buffer, gsize length, GCancellable *cancellable, GError **error)
{
  g_return_val_if_fail (info->dtype != VLM_DTYPE_QUANTISED, FALSE);
  g_return_val_if_fail (offset <= info->n_bytes && length <= info->n_bytes - offset, FALSE);
  if (source->reader)
    return source->reader->read (
        source->reader_data, number_of (source, info), offset, buffer, length, cancellable, error);
  return vlm_file_read (g_ptr_array_index (source->files, info->file), info->offset + offset,
      buffer, length, cancellable, error);
}

gboolean
vlm_tensor_source_read_rows (VlmTensorSource *source, const VlmTensorInfo *info, guint64 first,
    gsize n_rows, VlmQuantRows *rows, GCancellable *cancellable, GError **error)
{
  g_return_val_if_fail (info->dtype == VLM_DTYPE_QUANTISED && source->reader, FALSE);
  g_return_val_if_fail (first <= info->shape[0] && n_rows <= info->shape[0] - first, FALSE);
  g_return_val_if_fail (rows->cols == info->shape[1] && n_rows <= rows->capacity
          && vlm_int_format_equal (&rows->format, &info->format),
      FALSE);
  return source->reader->read_rows (
      source->reader_data, number_of (source, info), first, n_rows, rows, cancellable, error);
}

static gboolean
verify_rows (
    VlmTensorSource *source, const VlmTensorInfo *info, GCancellable *cancellable, GError **error)
{
  gsize step = CLAMP (VERIFY_CHUNK / info->shape[1], 1, info->shape[0]);
  VlmQuantRows rows;
  guint64 first;
  gboolean good;

  if (!vlm_quant_rows_init (&rows, &info->format, step, info->shape[1], error))
    return FALSE;
  for (first = 0, good = TRUE; good && first < info->shape[0]; first += step)
    good = vlm_tensor_source_read_rows (
        source, info, first, MIN (step, info->shape[0] - first), &rows, cancellable, error);
  vlm_quant_rows_clear (&rows);
  return good;
}

static gboolean
verify_bytes (
    VlmTensorSource *source, const VlmTensorInfo *info, GCancellable *cancellable, GError **error)
{
  g_autofree guint8 *buffer = g_malloc (VERIFY_CHUNK);
  guint64 offset;

  for (offset = 0; offset < info->n_bytes; offset += VERIFY_CHUNK) {
    if (!vlm_tensor_source_read (source, info, offset, buffer,
            MIN (VERIFY_CHUNK, info->n_bytes - offset), cancellable, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
vlm_tensor_source_verify_rest (VlmTensorSource *source, GCancellable *cancellable, GError **error)
{
  guint i;

  for (i = 0; source->reader && i < source->infos->len; i++) {
    const VlmTensorInfo *info = &g_array_index (source->infos, VlmTensorInfo, i);
    gboolean good = source->reader->is_verified (source->reader_data, i)
        || (info->dtype == VLM_DTYPE_QUANTISED ? verify_rows (source, info, cancellable, error)
                                               : verify_bytes (source, info, cancellable, error));

    if (!good)
      return FALSE;
  }
  return TRUE;
}

gboolean
vlm_row_buffer_reserve (
    VlmRowBuffer *buffer, gsize n, const gchar *path, const gchar *tensor, GError **error)
{
  if (n <= buffer->capacity)
    return TRUE;
  g_free (buffer->data);
  buffer->data = g_try_malloc (n);
  buffer->capacity = buffer->data ? n : 0;
  if (buffer->data)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
      "%s: no memory for rows of tensor %s, %" G_GSIZE_FORMAT " bytes", path, tensor, n);
  return FALSE;
}
