/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the model sees of a frame: the very bytes of 8-bit RGB formats, and the right colours of
 * all others, whatever the rows' padding.
 */

#include <string.h>

#include "gst-plugin/frame.h"
#include "tests/element/element-helpers.h"
#include "tests/element/scripted-engine.h"

GST_PLUGIN_STATIC_DECLARE (vlmcaption);

/* Where red, green and blue lie; written down here by hand, not taken from GStreamer's tables. */
typedef struct
{
  GstVideoFormat format;
  guint n_planes;
  guint step; /* bytes from pixel to pixel */
  guint plane[3];
  guint offset[3];
} Layout;

static const Layout layouts[] = {
  { GST_VIDEO_FORMAT_RGB, 1, 3, { 0, 0, 0 }, { 0, 1, 2 } },
  { GST_VIDEO_FORMAT_BGR, 1, 3, { 0, 0, 0 }, { 2, 1, 0 } },
  { GST_VIDEO_FORMAT_RGBx, 1, 4, { 0, 0, 0 }, { 0, 1, 2 } },
  { GST_VIDEO_FORMAT_RGBA, 1, 4, { 0, 0, 0 }, { 0, 1, 2 } },
  { GST_VIDEO_FORMAT_BGRx, 1, 4, { 0, 0, 0 }, { 2, 1, 0 } },
  { GST_VIDEO_FORMAT_BGRA, 1, 4, { 0, 0, 0 }, { 2, 1, 0 } },
  { GST_VIDEO_FORMAT_xRGB, 1, 4, { 0, 0, 0 }, { 1, 2, 3 } },
  { GST_VIDEO_FORMAT_ARGB, 1, 4, { 0, 0, 0 }, { 1, 2, 3 } },
  { GST_VIDEO_FORMAT_xBGR, 1, 4, { 0, 0, 0 }, { 3, 2, 1 } },
  { GST_VIDEO_FORMAT_ABGR, 1, 4, { 0, 0, 0 }, { 3, 2, 1 } },
  { GST_VIDEO_FORMAT_RGBP, 3, 1, { 0, 1, 2 }, { 0, 0, 0 } },
  { GST_VIDEO_FORMAT_BGRP, 3, 1, { 2, 1, 0 }, { 0, 0, 0 } },
  { GST_VIDEO_FORMAT_GBR, 3, 1, { 2, 0, 1 }, { 0, 0, 0 } },
  { GST_VIDEO_FORMAT_GBRA, 4, 1, { 2, 0, 1 }, { 0, 0, 0 } },
  { GST_VIDEO_FORMAT_GRAY8, 1, 1, { 0, 0, 0 }, { 0, 0, 0 } },
};

/* A buffer of random bytes with padding after each row and between the planes. */
static GstBuffer *
make_random (const Layout *layout, guint width, guint height, gsize offsets[4], gint strides[4])
{
  gsize plane_size = (width * layout->step + 13) * height + 7;
  gsize size = plane_size * layout->n_planes;
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, size, NULL);
  GstMapInfo map;
  gsize i;

  gst_buffer_map (buffer, &map, GST_MAP_WRITE);
  for (i = 0; i < size; i++)
    map.data[i] = g_test_rand_int_range (0, 256);
  gst_buffer_unmap (buffer, &map);

  for (i = 0; i < 4; i++) {
    offsets[i] = i * plane_size;
    strides[i] = width * layout->step + 13;
  }
  gst_buffer_add_video_meta_full (buffer, GST_VIDEO_FRAME_FLAG_NONE, layout->format, width, height,
      layout->n_planes, offsets, strides);

  return buffer;
}

static void
check_exact (const Layout *layout, guint width, guint height)
{
  GstVlmFrameReader *reader = gst_vlm_frame_reader_new ();
  g_autoptr (GstVlmFrame) frame = NULL;
  g_autoptr (GError) error = NULL;
  gsize offsets[4];
  gint strides[4];
  GstBuffer *buffer = make_random (layout, width, height, offsets, strides);
  GstVideoInfo info;
  VlmImage image;
  GstMapInfo map;
  guint x, y, c;

  gst_video_info_set_format (&info, layout->format, width, height);
  frame = gst_vlm_frame_new (buffer, &info);
  g_assert_nonnull (frame);
  g_assert_true (gst_vlm_frame_reader_read (reader, frame, &image, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (image.width, ==, width);
  g_assert_cmpuint (image.height, ==, height);

  gst_buffer_map (buffer, &map, GST_MAP_READ);
  for (y = 0; y < height; y++) {
    for (x = 0; x < width; x++) {
      for (c = 0; c < 3; c++) {
        guint8 expected = map.data[offsets[layout->plane[c]] + y * strides[layout->plane[c]]
            + x * layout->step + layout->offset[c]];
        guint8 found = image.pixels[y * image.stride + 3 * x + c];

        if (found != expected)
          g_error ("%s %ux%u, pixel %u,%u, channel %u: %u, expected %u",
              gst_video_format_to_string (layout->format), width, height, x, y, c, found, expected);
      }
    }
  }
  gst_buffer_unmap (buffer, &map);
  gst_buffer_unref (buffer);
  gst_vlm_frame_reader_free (reader);
}

static void
test_exact (void)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (layouts); i++) {
    check_exact (&layouts[i], 64, 48);
    check_exact (&layouts[i], 31, 7);
    check_exact (&layouts[i], 1, 1);
    check_exact (&layouts[i], 1, 300);
  }
}

