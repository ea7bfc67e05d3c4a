/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Looks whether a video has the right captions burnt in, frame by frame.
 *
 *   compare-frames PLAIN CAPTIONED TRUTH.tsv
 *
 * A third stream is made as the yardstick: the plain video, with the true captions drawn by a
 * textoverlay of its own. Where that overlay drew, the captioned video must look like the yardstick
 * and not like the plain one; everywhere else it must look like the plain one, but for what
 * compressing it once more did. A line of TRUTH.tsv is "start<TAB>end<TAB>caption".
 */

#include <gst/app/gstappsink.h>
#include <gst/gst.h>
#include <gst/video/video.h>
#include <stdio.h>
#include <stdlib.h>

/* Brightness steps of 255 by which compression may change the mean pixel outside the caption. */
#define MOST_NOISE 2.0
/* A caption's pixels must be this many times nearer to the yardstick than that is to the plain
 * picture; a caption of other words is not even once. */
#define LEAST_LIKENESS 6.0
/* An overlay that changed fewer pixels than this drew no words. */
#define LEAST_CAPTION_PIXELS 500

typedef struct
{
  GstClockTime start, end;
  gchar *markup;
} Scene;

typedef struct
{
  GArray *scenes;
  const gchar *shown; /* what the overlay has been told to draw */
} Yardstick;

typedef struct
{
  guint64 n_frames;
  guint64 fewest_pixels;
  gdouble most_noise;
  gdouble least_likeness;
} Summary;

static void
clear_scene (gpointer data)
{
  g_free (((Scene *) data)->markup);
}

static gboolean
parse_time (const gchar *text, GstClockTime *time)
{
  guint hours, minutes, seconds, nanoseconds;

  if (sscanf (text, "%u:%u:%u.%u", &hours, &minutes, &seconds, &nanoseconds) != 4)
    return FALSE;
  *time = ((hours * 60 + minutes) * 60 + seconds) * GST_SECOND + nanoseconds;
  return TRUE;
}

/* Returns an array of Scene, or NULL where the file is none. */
static GArray *
read_truth (const gchar *file)
{
  GArray *scenes = g_array_new (FALSE, FALSE, sizeof (Scene));
  gchar *text = NULL, **lines;
  gboolean ok = TRUE;

  g_array_set_clear_func (scenes, clear_scene);
  if (!g_file_get_contents (file, &text, NULL, NULL))
    text = g_strdup ("");
  lines = g_strsplit (text, "\n", -1);
  for (guint i = 0; lines[i] != NULL && lines[i][0] != '\0' && ok; i++) {
    gchar **fields = g_strsplit (lines[i], "\t", 3);
    Scene scene = { 0, 0, NULL };

    ok = g_strv_length (fields) == 3 && parse_time (fields[0], &scene.start)
        && parse_time (fields[1], &scene.end);
    if (ok) {
      scene.markup = g_markup_escape_text (fields[2], -1);
      g_array_append_val (scenes, scene);
    }
    g_strfreev (fields);
  }
  g_strfreev (lines);
  g_free (text);
  if (!ok || scenes->len == 0)
    g_clear_pointer (&scenes, g_array_unref);
  return scenes;
}

/* Runs in the thread that is about to hand the frame to the overlay, so the words change with the
 * very frame. */
static GstPadProbeReturn
choose_words (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Yardstick *yardstick = user_data;
  GstClockTime time = GST_BUFFER_PTS (GST_PAD_PROBE_INFO_BUFFER (info));
  const gchar *words = "";

  for (guint i = 0; i < yardstick->scenes->len; i++) {
    const Scene *scene = &g_array_index (yardstick->scenes, Scene, i);

    if (time >= scene->start && time < scene->end)
      words = scene->markup;
  }
  if (words != yardstick->shown) {
    GstElement *overlay = gst_pad_get_parent_element (pad);

    g_object_set (overlay, "text", words, NULL);
    gst_object_unref (overlay);
    yardstick->shown = words;
  }
  return GST_PAD_PROBE_OK;
}

