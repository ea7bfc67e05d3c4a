/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "message.h"

#define BUILTIN_NOTE                                                                               \
  "The built-in model only knows simple shapes and GStreamer's test patterns. "                    \
  "For real pictures get a real model (hf download LiquidAI/LFM2.5-VL-450M) and set the "          \
  "property \"model\" to its directory."

void
gst_vlm_message_post_caption (
    GstElement *element, const GstVlmAnswer *answer, const GstVlmMessageContext *context)
{
  /* clang-format off */
  GstStructure *structure = gst_structure_new ("vlmcaption",
      "text", G_TYPE_STRING, answer->text,
      "id", G_TYPE_UINT64, answer->id,
      "partial", G_TYPE_BOOLEAN, context->partial,
      "timestamp", G_TYPE_UINT64, answer->times.pts,
      "pts", G_TYPE_UINT64, answer->times.pts,
      "utc-time", G_TYPE_UINT64, answer->times.utc_time,
      "stream-time", G_TYPE_UINT64, answer->times.stream_time,
      "running-time", G_TYPE_UINT64, answer->times.running_time,
      "duration", G_TYPE_UINT64, answer->times.duration,
      "age", G_TYPE_UINT64, context->age,
      "latency", G_TYPE_UINT64, answer->latency,
      "dropped", G_TYPE_UINT64, context->dropped,
      "model", G_TYPE_STRING, context->model,
      "builtin-model", G_TYPE_BOOLEAN, context->builtin, NULL);
  /* clang-format on */

  /* What is not known before the end. */
  if (!context->partial) {
    /* clang-format off */
    gst_structure_set (structure,
        "prompt-tokens", G_TYPE_UINT, answer->n_prompt_tokens,
        "image-tokens", G_TYPE_UINT, answer->n_image_tokens,
        "tokens", G_TYPE_UINT, answer->n_tokens,
        "finish-reason", G_TYPE_STRING, vlm_finish_reason_name (answer->finish_reason), NULL);
    /* clang-format on */
  }
  if (context->note != NULL)
    gst_structure_set (structure, "note", G_TYPE_STRING, context->note, NULL);

  gst_element_post_message (element, gst_message_new_element (GST_OBJECT (element), structure));
}

void
gst_vlm_message_post_drops (GstElement *element, gboolean live, const GstVlmTimes *times,
    guint64 completed, guint64 dropped)
{
  GstMessage *message = gst_message_new_qos (GST_OBJECT (element), live, times->running_time,
      times->stream_time, times->pts, times->duration);

  gst_message_set_qos_stats (message, GST_FORMAT_BUFFERS, completed, dropped);
  gst_element_post_message (element, message);
}

void
gst_vlm_message_post_progress (
    GstElement *element, GstProgressType type, const gchar *path, gint percent)
{
  g_autofree gchar *text = NULL;
  GstMessage *message;

  switch (type) {
    case GST_PROGRESS_TYPE_COMPLETE:
      text = g_strdup_printf ("Loaded the model %s", path);
      break;
    case GST_PROGRESS_TYPE_CANCELED:
      text = g_strdup_printf ("Stopped loading the model %s", path);
      break;
    case GST_PROGRESS_TYPE_ERROR:
      text = g_strdup_printf ("Failed to load the model %s", path);
      break;
    default:
      text = g_strdup_printf ("Loading the model %s: %d %%", path, percent);
      break;
  }

  message = gst_message_new_progress (GST_OBJECT (element), type, "load", text);
  gst_structure_set (
      gst_message_writable_structure (message), "percent", G_TYPE_INT, percent, NULL);
  gst_element_post_message (element, message);
}

const gchar *
gst_vlm_message_builtin_note (void)
{
  return BUILTIN_NOTE;
}

void
gst_vlm_message_post_builtin (GstElement *element)
{
  GST_ELEMENT_INFO (element, RESOURCE, SETTINGS, ("%s", BUILTIN_NOTE), (NULL));
}

void
gst_vlm_message_post_model_error (GstElement *element, const gchar *path, const GError *error)
{
  if (g_error_matches (error, VLM_ERROR, VLM_ERROR_NOT_FOUND)
      && g_str_has_prefix (error->message, path))
    GST_ELEMENT_ERROR (element, RESOURCE, NOT_FOUND, ("There is no model at \"%s\".", path),
        ("%s", error->message));
  else if (g_error_matches (error, VLM_ERROR, VLM_ERROR_NOT_FOUND))
    GST_ELEMENT_ERROR (element, RESOURCE, NOT_FOUND,
        ("A part of the model at \"%s\" is missing.", path), ("%s", error->message));
  else if (g_error_matches (error, VLM_ERROR, VLM_ERROR_READ))
    GST_ELEMENT_ERROR (element, RESOURCE, OPEN_READ, ("The model at \"%s\" cannot be read.", path),
        ("%s", error->message));
  else if (g_error_matches (error, VLM_ERROR, VLM_ERROR_FORMAT)
      || g_error_matches (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED))
    GST_ELEMENT_ERROR (element, STREAM, FORMAT,
        ("The model at \"%s\" is damaged or of a kind that is not supported.", path),
        ("%s", error->message));
  else if (g_error_matches (error, VLM_ERROR, VLM_ERROR_SETTINGS))
    GST_ELEMENT_ERROR (element, LIBRARY, SETTINGS,
        ("The model at \"%s\" cannot be used with these settings.", path), ("%s", error->message));
  else
    GST_ELEMENT_ERROR (element, LIBRARY, INIT, ("The model at \"%s\" cannot be used here.", path),
        ("%s", error->message));
}

void
gst_vlm_message_post_failed (GstElement *element, GstClockTime pts, const GError *error)
{
  GST_ELEMENT_WARNING (element, STREAM, FAILED, ("A frame could not be described."),
      ("frame at %" GST_TIME_FORMAT ": %s", GST_TIME_ARGS (pts), error->message));
}
