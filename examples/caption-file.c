/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Captions a video file: prints each caption with its time, and writes a copy of the video with the
 * captions burnt in.
 *
 *   caption-file INPUT OUTPUT.webm [SECONDS]
 *
 * A frame is captioned every SECONDS (default 1). Any file that decodebin can read will do.
 * To build it by itself:
 *
 *   cc caption-file.c -o caption-file $(pkg-config --cflags --libs gstreamer-1.0)
 */

#include <gst/gst.h>
#include <locale.h>
#include <stdlib.h>

/*
 * ":" links the video and the captions to the overlay. Nothing in this pipeline waits for a clock,
 * so the element is in its sync mode: each chosen frame waits for its caption.
 */
#define PIPELINE                                                                                   \
  "filesrc name=input ! decodebin ! vlmcaption name=captioner : textoverlay"                       \
  " ! videoconvert ! vp8enc deadline=1 cpu-used=4 target-bitrate=4000000 max-quantizer=16"         \
  " ! webmmux ! filesink name=output"

static void
set_location (GstElement *pipeline, const gchar *name, const gchar *location)
{
  GstElement *element = gst_bin_get_by_name (GST_BIN (pipeline), name);

  g_object_set (element, "location", location, NULL);
  gst_object_unref (element);
}

/* One line for each; the time is that of the frame which the caption describes. */
static void
print_caption (const GstStructure *caption)
{
  guint64 time = 0;
  g_autofree gchar *text = g_strdup (gst_structure_get_string (caption, "text"));

  gst_structure_get_uint64 (caption, "stream-time", &time);
  g_print ("%" GST_TIME_FORMAT "\t%s\n", GST_TIME_ARGS (time), g_strdelimit (text, "\t\r\n", ' '));
}

static void
print_error (GstMessage *message)
{
  GError *error = NULL;
  gchar *details = NULL;

  gst_message_parse_error (message, &error, &details);
  g_printerr ("%s: %s\n%s\n", GST_OBJECT_NAME (message->src), error->message,
      details != NULL ? details : "");
  g_error_free (error);
  g_free (details);
}

/* Prints captions until the end of the file; FALSE if the pipeline failed. */
static gboolean
run (GstElement *pipeline)
{
  GstBus *bus = gst_element_get_bus (pipeline);
  gboolean running = TRUE, ok = TRUE;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  while (running) {
    GstMessage *message = gst_bus_timed_pop_filtered (
        bus, GST_CLOCK_TIME_NONE, GST_MESSAGE_ELEMENT | GST_MESSAGE_EOS | GST_MESSAGE_ERROR);

    switch (GST_MESSAGE_TYPE (message)) {
      case GST_MESSAGE_ELEMENT:
        if (gst_message_has_name (message, "vlmcaption"))
          print_caption (gst_message_get_structure (message));
        break;
      case GST_MESSAGE_ERROR:
        print_error (message);
        ok = FALSE;
        running = FALSE;
        break;
      default:
        running = FALSE;
    }
    gst_message_unref (message);
  }
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (bus);
  return ok;
}

int
main (int argc, char **argv)
{
  gdouble seconds = argc > 3 ? g_ascii_strtod (argv[3], NULL) : 1.0;
  GError *error = NULL;
  GstElement *pipeline, *captioner;
  gboolean ok;

  setlocale (LC_ALL, "");
  gst_init (&argc, &argv);
  if (argc < 3 || argc > 4 || !(seconds >= 0 && seconds <= 86400)) {
    g_printerr ("usage: caption-file INPUT OUTPUT.webm [SECONDS]\n");
    return EXIT_FAILURE;
  }

  pipeline = gst_parse_launch_full (PIPELINE, NULL, GST_PARSE_FLAG_FATAL_ERRORS, &error);
  if (pipeline == NULL) {
    g_printerr ("caption-file: %s\n", error->message);
    g_error_free (error);
    return EXIT_FAILURE;
  }
  set_location (pipeline, "input", argv[1]);
  set_location (pipeline, "output", argv[2]);
  captioner = gst_bin_get_by_name (GST_BIN (pipeline), "captioner");
  g_object_set (captioner, "interval", (guint64) (seconds * GST_SECOND), NULL);
  gst_object_unref (captioner);

  ok = run (pipeline);
  gst_object_unref (pipeline);
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
