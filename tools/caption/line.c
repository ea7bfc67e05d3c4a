/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "line.h"

#include <string.h>

#include "content.h"
#include "patience.h"
#include "source.h"

/* How often it is looked whether to stop, and how long nothing may come; in ns and seconds. */
#define LOOK_INTERVAL (100 * GST_MSECOND)
#define PATIENCE 60

/* Where a part of a file is wanted, playing begins that much before it. */
#define RUN_UP (1 * GST_SECOND)

struct _VlmLine
{
  const CaptionOptions *options;
  const VlmSelection *selection;
  GstElement *pipeline, *queue, *element;
  GstBus *bus;
  VlmSource *source; /* of the input that is played, or NULL */
  VlmFrames *frames;
  gchar *failed_frames; /* what was said of the first frame that could not be described */
  guint n_failed_frames;

  GMutex lock;                  /* of what follows */
  gboolean typed, sound, video; /* streams that were found */
  gint64 start, duration;
};

/* ---- Building ------------------------------------------------------------------------------ */

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
  if (options->mmproj != NULL)
    g_object_set (element, "mmproj", options->mmproj, NULL);
  if (options->system_prompt != NULL)
    g_object_set (element, "system-prompt", options->system_prompt, NULL);
  g_object_set (element, "prompt", options->prompt, "max-tokens", options->max_tokens,
      "temperature", options->temperature, "top-k", options->top_k, "top-p", options->top_p,
      "min-p", options->min_p, "repetition-penalty", options->repetition_penalty, "seed",
      options->seed, "min-image-tokens", options->min_image_tokens, "max-image-tokens",
      options->max_image_tokens, "tiling", (gint) options->tiling, "threads",
      (guint) options->threads, "precision", (gint) options->precision, NULL);
  gst_util_set_object_arg (G_OBJECT (element), "mode", "sync");
  gst_util_set_object_arg (G_OBJECT (element), "post-messages", "none");
}

/* Adds an element to the pipeline; NULL with an error. */
static GstElement *
add_element (VlmLine *line, const gchar *factory, GError **error)
{
  GstElement *element = strcmp (factory, "vlmcaption") == 0
      ? make_element ()
      : gst_element_factory_make (factory, NULL);

  if (element == NULL)
    g_set_error (error, GST_CORE_ERROR, GST_CORE_ERROR_MISSING_PLUGIN,
        "the GStreamer element %s is not installed (see GST_PLUGIN_PATH)", factory);
  else
    gst_bin_add (GST_BIN (line->pipeline), element);
  return element;
}

static gboolean
build (VlmLine *line, GError **error)
{
  GstElement *convert, *sink;

  line->element = add_element (line, "vlmcaption", error);
  if (line->element == NULL)
    return FALSE;
  if ((line->queue = add_element (line, "queue", error)) == NULL
      || (convert = add_element (line, "videoconvert", error)) == NULL
      || (sink = add_element (line, "fakesink", error)) == NULL)
    return FALSE;
  /* A few frames are decoded while one is described. */
  g_object_set (line->queue, "max-size-buffers", 3, "max-size-bytes", 0, "max-size-time",
      G_GUINT64_CONSTANT (0), NULL);
  g_object_set (sink, "sync", FALSE, NULL);
  set_properties (line->element, line->options);
  gst_element_link_many (line->queue, convert, line->element, sink, NULL);
  return TRUE;
}

/*
 * (transfer full) what an error or a warning says. Lines of its details that tell places in
 * GStreamer's source are left out.
 */
static gchar *
describe_message (GstMessage *message)
{
  g_autoptr (GError) error = NULL;
  g_autofree gchar *details = NULL;
  g_auto (GStrv) lines = NULL;
  GString *text;
  guint i;

  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR)
    gst_message_parse_error (message, &error, &details);
  else
    gst_message_parse_warning (message, &error, &details);
  text = g_string_new (error->message);
  lines = g_strsplit (details != NULL ? details : "", "\n", -1);
  for (i = 0; lines[i] != NULL; i++) {
    if (lines[i][0] != '\0' && strstr (lines[i], ".c(") == NULL)
      g_string_append_printf (text, " %s", lines[i]);
  }
  return g_string_free (text, FALSE);
}