/* Decodes a file into an appsink named "frames"; with a yardstick, draws its words. */
static GstElement *
open_video (const gchar *file, Yardstick *yardstick)
{
  const gchar *middle = yardstick != NULL ? "! textoverlay name=overlay" : "";
  gchar *line =
      g_strdup_printf ("filesrc name=input ! decodebin %s ! videoconvert"
                       " ! video/x-raw,format=I420 ! appsink name=frames sync=false max-buffers=4",
          middle);
  GError *error = NULL;
  GstElement *pipeline = gst_parse_launch_full (line, NULL, GST_PARSE_FLAG_FATAL_ERRORS, &error);
  GstElement *element;

  g_free (line);
  if (pipeline == NULL) {
    g_printerr ("compare-frames: %s\n", error->message);
    g_clear_error (&error);
    return NULL;
  }
  element = gst_bin_get_by_name (GST_BIN (pipeline), "input");
  g_object_set (element, "location", file, NULL);
  gst_object_unref (element);
  if (yardstick != NULL) {
    GstPad *pad;

    element = gst_bin_get_by_name (GST_BIN (pipeline), "overlay");
    pad = gst_element_get_static_pad (element, "video_sink");
    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, choose_words, yardstick, NULL);
    gst_object_unref (pad);
    gst_object_unref (element);
  }
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  return pipeline;
}

static GstSample *
next_frame (GstElement *pipeline)
{
  GstElement *sink = gst_bin_get_by_name (GST_BIN (pipeline), "frames");
  GstSample *sample = gst_app_sink_pull_sample (GST_APP_SINK (sink));

  gst_object_unref (sink);
  return sample;
}

static gboolean
map_frame (GstSample *sample, GstVideoFrame *frame)
{
  GstVideoInfo info;

  return gst_video_info_from_caps (&info, gst_sample_get_caps (sample))
      && gst_video_frame_map (frame, &info, gst_sample_get_buffer (sample), GST_MAP_READ);
}

/* Adds one frame to the summary. The brightness plane is enough: captions are white on black. */
static void
measure (const GstVideoFrame *plain, const GstVideoFrame *yardstick, const GstVideoFrame *captioned,
    Summary *summary)
{
  guint64 n_drawn = 0, n_other = 0, noise = 0, drawn = 0, missed = 0;

  for (gint y = 0; y < GST_VIDEO_FRAME_HEIGHT (plain); y++) {
    const guint8 *p = GST_VIDEO_FRAME_COMP_DATA (plain, 0);
    const guint8 *r = GST_VIDEO_FRAME_COMP_DATA (yardstick, 0);
    const guint8 *c = GST_VIDEO_FRAME_COMP_DATA (captioned, 0);

    p += y * GST_VIDEO_FRAME_COMP_STRIDE (plain, 0);
    r += y * GST_VIDEO_FRAME_COMP_STRIDE (yardstick, 0);
    c += y * GST_VIDEO_FRAME_COMP_STRIDE (captioned, 0);
    for (gint x = 0; x < GST_VIDEO_FRAME_WIDTH (plain); x++) {
      if (p[x] != r[x]) {
        n_drawn++;
        drawn += ABS (p[x] - r[x]);
        missed += ABS (c[x] - r[x]);
      } else {
        n_other++;
        noise += ABS (c[x] - p[x]);
      }
    }
  }

  summary->n_frames++;
  summary->fewest_pixels = MIN (summary->fewest_pixels, n_drawn);
  summary->most_noise = MAX (summary->most_noise, (gdouble) noise / MAX (n_other, 1));
  summary->least_likeness = MIN (summary->least_likeness, (gdouble) drawn / MAX (missed, 1));
}

