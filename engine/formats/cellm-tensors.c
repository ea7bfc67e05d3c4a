/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The weights of a .cellm file, checked while they are read: it has no checksums. */

#include "cellm.h"

#include "engine/vlm.h"
#include "floats.h"
#include "half.h"
#include "slm-pack.h"
#include "tensors-private.h"

#include <string.h>

/* Bytes of packed rows and of scales that are read at a time. */
#define CHUNK (256u << 10)

typedef struct
{
  VlmCellm *cellm;
  guint8 buffer[CHUNK]; /* for what is not read to its place at once */
} Reader;

static void
reader_free (gpointer data)
{
  Reader *reader = data;

  vlm_cellm_unref (reader->cellm);
  g_free (reader);
}

/* Bytes offset .. offset + n - 1 of a payload. */
static gboolean
read_payload (const Reader *reader, const VlmCellmEntry *entry, guint64 offset, gpointer to,
    gsize n, GCancellable *cancellable, GError **error)
{
  if (vlm_file_read (reader->cellm->file, entry->offset + offset, to, n, cancellable, error))
    return TRUE;
  g_prefix_error (error, "tensor %s: ", entry->name);
  return FALSE;
}

/* ---- Floats ------------------------------------------------------------------------------- */

static gboolean
fail_float (const Reader *reader, const VlmCellmTensor *tensor, guint64 first, gconstpointer raw,
    gsize n, GError **error)
{
  VlmDType dtype = tensor->info.dtype;
  gsize index = vlm_floats_find_special (dtype, raw, n);
  g_autofree gchar *position = vlm_floats_position (&tensor->info, first + index);

  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: tensor %s has %s at %s, expected finite numbers", vlm_cellm_get_path (reader->cellm),
      tensor->data->name, vlm_floats_special_name (dtype, raw, index), position);
  return FALSE;
}

static gboolean
read_bytes (gpointer data, guint n, guint64 offset, gpointer buffer, gsize length,
    GCancellable *cancellable, GError **error)
{
  const Reader *reader = data;
  const VlmCellmTensor *tensor = &g_array_index (reader->cellm->tensors, VlmCellmTensor, n);
  gsize size = vlm_dtype_size (tensor->info.dtype);

  if (!read_payload (reader, tensor->data, offset, buffer, length, cancellable, error))
    return FALSE;
  if (offset % size || !vlm_floats_count_special (tensor->info.dtype, buffer, length / size))
    return TRUE;
  return fail_float (reader, tensor, offset / size, buffer, length / size, error);
}

/* ---- Integers ----------------------------------------------------------------------------- */

/* n values of 4 bits, packed as in .slm files, behind each other from byte offset of the payload on. */
static gboolean
read_run (Reader *reader, const VlmCellmTensor *tensor, guint64 offset, gint8 *q, gsize n,
    GCancellable *cancellable, GError **error)
{
  gsize part;

  for (; n > 0; n -= part, q += part, offset += CHUNK) {
    part = MIN (n, 2 * (gsize) CHUNK);
    if (!read_payload (
            reader, tensor->data, offset, reader->buffer, part / 2 + part % 2, cancellable, error))
      return FALSE;
    vlm_slm_unpack_row (&tensor->info.format, q, reader->buffer, part);
  }
  return TRUE;
}

/* Rows of 4 bits a value. Words are little-endian, so that theirs come in the order of bytes. */
static gboolean
read_nibbles (Reader *reader, const VlmCellmTensor *tensor, guint64 first, gsize n_rows, gint8 *q,
    GCancellable *cancellable, GError **error)
{
  gsize cols = tensor->info.shape[1], stride = cols / 2 + cols % 2, row;

  if (cols % 2 == 0)
    return read_run (reader, tensor, first * stride, q, n_rows * cols, cancellable, error);
  for (row = 0; row < n_rows; row++) {
    if (!read_run (
            reader, tensor, (first + row) * stride, q + row * cols, cols, cancellable, error))
      return FALSE;
  }
  return TRUE;
}

/* ---- Scales ------------------------------------------------------------------------------- */

static gfloat
get_value (VlmDType dtype, gconstpointer values, gsize i)
{
  return dtype == VLM_DTYPE_F16 ? vlm_half_to_float (((const guint16 *) values)[i])
                                : ((const gfloat *) values)[i];
}

