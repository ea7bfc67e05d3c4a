/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The parts of looking and wording on their own: regions, scenes, texts that broke off. */

#include "gst-plugin/frame.h"
#include "gst-plugin/region.h"
#include "gst-plugin/scene.h"
#include "gst-plugin/wording.h"

/* ---- Regions ------------------------------------------------------------------------------ */

static void
check_region (const gchar *text, gint x, gint y, gint w, gint h)
{
  GstVideoRectangle picture = { 100, 200, 640, 480 };
  GstVideoRectangle covered;
  const gchar *refused = NULL;
  GstVlmRegion region;

  g_assert_true (gst_vlm_region_parse (&region, text, &refused));
  g_assert_null (refused);
  g_assert_true (gst_vlm_region_resolve (&region, &picture, &covered));
  g_assert_cmpint (covered.x, ==, 100 + x);
  g_assert_cmpint (covered.y, ==, 200 + y);
  g_assert_cmpint (covered.w, ==, w);
  g_assert_cmpint (covered.h, ==, h);
}

static void
test_region_covers (void)
{
  check_region (NULL, 0, 0, 640, 480);
  check_region ("", 0, 0, 640, 480);
  check_region ("0,0,1,1", 0, 0, 640, 480);
  check_region ("0.25, 0.5, 0.5, 0.5", 160, 240, 320, 240);
  check_region ("10,20,30,40", 10, 20, 30, 40);
  /* Parts of pixels count as whole ones. */
  check_region ("0,0,0.5001,0.5001", 0, 0, 321, 241);
  check_region ("10.5,0,2,2", 10, 0, 3, 2);
  /* Cut to the picture. */
  check_region ("600,470,100,100", 600, 470, 40, 10);
  check_region ("0.9,0.9,0.9,0.9", 576, 432, 64, 48);
}

static void
test_region_outside (void)
{
  GstVideoRectangle picture = { 0, 0, 64, 48 };
  GstVideoRectangle covered;
  const gchar *refused;
  GstVlmRegion region;

  g_assert_true (gst_vlm_region_parse (&region, "64,0,10,10", &refused));
  g_assert_false (gst_vlm_region_resolve (&region, &picture, &covered));
  g_assert_true (gst_vlm_region_parse (&region, "1,0,1,1", &refused));
  g_assert_false (gst_vlm_region_resolve (&region, &picture, &covered));
}

static void
test_region_refused (void)
{
  static const gchar *const bad[] = { "1", "1,2,3", "1,2,3,4,5", "a,b,c,d", "1,2,3,x", ",,,",
    "-1,0,10,10", "0,0,0,1", "0,0,10,0", "nan,0,1,1", "0,0,inf,1", "0,0,1e9,1", "1;2;3;4" };
  GstVlmRegion region = { 1, 2, 3, 4, FALSE };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (bad); i++) {
    const gchar *refused = NULL;

    if (gst_vlm_region_parse (&region, bad[i], &refused))
      g_error ("\"%s\" was taken", bad[i]);
    g_assert_nonnull (refused);
    g_assert_cmpfloat (region.height, ==, 4);
  }
}

/* ---- Scenes ------------------------------------------------------------------------------- */

/* A GRAY8 picture, 0 but for a square of 255. */
static void
look_at_square (GstVlmScene *scene, guint size, gint at, gint side)
{
  GstVideoRectangle all = { 0, 0, size, size };
  GstBuffer *buffer;
  GstVideoFrame frame;
  GstVideoInfo info;
  gint x, y;

  gst_video_info_set_format (&info, GST_VIDEO_FORMAT_GRAY8, size, size);
  buffer = gst_buffer_new_allocate (NULL, info.size, NULL);
  gst_buffer_memset (buffer, 0, 0, info.size);
  gst_video_frame_map (&frame, &info, buffer, GST_MAP_WRITE);
  for (y = at; y < at + side; y++) {
    for (x = at; x < at + side; x++)
      ((guint8 *) GST_VIDEO_FRAME_PLANE_DATA (
          &frame, 0))[y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, 0) + x] = 255;
  }
  gst_video_frame_unmap (&frame);
  gst_vlm_scene_look (scene, buffer, &info, &all);
  g_assert_true (scene->known);
  gst_buffer_unref (buffer);
}

/* The distance is the share of the picture that went from black to white. */
static void
test_scene_distance (void)
{
  GstVlmScene black, square, whole, none = { 0 };
  guint size;

  for (size = 64; size <= 1024; size *= 4) {
    look_at_square (&black, size, 0, 0);
    look_at_square (&square, size, size / 4, size / 2);
    look_at_square (&whole, size, 0, size);
    g_assert_cmpfloat (gst_vlm_scene_distance (&black, &black), ==, 0);
    g_assert_cmpfloat (gst_vlm_scene_distance (&black, &square), ==, 0.25);
    g_assert_cmpfloat (gst_vlm_scene_distance (&square, &black), ==, 0.25);
    g_assert_cmpfloat (gst_vlm_scene_distance (&black, &whole), ==, 1);
    g_assert_cmpfloat (gst_vlm_scene_distance (&none, &black), ==, 1);
  }
}

