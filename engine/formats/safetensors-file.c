/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "safetensors-file.h"

#include "engine/vlm.h"

#include <string.h>

#define PREFIX_SIZE VLM_SAFETENSORS_PREFIX

static gint
compare_offsets (gconstpointer a, gconstpointer b)
{
  const VlmSafetensorsEntry *x = a, *y = b;

  if (x->offset != y->offset)
    return x->offset < y->offset ? -1 : 1;
  /* An empty tensor stands before the one that begins where it does. */
  if (x->n_bytes != y->n_bytes)
    return x->n_bytes < y->n_bytes ? -1 : 1;
  return 0;
}

/* Sorts by place and checks that the data are covered from end to end, each byte once. */
static gboolean
check_layout (GArray *entries, guint64 data_size, const gchar *path, GError **error)
{
  guint64 covered = 0;
  guint i;

  g_array_sort (entries, compare_offsets);
  for (i = 0; i < entries->len; i++) {
    const VlmSafetensorsEntry *entry = &g_array_index (entries, VlmSafetensorsEntry, i);

    if (entry->offset > data_size || entry->n_bytes > data_size - entry->offset) {
      g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
          "%s: tensor %s has data_offsets [%" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT
          "], but the file holds %" G_GUINT64_FORMAT " bytes of data",
          path, entry->name, entry->offset, entry->offset + entry->n_bytes, data_size);
      return FALSE;
    }
    if (entry->offset != covered) {
      g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
          "%s: tensor %s begins at %" G_GUINT64_FORMAT ", expected %" G_GUINT64_FORMAT ": %s", path,
          entry->name, entry->offset, covered,
          entry->offset < covered ? "it overlaps the one before" : "there is a gap");
      return FALSE;
    }
    covered += entry->n_bytes;
  }
  if (covered != data_size) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: the tensors end at byte %" G_GUINT64_FORMAT
        " of the data, the file at %" G_GUINT64_FORMAT,
        path, covered, data_size);
    return FALSE;
  }
  return TRUE;
}

/* The length of the header, checked against the file. */
static gboolean
read_length (const VlmFile *file, guint64 max_length, guint64 *length, GError **error)
{
  const gchar *path = vlm_file_get_path (file);
  guint64 size = vlm_file_get_size (file);
  guint8 prefix[PREFIX_SIZE];

  if (size < PREFIX_SIZE) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: has %" G_GUINT64_FORMAT " bytes, too short for a safetensors file", path, size);
    return FALSE;
  }
  if (!vlm_file_read (file, 0, prefix, PREFIX_SIZE, NULL, error))
    return FALSE;
  memcpy (length, prefix, PREFIX_SIZE);
  *length = GUINT64_FROM_LE (*length);
  if (*length > max_length || *length > size - PREFIX_SIZE) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: header length is %" G_GUINT64_FORMAT ", expected at most %" G_GUINT64_FORMAT, path,
        *length, MIN (size - PREFIX_SIZE, max_length));
    return FALSE;
  }
  return TRUE;
}

gboolean
vlm_safetensors_read_header (const VlmFile *file, guint64 max_length, VlmSafetensorsType last,
    GArray *entries, GPtrArray *metadata, guint64 *data_start, GError **error)
{
  const gchar *path = vlm_file_get_path (file);
  g_autofree gchar *header = NULL;
  guint64 length;

  if (!read_length (file, max_length, &length, error))
    return FALSE;
  header = g_try_malloc (length + 1);
  if (!header) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
        "%s: no memory for its header of %" G_GUINT64_FORMAT " bytes", path, length);
    return FALSE;
  }
  if (!vlm_file_read (file, PREFIX_SIZE, header, length, NULL, error)
      || !vlm_safetensors_parse_header (header, length, path, last, entries, metadata, error))
    return FALSE;
  *data_start = PREFIX_SIZE + length;
  return check_layout (entries, vlm_file_get_size (file) - *data_start, path, error);
}
