/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "atomic-file.h"
#include "engine/vlm.h"
#include "half.h"
#include "safetensors-file.h"
#include "slm-manifest.h"
#include "slm.h"

#include <string.h>

/* Bytes that are turned into what the file holds at a time. */
#define CHUNK (256u << 10)

G_STATIC_ASSERT ((int) VLM_SLM_F16 == (int) VLM_SLM_PLAIN);
G_STATIC_ASSERT ((int) VLM_SLM_INT8 == (int) VLM_SLM_INT8_ROW);
G_STATIC_ASSERT ((int) VLM_SLM_INT4 == (int) VLM_SLM_INT4_GROUP_64);

struct _VlmSlmWriter
{
  gchar *path;
  VlmAtomicFile *file; /* from begin on */
  VlmSlmManifest manifest;
  GPtrArray *contents; /* GBytes of the first entries, which are the settings files */
  GArray *layout;      /* of VlmSafetensorsEntry, from begin on */
  guint64 data_start, size;

  guint current; /* the entry being written */
  guint64 row;   /* its next */
  XXH3_state_t *hash;
  guint16 *scales; /* of the entry, until they are written behind it */
  guint64 n_scales;
  guint8 *buffer; /* CHUNK bytes, or a row of the entry when that is more */
};

VlmSlmWriter *
vlm_slm_writer_new (const gchar *path, const VlmConfig *config, GError **error)
{
  VlmSlmWriter *writer = g_new0 (VlmSlmWriter, 1);

  writer->path = g_strdup (path);
  writer->contents = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
  writer->hash = XXH3_createState ();
  writer->buffer = g_malloc (CHUNK);
  vlm_slm_manifest_init (&writer->manifest);
  writer->manifest.has_vision = config->has_vision;
  writer->manifest.n_layers = config->text.n_layers;
  memcpy (writer->manifest.layers, config->text.layers, sizeof (writer->manifest.layers));
  if (writer->hash)
    return writer;
  g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY, "%s: no memory for a checksum", path);
  vlm_slm_writer_free (writer);
  return NULL;
}

void
vlm_slm_writer_free (VlmSlmWriter *writer)
{
  if (!writer)
    return;
  g_clear_pointer (&writer->file, vlm_atomic_file_free);
  vlm_slm_manifest_clear (&writer->manifest);
  g_ptr_array_unref (writer->contents);
  g_clear_pointer (&writer->layout, g_array_unref);
  if (writer->hash)
    XXH3_freeState (writer->hash);
  g_free (writer->scales);
  g_free (writer->buffer);
  g_free (writer->path);
  g_free (writer);
}

/* ---- What there will be ------------------------------------------------------------------- */

gboolean
vlm_slm_writer_add_file (VlmSlmWriter *writer, const gchar *name, GBytes *bytes, GError **error)
{
  gsize size = g_bytes_get_size (bytes);
  VlmSlmEntry entry = { .type = VLM_SAFETENSORS_U8, .rank = 1, .shape = { size } };

  g_return_val_if_fail (!writer->file && vlm_slm_is_file_name (name), FALSE);
  if (size < 1 || size > VLM_SLM_MAX_FILE) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: %s has %" G_GSIZE_FORMAT " bytes, expected 1..%u", writer->path, name, size,
        VLM_SLM_MAX_FILE);
    return FALSE;
  }
  vlm_slm_entry_measure (&entry);
  entry.name = g_strconcat (VLM_SLM_FILES, name, NULL);
  g_array_insert_val (writer->manifest.entries, writer->contents->len, entry);
  g_ptr_array_add (writer->contents, g_bytes_ref (bytes));
  return TRUE;
}

