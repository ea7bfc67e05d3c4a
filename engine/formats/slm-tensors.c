/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The weights of a .slm file, verified while they are read. */

#include "slm-private.h"

#include "engine/vlm.h"
#include "half.h"
#include "tensors-private.h"

#include <string.h>

/* Bytes of packed rows and of scales that are read at a time. */
#define CHUNK (256u << 10)

/* How far a tensor has been read. */
typedef struct
{
  const VlmSlmEntry *entry;        /* its scales are the entry behind it */
  guint64 position;                /* of the next byte, or row of a quantised tensor */
  XXH3_state_t *hash, *scale_hash; /* of what is before position; NULL while nothing is */
  gboolean verified;
} Stream;

typedef struct
{
  VlmSlm *slm;
  GArray *streams; /* of Stream, in the order of the source */
  guint8 *buffer;  /* for rows whose integers are packed, and for scales */
  gsize capacity;
} Reader;

static void
clear_stream (gpointer data)
{
  Stream *stream = data;

  g_clear_pointer (&stream->hash, vlm_slm_hash_free);
  g_clear_pointer (&stream->scale_hash, vlm_slm_hash_free);
}

static void
reader_free (gpointer data)
{
  Reader *reader = data;

  g_array_unref (reader->streams);
  vlm_slm_unref (reader->slm);
  g_free (reader->buffer);
  g_free (reader);
}

/* At position 0 everything starts anew; elsewhere reading must go on where it stopped. */
static gboolean
seek (Reader *reader, Stream *stream, guint64 position, GError **error)
{
  if (position == 0) {
    clear_stream (stream);
    stream->position = 0;
    stream->verified = FALSE;
    stream->hash = vlm_slm_hash_new (reader->slm, error);
    stream->scale_hash = stream->hash ? vlm_slm_hash_new (reader->slm, error) : NULL;
    return stream->scale_hash != NULL;
  }
  if (stream->hash && position == stream->position)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_READ,
      "%s: tensor %s is read from %" G_GUINT64_FORMAT " on, expected %" G_GUINT64_FORMAT
      ": a checksum needs the order",
      vlm_slm_get_path (reader->slm), stream->entry->name, position, stream->position);
  return FALSE;
}

/* Counts what was read, and at the end holds the checksums against it. */
static gboolean
advance (Reader *reader, Stream *stream, guint64 n, guint64 end, GError **error)
{
  gboolean good = TRUE;

  stream->position += n;
  if (stream->position < end)
    return TRUE;
  good = vlm_slm_check_hash (reader->slm, stream->entry, stream->hash, error)
      && (stream->entry->scheme == VLM_SLM_PLAIN
          || vlm_slm_check_hash (reader->slm, stream->entry + 1, stream->scale_hash, error));
  clear_stream (stream);
  stream->verified = good;
  return good;
}

/* Halves in the order of this machine. */
static void
order_halves (guint16 *halves, gsize n)
{
  gsize i;

  for (i = 0; G_BYTE_ORDER == G_BIG_ENDIAN && i < n; i++)
    halves[i] = GUINT16_FROM_LE (halves[i]);
}

static gboolean
read_bytes (gpointer data, guint n, guint64 offset, gpointer buffer, gsize length,
    GCancellable *cancellable, GError **error)
{
  Reader *reader = data;
  Stream *stream = &g_array_index (reader->streams, Stream, n);

  return seek (reader, stream, offset, error)
      && vlm_slm_read_hashed (
          reader->slm, stream->entry, stream->hash, offset, buffer, length, cancellable, error)
      && advance (reader, stream, length, stream->entry->n_bytes, error);
}

/* Makes the buffer hold n bytes. */
static gboolean
reserve (Reader *reader, const VlmSlmEntry *entry, gsize n, GError **error)
{
  if (n <= reader->capacity)
    return TRUE;
  g_free (reader->buffer);
  reader->buffer = g_try_malloc (n);
  reader->capacity = reader->buffer ? n : 0;
  if (reader->buffer)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
      "%s: no memory for rows of tensor %s, %" G_GSIZE_FORMAT " bytes",
      vlm_slm_get_path (reader->slm), entry->name, n);
  return FALSE;
}

/* The integer that symmetric rounding never gives, in row number row: -128, or -8. */
static gboolean
fail_integer (const Reader *reader, const VlmSlmEntry *entry, guint64 row, GError **error)
{
  gint limit = entry->scheme == VLM_SLM_INT8_ROW ? 127 : 7;

  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: row %" G_GUINT64_FORMAT " of tensor %s has the integer %d, expected %d..%d",
      vlm_slm_get_path (reader->slm), row, entry->name, -limit - 1, -limit, limit);
  return FALSE;
}

