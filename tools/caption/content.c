/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "content.h"

#include <string.h>

#include <gst/base/gsttypefindhelper.h>
#include <gst/gst.h>

#include "../picture.h"

/* What typefinders may look at. Transport streams are told by some packets, others by less. */
#define HEAD_SIZE (256 * 1024)

/* Types that hold streams without being called so. */
static const gchar *const containers[] = { "application/ogg", "application/mxf",
  "application/x-3gp", "application/x-hls", "application/dash+xml", "application/x-id3",
  "application/x-apetag", "application/vnd.rn-realmedia", "application/vnd.ms-sstr+xml",
  "application/x-rtp", "application/sdp", "multipart/x-mixed-replace", NULL };

/* Containers with a time for each frame. */
static const gchar *const exact[] = { "video/quicktime", "video/x-matroska", "video/webm", NULL };

static const gchar *const endings[] = { "3g2", "3gp", "asf", "avi", "avif", "bmp", "divx", "f4v",
  "flv", "gif", "heic", "jp2", "jpeg", "jpg", "m2ts", "m4v", "mkv", "mov", "mp4", "mpeg", "mpg",
  "mts", "mxf", "ogm", "ogv", "png", "ppm", "qt", "tif", "tiff", "ts", "vob", "webm", "webp", "wmv",
  NULL };

gboolean
vlm_content_is_called_media (const gchar *name)
{
  const gchar *dot = strrchr (name, '.');
  g_autofree gchar *ending = dot != NULL ? g_ascii_strdown (dot + 1, -1) : NULL;

  return ending != NULL && g_strv_contains (endings, ending);
}

VlmContent
vlm_content_find (const gchar *path, gboolean *exact_seeks, GError **error)
{
  g_autofree guint8 *head = g_malloc (HEAD_SIZE);
  gsize size = picture_read_head (path, head, HEAD_SIZE, error);
  g_autoptr (GstCaps) caps = NULL;
  const gchar *type;

  *exact_seeks = FALSE;
  if (size == 0)
    return VLM_CONTENT_UNREADABLE;
  caps = gst_type_find_helper_for_data (NULL, head, size, NULL);
  if (caps == NULL) {
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
        "its content is of no known kind, neither video nor picture");
    return VLM_CONTENT_OTHER;
  }

  type = gst_structure_get_name (gst_caps_get_structure (caps, 0));
  *exact_seeks = g_strv_contains (exact, type);
  if (g_str_has_prefix (type, "image/"))
    return VLM_CONTENT_STILL;
  if (g_str_has_prefix (type, "video/") || g_str_has_prefix (type, "audio/")
      || g_strv_contains (containers, type))
    return VLM_CONTENT_VIDEO;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
      g_str_has_prefix (type, "text/") ? "it is text (%s), neither video nor picture"
                                       : "it is %s, neither video nor picture",
      type);
  return VLM_CONTENT_OTHER;
}
