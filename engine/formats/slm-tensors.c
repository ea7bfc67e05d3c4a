/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The weights of a .slm file, verified while they are read. */

#include "slm-private.h"

#include "engine/vlm.h"
#include "half.h"
#include "slm-pack.h"
#include "tensors-private.h"

#include <math.h>
#include <string.h>

/* Bytes of packed rows and of scales that are read at a time. */
#define CHUNK (256u << 10)

/* How far a tensor has been read. */
typedef struct
{
  const VlmSlmEntry *entry; /* its other fields are the entries behind it */
  guint n_fields;
  guint64 position; /* of the next byte, or row of a quantised tensor */
  /* Of what is before position, for each field; NULL while nothing is. */
  XXH3_state_t *hashes[VLM_SLM_N_FIELDS];
  gboolean verified;
} Stream;

typedef struct
{
  VlmSlm *slm;
  GArray *streams;     /* of Stream, in the order of the source */
  VlmRowBuffer buffer; /* for rows whose integers are packed, and for scales */
} Reader;

static void
clear_stream (gpointer data)
{
  Stream *stream = data;
  guint i;

  for (i = 0; i < VLM_SLM_N_FIELDS; i++)
    g_clear_pointer (&stream->hashes[i], vlm_slm_hash_free);
}

static void
reader_free (gpointer data)
{
  Reader *reader = data;

  g_array_unref (reader->streams);
  vlm_slm_unref (reader->slm);
  g_free (reader->buffer.data);
  g_free (reader);
}

/* At position 0 everything starts anew; elsewhere reading must go on where it stopped. */
static gboolean
seek (Reader *reader, Stream *stream, guint64 position, GError **error)
{
  guint i;

  if (position == 0) {
    clear_stream (stream);
    stream->position = 0;
    stream->verified = FALSE;
    for (i = 0; i < stream->n_fields; i++) {
      stream->hashes[i] = vlm_slm_hash_new (reader->slm, error);
      if (!stream->hashes[i])
        return FALSE;
    }
    return TRUE;
  }
  if (stream->hashes[0] && position == stream->position)
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
  guint i;

  stream->position += n;
  if (stream->position < end)
    return TRUE;
  for (i = 0; good && i < stream->n_fields; i++)
    good = vlm_slm_check_hash (reader->slm, stream->entry + i, stream->hashes[i], error);
  clear_stream (stream);
  stream->verified = good;
  return good;
}

/* n elements of size bytes to the order of this machine. */
static void
order_elements (gpointer elements, gsize n, gsize size)
{
  guint8 *bytes = elements;
  gsize i, j;

  for (i = 0; G_BYTE_ORDER == G_BIG_ENDIAN && i < n * size; i += size) {
    for (j = 0; j < size / 2; j++) {
      guint8 byte = bytes[i + j];

      bytes[i + j] = bytes[i + size - 1 - j];
      bytes[i + size - 1 - j] = byte;
    }
  }
}

static gboolean
read_bytes (gpointer data, guint n, guint64 offset, gpointer buffer, gsize length,
    GCancellable *cancellable, GError **error)
{
  Reader *reader = data;
  Stream *stream = &g_array_index (reader->streams, Stream, n);

  return seek (reader, stream, offset, error)
      && vlm_slm_read_hashed (
          reader->slm, stream->entry, stream->hashes[0], offset, buffer, length, cancellable, error)
      && advance (reader, stream, length, stream->entry->n_bytes, error);
}

/* Makes the buffer hold n bytes. */
static gboolean
reserve (Reader *reader, const VlmSlmEntry *entry, gsize n, GError **error)
{
  return vlm_row_buffer_reserve (
      &reader->buffer, n, vlm_slm_get_path (reader->slm), entry->name, error);
}

/* ---- Integers ----------------------------------------------------------------------------- */

/* Whether the scheme has integers only as vlm_quant_round () makes them. */
static gboolean
is_symmetric (const VlmSlmEntry *entry)
{
  return entry->scheme != VLM_SLM_PLAIN && entry->scheme != VLM_SLM_SCHEME_INTEGERS;
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

/* The bits that a row leaves over in its last byte. */
static gboolean
check_spare (const Reader *reader, const VlmSlmEntry *entry, const guint8 *bytes, guint64 first,
    gsize n_rows, GError **error)
{
  guint n_spare = vlm_slm_spare_bits (entry->format.bits, entry->columns);
  guint expected = is_symmetric (entry) ? VLM_SLM_INT4_SPARE : 0;
  gsize stride = entry->shape[1], i;

  for (i = 0; n_spare && i < n_rows; i++) {
    guint spare = bytes[i * stride + stride - 1] >> (8 - n_spare);

    if (spare == expected)
      continue;
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: row %" G_GUINT64_FORMAT " of tensor %s ends with %u spare bits of %u, expected %u",
        vlm_slm_get_path (reader->slm), first + i, entry->name, n_spare, spare, expected);
    return FALSE;
  }
  return TRUE;
}

static gboolean
read_packed (Reader *reader, Stream *stream, guint64 first, gsize n_rows, gint8 *q,
    GCancellable *cancellable, GError **error)
{
  const VlmSlmEntry *entry = stream->entry;
  gsize stride = entry->shape[1], step = CLAMP (CHUNK / stride, 1, n_rows), done, n, i;

  if (!reserve (reader, entry, step * stride, error))
    return FALSE;
  for (done = 0; done < n_rows; done += n) {
    n = MIN (step, n_rows - done);
    if (!vlm_slm_read_hashed (reader->slm, entry, stream->hashes[0], (first + done) * stride,
            reader->buffer.data, n * stride, cancellable, error)
        || !check_spare (reader, entry, reader->buffer.data, first + done, n, error)
        || (is_symmetric (entry)
            && !check_int4 (reader, entry, reader->buffer.data, first + done, n, error)))
      return FALSE;
    for (i = 0; i < n; i++, q += entry->columns)
      vlm_slm_unpack_row (&entry->format, q, reader->buffer.data + i * stride, entry->columns);
  }
  return TRUE;
}

