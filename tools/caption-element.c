/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Captions from the element: every picture is decoded by itself and handed, as it came out of its
 * decoder, to one pipeline that keeps the model: appsrc ! vlmcaption mode=sync ! fakesink.
 */

#include "caption.h"

#include <string.h>

#include <gst/app/gstappsrc.h>
#include <gst/video/video.h>

#include "picture.h"

/* Pictures follow each other at this distance, so that each message can be told by its time. */
#define STEP GST_SECOND

typedef struct
{
  const CaptionOptions *options;
  GstElement *pipeline, *source, *element;
  GstBus *bus;
} Line;

/* The element as it is installed, or as it lies in the build folder beside the program. */
static GstElement *
make_element (void)
{
  GstElement *element = gst_element_factory_make ("vlmcaption", NULL);
  g_autofree gchar *program = NULL;
  g_autofree gchar *folder = NULL;
  g_autofree gchar *path = NULL;
  GstPlugin *plugin;

  if (element != NULL)
    return element;
  program = g_file_read_link ("/proc/self/exe", NULL);
  if (program == NULL)
    return NULL;
  folder = g_path_get_dirname (program);
  path = g_build_filename (folder, "..", "gst-plugin", "libgstvlmcaption.so", NULL);
  plugin = gst_plugin_load_file (path, NULL);
  if (plugin == NULL)
    return NULL;
  gst_object_unref (plugin);
  return gst_element_factory_make ("vlmcaption", NULL);
}

static void
set_properties (GstElement *element, const CaptionOptions *options)
{
  if (options->model != NULL)
    g_object_set (element, "model", options->model, NULL);
  if (options->system_prompt != NULL)
    g_object_set (element, "system-prompt", options->system_prompt, NULL);
  g_object_set (element, "prompt", options->prompt, "interval", G_GUINT64_CONSTANT (0),
      "max-tokens", options->max_tokens, "temperature", options->temperature, "top-k",
      options->top_k, "top-p", options->top_p, "min-p", options->min_p, "repetition-penalty",
      options->repetition_penalty, "seed", options->seed, "min-image-tokens",
      options->min_image_tokens, "max-image-tokens", options->max_image_tokens, "tiling",
      (gint) options->tiling, "threads", (guint) options->threads, "precision",
      (gint) options->precision, NULL);
  gst_util_set_object_arg (G_OBJECT (element), "mode", "sync");
  gst_util_set_object_arg (G_OBJECT (element), "post-messages", "all");
}

static gboolean
build_line (Line *line)
{
  GstElement *sink;

  line->element = make_element ();
  line->source = gst_element_factory_make ("appsrc", NULL);
  sink = gst_element_factory_make ("fakesink", NULL);
  if (line->element == NULL || line->source == NULL || sink == NULL) {
    caption_fail (NULL,
        line->element == NULL
            ? "the GStreamer element vlmcaption is not installed (see GST_PLUGIN_PATH)"
            : "the GStreamer elements appsrc and fakesink are not installed");
    g_clear_pointer (&line->element, gst_object_unref);
    g_clear_pointer (&line->source, gst_object_unref);
    g_clear_pointer (&sink, gst_object_unref);
    return FALSE;
  }
  set_properties (line->element, line->options);
  g_object_set (line->source, "format", GST_FORMAT_TIME, NULL);
  g_object_set (sink, "sync", FALSE, "async", FALSE, NULL);

  line->pipeline = gst_pipeline_new (NULL);
  gst_bin_add_many (GST_BIN (line->pipeline), line->source, line->element, sink, NULL);
  gst_element_link_many (line->source, line->element, sink, NULL);
  line->bus = gst_element_get_bus (line->pipeline);
  return TRUE;
}

static void
clear_line (Line *line)
{
  gst_element_set_state (line->pipeline, GST_STATE_NULL);
  gst_object_unref (line->bus);
  gst_object_unref (line->pipeline);
}

/*
 * Says what an error or warning says. Details begin with a line about the place in the source; what
 * follows it is for the user.
 */
static void
report (const gchar *picture, GstMessage *message)
{
  g_autoptr (GError) error = NULL;
  g_autofree gchar *details = NULL;
  g_autofree gchar *text = NULL;
  const gchar *more;

  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR)
    gst_message_parse_error (message, &error, &details);
  else
    gst_message_parse_warning (message, &error, &details);
  more = details != NULL ? strchr (details, '\n') : NULL;
  text =
      g_strconcat (error->message, more != NULL ? " " : NULL, more != NULL ? more + 1 : NULL, NULL);
  caption_fail (picture, text);
}

