/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "gguf-tensors.h"

#include "engine/vlm.h"
#include "floats.h"
#include "gguf-blocks.h"
#include "gguf-names.h"
#include "tensors-private.h"

#include <string.h>

#define TEXT_ALONE "model."
#define TEXT_IN_VISION_MODEL "model.language_model."

/* Bytes of blocks that are read at a time. */
#define CHUNK (256u << 10)

/* Colours of a picture. */
#define N_CHANNELS 3

/* Numbers of ggml's types. */
#define TYPE_F32 0
#define TYPE_F16 1
#define TYPE_BF16 30

/* A tensor of the source: rows of one in a file. */
typedef struct
{
  const VlmGgufTensor *tensor;
  VlmFile *file;
  guint64 offset;    /* of the first row, in the file */
  guint64 row_bytes; /* of a quantised tensor, or of the patch embedding */
  guint patch;       /* side of the patches of a patch embedding; 0 for other tensors */
  guint value_bytes; /* of it */
} Entry;

typedef struct
{
  VlmGguf *text, *mmproj; /* mmproj may be NULL */
  GArray *entries;        /* of Entry, in the order of the source */
  VlmRowBuffer buffer;
} Reader;

/* What is needed while a source is built. */
typedef struct
{
  VlmTensorSource *source;
  Reader *reader;
  VlmGguf *gguf;     /* whose tensors are being added */
  guint first_file;  /* number of its first file in the source */
  const gchar *text; /* what names of the text part begin with; NULL for a vision file */
} Builder;

static void
reader_free (gpointer data)
{
  Reader *reader = data;

  vlm_gguf_unref (reader->text);
  vlm_gguf_unref (reader->mmproj);
  g_array_unref (reader->entries);
  g_free (reader->buffer.data);
  g_free (reader);
}

/* Makes the buffer hold n bytes. */
static gboolean
reserve (Reader *reader, const Entry *entry, gsize n, GError **error)
{
  return vlm_row_buffer_reserve (
      &reader->buffer, n, vlm_file_get_path (entry->file), entry->tensor->name, error);
}

/* ---- Reading ------------------------------------------------------------------------------- */

/* A row of a patch embedding in the order of a checkpoint: colours of a pixel side by side. */
static void
permute_row (const Entry *entry, const guint8 *from, guint8 *to)
{
  gsize area = (gsize) entry->patch * entry->patch, size = entry->value_bytes, pixel, channel;

  for (pixel = 0; pixel < area; pixel++) {
    for (channel = 0; channel < N_CHANNELS; channel++, to += size)
      memcpy (to, from + (channel * area + pixel) * size, size);
  }
}

static gboolean
read_patches (Reader *reader, const Entry *entry, guint64 offset, guint8 *buffer, gsize length,
    GCancellable *cancellable, GError **error)
{
  gsize size = entry->row_bytes;
  guint8 *row;

  if (!reserve (reader, entry, 2 * size, error))
    return FALSE;
  row = reader->buffer.data + size;
  while (length > 0) {
    gsize skip = offset % size, n = MIN (length, size - skip);

    if (!vlm_file_read (entry->file, entry->offset + offset - skip, reader->buffer.data, size,
            cancellable, error))
      return FALSE;
    permute_row (entry, reader->buffer.data, row);
    memcpy (buffer, row + skip, n);
    buffer += n;
    offset += n;
    length -= n;
  }
  return TRUE;
}

static gboolean
read_bytes (gpointer data, guint n, guint64 offset, gpointer buffer, gsize length,
    GCancellable *cancellable, GError **error)
{
  Reader *reader = data;
  const Entry *entry = &g_array_index (reader->entries, Entry, n);

  if (entry->patch)
    return read_patches (reader, entry, offset, buffer, length, cancellable, error);
  return vlm_file_read (entry->file, entry->offset + offset, buffer, length, cancellable, error);
}

static gboolean
fail_scale (const Entry *entry, guint64 first, gsize block, gsize blocks_a_row, GError **error)
{
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: block %" G_GSIZE_FORMAT " of row %" G_GUINT64_FORMAT
      " of tensor %s has a scale that is NaN or infinite, expected a finite one",
      vlm_file_get_path (entry->file), block % blocks_a_row,
      (entry->offset - entry->tensor->offset) / entry->row_bytes + first + block / blocks_a_row,
      entry->tensor->name);
  return FALSE;
}

/* Rows first .. first + n - 1 through the buffer to the start of rows. */
static gboolean
read_blocks (Reader *reader, const Entry *entry, guint64 first, gsize n, const VlmQuantRows *rows,
    GCancellable *cancellable, GError **error)
{
  gsize blocks_a_row = rows->n_supers ? rows->n_supers : rows->n_groups, done;

  if (!reserve (reader, entry, n * entry->row_bytes, error)
      || !vlm_file_read (entry->file, entry->offset + first * entry->row_bytes, reader->buffer.data,
          n * entry->row_bytes, cancellable, error))
    return FALSE;
  done = vlm_gguf_blocks_unpack (entry->tensor->type, reader->buffer.data, n, rows);
  return done == n * blocks_a_row || fail_scale (entry, first, done, blocks_a_row, error);
}

