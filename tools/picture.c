/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "picture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <gio/gio.h>
#include <glib/gstdio.h>
#include <gst/app/gstappsink.h>
#include <gst/video/video.h>

/* Named decoders where there is a choice of them: others than these may convert colours. */
static const gchar *
choose_decoder (const guint8 *head, gsize size)
{
  static const struct
  {
    const gchar *magic, *decoder;
  } kinds[] = {
    { "\x89PNG\r\n\x1a\n", "pngdec" },
    { "\xff\xd8\xff", "jpegdec" },
  };
  g_autoptr (GstElementFactory) factory = NULL;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (kinds); i++) {
    gsize length = strlen (kinds[i].magic);

    if (size >= length && memcmp (head, kinds[i].magic, length) == 0) {
      factory = gst_element_factory_find (kinds[i].decoder);
      return factory != NULL ? kinds[i].decoder : "decodebin";
    }
  }
  return "decodebin";
}

gsize
picture_read_head (const gchar *path, guint8 *head, gsize room, GError **error)
{
  GStatBuf status;
  FILE *file = NULL;
  gsize n;

  /* Before it is opened: to open a pipe means to wait for its other end. */
  if (g_stat (path, &status) == 0) {
    if (!S_ISREG (status.st_mode)) {
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_NOT_REGULAR_FILE, "it is no regular file");
      return 0;
    }
    file = g_fopen (path, "rb");
  }
  if (file == NULL) {
    gint code = errno;

    g_set_error_literal (error, G_FILE_ERROR, g_file_error_from_errno (code), g_strerror (code));
    return 0;
  }
  n = fread (head, 1, room, file);
  if (n == 0)
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
        ferror (file) ? "it cannot be read" : "the file is empty");
  fclose (file);
  return n;
}

/* (transfer full) a pipeline that ends in an appsink named "sink" */
static GstElement *
build_pipeline (const gchar *path, GError **error)
{
  guint8 head[8];
  gsize n_head = picture_read_head (path, head, sizeof (head), error);
  g_autofree gchar *text = NULL;
  GstElement *pipeline, *source;

  if (n_head == 0)
    return NULL;

  text = g_strdup_printf ("filesrc name=source ! %s ! video/x-raw ! appsink name=sink sync=false "
                          "max-buffers=1",
      choose_decoder (head, n_head));
  pipeline = gst_parse_launch (text, error);
  if (pipeline == NULL)
    return NULL;
  source = gst_bin_get_by_name (GST_BIN (pipeline), "source");
  g_object_set (source, "location", path, NULL);
  gst_object_unref (source);
  return pipeline;
}

/* Waits until the pipeline holds its first frame. */
static gboolean
wait_for_frame (GstElement *pipeline, GError **error)
{
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  g_autoptr (GstMessage) message = NULL;

  message = gst_bus_timed_pop_filtered (
      bus, GST_CLOCK_TIME_NONE, GST_MESSAGE_ERROR | GST_MESSAGE_ASYNC_DONE | GST_MESSAGE_EOS);
  switch (GST_MESSAGE_TYPE (message)) {
    case GST_MESSAGE_ASYNC_DONE:
      return TRUE;
    case GST_MESSAGE_ERROR:
      gst_message_parse_error (message, error, NULL);
      return FALSE;
    default:
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "there is no picture in it");
      return FALSE;
  }
}

GstSample *
picture_decode (const gchar *path, GError **error)
{
  GstElement *pipeline = build_pipeline (path, error);
  g_autoptr (GstElement) sink = NULL;
  GstSample *sample = NULL;

  if (pipeline == NULL)
    return NULL;
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  if (wait_for_frame (pipeline, error)) {
    sample = gst_app_sink_pull_preroll (GST_APP_SINK (sink));
    if (sample == NULL)
      g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "there is no picture in it");
  }
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
  return sample;
}

/* Whether the format's bytes are the wanted ones already, in whatever order. */
static gboolean
is_plain (const GstVideoFormatInfo *format)
{
  guint i;

  if (!GST_VIDEO_FORMAT_INFO_IS_RGB (format) && !GST_VIDEO_FORMAT_INFO_IS_GRAY (format))
    return FALSE;
  if (GST_VIDEO_FORMAT_INFO_HAS_PALETTE (format) || GST_VIDEO_FORMAT_INFO_IS_COMPLEX (format))
    return FALSE;
  for (i = 0; i < GST_VIDEO_FORMAT_INFO_N_COMPONENTS (format); i++) {
    if (GST_VIDEO_FORMAT_INFO_DEPTH (format, i) != 8
        || GST_VIDEO_FORMAT_INFO_SHIFT (format, i) != 0)
      return FALSE;
  }
  return TRUE;
}