static gboolean
read_values (Reader *reader, Stream *stream, guint64 first, gsize n_rows, gint8 *q,
    GCancellable *cancellable, GError **error)
{
  const VlmSlmEntry *entry = stream->entry;

  if (entry->format.bits != 8)
    return read_packed (reader, stream, first, n_rows, q, cancellable, error);
  return vlm_slm_read_hashed (reader->slm, entry, stream->hashes[0], first * entry->columns, q,
             n_rows * entry->columns, cancellable, error)
      && (!is_symmetric (entry) || check_int8 (reader, entry, q, first, n_rows, error));
}

/* ---- Scales ------------------------------------------------------------------------------- */

static gboolean
fail_scale (const Reader *reader, const VlmSlmEntry *entry, guint64 at, gdouble value,
    const gchar *expected, GError **error)
{
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: value %" G_GUINT64_FORMAT " of tensor %s is %g, expected %s",
      vlm_slm_get_path (reader->slm), at, entry->name, value, expected);
  return FALSE;
}

/* Scales of symmetric schemes. The largest of all is found before it is looked for. */
static gboolean
check_positive (const Reader *reader, const VlmSlmEntry *entry, const guint16 *halves,
    guint64 first, gsize n, GError **error)
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
  return fail_scale (reader, entry, first + i, vlm_half_to_float (halves[i]),
      "a finite scale of 0 or above", error);
}

/* Codes may be anything. */
static gboolean
check_finite (const Reader *reader, const VlmSlmEntry *entry, gconstpointer values, guint64 first,
    gsize n, GError **error)
{
  gsize i;

  for (i = 0; entry->type != VLM_SAFETENSORS_I8 && i < n; i++) {
    gfloat value = entry->type == VLM_SAFETENSORS_F32
        ? ((const gfloat *) values)[i]
        : vlm_half_to_float (((const guint16 *) values)[i]);

    if (!isfinite (value))
      return fail_scale (reader, entry, first + i, value, "a finite number", error);
  }
  return TRUE;
}

/* Elements first .. first + n - 1 of field number number. */
static gboolean
read_elements (Reader *reader, Stream *stream, guint number, guint64 first, gsize n,
    gpointer values, GCancellable *cancellable, GError **error)
{
  const VlmSlmEntry *entry = stream->entry + number;
  gsize size = vlm_safetensors_type_size (entry->type);

  if (!vlm_slm_read_hashed (reader->slm, entry, stream->hashes[number], first * size, values,
          n * size, cancellable, error))
    return FALSE;
  order_elements (values, n, size);
  return is_symmetric (stream->entry) ? check_positive (reader, entry, values, first, n, error)
                                      : check_finite (reader, entry, values, first, n, error);
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
    guint16 *halves = (guint16 *) reader->buffer.data;

    n = MIN (step, n_rows - done);
    if (!read_elements (reader, stream, 1, first + done, n, halves, cancellable, error))
      return FALSE;
    for (i = 0; i < n; i++)
      scales[done + i] = vlm_half_to_float (halves[i]);
  }
  return TRUE;
}

static gboolean
read_scales (Reader *reader, Stream *stream, guint64 first, gsize n_rows, VlmQuantRows *rows,
    GCancellable *cancellable, GError **error)
{
  guint i;

  if (stream->entry->scheme == VLM_SLM_INT8_ROW)
    return read_row_scales (reader, stream, first, n_rows, rows->scale, cancellable, error);
  for (i = 1; i < stream->n_fields; i++) {
    const VlmSlmEntry *entry = stream->entry + i;
    guint64 a_row = entry->rank > 1 ? entry->shape[1] : 1;

    if (!read_elements (reader, stream, i, first * a_row, n_rows * a_row,
            vlm_slm_field_values (rows, entry->field), cancellable, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
read_rows (gpointer data, guint n, guint64 first, gsize n_rows, VlmQuantRows *rows,
    GCancellable *cancellable, GError **error)
{
  Reader *reader = data;
  Stream *stream = &g_array_index (reader->streams, Stream, n);

  if (n_rows == 0)
    return TRUE;
  return seek (reader, stream, first, error)
      && read_values (reader, stream, first, n_rows, rows->q, cancellable, error)
      && read_scales (reader, stream, first, n_rows, rows, cancellable, error)
      && advance (reader, stream, n_rows, stream->entry->shape[0], error);
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
  Stream stream = { .entry = entry, .n_fields = vlm_slm_entry_count_fields (entry) };
  guint i;

  memcpy (info.shape, entry->shape, sizeof (info.shape));
  if (entry->scheme != VLM_SLM_PLAIN) {
    info.dtype = VLM_DTYPE_QUANTISED;
    info.format = entry->format;
    info.symmetric = is_symmetric (entry);
    info.shape[1] = entry->columns;
    for (i = 1; i < stream.n_fields; i++)
      info.n_bytes += entry[i].n_bytes;
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
    i += vlm_slm_entry_count_fields (entry) - 1;
  }
  return vlm_tensor_source_index (source, error) ? g_steal_pointer (&source) : NULL;
}