/* To READY, which is where the element looks for its model. */
static gboolean
get_ready (VlmLine *line, GError **error)
{
  g_autoptr (GstMessage) message = NULL;
  g_autofree gchar *text = NULL;

  if (gst_element_set_state (line->pipeline, GST_STATE_READY) != GST_STATE_CHANGE_FAILURE)
    return TRUE;
  message = gst_bus_pop_filtered (line->bus, GST_MESSAGE_ERROR);
  text = message != NULL ? describe_message (message) : g_strdup ("the pipeline does not start");
  g_set_error_literal (error, GST_CORE_ERROR, GST_CORE_ERROR_STATE_CHANGE, text);
  return FALSE;
}

VlmLine *
vlm_line_new (const CaptionOptions *options, const VlmSelection *selection, VlmCaptionTaker take,
    gpointer data, GError **error)
{
  VlmLine *line = g_new0 (VlmLine, 1);

  line->options = options;
  line->selection = selection;
  line->start = line->duration = -1;
  g_mutex_init (&line->lock);
  line->pipeline = gst_pipeline_new (NULL);
  line->bus = gst_element_get_bus (line->pipeline);
  if (build (line, error) && get_ready (line, error)) {
    line->frames = vlm_frames_new (line->element, selection, take, data);
    return line;
  }
  vlm_line_free (line);
  return NULL;
}

void
vlm_line_free (VlmLine *line)
{
  gst_element_set_state (line->pipeline, GST_STATE_NULL);
  gst_object_unref (line->bus);
  gst_object_unref (line->pipeline);
  g_clear_pointer (&line->frames, vlm_frames_free);
  g_mutex_clear (&line->lock);
  g_free (line->failed_frames);
  g_free (line);
}

/* ---- Sources ------------------------------------------------------------------------------- */

static gboolean
add_source (VlmLine *line, const VlmInput *input, GError **error)
{
  g_autoptr (GstPad) pad = gst_element_get_static_pad (line->element, "sink");
  g_autoptr (GstCaps) accepted = gst_pad_get_pad_template_caps (pad);

  line->source =
      vlm_source_new (input, GST_BIN (line->pipeline), line->queue, accepted, line->frames, error);
  return line->source != NULL;
}

static void
remove_source (VlmLine *line)
{
  g_clear_pointer (&line->source, vlm_source_free);
  /* What it still had to say is of no interest. */
  gst_bus_set_flushing (line->bus, TRUE);
  gst_bus_set_flushing (line->bus, FALSE);
}

/* ---- Playing ------------------------------------------------------------------------------- */

typedef enum
{
  EVENT_ERROR,   /* of the input */
  EVENT_MODEL,   /* an error of the element, whose model is no good */
  EVENT_END,     /* of what is wanted of the input */
  EVENT_PREROLL, /* the pipeline is in PAUSED */
  EVENT_STOP,    /* no more is wanted */
  EVENT_STANDSTILL
} Event;

static gboolean
is_from_element (const VlmLine *line, GstMessage *message)
{
  return GST_MESSAGE_SRC (message) == GST_OBJECT (line->element);
}

static void
note_failed_frame (VlmLine *line, GstMessage *message)
{
  if (!is_from_element (line, message))
    return;
  line->n_failed_frames++;
  if (line->failed_frames == NULL)
    line->failed_frames = describe_message (message);
}

/* What the end of the stream means: the end of the input, or of frames that were let fall. */
static Event
judge_eos (VlmLine *line, gint *stop)
{
  VlmFramesState state;

  vlm_frames_get_state (line->frames, &state);
  return state.refused || g_atomic_int_get (stop) != 0 ? EVENT_STOP : EVENT_END;
}