gboolean
vlm_slm_writer_add_tensor (VlmSlmWriter *writer, const gchar *name, VlmSlmType type,
    const guint64 *shape, guint rank, GError **error)
{
  VlmSlmEntry entry = { .type = VLM_SAFETENSORS_F16, .rank = rank }, scale = { 0 };
  g_autofree gchar *shown = vlm_tensor_shape_to_string (shape, rank);
  gboolean fits;

  g_return_val_if_fail (
      !writer->file && rank <= VLM_MAX_RANK && (type == VLM_SLM_F16 || rank == 2), FALSE);
  if (!vlm_slm_is_weight_name (name)) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: a tensor cannot be called \"%.*s\", expected 1..%d plain ASCII characters",
        writer->path, 80, name, VLM_SLM_MAX_NAME);
    return FALSE;
  }
  memcpy (entry.shape, shape, rank * sizeof (*shape));
  fits = type == VLM_SLM_F16
      ? vlm_slm_entry_measure (&entry)
      : vlm_slm_entry_init_matrix (&entry, &scale, (VlmSlmScheme) type, shape[0], shape[1]);
  if (!fits) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: tensor %s has shape %s, expected sides of at least 1 and a size within bounds",
        writer->path, name, shown);
    return FALSE;
  }
  entry.name = g_strdup (name);
  g_array_append_val (writer->manifest.entries, entry);
  if (type != VLM_SLM_F16) {
    scale.name = g_strconcat (name, VLM_SLM_SCALE, NULL);
    g_array_append_val (writer->manifest.entries, scale);
  }
  return TRUE;
}

/* ---- Header ------------------------------------------------------------------------------- */

/* As it stands in the file: length, JSON, and spaces up to where the data begin. */
static GString *
print_header (VlmSlmWriter *writer)
{
  g_autofree gchar *manifest = vlm_slm_manifest_print (&writer->manifest);
  g_auto (GStrv) pieces = g_strsplit (manifest, "\"", -1);
  g_autofree gchar *escaped = g_strjoinv ("\\\"", pieces);
  GString *header = g_string_new (NULL);
  gchar hash[VLM_SLM_HASH_TEXT];
  guint64 length;
  guint i;

  vlm_slm_hash_print (XXH3_128bits (manifest, strlen (manifest)), hash);
  g_string_append_len (header, "\0\0\0\0\0\0\0\0", VLM_SAFETENSORS_PREFIX);
  g_string_append_printf (header,
      "{\"__metadata__\":{\"" VLM_SLM_KEY_FORMAT "\":\"" VLM_SLM_FORMAT "\",\"" VLM_SLM_KEY_HASH
      "\":\"%s\",\"" VLM_SLM_KEY_MANIFEST "\":\"",
      hash);
  g_string_append (header, escaped);
  g_string_append (header, "\"}");
  for (i = 0; i < writer->layout->len; i++) {
    const VlmSafetensorsEntry *entry = &g_array_index (writer->layout, VlmSafetensorsEntry, i);
    g_autofree gchar *shape = vlm_tensor_shape_to_string (entry->shape, entry->rank);

    g_string_append_printf (header,
        ",\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%" G_GUINT64_FORMAT
        ",%" G_GUINT64_FORMAT "]}",
        entry->name, vlm_safetensors_type_name (entry->type), shape, entry->offset,
        entry->offset + entry->n_bytes);
  }
  g_string_append_c (header, '}');
  while (header->len % VLM_SLM_ALIGNMENT)
    g_string_append_c (header, ' ');
  length = GUINT64_TO_LE (header->len - VLM_SAFETENSORS_PREFIX);
  memcpy (header->str, &length, sizeof (length));
  return header;
}

static gboolean
lay_out (VlmSlmWriter *writer, GError **error)
{
  const VlmSafetensorsEntry *last;
  GString *header;

  writer->layout = vlm_slm_lay_out (&writer->manifest, writer->path, error);
  if (!writer->layout)
    return FALSE;
  g_return_val_if_fail (writer->layout->len > 0, FALSE);
  /* Hashes are not known yet, but all have the same length. */
  header = print_header (writer);
  writer->data_start = header->len;
  g_string_free (header, TRUE);
  last = &g_array_index (writer->layout, VlmSafetensorsEntry, writer->layout->len - 1);
  writer->size = writer->data_start + last->offset + last->n_bytes;
  if (writer->data_start - VLM_SAFETENSORS_PREFIX <= VLM_SLM_MAX_HEADER)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: the header would have %" G_GUINT64_FORMAT " bytes, expected at most %u", writer->path,
      writer->data_start, VLM_SLM_MAX_HEADER);
  return FALSE;
}