static gboolean
read_rows (gpointer data, guint number, guint64 first, gsize n_rows, VlmQuantRows *rows,
    GCancellable *cancellable, GError **error)
{
  Reader *reader = data;
  const Entry *entry = &g_array_index (reader->entries, Entry, number);
  gsize step = MAX (CHUNK / entry->row_bytes, 1), done, n;

  for (done = 0; done < n_rows; done += n) {
    VlmQuantRows rest = vlm_quant_rows_skip (rows, done);

    n = MIN (step, n_rows - done);
    if (!read_blocks (reader, entry, first + done, n, &rest, cancellable, error))
      return FALSE;
  }
  return TRUE;
}

/* The format has no checksums. */
static gboolean
is_verified (gpointer data, guint n)
{
  return TRUE;
}

/* ---- Building ------------------------------------------------------------------------------ */

static gboolean fail (const Builder *builder, const VlmGgufTensor *tensor, VlmError code,
    GError **error, const gchar *format, ...) G_GNUC_PRINTF (5, 6);

static gboolean
fail (const Builder *builder, const VlmGgufTensor *tensor, VlmError code, GError **error,
    const gchar *format, ...)
{
  g_autofree gchar *dims = vlm_tensor_shape_to_string (tensor->dims, tensor->rank);
  g_autofree gchar *what = NULL;
  va_list args;

  va_start (args, format);
  what = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, VLM_ERROR, code, "%s: tensor %s is %s %s, %s",
      vlm_file_get_path (vlm_gguf_get_file (builder->gguf, tensor->file)), tensor->name,
      vlm_gguf_type_name (tensor->type), dims, what);
  return FALSE;
}

/* Type and shape: dimensions are counted from the other end. */
static gboolean
describe (const Builder *builder, const VlmGgufTensor *tensor, VlmTensorInfo *info, GError **error)
{
  guint i;

  info->rank = tensor->rank;
  for (i = 0; i < tensor->rank; i++)
    info->shape[i] = tensor->dims[tensor->rank - 1 - i];
  info->n_bytes = tensor->n_bytes;
  info->offset = tensor->offset;
  info->file = builder->first_file + tensor->file;
  if (tensor->type == TYPE_F32)
    info->dtype = VLM_DTYPE_F32;
  else if (tensor->type == TYPE_F16)
    info->dtype = VLM_DTYPE_F16;
  else if (tensor->type == TYPE_BF16)
    info->dtype = VLM_DTYPE_BF16;
  else if (vlm_gguf_blocks_get_format (tensor->type, &info->format))
    info->dtype = VLM_DTYPE_QUANTISED;
  else
    return fail (builder, tensor, VLM_ERROR_UNSUPPORTED, error,
        "expected one of F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K");
  if (info->dtype == VLM_DTYPE_QUANTISED && tensor->rank != 2)
    return fail (builder, tensor, VLM_ERROR_FORMAT, error, "expected two dimensions for that type");
  return TRUE;
}

/* Adds n_rows rows of a tensor, from first_row on, under name; the others of its shape are info's.
 * name: (transfer full) */
static void
add_rows (Builder *builder, const VlmGgufTensor *tensor, VlmTensorInfo info, guint64 first_row,
    guint64 n_rows, gchar *name)
{
  guint64 row_bytes = tensor->n_bytes / info.shape[0];
  Entry entry = { .tensor = tensor,
    .file = vlm_gguf_get_file (builder->gguf, tensor->file),
    .offset = tensor->offset + first_row * row_bytes,
    .row_bytes = row_bytes };

  if (builder->text == NULL && !strcmp (tensor->name, VLM_GGUF_PATCH_EMBEDDING)) {
    entry.patch = tensor->dims[0];
    entry.value_bytes = vlm_dtype_size (info.dtype);
  }
  info.name = name;
  info.shape[0] = n_rows;
  info.n_bytes = n_rows * row_bytes;
  info.offset = entry.offset;
  vlm_tensor_source_add (builder->source, &info);
  g_array_append_val (builder->reader->entries, entry);
}

/* Queries, keys and values in one tensor. The output projection takes as many columns as there are
 * queries; the rest is shared out evenly. */
static gboolean
add_fused (
    Builder *builder, const VlmGgufTensor *tensor, gint layer, VlmTensorInfo info, GError **error)
{
  static const gchar *const names[] = { "attn_q", "attn_k", "attn_v" };
  g_autofree gchar *out_name = g_strdup_printf ("blk.%d.attn_output.weight", layer);
  const VlmGgufTensor *out = vlm_gguf_find_tensor (builder->gguf, out_name);
  guint64 first = 0, queries = out ? out->dims[0] : 0, rows[3];
  guint i;

  if (!out)
    return fail (builder, tensor, VLM_ERROR_FORMAT, error, "but there is no %s", out_name);
  if (info.rank != 2 || queries >= info.shape[0] || (info.shape[0] - queries) % 2)
    return fail (builder, tensor, VLM_ERROR_FORMAT, error,
        "expected two dimensions, and rows for %" G_GUINT64_FORMAT
        " queries with as many keys as values",
        queries);
  rows[0] = queries;
  rows[1] = rows[2] = (info.shape[0] - queries) / 2;
  for (i = 0; i < 3; first += rows[i++]) {
    g_autofree gchar *name = g_strdup_printf ("blk.%d.%s.weight", layer, names[i]);

    add_rows (builder, tensor, info, first, rows[i], vlm_gguf_name_text (name, builder->text));
  }
  return TRUE;
}