/* (transfer full) a sample that the element accepts: other formats are made RGB before. */
static GstSample *
adapt (const Line *line, GstSample *sample, GError **error)
{
  g_autoptr (GstPad) pad = gst_element_get_static_pad (line->element, "sink");
  g_autoptr (GstCaps) accepted = gst_pad_get_pad_template_caps (pad);
  g_autoptr (GstCaps) caps = NULL;
  GstBuffer *buffer;
  GstSample *adapted;
  guint8 *rgb;
  guint width, height;
  GstVideoInfo info;
  gsize row_bytes;
  guint y;

  if (gst_caps_can_intersect (gst_sample_get_caps (sample), accepted))
    return gst_sample_ref (sample);
  rgb = picture_to_rgb (sample, &width, &height, error);
  if (rgb == NULL)
    return NULL;
  gst_video_info_set_format (&info, GST_VIDEO_FORMAT_RGB, width, height);
  caps = gst_video_info_to_caps (&info);
  buffer = gst_buffer_new_allocate (NULL, GST_VIDEO_INFO_SIZE (&info), NULL);
  row_bytes = (gsize) width * 3;
  for (y = 0; y < height; y++)
    gst_buffer_fill (
        buffer, (gsize) y * GST_VIDEO_INFO_PLANE_STRIDE (&info, 0), rgb + y * row_bytes, row_bytes);
  adapted = gst_sample_new (buffer, caps, NULL, NULL);
  gst_buffer_unref (buffer);
  g_free (rgb);
  return adapted;
}

static gboolean
push (Line *line, GstSample *sample, guint index)
{
  GstBuffer *buffer = gst_buffer_copy (gst_sample_get_buffer (sample));
  GstSample *stamped;
  GstFlowReturn flow;

  GST_BUFFER_PTS (buffer) = index * STEP;
  GST_BUFFER_DTS (buffer) = GST_CLOCK_TIME_NONE;
  GST_BUFFER_DURATION (buffer) = STEP;
  stamped = gst_sample_new (buffer, gst_sample_get_caps (sample), NULL, NULL);
  gst_buffer_unref (buffer);
  flow = gst_app_src_push_sample (GST_APP_SRC (line->source), stamped);
  gst_sample_unref (stamped);
  return flow == GST_FLOW_OK;
}

typedef enum
{
  OUTCOME_CAPTION,
  OUTCOME_FAILED,
  OUTCOME_BROKEN /* no more pictures can be captioned */
} Outcome;

/* Waits for the element's word about the picture pushed last. */
static Outcome
wait_for_caption (Line *line, guint index)
{
  const gchar *picture = line->options->pictures[index];
  const GstMessageType types =
      GST_MESSAGE_ELEMENT | GST_MESSAGE_WARNING | GST_MESSAGE_ERROR | GST_MESSAGE_EOS;

  for (;;) {
    g_autoptr (GstMessage) message =
        gst_bus_timed_pop_filtered (line->bus, GST_CLOCK_TIME_NONE, types);
    const GstStructure *structure = gst_message_get_structure (message);
    guint64 timestamp;

    switch (GST_MESSAGE_TYPE (message)) {
      case GST_MESSAGE_ERROR:
        report (picture, message);
        return OUTCOME_BROKEN;
      case GST_MESSAGE_EOS:
        caption_fail (picture, "the pipeline ended without a caption");
        return OUTCOME_BROKEN;
      case GST_MESSAGE_WARNING:
        report (picture, message);
        if (GST_MESSAGE_SRC (message) == GST_OBJECT (line->element))
          return OUTCOME_FAILED;
        break;
      default:
        if (gst_structure_has_name (structure, "vlmcaption")
            && gst_structure_get_uint64 (structure, "timestamp", &timestamp)
            && timestamp == index * STEP) {
          const gchar *text = gst_structure_get_string (structure, "text");

          return caption_print (line->options, picture, text) ? OUTCOME_CAPTION : OUTCOME_BROKEN;
        }
        break;
    }
  }
}

static Outcome
caption_one (Line *line, guint index)
{
  const gchar *picture = line->options->pictures[index];
  g_autoptr (GError) error = NULL;
  g_autoptr (GstSample) decoded = picture_decode (picture, &error);
  g_autoptr (GstSample) sample = NULL;

  if (decoded != NULL)
    sample = adapt (line, decoded, &error);
  if (sample == NULL) {
    caption_fail (picture, error->message);
    return OUTCOME_FAILED;
  }
  /* A refused push has an error on the bus. */
  if (!push (line, sample, index))
    gst_app_src_end_of_stream (GST_APP_SRC (line->source));
  return wait_for_caption (line, index);
}

gboolean
caption_by_element (const CaptionOptions *options)
{
  Line line = { options, NULL, NULL, NULL, NULL };
  gboolean done = TRUE;
  guint i;

  if (!build_line (&line))
    return FALSE;
  if (gst_element_set_state (line.pipeline, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE) {
    g_autoptr (GstMessage) message = gst_bus_pop_filtered (line.bus, GST_MESSAGE_ERROR);

    if (message != NULL)
      report (NULL, message);
    else
      caption_fail (NULL, "the pipeline does not start");
    clear_line (&line);
    return FALSE;
  }

  for (i = 0; i < options->n_pictures; i++) {
    Outcome outcome = caption_one (&line, i);

    done = done && outcome == OUTCOME_CAPTION;
    if (outcome == OUTCOME_BROKEN) {
      for (i++; i < options->n_pictures; i++)
        caption_fail (options->pictures[i], "not captioned after the error above");
    }
  }
  clear_line (&line);
  return done;
}
