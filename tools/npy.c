/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "npy.h"

#include <errno.h>
#include <string.h>

#include <glib/gstdio.h>

#define MAGIC "\x93NUMPY\x01\x00"
#define MAGIC_SIZE 8

/* Magic, header length and header together fill a multiple of this. */
#define ALIGNMENT 64

static const struct
{
  const gchar *descr;
  gsize size;
} types[] = {
  [VLM_ARRAY_U8] = { "|u1", 1 },
  [VLM_ARRAY_I32] = { "<i4", 4 },
  [VLM_ARRAY_F32] = { "<f4", 4 },
};

/* (transfer full) */
static GString *
make_header (VlmArrayType type, const gsize *shape, guint n_dims)
{
  GString *header = g_string_new (NULL);
  guint i;

  g_string_append_printf (
      header, "{'descr': '%s', 'fortran_order': False, 'shape': (", types[type].descr);
  for (i = 0; i < n_dims; i++)
    g_string_append_printf (header, "%" G_GSIZE_FORMAT "%s", shape[i],
        i + 1 < n_dims    ? ", "
            : n_dims == 1 ? ","
                          : "");
  g_string_append (header, "), }");
  while ((MAGIC_SIZE + 2 + header->len + 1) % ALIGNMENT != 0)
    g_string_append_c (header, ' ');
  g_string_append_c (header, '\n');
  return header;
}

gboolean
npy_write (const gchar *path, VlmArrayType type, const gsize *shape, guint n_dims,
    gconstpointer data, GError **error)
{
  g_autoptr (GString) header = make_header (type, shape, n_dims);
  guint8 length[2] = { header->len & 0xFF, header->len >> 8 };
  gsize n = 1;
  gboolean written;
  FILE *file;
  guint i;

  for (i = 0; i < n_dims; i++)
    n *= shape[i];

  file = g_fopen (path, "wb");
  written = file != NULL && fwrite (MAGIC, 1, MAGIC_SIZE, file) == MAGIC_SIZE
      && fwrite (length, 1, sizeof (length), file) == sizeof (length)
      && fwrite (header->str, 1, header->len, file) == header->len
      && fwrite (data, types[type].size, n, file) == n;
  if (file != NULL && fclose (file) != 0)
    written = FALSE;
  if (!written) {
    gint code = errno;

    g_set_error (
        error, G_FILE_ERROR, g_file_error_from_errno (code), "%s: %s", path, g_strerror (code));
  }
  return written;
}
