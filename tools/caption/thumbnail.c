/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "thumbnail.h"

#include <string.h>

#define MAX_WIDTH 320
#define MAX_HEIGHT 640

/* Whether what was a row has to become a column. */
static gboolean
is_sideways (GstVideoOrientationMethod orientation)
{
  return orientation == GST_VIDEO_ORIENTATION_90R || orientation == GST_VIDEO_ORIENTATION_90L
      || orientation == GST_VIDEO_ORIENTATION_UL_LR || orientation == GST_VIDEO_ORIENTATION_UR_LL;
}

/* The size that the frame is shrunk to, before it is turned. */
static void
choose_size (const GstVideoInfo *info, gboolean sideways, gint *width, gint *height)
{
  gdouble w = (gdouble) GST_VIDEO_INFO_WIDTH (info) * GST_VIDEO_INFO_PAR_N (info)
      / MAX (GST_VIDEO_INFO_PAR_D (info), 1);
  gdouble h = GST_VIDEO_INFO_HEIGHT (info);
  gdouble scale = 1;

  w = MAX (w, 1);
  scale = MIN (scale, (sideways ? MAX_HEIGHT : MAX_WIDTH) / w);
  scale = MIN (scale, (sideways ? MAX_WIDTH : MAX_HEIGHT) / h);
  *width = MAX ((gint) (w * scale + 0.5), 1);
  *height = MAX ((gint) (h * scale + 0.5), 1);
}

/* (transfer full) the frame as packed RGB of the size in to. */
static GstBuffer *
shrink (GstBuffer *buffer, const GstVideoInfo *from, const GstVideoInfo *to)
{
  GstBuffer *small = gst_buffer_new_allocate (NULL, GST_VIDEO_INFO_SIZE (to), NULL);
  GstVideoConverter *converter =
      gst_video_converter_new ((GstVideoInfo *) from, (GstVideoInfo *) to, NULL);
  GstVideoFrame in, out;
  gboolean done = FALSE;

  if (converter != NULL && gst_video_frame_map (&in, (GstVideoInfo *) from, buffer, GST_MAP_READ)) {
    if (gst_video_frame_map (&out, (GstVideoInfo *) to, small, GST_MAP_READWRITE)) {
      gst_video_converter_frame (converter, &in, &out);
      gst_video_frame_unmap (&out);
      done = TRUE;
    }
    gst_video_frame_unmap (&in);
  }
  g_clear_pointer (&converter, gst_video_converter_free);
  if (!done)
    gst_clear_buffer (&small);
  return small;
}

/* Where the pixel comes from that is at x, y of the upright picture; w and h are those before. */
static void
find_source (GstVideoOrientationMethod orientation, gint w, gint h, gint x, gint y, gint *from_x,
    gint *from_y)
{
  gboolean sideways = is_sideways (orientation);
  gboolean from_right = orientation == GST_VIDEO_ORIENTATION_180
      || orientation == GST_VIDEO_ORIENTATION_HORIZ || orientation == GST_VIDEO_ORIENTATION_90L
      || orientation == GST_VIDEO_ORIENTATION_UR_LL;
  gboolean from_below = orientation == GST_VIDEO_ORIENTATION_180
      || orientation == GST_VIDEO_ORIENTATION_VERT || orientation == GST_VIDEO_ORIENTATION_90R
      || orientation == GST_VIDEO_ORIENTATION_UR_LL;

  *from_x = sideways ? y : x;
  *from_y = sideways ? x : y;
  if (from_right)
    *from_x = w - 1 - *from_x;
  if (from_below)
    *from_y = h - 1 - *from_y;
}

/* (transfer full) the picture turned upright; info is changed to its size. */
static GstBuffer *
turn (GstBuffer *small, GstVideoInfo *info, GstVideoOrientationMethod orientation)
{
  gint w = GST_VIDEO_INFO_WIDTH (info), h = GST_VIDEO_INFO_HEIGHT (info);
  gboolean sideways = is_sideways (orientation);
  GstVideoInfo turned_info;
  GstVideoFrame in, out;
  GstBuffer *turned;
  gint x, y;

  gst_video_info_set_format (
      &turned_info, GST_VIDEO_FORMAT_RGB, sideways ? h : w, sideways ? w : h);
  turned = gst_buffer_new_allocate (NULL, GST_VIDEO_INFO_SIZE (&turned_info), NULL);
  if (!gst_video_frame_map (&in, info, small, GST_MAP_READ))
    return turned;
  if (gst_video_frame_map (&out, &turned_info, turned, GST_MAP_WRITE)) {
    for (y = 0; y < GST_VIDEO_FRAME_HEIGHT (&out); y++) {
      guint8 *row = (guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&out, 0)
          + (gsize) y * GST_VIDEO_FRAME_PLANE_STRIDE (&out, 0);

      for (x = 0; x < GST_VIDEO_FRAME_WIDTH (&out); x++) {
        gint from_x, from_y;

        find_source (orientation, w, h, x, y, &from_x, &from_y);
        memcpy (row + x * 3,
            (const guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&in, 0)
                + (gsize) from_y * GST_VIDEO_FRAME_PLANE_STRIDE (&in, 0) + (gsize) from_x * 3,
            3);
      }
    }
    gst_video_frame_unmap (&out);
  }
  gst_video_frame_unmap (&in);
  *info = turned_info;
  return turned;
}

static guint8 *
encode (GstBuffer *rgb, const GstVideoInfo *info, gsize *size)
{
  g_autoptr (GstCaps) from = gst_video_info_to_caps ((GstVideoInfo *) info);
  g_autoptr (GstCaps) to = gst_caps_new_empty_simple ("image/jpeg");
  g_autoptr (GstSample) sample = gst_sample_new (rgb, from, NULL, NULL);
  g_autoptr (GstSample) encoded = gst_video_convert_sample (sample, to, 10 * GST_SECOND, NULL);
  gpointer data = NULL;

  if (encoded != NULL)
    gst_buffer_extract_dup (gst_sample_get_buffer (encoded), 0, -1, &data, size);
  return data;
}

guint8 *
vlm_thumbnail_new (
    GstBuffer *buffer, const GstVideoInfo *info, GstVideoOrientationMethod orientation, gsize *size)
{
  GstVideoInfo to;
  gint width, height;
  GstBuffer *rgb;
  guint8 *jpeg;

  *size = 0;
  choose_size (info, is_sideways (orientation), &width, &height);
  gst_video_info_set_format (&to, GST_VIDEO_FORMAT_RGB, width, height);
  /* A converter changes neither fields nor rates. */
  to.interlace_mode = info->interlace_mode;
  GST_VIDEO_INFO_FPS_N (&to) = GST_VIDEO_INFO_FPS_N (info);
  GST_VIDEO_INFO_FPS_D (&to) = GST_VIDEO_INFO_FPS_D (info);
  rgb = shrink (buffer, info, &to);
  if (rgb == NULL)
    return NULL;
  if (orientation != GST_VIDEO_ORIENTATION_IDENTITY) {
    GstBuffer *turned = turn (rgb, &to, orientation);

    gst_buffer_unref (rgb);
    rgb = turned;
  }
  to.interlace_mode = GST_VIDEO_INTERLACE_MODE_PROGRESSIVE;
  GST_VIDEO_INFO_FPS_N (&to) = 1;
  GST_VIDEO_INFO_FPS_D (&to) = 1;
  jpeg = encode (rgb, &to, size);
  gst_buffer_unref (rgb);
  return jpeg;
}
