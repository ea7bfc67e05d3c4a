/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Rows of tensors on their way into a .slm file. */

#include "slm-writer-private.h"

#include "engine/vlm.h"
#include "half.h"
#include "slm-pack.h"

#include <math.h>
#include <string.h>

/* Halves that are made at a time. */
#define SOME_HALVES 4096

/* ---- Entries ------------------------------------------------------------------------------ */

/* Bytes of a stored row. */
static guint64
row_bytes (const VlmSlmEntry *entry)
{
  return entry->rank ? entry->n_bytes / entry->shape[0] : entry->n_bytes;
}

/* Number i of the entries of what is being written, its fields. */
static VlmSlmEntry *
nth_field (const VlmSlmWriter *writer, guint i)
{
  return vlm_slm_manifest_nth (&writer->manifest, writer->current + i);
}

static VlmSlmEntry *
current_entry (const VlmSlmWriter *writer)
{
  return nth_field (writer, 0);
}

/* Bytes from offset on of a field; what padding covers stays a hole of zeros. */
static gboolean
write_payload (
    VlmSlmWriter *writer, guint field, guint64 offset, gconstpointer data, gsize n, GError **error)
{
  XXH3_128bits_update (writer->hashes[field], data, n);
  return vlm_atomic_file_write (writer->file,
      writer->data_start + nth_field (writer, field)->offset + offset, data, n, error);
}

static void
start_entry (VlmSlmWriter *writer)
{
  guint i;

  for (i = 0; i < VLM_SLM_N_FIELDS; i++)
    XXH3_128bits_reset (writer->hashes[i]);
  writer->row = 0;
}

static void
end_entry (VlmSlmWriter *writer)
{
  guint n = vlm_slm_entry_count_fields (current_entry (writer)), i;

  for (i = 0; i < n; i++)
    nth_field (writer, i)->hash = XXH3_128bits_digest (writer->hashes[i]);
  writer->current += n;
}

gboolean
vlm_slm_writer_put_entry (VlmSlmWriter *writer, gconstpointer data, gsize n, GError **error)
{
  start_entry (writer);
  if (!write_payload (writer, 0, 0, data, n, error))
    return FALSE;
  end_entry (writer);
  return TRUE;
}

gboolean
vlm_slm_writer_open_tensor (VlmSlmWriter *writer, GError **error)
{
  const VlmSlmEntry *entry;

  start_entry (writer);
  if (writer->current == writer->manifest.entries->len
      || current_entry (writer)->scheme == VLM_SLM_PLAIN)
    return TRUE;
  entry = current_entry (writer);
  g_free (writer->buffer);
  writer->buffer = g_try_malloc (MAX (VLM_SLM_CHUNK, row_bytes (entry)));
  if (writer->buffer)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
      "%s: no memory for a row of tensor %s, %" G_GUINT64_FORMAT " bytes", writer->path,
      entry->name, row_bytes (entry));
  return FALSE;
}

/* Counts rows, and after the last one opens the next tensor. */
static gboolean
advance (VlmSlmWriter *writer, gsize n_rows, GError **error)
{
  const VlmSlmEntry *entry = current_entry (writer);

  writer->row += n_rows;
  if (writer->row < (entry->rank ? entry->shape[0] : 1))
    return TRUE;
  end_entry (writer);
  return vlm_slm_writer_open_tensor (writer, error);
}

static gboolean
may_put (const VlmSlmWriter *writer, gsize n_rows)
{
  const VlmSlmEntry *entry;

  if (!writer->file || writer->current == writer->manifest.entries->len)
    return FALSE;
  entry = current_entry (writer);
  return n_rows >= 1 && n_rows <= (entry->rank ? entry->shape[0] : 1) - writer->row;
}

/* n elements of size bytes in the byte order of the file to the place of element number at. */
static gboolean
write_elements (VlmSlmWriter *writer, guint field, guint64 at, gconstpointer elements, gsize n,
    gsize size, GError **error)
{
  const guint8 *from = elements;
  gsize done, part, i;

  if (G_BYTE_ORDER == G_LITTLE_ENDIAN || size == 1)
    return write_payload (writer, field, at * size, elements, n * size, error);
  for (done = 0; done < n; done += part) {
    part = MIN (VLM_SLM_CHUNK / size, n - done);
    for (i = 0; i < part * size; i++)
      writer->buffer[i] = from[done * size + (i ^ (size - 1))];
    if (!write_payload (writer, field, (at + done) * size, writer->buffer, part * size, error))
      return FALSE;
  }
  return TRUE;
}

/* ---- Halves ------------------------------------------------------------------------------- */

