/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Whether a file is as long as it says. Demuxers take the end of a file for the end of the stream
 * and say nothing, so that half a video would pass for a whole one.
 */

#include "content.h"

#include <stdio.h>
#include <string.h>

#include <glib/gstdio.h>

typedef struct
{
  FILE *file;
  guint64 size;
} Container;

/* Reads at offset; FALSE if not all of it is there. */
static gboolean
read_at (const Container *container, guint64 offset, guint8 *data, gsize size)
{
  return offset <= G_MAXINT64 && fseeko (container->file, (off_t) offset, SEEK_SET) == 0
      && fread (data, 1, size, container->file) == size;
}

static guint64
big_endian (const guint8 *data, guint n)
{
  guint64 value = 0;
  guint i;

  for (i = 0; i < n; i++)
    value = value << 8 | data[i];
  return value;
}

/* a + b, or the largest number there is. */
static guint64
add (guint64 a, guint64 b)
{
  return b > G_MAXUINT64 - a ? G_MAXUINT64 : a + b;
}

/* Where the last of the boxes ends: each begins with its size and its type. */
static guint64
find_end_of_boxes (const Container *container)
{
  guint64 offset = 0;
  guint8 head[16];

  while (offset < container->size) {
    guint64 size;

    if (!read_at (container, offset, head, 8))
      return add (offset, 8);
    size = big_endian (head, 4);
    if (size == 0)
      return container->size; /* up to the end of the file, wherever it is */
    if (size == 1) {
      if (!read_at (container, offset, head, 16))
        return add (offset, 16);
      size = big_endian (head + 8, 8);
    }
    if (size < 8)
      return container->size; /* no box: something was appended */
    offset = add (offset, size);
  }
  return offset;
}

/*
 * An EBML number, of up to 8 bytes; the length is told by the first byte's leading zeros. For an id
 * the marker bit stays. Returns the number of bytes, 0 if they are not there.
 */
static guint
read_ebml (const Container *container, guint64 offset, gboolean id, guint64 *value)
{
  guint8 data[8];
  guint length;

  if (!read_at (container, offset, data, 1) || data[0] == 0)
    return 0;
  for (length = 1; !(data[0] & 0x80 >> (length - 1)); length++)
    ;
  if (!read_at (container, offset, data, length))
    return 0;
  *value = big_endian (data, length);
  if (!id) {
    *value &= (G_GUINT64_CONSTANT (1) << 7 * length) - 1;
    if (*value == (G_GUINT64_CONSTANT (1) << 7 * length) - 1)
      *value = G_MAXUINT64; /* not known when it was written */
  }
  return length;
}

#define EBML_SEGMENT 0x18538067

/* Where the segment, or what is in a segment of unknown size, ends. */
static guint64
find_end_of_ebml (const Container *container)
{
  guint64 offset = 0;

  while (offset < container->size) {
    guint64 id, size;
    guint n_id = read_ebml (container, offset, TRUE, &id);
    guint n_size = n_id > 0 ? read_ebml (container, offset + n_id, FALSE, &size) : 0;

    if (n_id == 0 || n_size == 0)
      return container->size;
    offset += n_id + n_size;
    if (size != G_MAXUINT64)
      offset = add (offset, size);
    else if (id != EBML_SEGMENT)
      return container->size; /* a live stream's cluster */
  }
  return offset;
}

static guint64
find_end_of_riff (const Container *container, const guint8 *head)
{
  guint64 size = (guint64) head[7] << 24 | (guint64) head[6] << 16 | head[5] << 8 | head[4];

  /* What was written to a pipe has no size, and what is larger than 4 GB goes on behind it. */
  return size == 0 || size == G_MAXUINT32 ? container->size : size + 8;
}

gboolean
vlm_content_is_cut (const gchar *path, guint64 *actual, guint64 *expected)
{
  Container container = { g_fopen (path, "rb"), 0 };
  GStatBuf status;
  guint8 head[12];
  gboolean cut = FALSE;

  if (container.file == NULL)
    return FALSE;
  if (g_stat (path, &status) == 0 && read_at (&container, 0, head, sizeof (head))) {
    *actual = *expected = container.size = (guint64) status.st_size;
    if (memcmp (head, "RIFF", 4) == 0)
      *expected = find_end_of_riff (&container, head);
    else if (memcmp (head, "\x1a\x45\xdf\xa3", 4) == 0)
      *expected = find_end_of_ebml (&container);
    else if (memcmp (head + 4, "ftyp", 4) == 0 || memcmp (head + 4, "moov", 4) == 0)
      *expected = find_end_of_boxes (&container);
    cut = *expected > *actual;
  }
  fclose (container.file);
  return cut;
}