/* ---- All formats of the pad template, through the element --------------------------------- */

/* Plays one videotestsrc frame with these caps; what the engine saw of it. */
static GBytes *
see_test_frame (const gchar *pattern, const gchar *caps, guint *width, guint *height)
{
  g_autofree gchar *line = g_strdup_printf ("videotestsrc pattern=%s num-buffers=1 ! %s ! "
                                            "vlmcaption mode=sync ! fakesink",
      pattern, caps);
  g_autoptr (GError) error = NULL;
  GstElement *pipeline = gst_parse_launch (line, &error);
  GstMessage *message;
  GstBus *bus;

  g_assert_no_error (error);
  bus = gst_element_get_bus (pipeline);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (
      bus, PATIENCE * GST_USECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR | GST_MESSAGE_WARNING);
  g_assert_nonnull (message);
  if (GST_MESSAGE_TYPE (message) != GST_MESSAGE_EOS)
    g_error ("%s: %s", line, GST_MESSAGE_TYPE_NAME (message));
  gst_message_unref (message);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (bus);
  gst_object_unref (pipeline);

  return scripted_get_picture (width, height);
}

static void
check_colour (const gchar *pattern, const gchar *caps, const guint8 rgb[3], gint tolerance)
{
  guint width, height, i;
  g_autoptr (GBytes) picture = see_test_frame (pattern, caps, &width, &height);
  const guint8 *pixels = g_bytes_get_data (picture, NULL);

  g_assert_cmpuint (g_bytes_get_size (picture), ==, 3 * width * height);
  for (i = 0; i < 3 * width * height; i++) {
    /* videotestsrc leaves half a chroma pair undefined at the end of odd rows. */
    if (width % 2 == 1 && i / 3 % width >= width - 2)
      continue;
    if (ABS (pixels[i] - rgb[i % 3]) > tolerance)
      g_error ("%s, %s: byte %u is %u, expected %u", pattern, caps, i, pixels[i], rgb[i % 3]);
  }
}

/* Red, green and blue come out as such from every format in the template, odd sizes included. */
static void
test_all_formats (void)
{
  static const guint8 red[3] = { 255, 0, 0 }, green[3] = { 0, 255, 0 }, blue[3] = { 0, 0, 255 };
  static const guint8 white[3] = { 255, 255, 255 };
  GstElementFactory *factory = gst_element_factory_find ("vlmcaption");
  const GList *templates = gst_element_factory_get_static_pad_templates (factory);
  GstCaps *all;
  const GValue *formats;
  guint i;

  while (g_strcmp0 (((GstStaticPadTemplate *) templates->data)->name_template, "sink") != 0)
    templates = templates->next;
  all = gst_static_pad_template_get_caps (templates->data);
  formats = gst_structure_get_value (gst_caps_get_structure (all, 0), "format");
  g_assert_cmpuint (gst_value_list_get_size (formats), >=, 40);

  for (i = 0; i < gst_value_list_get_size (formats); i++) {
    const gchar *format = g_value_get_string (gst_value_list_get_value (formats, i));
    gboolean gray = g_str_has_prefix (format, "GRAY");
    g_autofree gchar *even = g_strdup_printf ("video/x-raw,format=%s,width=64,height=32", format);
    g_autofree gchar *odd = g_strdup_printf ("video/x-raw,format=%s,width=33,height=17", format);

    /* videotestsrc writes 235 for white into gray formats and does not say so. */
    check_colour ("white", odd, white, gray ? 21 : 4);
    if (!gray) {
      check_colour ("red", even, red, 8);
      check_colour ("green", even, green, 8);
      check_colour ("blue", even, blue, 8);
      check_colour ("red", odd, red, 8);
    }
  }
  gst_caps_unref (all);
  gst_object_unref (factory);
}

/* The same bytes mean other colours under another matrix: the caps' colorimetry is heeded. */
static void
test_colorimetry (void)
{
  static const guint8 green[3] = { 0, 255, 0 };

  check_colour ("green", "video/x-raw,format=I420,width=64,height=32,colorimetry=bt601", green, 8);
  check_colour ("green", "video/x-raw,format=I420,width=64,height=32,colorimetry=bt709", green, 8);
  check_colour (
      "green", "video/x-raw,format=NV12,width=64,height=32,colorimetry=2:4:7:1", green, 8);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);
  GST_PLUGIN_STATIC_REGISTER (vlmcaption);

  g_test_add_func ("/frame/exact", test_exact);
  g_test_add_func ("/frame/all-formats", test_all_formats);
  g_test_add_func ("/frame/colorimetry", test_colorimetry);

  return g_test_run ();
}
