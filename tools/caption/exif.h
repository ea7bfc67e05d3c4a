/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a camera wrote into a picture beside its pixels. */

#ifndef TOOLS_CAPTION_EXIF_H
#define TOOLS_CAPTION_EXIF_H

#include <gst/gst.h>

/* (transfer full) the tags of the JPEG file at path, its orientation among them; NULL: none. */
GstTagList *vlm_exif_read (const gchar *path);

#endif