guint64
vlm_slm_writer_get_size (const VlmSlmWriter *writer)
{
  return writer->size;
}

/* ---- Payloads ----------------------------------------------------------------------------- */

/* Bytes of a stored row. */
static guint64
row_bytes (const VlmSlmEntry *entry)
{
  return entry->rank ? entry->n_bytes / entry->shape[0] : entry->n_bytes;
}

static VlmSlmEntry *
current_entry (VlmSlmWriter *writer)
{
  return vlm_slm_manifest_nth (&writer->manifest, writer->current);
}

/* The place in the file of byte offset of the entry; what padding covers stays a hole of zeros. */
static gboolean
write_payload (VlmSlmWriter *writer, guint64 offset, gconstpointer data, gsize n, GError **error)
{
  XXH3_128bits_update (writer->hash, data, n);
  return vlm_atomic_file_write (
      writer->file, writer->data_start + current_entry (writer)->offset + offset, data, n, error);
}

static void
start_entry (VlmSlmWriter *writer)
{
  XXH3_128bits_reset (writer->hash);
  writer->row = 0;
}

static void
end_entry (VlmSlmWriter *writer)
{
  current_entry (writer)->hash = XXH3_128bits_digest (writer->hash);
  writer->current++;
}

/* A whole entry at once. */
static gboolean
write_entry (VlmSlmWriter *writer, gconstpointer data, gsize n, GError **error)
{
  start_entry (writer);
  if (!write_payload (writer, 0, data, n, error))
    return FALSE;
  end_entry (writer);
  return TRUE;
}

/* Makes ready for the entry whose rows come next: its scales are kept until it is written. */
static gboolean
open_tensor (VlmSlmWriter *writer, GError **error)
{
  const VlmSlmEntry *entry, *scale;

  start_entry (writer);
  if (writer->current == writer->manifest.entries->len
      || current_entry (writer)->scheme == VLM_SLM_PLAIN)
    return TRUE;
  entry = current_entry (writer);
  scale = entry + 1;
  writer->n_scales = 0;
  writer->scales = g_try_malloc (scale->n_bytes);
  g_free (writer->buffer);
  writer->buffer = g_try_malloc (MAX (CHUNK, row_bytes (entry)));
  if (writer->scales && writer->buffer)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
      "%s: no memory for the scales of tensor %s, %" G_GUINT64_FORMAT " bytes", writer->path,
      entry->name, scale->n_bytes);
  return FALSE;
}

/* Counts rows, and after the last one writes the scales and opens the next tensor. */
static gboolean
advance (VlmSlmWriter *writer, gsize n_rows, GError **error)
{
  const VlmSlmEntry *entry = current_entry (writer);
  g_autofree guint16 *scales = NULL;

  writer->row += n_rows;
  if (writer->row < (entry->rank ? entry->shape[0] : 1))
    return TRUE;
  end_entry (writer);
  scales = g_steal_pointer (&writer->scales);
  if (scales && !write_entry (writer, scales, writer->n_scales * sizeof (*scales), error))
    return FALSE;
  return open_tensor (writer, error);
}

gboolean
vlm_slm_writer_begin (VlmSlmWriter *writer, GError **error)
{
  guint i;

  g_return_val_if_fail (!writer->file, FALSE);
  if (!lay_out (writer, error))
    return FALSE;
  writer->file = vlm_atomic_file_new (writer->path, writer->size, error);
  if (!writer->file)
    return FALSE;
  for (i = 0; i < writer->contents->len; i++) {
    gsize size;
    gconstpointer data = g_bytes_get_data (writer->contents->pdata[i], &size);

    if (!write_entry (writer, data, size, error))
      return FALSE;
  }
  return open_tensor (writer, error);
}