/* Least unsigned bytes, which processors have an instruction for: 0 stands for -128. */
static gboolean
check_int8 (const Reader *reader, const VlmSlmEntry *entry, const gint8 *q, guint64 first,
    gsize n_rows, GError **error)
{
  gsize n = n_rows * entry->columns, i;
  guint8 least = 255;

  for (i = 0; i < n; i++) {
    guint8 shifted = (guint8) q[i] ^ 0x80;

    least = MIN (least, shifted);
  }
  if (least > 0)
    return TRUE;
  for (i = 0; q[i] != -128; i++)
    continue;
  return fail_integer (reader, entry, first + i / entry->columns, error);
}

/* The same of packed bytes, whose halves are above the integers by 8. */
static gboolean
check_int4 (const Reader *reader, const VlmSlmEntry *entry, const guint8 *bytes, guint64 first,
    gsize n_rows, GError **error)
{
  gsize n = n_rows * entry->shape[1], i;
  guint8 least = 15;

  for (i = 0; i < n; i++) {
    guint8 low = bytes[i] & 15, high = bytes[i] >> 4;

    least = MIN (least, low);
    least = MIN (least, high);
  }
  if (least > 0)
    return TRUE;
  for (i = 0; (bytes[i] & 15) != 0 && bytes[i] >> 4 != 0; i++)
    continue;
  return fail_integer (reader, entry, first + i / entry->shape[1], error);
}

static void
unpack_nibbles (gint8 *q, const guint8 *bytes, gsize n)
{
  gsize i;

  for (i = 0; i < n / 2; i++) {
    q[2 * i] = (gint8) ((bytes[i] & 15) - 8);
    q[2 * i + 1] = (gint8) ((bytes[i] >> 4) - 8);
  }
  if (n % 2)
    q[n - 1] = (gint8) ((bytes[n / 2] & 15) - 8);
}

/* The half byte that a row of an odd number of columns has too many. */
static gboolean
check_spare (const Reader *reader, const VlmSlmEntry *entry, const guint8 *bytes, guint64 first,
    gsize n_rows, GError **error)
{
  gsize stride = entry->shape[1], i;

  for (i = 0; entry->columns % 2 && i < n_rows; i++) {
    guint spare = bytes[i * stride + stride - 1] >> 4;

    if (spare == 8)
      continue;
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: row %" G_GUINT64_FORMAT " of tensor %s ends with a half byte of %u, expected 8",
        vlm_slm_get_path (reader->slm), first + i, entry->name, spare);
    return FALSE;
  }
  return TRUE;
}

static gboolean
read_int4 (Reader *reader, Stream *stream, guint64 first, gsize n_rows, gint8 *q,
    GCancellable *cancellable, GError **error)
{
  const VlmSlmEntry *entry = stream->entry;
  gsize stride = entry->shape[1], step = CLAMP (CHUNK / stride, 1, n_rows), done, n, i;

  if (!reserve (reader, entry, step * stride, error))
    return FALSE;
  for (done = 0; done < n_rows; done += n, q += n * entry->columns) {
    n = MIN (step, n_rows - done);
    if (!vlm_slm_read_hashed (reader->slm, entry, stream->hash, (first + done) * stride,
            reader->buffer, n * stride, cancellable, error)
        || !check_spare (reader, entry, reader->buffer, first + done, n, error)
        || !check_int4 (reader, entry, reader->buffer, first + done, n, error))
      return FALSE;
    if (entry->columns % 2 == 0)
      unpack_nibbles (q, reader->buffer, n * entry->columns);
    for (i = 0; entry->columns % 2 && i < n; i++)
      unpack_nibbles (q + i * entry->columns, reader->buffer + i * stride, entry->columns);
  }
  return TRUE;
}

static gboolean
check_scales (const Reader *reader, const VlmSlmEntry *entry, const guint16 *halves, guint64 first,
    gsize n, GError **error)
{
  guint16 largest = 0;
  gsize i;

  for (i = 0; i < n; i++)
    largest = MAX (largest, halves[i]);
  /* Infinity; beyond it are NaN and all that have a sign. */
  if (largest < 0x7c00)
    return TRUE;
  for (i = 0; halves[i] < 0x7c00; i++)
    continue;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: value %" G_GUINT64_FORMAT " of tensor %s is %g, expected a finite scale of 0 or above",
      vlm_slm_get_path (reader->slm), first + i, entry->name, vlm_half_to_float (halves[i]));
  return FALSE;
}

/* Scales first .. first + n - 1 to halves. */
static gboolean
read_scales (Reader *reader, Stream *stream, guint64 first, gsize n, guint16 *halves,
    GCancellable *cancellable, GError **error)
{
  const VlmSlmEntry *entry = stream->entry + 1;

  if (!vlm_slm_read_hashed (reader->slm, entry, stream->scale_hash, first * sizeof (*halves),
          halves, n * sizeof (*halves), cancellable, error))
    return FALSE;
  order_halves (halves, n);
  return check_scales (reader, entry, halves, first, n, error);
}

