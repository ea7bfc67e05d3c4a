/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Small pictures of described frames. */

#ifndef TOOLS_CAPTION_THUMBNAIL_H
#define TOOLS_CAPTION_THUMBNAIL_H

#include <gst/video/video.h>

/*
 * A JPEG of the frame, upright, with square pixels, at most 320 wide and 640 high. size is set.
 * (transfer full) NULL if the frame has no pixels to read or there is no encoder.
 */
guint8 *vlm_thumbnail_new (GstBuffer *buffer, const GstVideoInfo *info,
    GstVideoOrientationMethod orientation, gsize *size);

#endif