/* Finite, and those that are a largest magnitude not below 0. */
static gboolean
check_scales (const Reader *reader, const VlmCellmEntry *entry, gconstpointer values, guint64 first,
    gsize n, gboolean may_be_negative, GError **error)
{
  VlmDType dtype = vlm_cellm_type_dtype (entry->type);
  gsize i = vlm_floats_find_special (dtype, values, n);

  if (i == n && !may_be_negative) {
    for (i = 0; i < n && get_value (dtype, values, i) >= 0; i++)
      continue;
  }
  if (i == n)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: value %" G_GUINT64_FORMAT " of tensor %s is %g, expected a finite number%s",
      vlm_cellm_get_path (reader->cellm), first + i, entry->name, get_value (dtype, values, i),
      may_be_negative ? "" : " of 0 or above");
  return FALSE;
}

/* Scales of n_rows rows to values, as they are. */
static gboolean
read_scales (const Reader *reader, const VlmCellmTensor *tensor, const VlmCellmEntry *entry,
    guint64 first, gsize n_rows, gpointer values, GCancellable *cancellable, GError **error)
{
  gsize n = entry->rank == 2 ? entry->shape[1] : 1;
  gsize size = vlm_dtype_size (vlm_cellm_type_dtype (entry->type));

  return read_payload (
             reader, entry, first * n * size, values, n_rows * n * size, cancellable, error)
      && check_scales (
          reader, entry, values, first * n, n_rows * n, tensor->info.format.has_min, error);
}

/* One half a row in the file, f32 for the kernels. Halves keep every bit, subnormal ones too. */
static gboolean
read_row_scales (Reader *reader, const VlmCellmTensor *tensor, guint64 first, gsize n_rows,
    gfloat *scales, GCancellable *cancellable, GError **error)
{
  gsize step = CHUNK / sizeof (guint16), done, n, i;

  for (done = 0; done < n_rows; done += n) {
    const guint16 *halves = (const guint16 *) reader->buffer;

    n = MIN (step, n_rows - done);
    if (!read_scales (
            reader, tensor, tensor->scale, first + done, n, reader->buffer, cancellable, error))
      return FALSE;
    for (i = 0; i < n; i++)
      scales[done + i] = vlm_half_to_float (halves[i]);
  }
  return TRUE;
}

static gboolean
read_rows (gpointer data, guint n, guint64 first, gsize n_rows, VlmQuantRows *rows,
    GCancellable *cancellable, GError **error)
{
  Reader *reader = data;
  const VlmCellmTensor *tensor = &g_array_index (reader->cellm->tensors, VlmCellmTensor, n);
  gboolean good;

  if (n_rows == 0)
    return TRUE;
  if (tensor->data->type == VLM_CELLM_I8)
    good = read_payload (
        reader, tensor->data, first * rows->cols, rows->q, n_rows * rows->cols, cancellable, error);
  else
    good = read_nibbles (reader, tensor, first, n_rows, rows->q, cancellable, error);
  if (!good)
    return FALSE;
  if (rows->format.scale == VLM_SCALE_ROW)
    return read_row_scales (reader, tensor, first, n_rows, rows->scale, cancellable, error);
  return read_scales (reader, tensor, tensor->scale, first, n_rows, rows->scale, cancellable, error)
      && (!tensor->min
          || read_scales (
              reader, tensor, tensor->min, first, n_rows, rows->min, cancellable, error));
}

/* There are no checksums. */
static gboolean
is_verified (G_GNUC_UNUSED gpointer data, G_GNUC_UNUSED guint n)
{
  return TRUE;
}

VlmTensorSource *
vlm_cellm_get_tensors (VlmCellm *cellm, GError **error)
{
  static const VlmTensorReader functions = { read_bytes, read_rows, is_verified, reader_free };
  g_autoptr (VlmTensorSource) source = vlm_tensor_source_new ();
  Reader *reader = g_new0 (Reader, 1);
  guint i;

  reader->cellm = vlm_cellm_ref (cellm);
  vlm_tensor_source_set_reader (source, &functions, reader);
  vlm_tensor_source_add_file (source, vlm_file_ref (cellm->file));
  for (i = 0; i < cellm->tensors->len; i++) {
    VlmTensorInfo info = g_array_index (cellm->tensors, VlmCellmTensor, i).info;

    info.name = g_strdup (info.name);
    vlm_tensor_source_add (source, &info);
  }
  return vlm_tensor_source_index (source, error) ? g_steal_pointer (&source) : NULL;
}