/* [P, P, 3, N] in the file is a matrix [N, P * P * 3]. */
static gboolean
shape_patches (
    const Builder *builder, const VlmGgufTensor *tensor, VlmTensorInfo *info, GError **error)
{
  if (tensor->rank != 4 || tensor->dims[0] != tensor->dims[1] || tensor->dims[2] != N_CHANNELS
      || tensor->dims[0] > G_MAXUINT16)
    return fail (builder, tensor, VLM_ERROR_FORMAT, error,
        "expected dimensions [P, P, 3, N] for patches of P pixels");
  info->rank = 2;
  info->shape[1] = tensor->dims[0] * tensor->dims[1] * N_CHANNELS;
  return TRUE;
}

static gboolean
add_tensor (Builder *builder, const VlmGgufTensor *tensor, GError **error)
{
  const gchar *rest = NULL;
  gint layer = builder->text ? vlm_gguf_name_layer (tensor->name, &rest) : -1;
  VlmTensorInfo info = { 0 };
  gchar *name;

  if (!describe (builder, tensor, &info, error))
    return FALSE;
  if (layer >= 0 && !strcmp (rest, VLM_GGUF_FUSED_QKV))
    return add_fused (builder, tensor, layer, info, error);
  if (layer >= 0 && !strcmp (rest, VLM_GGUF_CONV_KERNEL) && info.rank == 2) {
    info.rank = 3;
    info.shape[2] = info.shape[1];
    info.shape[1] = 1;
  }
  if (!builder->text && !strcmp (tensor->name, VLM_GGUF_PATCH_EMBEDDING)
      && !shape_patches (builder, tensor, &info, error))
    return FALSE;
  name = builder->text ? vlm_gguf_name_text (tensor->name, builder->text)
                       : vlm_gguf_name_vision (tensor->name);
  if (!name)
    return fail (builder, tensor, VLM_ERROR_FORMAT, error,
        "expected no tensor of this name in the %s part of an lfm2 model",
        builder->text ? "text" : "vision");
  add_rows (builder, tensor, info, 0, info.shape[0], name);
  return TRUE;
}

static gboolean
check_final_norm (const VlmGguf *text, GError **error)
{
  if (!vlm_gguf_find_tensor (text, VLM_GGUF_FINAL_NORM)
      || !vlm_gguf_find_tensor (text, VLM_GGUF_FINAL_NORM_ALIAS))
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: has both tensor " VLM_GGUF_FINAL_NORM " and " VLM_GGUF_FINAL_NORM_ALIAS
      ", expected one of them: both are names of the final norm",
      vlm_gguf_get_path (text));
  return FALSE;
}

/* All tensors of one model file; text is NULL for a vision file. */
static gboolean
add_gguf (VlmTensorSource *source, Reader *reader, VlmGguf *gguf, const gchar *text, GError **error)
{
  Builder builder = { .source = source, .reader = reader, .gguf = gguf, .text = text };
  guint i;

  for (i = 0; i < vlm_gguf_get_n_files (gguf); i++) {
    guint number = vlm_tensor_source_add_file (source, vlm_file_ref (vlm_gguf_get_file (gguf, i)));

    builder.first_file = i == 0 ? number : builder.first_file;
  }
  for (i = 0; i < vlm_gguf_get_n_tensors (gguf); i++) {
    if (!add_tensor (&builder, vlm_gguf_get_tensor (gguf, i), error))
      return FALSE;
  }
  return TRUE;
}

VlmTensorSource *
vlm_gguf_tensors_new (VlmGguf *text, VlmGguf *mmproj, GError **error)
{
  static const VlmTensorReader functions = { read_bytes, read_rows, is_verified, reader_free };
  g_autoptr (VlmTensorSource) source = vlm_tensor_source_new ();
  Reader *reader = g_new0 (Reader, 1);

  reader->text = vlm_gguf_ref (text);
  reader->mmproj = mmproj ? vlm_gguf_ref (mmproj) : NULL;
  reader->entries = g_array_new (FALSE, FALSE, sizeof (Entry));
  vlm_tensor_source_set_reader (source, &functions, reader);
  if (!check_final_norm (text, error)
      || !add_gguf (source, reader, text, mmproj ? TEXT_IN_VISION_MODEL : TEXT_ALONE, error)
      || (mmproj && !add_gguf (source, reader, mmproj, NULL, error))
      || !vlm_tensor_source_index (source, error))
    return NULL;
  return g_steal_pointer (&source);
}
