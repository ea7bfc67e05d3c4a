/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a file is, by its content. */

#ifndef TOOLS_CAPTION_CONTENT_H
#define TOOLS_CAPTION_CONTENT_H

#include <gio/gio.h>

typedef enum
{
  VLM_CONTENT_UNREADABLE, /* with an error */
  VLM_CONTENT_OTHER,      /* text, a document, nothing known; with an error that says so */
  VLM_CONTENT_STILL,      /* a picture */
  VLM_CONTENT_VIDEO       /* a video, or a container that may hold one; also sound alone */
} VlmContent;

/*
 * Looks at the beginning of the regular file at path. exact_seeks tells of videos whether their
 * container says the time of each frame, so that it does not depend on where playing began.
 */
VlmContent vlm_content_find (const gchar *path, gboolean *exact_seeks, GError **error);

/* Whether the name ends as those of pictures, videos and recordings do. */
gboolean vlm_content_is_called_media (const gchar *name);

/*
 * Whether the file at path ends before its container says that it does. Known of MP4 and its
 * relatives, Matroska and WebM, AVI and WAV; others are taken for whole. expected is set to the
 * size that the file should have, actual to the one it has.
 */
gboolean vlm_content_is_cut (const gchar *path, guint64 *actual, guint64 *expected);

#endif
