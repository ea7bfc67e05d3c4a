/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Makes a short video of drawn scenes, and the list of what is to be seen in it.
 *
 *   scene-video OUTPUT.webm TRUTH.tsv SEED...
 *
 * Each seed becomes one scene of two seconds. A line of TRUTH.tsv is "start<TAB>end<TAB>caption".
 */

#include <gst/app/gstappsrc.h>
#include <gst/gst.h>
#include <stdlib.h>

#include "tools/demo-model/scene.h"

#define WIDTH 640
#define HEIGHT 480
#define FRAMES_PER_SECOND 25
#define FRAMES_PER_SCENE (2 * FRAMES_PER_SECOND)

static GstClockTime
frame_time (guint64 frame)
{
  return gst_util_uint64_scale (frame, GST_SECOND, FRAMES_PER_SECOND);
}

static GstElement *
make_pipeline (const gchar *location, GError **error)
{
  GstElement *pipeline, *sink;

  /* The quantiser's ceiling keeps the first picture, which rate control knows nothing about, as
   * clean as the others. */
  pipeline = gst_parse_launch (
      "appsrc name=source format=time block=true max-bytes=8000000"
      " ! videoconvert ! vp8enc deadline=1 cpu-used=4 target-bitrate=4000000 max-quantizer=16"
      " ! webmmux ! filesink name=sink",
      error);
  if (pipeline == NULL)
    return NULL;

  sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  g_object_set (sink, "location", location, NULL);
  gst_object_unref (sink);
  return pipeline;
}

/* Shows the scene for its two seconds, from frame first on. */
static gboolean
push_scene (GstAppSrc *source, const VlmScene *scene, guint64 first)
{
  gsize size = (gsize) WIDTH * HEIGHT * 3;
  guint8 *picture = g_malloc (size);
  GBytes *bytes;
  GstFlowReturn flow = GST_FLOW_OK;

  vlm_scene_draw (scene, picture, WIDTH * 3);
  bytes = g_bytes_new_take (picture, size);
  for (guint64 i = first; i < first + FRAMES_PER_SCENE && flow == GST_FLOW_OK; i++) {
    GstBuffer *buffer = gst_buffer_new_wrapped_bytes (bytes);

    GST_BUFFER_PTS (buffer) = frame_time (i);
    GST_BUFFER_DURATION (buffer) = frame_time (i + 1) - frame_time (i);
    flow = gst_app_src_push_buffer (source, buffer);
  }
  g_bytes_unref (bytes);
  return flow == GST_FLOW_OK;
}

/* Draws the scenes into the running pipeline; returns their list. */
static GString *
push_scenes (GstAppSrc *source, char **seeds, guint n_seeds)
{
  GString *truth = g_string_new (NULL);

  for (guint i = 0; i < n_seeds; i++) {
    guint64 first = (guint64) i * FRAMES_PER_SCENE;
    GstClockTime start = frame_time (first), end = frame_time (first + FRAMES_PER_SCENE);
    VlmScene scene;

    vlm_scene_init_sized (&scene, g_ascii_strtoull (seeds[i], NULL, 10), WIDTH, HEIGHT);
    g_string_append_printf (truth, "%" GST_TIME_FORMAT "\t%" GST_TIME_FORMAT "\t%s\n",
        GST_TIME_ARGS (start), GST_TIME_ARGS (end), scene.caption);
    if (!push_scene (source, &scene, first))
      break;
  }
  gst_app_src_end_of_stream (source);
  return truth;
}

/* Waits until the file is written. */
static gboolean
wait_for_end (GstElement *pipeline)
{
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message =
      gst_bus_timed_pop_filtered (bus, GST_CLOCK_TIME_NONE, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  gboolean ok = GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS;

  if (!ok) {
    GError *error = NULL;

    gst_message_parse_error (message, &error, NULL);
    g_printerr ("scene-video: %s\n", error->message);
    g_clear_error (&error);
  }
  gst_message_unref (message);
  gst_object_unref (bus);
  return ok;
}

static gboolean
write_video (const gchar *location, const gchar *truth_file, char **seeds, guint n_seeds)
{
  GError *error = NULL;
  GstElement *pipeline = make_pipeline (location, &error), *source;
  GstCaps *caps;
  GString *truth;
  gboolean ok;

  if (pipeline == NULL) {
    g_printerr ("scene-video: %s\n", error->message);
    g_clear_error (&error);
    return FALSE;
  }

  source = gst_bin_get_by_name (GST_BIN (pipeline), "source");
  caps = gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING, "RGB", "width", G_TYPE_INT,
      WIDTH, "height", G_TYPE_INT, HEIGHT, "framerate", GST_TYPE_FRACTION, FRAMES_PER_SECOND, 1,
      NULL);
  gst_app_src_set_caps (GST_APP_SRC (source), caps);
  gst_caps_unref (caps);

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  truth = push_scenes (GST_APP_SRC (source), seeds, n_seeds);
  ok = wait_for_end (pipeline);
  if (ok && !g_file_set_contents (truth_file, truth->str, truth->len, &error)) {
    g_printerr ("scene-video: %s\n", error->message);
    g_clear_error (&error);
    ok = FALSE;
  }

  g_string_free (truth, TRUE);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (source);
  gst_object_unref (pipeline);
  return ok;
}

int
main (int argc, char **argv)
{
  gst_init (&argc, &argv);
  if (argc < 4) {
    g_printerr ("usage: scene-video OUTPUT.webm TRUTH.tsv SEED...\n");
    return EXIT_FAILURE;
  }
  return write_video (argv[1], argv[2], argv + 3, argc - 3) ? EXIT_SUCCESS : EXIT_FAILURE;
}