static void
copy_plain (const GstVideoFrame *frame, guint8 *rgb)
{
  gboolean grey = GST_VIDEO_FORMAT_INFO_IS_GRAY (frame->info.finfo);
  gsize width = GST_VIDEO_FRAME_WIDTH (frame);
  gsize height = GST_VIDEO_FRAME_HEIGHT (frame);
  gsize x, y;
  gint c;

  for (c = 0; c < 3; c++) {
    gint component = grey ? 0 : c;
    gsize step = GST_VIDEO_FRAME_COMP_PSTRIDE (frame, component);
    gsize stride = GST_VIDEO_FRAME_COMP_STRIDE (frame, component);
    const guint8 *data = GST_VIDEO_FRAME_COMP_DATA (frame, component);

    for (y = 0; y < height; y++) {
      for (x = 0; x < width; x++)
        rgb[(y * width + x) * 3 + c] = data[y * stride + x * step];
    }
  }
}

static gboolean
convert (const GstVideoFrame *frame, guint8 *rgb, GError **error)
{
  gsize row_bytes = (gsize) GST_VIDEO_FRAME_WIDTH (frame) * 3;
  GstVideoConverter *converter = NULL;
  GstBuffer *buffer = NULL;
  GstVideoInfo to;
  GstVideoFrame out;
  gint y;

  gst_video_info_set_format (
      &to, GST_VIDEO_FORMAT_RGB, GST_VIDEO_FRAME_WIDTH (frame), GST_VIDEO_FRAME_HEIGHT (frame));
  to.interlace_mode = frame->info.interlace_mode;
  converter = gst_video_converter_new ((GstVideoInfo *) &frame->info, &to, NULL);
  if (converter != NULL)
    buffer = gst_buffer_new_allocate (NULL, GST_VIDEO_INFO_SIZE (&to), NULL);
  if (buffer == NULL || !gst_video_frame_map (&out, &to, buffer, GST_MAP_READWRITE)) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_FAILED,
        "pixels of the format %s cannot be "
        "converted to RGB",
        GST_VIDEO_INFO_NAME (&frame->info));
    gst_clear_buffer (&buffer);
    g_clear_pointer (&converter, gst_video_converter_free);
    return FALSE;
  }

  gst_video_converter_frame (converter, frame, &out);
  for (y = 0; y < GST_VIDEO_FRAME_HEIGHT (frame); y++)
    memcpy (rgb + (gsize) y * row_bytes,
        (const guint8 *) GST_VIDEO_FRAME_PLANE_DATA (&out, 0)
            + (gsize) y * GST_VIDEO_FRAME_PLANE_STRIDE (&out, 0),
        row_bytes);
  gst_video_frame_unmap (&out);
  gst_buffer_unref (buffer);
  gst_video_converter_free (converter);
  return TRUE;
}

guint8 *
picture_to_rgb (GstSample *sample, guint *width, guint *height, GError **error)
{
  GstVideoInfo info;
  GstVideoFrame frame;
  guint8 *rgb;
  gboolean done = TRUE;

  if (!gst_video_info_from_caps (&info, gst_sample_get_caps (sample))
      || !gst_video_frame_map (&frame, &info, gst_sample_get_buffer (sample), GST_MAP_READ)) {
    g_set_error_literal (
        error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "the decoder gave no usable frame");
    return NULL;
  }
  *width = GST_VIDEO_INFO_WIDTH (&info);
  *height = GST_VIDEO_INFO_HEIGHT (&info);
  rgb = g_try_malloc_n ((gsize) *width * *height, 3);
  if (rgb == NULL) {
    g_set_error (
        error, G_IO_ERROR, G_IO_ERROR_FAILED, "no memory for %ux%u pixels", *width, *height);
    done = FALSE;
  } else if (is_plain (info.finfo)) {
    copy_plain (&frame, rgb);
  } else {
    done = convert (&frame, rgb, error);
  }
  gst_video_frame_unmap (&frame);
  if (!done)
    g_clear_pointer (&rgb, g_free);
  return rgb;
}