static gboolean
may_put (const VlmSlmWriter *writer, gsize n_rows)
{
  const VlmSlmEntry *entry;

  if (!writer->file || writer->current == writer->manifest.entries->len)
    return FALSE;
  entry = vlm_slm_manifest_nth (&writer->manifest, writer->current);
  return n_rows >= 1 && n_rows <= (entry->rank ? entry->shape[0] : 1) - writer->row;
}

static gboolean
fail_half (VlmSlmWriter *writer, guint64 at, gdouble value, GError **error)
{
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: value %" G_GUINT64_FORMAT " of tensor %s is %g, expected a finite half (at most 65504)",
      writer->path, at, current_entry (writer)->name, value);
  return FALSE;
}

/* n halves in the byte order of the file to the place of value number at. */
static gboolean
write_halves (VlmSlmWriter *writer, guint64 at, const guint16 *halves, gsize n, GError **error)
{
  guint16 *ordered = (guint16 *) writer->buffer;
  gsize i;

  for (i = 0; i < n; i++)
    ordered[i] = GUINT16_TO_LE (halves[i]);
  return write_payload (writer, at * sizeof (*halves), ordered, n * sizeof (*halves), error);
}

gboolean
vlm_slm_writer_put_halves (
    VlmSlmWriter *writer, const guint16 *values, gsize n_rows, GError **error)
{
  guint64 first, n, done, i;

  g_return_val_if_fail (
      may_put (writer, n_rows) && current_entry (writer)->scheme == VLM_SLM_PLAIN, FALSE);
  n = row_bytes (current_entry (writer)) / sizeof (*values);
  first = writer->row * n;
  n *= n_rows;
  for (i = 0; i < n; i++) {
    if ((values[i] & 0x7fff) >= 0x7c00)
      return fail_half (writer, first + i, vlm_half_to_float (values[i]), error);
  }
  for (done = 0; done < n; done += CHUNK / sizeof (*values)) {
    if (!write_halves (
            writer, first + done, values + done, MIN (CHUNK / sizeof (*values), n - done), error))
      return FALSE;
  }
  return advance (writer, n_rows, error);
}

static gboolean
put_plain_floats (VlmSlmWriter *writer, const gfloat *values, gsize n_rows, GError **error)
{
  guint64 n = row_bytes (current_entry (writer)) / sizeof (guint16);
  guint64 first = writer->row * n, done;
  guint16 *halves = (guint16 *) writer->buffer;

  n *= n_rows;
  for (done = 0; done < n;) {
    gsize part = MIN (CHUNK / sizeof (*halves), n - done);
    gsize good = vlm_halves_from_floats (halves, values + done, part);

    if (good < part)
      return fail_half (writer, first + done + good, values[done + good], error);
    if (!write_halves (writer, first + done, halves, part, error))
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
  if (!vlm_quant_rows_init (
          &rows, vlm_slm_scheme_format (entry->scheme), n_rows, entry->columns, error))
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

/* q + 8 of two neighbours in a byte, the first in the low half; a last one alone has an 8. */
static void
pack_nibbles (guint8 *out, const gint8 *q, gsize n)
{
  gsize i;

  for (i = 0; i + 1 < n; i += 2)
    out[i / 2] = (guint8) ((q[i] + 8) | (q[i + 1] + 8) << 4);
  if (n % 2)
    out[n / 2] = (guint8) ((q[n - 1] + 8) | 8 << 4);
}

static gboolean
write_integers (VlmSlmWriter *writer, const gint8 *q, gsize n_rows, GError **error)
{
  const VlmSlmEntry *entry = current_entry (writer);
  guint64 bytes = row_bytes (entry), offset = writer->row * bytes;
  gsize done = 0, i;

  if (entry->scheme == VLM_SLM_INT8_ROW)
    return write_payload (writer, offset, q, n_rows * bytes, error);
  while (done < n_rows) {
    gsize n = MIN (MAX (CHUNK / bytes, 1), n_rows - done);

    for (i = 0; i < n; i++)
      pack_nibbles (writer->buffer + i * bytes, q + (done + i) * entry->columns, entry->columns);
    if (!write_payload (writer, offset + done * bytes, writer->buffer, n * bytes, error))
      return FALSE;
    done += n;
  }
  return TRUE;
}

static gboolean
fail_integer (VlmSlmWriter *writer, guint64 row, gint value, gint limit, GError **error)
{
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: row %" G_GUINT64_FORMAT " of tensor %s has the integer %d, expected %d..%d",
      writer->path, row, current_entry (writer)->name, value, -limit, limit);
  return FALSE;
}

static gboolean
fail_scale (VlmSlmWriter *writer, guint64 row, gdouble value, GError **error)
{
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: row %" G_GUINT64_FORMAT
      " of tensor %s has the scale %g, expected a finite half of 0 or above",
      writer->path, row, current_entry (writer)->name, value);
  return FALSE;
}