/*
 * Waits for something to happen; text is set for errors. A caption that is being made is always
 * waited for.
 */
static Event
wait_for_event (VlmLine *line, gint *stop, gchar **text)
{
  const GstMessageType types =
      GST_MESSAGE_WARNING | GST_MESSAGE_ERROR | GST_MESSAGE_EOS | GST_MESSAGE_ASYNC_DONE;
  guint n_frames = 0;
  VlmPatience patience;

  vlm_patience_begin (&patience, PATIENCE, g_get_monotonic_time ());
  for (;;) {
    g_autoptr (GstMessage) message = gst_bus_timed_pop_filtered (line->bus, LOOK_INTERVAL, types);
    VlmFramesState state;
    gboolean patient;

    if (message != NULL) {
      switch (GST_MESSAGE_TYPE (message)) {
        case GST_MESSAGE_ERROR:
          *text = describe_message (message);
          return is_from_element (line, message) ? EVENT_MODEL : EVENT_ERROR;
        case GST_MESSAGE_EOS:
          return judge_eos (line, stop);
        case GST_MESSAGE_ASYNC_DONE:
          return EVENT_PREROLL;
        default:
          note_failed_frame (line, message);
          continue;
      }
    }

    vlm_frames_get_state (line->frames, &state);
    if (g_atomic_int_get (stop) != 0)
      vlm_frames_stop (line->frames);
    patient = vlm_patience_look (
        &patience, state.inside || state.n_frames != n_frames, g_get_monotonic_time ());
    n_frames = state.n_frames;
    if (state.inside)
      continue;
    if (state.beyond)
      return EVENT_END;
    if (state.refused || g_atomic_int_get (stop) != 0)
      return EVENT_STOP;
    if (!patient)
      return EVENT_STANDSTILL;
  }
}

/* Whether to begin with a seek, for a part that is not at the beginning. */
static gboolean
wants_seek (VlmLine *line, const VlmInput *input)
{
  return input->exact_seeks && vlm_frames_get_start (line->frames) > (gint64) (2 * RUN_UP);
}

/* Brings the prerolled pipeline to shortly before what is wanted. */
static gboolean
seek_to_start (VlmLine *line)
{
  gint64 start = vlm_frames_get_start (line->frames) - (gint64) RUN_UP;

  start = MAX (start, 0) + vlm_frames_get_base (line->frames);
  return gst_element_seek_simple (
      line->pipeline, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE, start);
}

static void
note_duration (VlmLine *line, const VlmInput *input)
{
  gint64 duration = -1;

  if (gst_element_query_duration (line->pipeline, GST_FORMAT_TIME, &duration))
    duration -= vlm_frames_get_base (line->frames);
  if (line->selection->to >= 0 && duration > line->selection->to)
    duration = line->selection->to;
  g_mutex_lock (&line->lock);
  line->duration = input->still ? -1 : duration;
  line->start = vlm_frames_get_start (line->frames);
  g_mutex_unlock (&line->lock);
}

/* Plays what was added until something ends it. */
static Event
play (VlmLine *line, VlmInput *input, gint *stop, gchar **text)
{
  gboolean wait = !input->still && wants_seek (line, input);
  GstStateChangeReturn change;
  Event event;

  vlm_frames_begin (line->frames, input, wait);
  change = gst_element_set_state (line->pipeline, wait ? GST_STATE_PAUSED : GST_STATE_PLAYING);
  vlm_frames_set_live (line->frames, change == GST_STATE_CHANGE_NO_PREROLL);
  if (wait) {
    event = wait_for_event (line, stop, text);
    if (event != EVENT_PREROLL)
      return event;
    if (!seek_to_start (line)) {
      gst_element_set_state (line->pipeline, GST_STATE_READY);
      vlm_frames_begin (line->frames, input, FALSE);
    }
    gst_element_set_state (line->pipeline, GST_STATE_PLAYING);
  }
  while ((event = wait_for_event (line, stop, text)) == EVENT_PREROLL)
    note_duration (line, input);
  return event;
}