static gboolean
fail_half (VlmSlmWriter *writer, guint64 at, gdouble value, GError **error)
{
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: value %" G_GUINT64_FORMAT " of tensor %s is %g, expected a finite half (at most 65504)",
      writer->path, at, current_entry (writer)->name, value);
  return FALSE;
}

gboolean
vlm_slm_writer_put_halves (
    VlmSlmWriter *writer, const guint16 *values, gsize n_rows, GError **error)
{
  guint64 first, n, i;

  g_return_val_if_fail (
      may_put (writer, n_rows) && current_entry (writer)->scheme == VLM_SLM_PLAIN, FALSE);
  n = row_bytes (current_entry (writer)) / sizeof (*values);
  first = writer->row * n;
  n *= n_rows;
  for (i = 0; i < n; i++) {
    if ((values[i] & 0x7fff) >= 0x7c00)
      return fail_half (writer, first + i, vlm_half_to_float (values[i]), error);
  }
  return write_elements (writer, 0, first, values, n, sizeof (*values), error)
      && advance (writer, n_rows, error);
}

static gboolean
put_plain_floats (VlmSlmWriter *writer, const gfloat *values, gsize n_rows, GError **error)
{
  guint64 n = row_bytes (current_entry (writer)) / sizeof (guint16);
  guint64 first = writer->row * n, done;
  guint16 halves[SOME_HALVES];

  n *= n_rows;
  for (done = 0; done < n;) {
    gsize part = MIN (SOME_HALVES, n - done);
    gsize good = vlm_halves_from_floats (halves, values + done, part);

    if (good < part)
      return fail_half (writer, first + done + good, values[done + good], error);
    if (!write_elements (writer, 0, first + done, halves, part, sizeof (*halves), error))
      return FALSE;
    done += part;
  }
  return advance (writer, n_rows, error);
}

gboolean
vlm_slm_writer_put_floats (VlmSlmWriter *writer, const gfloat *values, gsize n_rows, GError **error)
{
  const VlmSlmEntry *entry;
  VlmQuantRows rows;
  gboolean good;

  g_return_val_if_fail (may_put (writer, n_rows), FALSE);
  entry = current_entry (writer);
  if (entry->scheme == VLM_SLM_PLAIN)
    return put_plain_floats (writer, values, n_rows, error);
  g_return_val_if_fail (entry->scheme != VLM_SLM_SCHEME_INTEGERS, FALSE);
  if (!vlm_quant_rows_init (&rows, &entry->format, n_rows, entry->columns, error))
    return FALSE;
  good = vlm_quant_round (&rows, values, n_rows, entry->columns, error);
  if (good)
    good = vlm_slm_writer_put_quantised (writer, &rows, 0, n_rows, error);
  else
    g_prefix_error (error, "%s: tensor %s, from row %" G_GUINT64_FORMAT " on: ", writer->path,
        entry->name, writer->row);
  vlm_quant_rows_clear (&rows);
  return good;
}

/* ---- Integers ----------------------------------------------------------------------------- */

static gboolean
fail_integer (VlmSlmWriter *writer, guint64 row, gint value, gint least, gint most, GError **error)
{
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: row %" G_GUINT64_FORMAT " of tensor %s has the integer %d, expected %d..%d",
      writer->path, row, current_entry (writer)->name, value, least, most);
  return FALSE;
}

/* What a file may not hold must not get into one. Symmetric rounding never gives the lowest. */
static gboolean
check_integers (VlmSlmWriter *writer, const gint8 *q, gsize n_rows, GError **error)
{
  const VlmSlmEntry *entry = current_entry (writer);
  const VlmIntFormat *format = &entry->format;
  gint least = format->has_min ? 0 : -(1 << (format->bits - 1));
  gint most = least + (1 << format->bits) - 1;
  guint64 row, i;

  if (entry->scheme != VLM_SLM_SCHEME_INTEGERS)
    least++;
  for (row = 0; row < n_rows; row++, q += entry->columns) {
    gint low = most, high = least;

    for (i = 0; i < entry->columns; i++) {
      low = MIN (low, q[i]);
      high = MAX (high, q[i]);
    }
    if (low < least || high > most)
      return fail_integer (writer, writer->row + row, low < least ? low : high, least, most, error);
  }
  return TRUE;
}

