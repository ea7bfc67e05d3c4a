/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* From a picture file to pixels, by GStreamer's decoders. */

#ifndef TOOLS_PICTURE_H
#define TOOLS_PICTURE_H

#include <gst/gst.h>

/*
 * Reads the first bytes of the regular file at path (or behind the symbolic link there), at most
 * room; 0 with an error when there are none.
 */
gsize picture_read_head (const gchar *path, guint8 *head, gsize room, GError **error);

/*
 * Decodes the first frame of the regular file at path (or behind the symbolic link there), in the
 * decoder's own format. (transfer full)
 */
GstSample *picture_decode (const gchar *path, GError **error);

/*
 * The sample's pixels as tightly packed 8-bit RGB, width * height * 3 bytes. RGB and grey of 8 bits
 * are copied byte for byte: alpha is dropped, grey repeated, no colour is converted. Others (YUV)
 * are converted by their colorimetry. (transfer full)
 */
guint8 *picture_to_rgb (GstSample *sample, guint *width, guint *height, GError **error);

#endif