/* One half a row in the file, f32 for the kernels. */
static gboolean
read_row_scales (Reader *reader, Stream *stream, guint64 first, gsize n_rows, gfloat *scales,
    GCancellable *cancellable, GError **error)
{
  gsize step = CHUNK / sizeof (guint16), done, n, i;

  if (!reserve (reader, stream->entry, CHUNK, error))
    return FALSE;
  for (done = 0; done < n_rows; done += n) {
    guint16 *halves = (guint16 *) reader->buffer;

    n = MIN (step, n_rows - done);
    if (!read_scales (reader, stream, first + done, n, halves, cancellable, error))
      return FALSE;
    for (i = 0; i < n; i++)
      scales[done + i] = vlm_half_to_float (halves[i]);
  }
  return TRUE;
}

static gboolean
read_int8 (Reader *reader, Stream *stream, guint64 first, gsize n_rows, gint8 *q,
    GCancellable *cancellable, GError **error)
{
  const VlmSlmEntry *entry = stream->entry;

  return vlm_slm_read_hashed (reader->slm, entry, stream->hash, first * entry->columns, q,
             n_rows * entry->columns, cancellable, error)
      && check_int8 (reader, entry, q, first, n_rows, error);
}

static gboolean
read_rows (gpointer data, guint n, guint64 first, gsize n_rows, VlmQuantRows *rows,
    GCancellable *cancellable, GError **error)
{
  Reader *reader = data;
  Stream *stream = &g_array_index (reader->streams, Stream, n);
  gboolean good;

  if (n_rows == 0)
    return TRUE;
  if (!seek (reader, stream, first, error))
    return FALSE;
  if (stream->entry->scheme == VLM_SLM_INT8_ROW)
    good = read_int8 (reader, stream, first, n_rows, rows->q, cancellable, error)
        && read_row_scales (reader, stream, first, n_rows, rows->scale, cancellable, error);
  else
    good = read_int4 (reader, stream, first, n_rows, rows->q, cancellable, error)
        && read_scales (reader, stream, first * rows->n_groups, n_rows * rows->n_groups,
            rows->scale, cancellable, error);
  return good && advance (reader, stream, n_rows, stream->entry->shape[0], error);
}

static gboolean
is_verified (gpointer data, guint n)
{
  const Reader *reader = data;

  return g_array_index (reader->streams, Stream, n).verified;
}

/* The tensor of entry, with the shape that it has to the network. */
static void
add_tensor (VlmTensorSource *source, Reader *reader, const VlmSlmEntry *entry)
{
  VlmTensorInfo info = { .name = g_strdup (entry->name),
    .dtype = VLM_DTYPE_F16,
    .rank = entry->rank,
    .n_bytes = entry->n_bytes,
    .offset = reader->slm->data_start + entry->offset };
  Stream stream = { .entry = entry };

  memcpy (info.shape, entry->shape, sizeof (info.shape));
  if (entry->scheme != VLM_SLM_PLAIN) {
    info.dtype = VLM_DTYPE_QUANTISED;
    info.format = *vlm_slm_scheme_format (entry->scheme);
    info.shape[1] = entry->columns;
    info.n_bytes += entry[1].n_bytes;
  }
  vlm_tensor_source_add (source, &info);
  g_array_append_val (reader->streams, stream);
}

VlmTensorSource *
vlm_slm_get_tensors (VlmSlm *slm, GError **error)
{
  static const VlmTensorReader functions = { read_bytes, read_rows, is_verified, reader_free };
  g_autoptr (VlmTensorSource) source = vlm_tensor_source_new ();
  g_autoptr (VlmFile) file = vlm_file_ref (slm->file);
  Reader *reader = g_new0 (Reader, 1);
  guint i;

  reader->slm = vlm_slm_ref (slm);
  reader->streams = g_array_new (FALSE, FALSE, sizeof (Stream));
  g_array_set_clear_func (reader->streams, clear_stream);
  vlm_tensor_source_set_reader (source, &functions, reader);
  vlm_tensor_source_add_file (source, g_steal_pointer (&file));
  for (i = 0; i < slm->manifest.entries->len; i++) {
    const VlmSlmEntry *entry = vlm_slm_manifest_nth (&slm->manifest, i);

    if (vlm_slm_entry_file (entry))
      continue;
    add_tensor (source, reader, entry);
    if (entry->scheme != VLM_SLM_PLAIN)
      i++;
  }
  return vlm_tensor_source_index (source, error) ? g_steal_pointer (&source) : NULL;
}