static gboolean
write_integers (VlmSlmWriter *writer, const gint8 *q, gsize n_rows, GError **error)
{
  const VlmSlmEntry *entry = current_entry (writer);
  guint64 bytes = row_bytes (entry), offset = writer->row * bytes;
  guint8 spare = entry->scheme == VLM_SLM_SCHEME_INTEGERS ? 0 : VLM_SLM_INT4_SPARE;
  gsize done = 0, i;

  if (entry->format.bits == 8)
    return write_payload (writer, 0, offset, q, n_rows * bytes, error);
  while (done < n_rows) {
    gsize n = MIN (MAX (VLM_SLM_CHUNK / bytes, 1), n_rows - done);

    for (i = 0; i < n; i++)
      vlm_slm_pack_row (&entry->format, writer->buffer + i * bytes, q + (done + i) * entry->columns,
          entry->columns, spare);
    if (!write_payload (writer, 0, offset + done * bytes, writer->buffer, n * bytes, error))
      return FALSE;
    done += n;
  }
  return TRUE;
}

/* ---- Scales ------------------------------------------------------------------------------- */

static gboolean
fail_scale (VlmSlmWriter *writer, guint64 row, gdouble value, const gchar *expected, GError **error)
{
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: row %" G_GUINT64_FORMAT " of tensor %s has the scale %g, expected %s", writer->path, row,
      current_entry (writer)->name, value, expected);
  return FALSE;
}

/* Scales as vlm_quant_round () makes them: halves without a sign. */
static gboolean
put_symmetric_scales (VlmSlmWriter *writer, const VlmQuantRows *rows, gsize n_rows, GError **error)
{
  gsize n = n_rows * rows->n_groups, done, part, i;
  guint64 first = writer->row * rows->n_groups;
  gboolean per_row = rows->format.scale == VLM_SCALE_ROW;
  guint16 halves[SOME_HALVES];

  for (done = 0; done < n; done += part) {
    part = MIN (SOME_HALVES, n - done);
    for (i = 0; i < part; i++) {
      gsize at = done + i;
      gfloat scale = per_row ? ((const gfloat *) rows->scale)[at]
                             : vlm_half_to_float (((const guint16 *) rows->scale)[at]);

      halves[i] = vlm_half_from_float (scale);
      /* Beyond the infinity are NaN and everything with a sign. */
      if (vlm_half_to_float (halves[i]) != scale || halves[i] >= 0x7c00)
        return fail_scale (
            writer, writer->row + at / rows->n_groups, scale, "a finite half of 0 or above", error);
    }
    if (!write_elements (writer, 1, first + done, halves, part, sizeof (*halves), error))
      return FALSE;
  }
  return TRUE;
}

/* Scales, minimums or halves of n_rows rows, as they are. */
static gboolean
put_field (
    VlmSlmWriter *writer, guint number, const VlmQuantRows *rows, gsize n_rows, GError **error)
{
  const VlmSlmEntry *entry = nth_field (writer, number);
  gsize size = vlm_safetensors_type_size (entry->type),
        a_row = entry->rank > 1 ? entry->shape[1] : 1;
  gconstpointer values = vlm_slm_field_values (rows, entry->field);
  gsize n = n_rows * a_row, i;

  for (i = 0; i < n && size > 1; i++) {
    gfloat value = size == 4 ? ((const gfloat *) values)[i]
                             : vlm_half_to_float (((const guint16 *) values)[i]);

    if (!isfinite (value))
      return fail_scale (writer, writer->row + i / a_row, value, "a finite number", error);
  }
  return write_elements (writer, number, writer->row * a_row, values, n, size, error);
}

static gboolean
put_scales (VlmSlmWriter *writer, const VlmQuantRows *rows, gsize n_rows, GError **error)
{
  const VlmSlmEntry *entry = current_entry (writer);
  guint n = vlm_slm_entry_count_fields (entry), i;

  if (entry->scheme != VLM_SLM_SCHEME_INTEGERS)
    return put_symmetric_scales (writer, rows, n_rows, error);
  for (i = 1; i < n; i++) {
    if (!put_field (writer, i, rows, n_rows, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
vlm_slm_writer_put_quantised (
    VlmSlmWriter *writer, const VlmQuantRows *rows, gsize first, gsize n_rows, GError **error)
{
  const VlmSlmEntry *entry;
  VlmQuantRows part;

  g_return_val_if_fail (may_put (writer, n_rows) && rows->capacity - first >= n_rows, FALSE);
  entry = current_entry (writer);
  g_return_val_if_fail (entry->scheme != VLM_SLM_PLAIN && rows->cols == entry->columns
          && vlm_int_format_equal (&rows->format, &entry->format),
      FALSE);
  part = vlm_quant_rows_skip (rows, first);
  return check_integers (writer, part.q, n_rows, error) && put_scales (writer, &part, n_rows, error)
      && write_integers (writer, part.q, n_rows, error) && advance (writer, n_rows, error);
}