/* What a file may not hold must not get into one. */
static gboolean
check_integers (VlmSlmWriter *writer, const gint8 *q, gsize n_rows, GError **error)
{
  guint64 columns = current_entry (writer)->columns, row, i;
  gint limit = current_entry (writer)->scheme == VLM_SLM_INT8_ROW ? 127 : 7;

  for (row = 0; row < n_rows; row++, q += columns) {
    gint least = 0, most = 0;

    for (i = 0; i < columns; i++) {
      least = MIN (least, q[i]);
      most = MAX (most, q[i]);
    }
    if (least < -limit || most > limit)
      return fail_integer (writer, writer->row + row, least < -limit ? least : most, limit, error);
  }
  return TRUE;
}

/* Keeps the scales of rows first on as halves, in the byte order of the file. */
static gboolean
take_scales (
    VlmSlmWriter *writer, const VlmQuantRows *rows, gsize first, gsize n_rows, GError **error)
{
  gsize n = n_rows * rows->n_groups, i;

  for (i = 0; i < n; i++) {
    gsize at = first * rows->n_groups + i;
    guint16 half;

    if (rows->format.scale == VLM_SCALE_ROW) {
      gfloat scale = ((const gfloat *) rows->scale)[at];

      half = vlm_half_from_float (scale);
      if (vlm_half_to_float (half) != scale)
        return fail_scale (writer, writer->row + i, scale, error);
    } else {
      half = ((const guint16 *) rows->scale)[at];
    }
    /* Beyond the infinity are NaN and everything with a sign. */
    if (half >= 0x7c00)
      return fail_scale (writer, writer->row + i / rows->n_groups, vlm_half_to_float (half), error);
    writer->scales[writer->n_scales++] = GUINT16_TO_LE (half);
  }
  return TRUE;
}

gboolean
vlm_slm_writer_put_quantised (
    VlmSlmWriter *writer, const VlmQuantRows *rows, gsize first, gsize n_rows, GError **error)
{
  const VlmSlmEntry *entry;
  const VlmIntFormat *format;
  const gint8 *q;

  g_return_val_if_fail (may_put (writer, n_rows) && rows->capacity - first >= n_rows, FALSE);
  entry = current_entry (writer);
  format = vlm_slm_scheme_format (entry->scheme);
  g_return_val_if_fail (entry->scheme != VLM_SLM_PLAIN && rows->cols == entry->columns
          && rows->format.bits == format->bits && rows->format.scale == format->scale
          && !rows->format.has_min,
      FALSE);
  q = rows->q + first * rows->cols;
  return check_integers (writer, q, n_rows, error)
      && take_scales (writer, rows, first, n_rows, error)
      && write_integers (writer, q, n_rows, error) && advance (writer, n_rows, error);
}

gboolean
vlm_slm_writer_finish (VlmSlmWriter *writer, GError **error)
{
  GString *header;
  gboolean good;

  g_return_val_if_fail (writer->file && writer->current == writer->manifest.entries->len, FALSE);
  header = print_header (writer);
  g_assert (header->len == writer->data_start);
  good = vlm_atomic_file_write (writer->file, 0, header->str, header->len, error)
      && vlm_atomic_file_commit (writer->file, error);
  g_string_free (header, TRUE);
  return good;
}