/* ---- How it went --------------------------------------------------------------------------- */

static void
fail_frames (VlmLine *line, VlmInput *input)
{
  g_autofree gchar *text = line->n_failed_frames > 1
      ? g_strdup_printf ("%u frames failed, first: %s", line->n_failed_frames, line->failed_frames)
      : g_strdup (line->failed_frames);

  vlm_input_fail (input, VLM_INPUT_FAILED, text);
}

/* The input was played to its end; whether that is where it should end. */
static void
judge_end (VlmInput *input, const VlmFramesState *state)
{
  guint64 actual, expected;

  input->end = input->still ? 0 : state->end;
  input->state = VLM_INPUT_WHOLE;
  if (!state->beyond && input->path != NULL
      && vlm_content_is_cut (input->path, &actual, &expected)) {
    g_autofree gchar *text = g_strdup_printf ("the file is cut: it has %" G_GUINT64_FORMAT
                                              " of %" G_GUINT64_FORMAT " bytes",
        actual, expected);

    vlm_input_fail (input, VLM_INPUT_CUT, text);
  }
}

/* Something went wrong after at least some frames, or before there was any. */
static void
judge_error (VlmLine *line, VlmInput *input, const VlmFramesState *state, const gchar *text)
{
  if (state->end >= 0) {
    input->end = state->end;
    vlm_input_fail (input, input->captions->len > 0 ? VLM_INPUT_CUT : VLM_INPUT_FAILED, text);
  } else {
    vlm_input_fail (input, VLM_INPUT_FAILED,
        vlm_source_is_sound_only (line->source) ? "there is sound in it, but no video" : text);
  }
}

static gboolean
judge (VlmLine *line, VlmInput *input, Event event, const gchar *text, GError **error)
{
  VlmFramesState state;

  vlm_frames_get_state (line->frames, &state);
  switch (event) {
    case EVENT_MODEL:
      g_set_error_literal (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FAILED, text);
      return FALSE;
    case EVENT_ERROR:
      judge_error (line, input, &state, text);
      return TRUE;
    case EVENT_STANDSTILL:
      judge_error (
          line, input, &state, "nothing more came of it for " G_STRINGIFY (PATIENCE) " seconds");
      return TRUE;
    case EVENT_END:
      if (line->n_failed_frames > 0)
        fail_frames (line, input);
      else if (input->captions->len > 0)
        judge_end (input, &state);
      else
        vlm_input_fail (input, VLM_INPUT_FAILED,
            state.n_frames > 0 ? "there is no frame in the part that was asked for"
                               : "there is no picture in it");
      return TRUE;
    default:
      return TRUE; /* it stays as it is */
  }
}

gboolean
vlm_line_play (VlmLine *line, VlmInput *input, gint *stop, GError **error)
{
  g_autoptr (GError) source_error = NULL;
  g_autofree gchar *text = NULL;
  gboolean usable = TRUE;
  Event event;

  g_clear_pointer (&line->failed_frames, g_free);
  line->n_failed_frames = 0;
  g_mutex_lock (&line->lock);
  line->start = line->duration = -1;
  g_mutex_unlock (&line->lock);

  if (!add_source (line, input, &source_error)) {
    vlm_input_fail (input, VLM_INPUT_FAILED, source_error->message);
    return TRUE;
  }
  event = play (line, input, stop, &text);
  gst_element_set_state (line->pipeline, GST_STATE_READY);
  usable = judge (line, input, event, text, error);
  remove_source (line);
  return usable;
}

void
vlm_line_get_progress (VlmLine *line, gint64 *start, gint64 *position, gint64 *duration)
{
  VlmFramesState state;

  vlm_frames_get_state (line->frames, &state);
  g_mutex_lock (&line->lock);
  *start = line->start;
  *duration = line->duration;
  g_mutex_unlock (&line->lock);
  *position = state.position;
}