/* Noise of a few levels is far below the step of a thing that moves. */
static void
test_scene_noise (void)
{
  GstVideoRectangle all = { 0, 0, 640, 480 };
  GstVlmScene scenes[2];
  GstVideoInfo info;
  guint i, j;

  gst_video_info_set_format (&info, GST_VIDEO_FORMAT_I420, 640, 480);
  for (i = 0; i < 2; i++) {
    GstBuffer *buffer = gst_buffer_new_allocate (NULL, info.size, NULL);
    GstMapInfo map;

    gst_buffer_map (buffer, &map, GST_MAP_WRITE);
    for (j = 0; j < map.size; j++)
      map.data[j] = 120 + g_test_rand_int_range (-6, 7);
    gst_buffer_unmap (buffer, &map);
    gst_vlm_scene_look (&scenes[i], buffer, &info, &all);
    gst_buffer_unref (buffer);
  }
  g_assert_cmpfloat (gst_vlm_scene_distance (&scenes[0], &scenes[1]), <, 0.01);
}

/* What videotestsrc draws. */
static void
look_at_colour (
    GstVlmScene *scene, const gchar *pattern, const gchar *format, gint width, gint height)
{
  g_autofree gchar *line = g_strdup_printf ("videotestsrc num-buffers=1 pattern=%s ! "
                                            "video/x-raw,format=%s,width=%d,height=%d ! "
                                            "fakesink name=sink enable-last-sample=true",
      pattern, format, width, height);
  GstElement *pipeline = gst_parse_launch (line, NULL);
  GstVideoRectangle all = { 0, 0, width, height };
  GstElement *sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  GstSample *sample = NULL;
  GstVideoInfo info;

  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  g_assert_cmpint (
      gst_element_get_state (pipeline, NULL, NULL, 30 * GST_SECOND), ==, GST_STATE_CHANGE_SUCCESS);
  g_object_get (sink, "last-sample", &sample, NULL);
  g_assert_true (gst_video_info_from_caps (&info, gst_sample_get_caps (sample)));
  gst_vlm_scene_look (scene, gst_sample_get_buffer (sample), &info, &all);
  g_assert_true (scene->known);
  gst_sample_unref (sample);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (sink);
  gst_object_unref (pipeline);
}

/* Black and white are far apart in every format that the element takes, odd sizes included. */
static void
test_scene_formats (void)
{
  GstCaps *caps = gst_caps_from_string (GST_VIDEO_CAPS_MAKE (GST_VLM_FRAME_FORMATS));
  const GValue *formats = gst_structure_get_value (gst_caps_get_structure (caps, 0), "format");
  guint i;

  for (i = 0; i < gst_value_list_get_size (formats); i++) {
    const gchar *format = g_value_get_string (gst_value_list_get_value (formats, i));
    GstVlmScene black, white;

    look_at_colour (&black, "black", format, 67, 45);
    look_at_colour (&white, "white", format, 67, 45);
    if (gst_vlm_scene_distance (&black, &white) < 0.8)
      g_error ("%s: from black to white %g", format, gst_vlm_scene_distance (&black, &white));
  }
  gst_caps_unref (caps);
}

/* ---- Wording ------------------------------------------------------------------------------ */

static void
check_wording (const gchar *text, const gchar *expected)
{
  g_autofree gchar *shown = gst_vlm_wording_round_off (text);

  g_assert_cmpstr (shown, ==, expected);
}

static void
test_wording_sentences (void)
{
  check_wording ("A cat. It sits on a", "A cat.");
  check_wording ("A cat! It sits? On a", "A cat! It sits?");
  check_wording ("A cat. It sits.", "A cat. It sits.");
  check_wording ("He says \"a cat.\" Then he", "He says \"a cat.\"");
  check_wording ("Zwei Hunde spielen. Ein dritter schl\xc3\xa4", "Zwei Hunde spielen.");
  check_wording ("\xe7\x8c\xab\xe3\x80\x82\xe7\x8a\xac", "\xe7\x8c\xab\xe3\x80\x82");
}

static void
test_wording_words (void)
{
  check_wording ("A cat sits on a ma", "A cat sits on a\xe2\x80\xa6");
  check_wording ("A cat, a dog, an", "A cat, a dog\xe2\x80\xa6");
  check_wording ("Supercalifragi", "Supercalifragi\xe2\x80\xa6");
  check_wording ("", "");
  /* A full stop that ends no sentence. */
  check_wording ("A sign says 3.5 met", "A sign says 3.5\xe2\x80\xa6");
  check_wording ("It costs about 3.", "It costs about\xe2\x80\xa6");
  check_wording ("A portrait of J. Smi", "A portrait of J\xe2\x80\xa6");
  check_wording ("\xe7\x8c\xab\xe3\x81\xa8", "\xe7\x8c\xab\xe3\x81\xa8\xe2\x80\xa6");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);

  g_test_add_func ("/region/covers", test_region_covers);
  g_test_add_func ("/region/outside", test_region_outside);
  g_test_add_func ("/region/refused", test_region_refused);
  g_test_add_func ("/scene/distance", test_scene_distance);
  g_test_add_func ("/scene/noise", test_scene_noise);
  g_test_add_func ("/scene/formats", test_scene_formats);
  g_test_add_func ("/wording/sentences", test_wording_sentences);
  g_test_add_func ("/wording/words", test_wording_words);

  return g_test_run ();
}
