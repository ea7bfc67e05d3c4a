/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "exif.h"

#include <string.h>

#include <gst/tag/tag.h>

#include "../picture.h"

/* Exif comes before the pixels, in a segment of at most 64 KiB, perhaps after a few others. */
#define HEAD_SIZE (256 * 1024)

#define MARKER_EXIF 0xe1
#define MARKER_SCAN 0xda

GstTagList *
vlm_exif_read (const gchar *path)
{
  g_autofree guint8 *head = g_malloc (HEAD_SIZE);
  gsize size = picture_read_head (path, head, HEAD_SIZE, NULL);
  gsize at = 2;

  if (size < 4 || head[0] != 0xff || head[1] != 0xd8)
    return NULL;
  /* Each segment: FF, its kind, its length with these two bytes. */
  while (at + 4 <= size && head[at] == 0xff && head[at + 1] != MARKER_SCAN) {
    gsize length = (gsize) head[at + 2] << 8 | head[at + 3];

    if (length < 2 || at + 2 + length > size)
      return NULL;
    if (head[at + 1] == MARKER_EXIF && length > 8 && memcmp (head + at + 4, "Exif\0\0", 6) == 0) {
      g_autoptr (GstBuffer) tiff = gst_buffer_new_memdup (head + at + 10, length - 8);

      return gst_tag_list_from_exif_buffer_with_tiff_header (tiff);
    }
    at += 2 + length;
  }
  return NULL;
}