/* Measures three frames that belong together; FALSE if they do not. */
static gboolean
compare_samples (GstSample *samples[3], Summary *summary)
{
  GstVideoFrame frames[3];
  gboolean ok = TRUE;
  guint n_mapped;

  for (n_mapped = 0; n_mapped < 3; n_mapped++) {
    if (!map_frame (samples[n_mapped], &frames[n_mapped]))
      break;
  }
  if (n_mapped < 3) {
    g_printerr ("compare-frames: a frame cannot be read\n");
    ok = FALSE;
  }
  for (guint i = 1; i < n_mapped && ok; i++) {
    ok = GST_VIDEO_FRAME_WIDTH (&frames[i]) == GST_VIDEO_FRAME_WIDTH (&frames[0])
        && GST_VIDEO_FRAME_HEIGHT (&frames[i]) == GST_VIDEO_FRAME_HEIGHT (&frames[0])
        && GST_BUFFER_PTS (frames[i].buffer) == GST_BUFFER_PTS (frames[0].buffer);
    if (!ok)
      g_printerr ("compare-frames: frame %" G_GUINT64_FORMAT " differs in size or time\n",
          summary->n_frames);
  }
  if (ok)
    measure (&frames[0], &frames[1], &frames[2], summary);
  while (n_mapped > 0)
    gst_video_frame_unmap (&frames[--n_mapped]);
  return ok;
}

/* Walks the three videos side by side to their common end. */
static gboolean
compare_videos (GstElement *videos[3], Summary *summary)
{
  gboolean ok = TRUE, more = TRUE;

  while (ok && more) {
    GstSample *samples[3];
    guint n_samples = 0;

    for (guint i = 0; i < 3; i++) {
      samples[i] = next_frame (videos[i]);
      n_samples += samples[i] != NULL;
    }
    more = n_samples == 3;
    if (more)
      ok = compare_samples (samples, summary);
    else if (n_samples > 0) {
      g_printerr ("compare-frames: one video ends earlier than the other\n");
      ok = FALSE;
    }
    for (guint i = 0; i < 3; i++)
      g_clear_pointer (&samples[i], gst_sample_unref);
  }
  return ok;
}

/* TRUE if every frame holds its caption and nothing but its caption. */
static gboolean
judge (const Summary *summary)
{
  if (summary->n_frames == 0) {
    g_printerr ("compare-frames: no frame could be decoded\n");
    return FALSE;
  }
  g_print (
      "%" G_GUINT64_FORMAT " frames; in the worst of them the caption's pixels are %.1f times"
      " nearer to the true words than to the plain picture (at least %.1f),\nthe others %.2f steps"
      " of 255 from the plain picture (at most %.1f), and the caption has %" G_GUINT64_FORMAT
      " pixels (at least %d)\n",
      summary->n_frames, summary->least_likeness, LEAST_LIKENESS, summary->most_noise, MOST_NOISE,
      summary->fewest_pixels, LEAST_CAPTION_PIXELS);
  return summary->least_likeness >= LEAST_LIKENESS && summary->most_noise <= MOST_NOISE
      && summary->fewest_pixels >= LEAST_CAPTION_PIXELS;
}

int
main (int argc, char **argv)
{
  Yardstick yardstick = { NULL, NULL };
  Summary summary = { 0, G_MAXUINT64, 0.0, G_MAXDOUBLE };
  GstElement *videos[3] = { NULL, NULL, NULL };
  gboolean ok;

  gst_init (&argc, &argv);
  if (argc != 4) {
    g_printerr ("usage: compare-frames PLAIN CAPTIONED TRUTH.tsv\n");
    return EXIT_FAILURE;
  }
  yardstick.scenes = read_truth (argv[3]);
  if (yardstick.scenes == NULL) {
    g_printerr ("compare-frames: %s holds no list of captions\n", argv[3]);
    return EXIT_FAILURE;
  }

  videos[0] = open_video (argv[1], NULL);
  videos[1] = open_video (argv[1], &yardstick);
  videos[2] = open_video (argv[2], NULL);
  ok = videos[0] != NULL && videos[1] != NULL && videos[2] != NULL
      && compare_videos (videos, &summary) && judge (&summary);
  for (guint i = 0; i < 3; i++) {
    if (videos[i] != NULL)
      gst_element_set_state (videos[i], GST_STATE_NULL);
    g_clear_pointer (&videos[i], gst_object_unref);
  }
  g_array_unref (yardstick.scenes);
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
