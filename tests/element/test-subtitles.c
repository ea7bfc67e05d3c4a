/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Captions as subtitles of a recorded file: written by a muxer, read again by its demuxer. */

#include <glib/gstdio.h>
#include <string.h>

#include "tests/element/element-helpers.h"
#include "tests/element/scripted-engine.h"

GST_PLUGIN_STATIC_DECLARE (vlmcaption);

#define FRAME (GST_SECOND / 25)
#define HOUR (3600 * GST_SECOND)
#define CAPS "video/x-raw,format=RGB,width=32,height=32,framerate=25/1"
#define INPUT "appsrc name=s format=time max-buffers=3 block=true caps=" CAPS " ! "
/* What a muxer needs to see the end of a caption before it writes the video that it begins with. */
#define ROOM "queue max-size-time=0 max-size-bytes=0 max-size-buffers=0"

/* A film of scenes of one grey each. Its last scene is short, no length is a whole second. */
static const struct
{
  guint8 grey;
  guint n_frames;
} scenes[] = { { 10, 17 }, { 120, 31 }, { 240, 8 }, { 60, 40 }, { 180, 3 } };

static gchar *directory;

/* ---- Playing ------------------------------------------------------------------------------ */

static void
wait_for_end (GstElement *pipeline, const gchar *line)
{
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message =
      gst_bus_timed_pop_filtered (bus, PATIENCE * GST_USECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);

  if (message == NULL)
    g_error ("no end: %s", line);
  if (GST_MESSAGE_TYPE (message) != GST_MESSAGE_EOS)
    g_error ("%" GST_PTR_FORMAT ": %s", (gpointer) message, line);
  gst_message_unref (message);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (bus);
}

static void
push_film (GstElement *source)
{
  GstClockTime time = 0;
  GstFlowReturn flow;
  guint scene, i;

  for (scene = 0; scene < G_N_ELEMENTS (scenes); scene++) {
    for (i = 0; i < scenes[scene].n_frames; i++, time += FRAME) {
      GstBuffer *frame = gst_buffer_new_allocate (NULL, 32 * 32 * 3, NULL);

      gst_buffer_memset (frame, 0, scenes[scene].grey, 32 * 32 * 3);
      GST_BUFFER_PTS (frame) = time;
      GST_BUFFER_DURATION (frame) = FRAME;
      g_signal_emit_by_name (source, "push-buffer", frame, &flow);
      gst_buffer_unref (frame);
      g_assert_cmpint (flow, ==, GST_FLOW_OK);
    }
  }
  g_signal_emit_by_name (source, "end-of-stream", &flow);
}

/* Plays the film through the line, whose only %s is the path that is written and returned. */
static gchar *
record_film (const gchar *format, const gchar *name)
{
  gchar *path = g_build_filename (directory, name, NULL);
  gchar **halves = g_strsplit (format, "%s", 2);
  g_autofree gchar *line = g_strconcat (INPUT, halves[0], path, halves[1], NULL);
  g_autoptr (GError) error = NULL;
  GstElement *pipeline = gst_parse_launch (line, &error);
  GstElement *source;

  g_assert_no_error (error);
  source = gst_bin_get_by_name (GST_BIN (pipeline), "s");
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  push_film (source);
  wait_for_end (pipeline, line);
  gst_object_unref (source);
  gst_object_unref (pipeline);
  g_strfreev (halves);

  return path;
}

/* ---- Reading ------------------------------------------------------------------------------ */

typedef struct
{
  GstClockTime start, end;
  gchar *text;
} Cue;

typedef struct
{
  GArray *cues;
  GstClockTime video_end;
} Film;

static void
cue_clear (gpointer data)
{
  g_free (((Cue *) data)->text);
}

static GstPadProbeReturn
take_cue (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);
  Film *film = user_data;
  GstMapInfo map;
  Cue cue;

  /* GStreamer 1.26 writes a gap as a cue without text. */
  if (gst_buffer_get_size (buffer) == 0)
    return GST_PAD_PROBE_OK;
  g_assert_true (GST_BUFFER_PTS_IS_VALID (buffer) && GST_BUFFER_DURATION_IS_VALID (buffer));
  cue.start = GST_BUFFER_PTS (buffer);
  cue.end = cue.start + GST_BUFFER_DURATION (buffer);
  g_assert_true (gst_buffer_map (buffer, &map, GST_MAP_READ));
  cue.text = g_strndup ((const gchar *) map.data, map.size);
  gst_buffer_unmap (buffer, &map);
  g_array_append_val (film->cues, cue);

  return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn
take_frame (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);
  Film *film = user_data;

  film->video_end = MAX (film->video_end, GST_BUFFER_PTS (buffer) + FRAME);
  return GST_PAD_PROBE_OK;
}

static void
probe_sink (GstElement *pipeline, const gchar *name, GstPadProbeCallback callback, Film *film)
{
  GstElement *sink = gst_bin_get_by_name (GST_BIN (pipeline), name);
  GstPad *pad = gst_element_get_static_pad (sink, "sink");

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, callback, film, NULL);
  gst_object_unref (pad);
  gst_object_unref (sink);
}

/* Reads a file again and takes it away. */
static void
read_film (gchar *path, const gchar *demuxer, Film *film)
{
  g_autofree gchar *line =
      g_strdup_printf ("filesrc location=%s ! %s name=d d.video_0 ! queue ! fakesink name=video "
                       "d.subtitle_0 ! queue ! fakesink name=text",
          path, demuxer);
  g_autoptr (GError) error = NULL;
  GstElement *pipeline = gst_parse_launch (line, &error);

  g_assert_no_error (error);
  film->cues = g_array_new (FALSE, FALSE, sizeof (Cue));
  g_array_set_clear_func (film->cues, cue_clear);
  film->video_end = 0;
  probe_sink (pipeline, "video", take_frame, film);
  probe_sink (pipeline, "text", take_cue, film);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  wait_for_end (pipeline, line);
  gst_object_unref (pipeline);
  g_remove (path);
  g_free (path);
}

static void
film_clear (Film *film)
{
  g_array_unref (film->cues);
}

#define assert_near(time, expected)                                                                \
  g_assert_cmpint (ABS (GST_CLOCK_DIFF (expected, time)), <=, FRAME)

/* One cue for each scene, from its first to its last frame, but no longer than longest. */
static void
check_scenes (const Film *film, GstClockTime longest)
{
  GstClockTime start = 0;
  guint i;

  g_assert_cmpuint (film->cues->len, ==, G_N_ELEMENTS (scenes));
  for (i = 0; i < film->cues->len; i++) {
    const Cue *cue = &g_array_index (film->cues, Cue, i);
    g_autofree gchar *text = g_strdup_printf ("P %u", scenes[i].grey);
    GstClockTime end = start + scenes[i].n_frames * FRAME;

    g_assert_cmpstr (cue->text, ==, text);
    assert_near (cue->start, start);
    assert_near (cue->end, MIN (end, start + longest));
    if (i > 0)
      g_assert_cmpuint (cue->start, >=, g_array_index (film->cues, Cue, i - 1).end);
    start = end;
  }
  assert_near (film->video_end, start);
}

/* No cue reaches over the end of the scene that it is about. */
static void
check_pieces (const Film *film)
{
  guint i;

  for (i = 0; i < film->cues->len; i++) {
    const Cue *cue = &g_array_index (film->cues, Cue, i);
    GstClockTime start = 0;
    guint scene;

    for (scene = 0; scene < G_N_ELEMENTS (scenes); scene++) {
      g_autofree gchar *text = g_strdup_printf ("P %u", scenes[scene].grey);
      GstClockTime end = start + scenes[scene].n_frames * FRAME;

      if (g_str_equal (cue->text, text)) {
        g_assert_cmpuint (cue->start + FRAME, >=, start);
        g_assert_cmpuint (cue->end, <=, end + FRAME);
      }
      start = end;
    }
  }
}

/* ---- Tests -------------------------------------------------------------------------------- */

#define SCENES "vlmcaption name=v prompt=P interval=0 scene-threshold=0.05 "

static void
test_matroska (void)
{
  Film film;

  read_film (record_film (SCENES "! jpegenc ! " ROOM " ! matroskamux name=m ! "
                                 "filesink location=%s v.text ! m.",
                 "scenes.mkv"),
      "matroskademux", &film);
  check_scenes (&film, HOUR);
  g_assert_cmpuint (
      g_array_index (film.cues, Cue, film.cues->len - 1).end, <=, film.video_end + GST_MSECOND);
  film_clear (&film);
}

static void
test_max_duration (void)
{
  Film film;

  read_film (record_film (SCENES "text-max-duration=500000000 ! jpegenc ! " ROOM
                                 " ! matroskamux name=m ! filesink location=%s v.text ! m.",
                 "short.mkv"),
      "matroskademux", &film);
  check_scenes (&film, 500 * GST_MSECOND);
  film_clear (&film);
}

/* Without room for video the muxer waits for text: it gets what is true at each frame. */
static void
test_no_room (void)
{
  Film film;

  read_film (record_film (SCENES "! jpegenc ! matroskamux name=m ! filesink location=%s "
                                 "v.text ! m.",
                 "pieces.mkv"),
      "matroskademux", &film);
  g_assert_cmpuint (film.cues->len, >=, G_N_ELEMENTS (scenes));
  check_pieces (&film);
  film_clear (&film);
}

/* The same towards a muxer that looks at the next buffer before it writes one. */
static void
test_quicktime (void)
{
  Film film;

  read_film (record_film (SCENES "! jpegenc ! " ROOM " ! qtmux name=m ! "
                                 "filesink location=%s v.text ! m.",
                 "scenes.mov"),
      "qtdemux", &film);
  check_scenes (&film, HOUR);
  film_clear (&film);
}

/* A caption at each interval whose end is foreseen needs no room. */
static void
test_interval (void)
{
  Film film;
  guint i;

  read_film (record_film ("vlmcaption name=v prompt=P interval=1000000000 ! jpegenc ! "
                          "matroskamux name=m ! filesink location=%s v.text ! m.",
                 "interval.mkv"),
      "matroskademux", &film);
  g_assert_cmpuint (film.cues->len, ==, 4);
  for (i = 0; i < film.cues->len; i++) {
    const Cue *cue = &g_array_index (film.cues, Cue, i);

    assert_near (cue->start, i * GST_SECOND);
    assert_near (cue->end, i < 3 ? (i + 1) * GST_SECOND : film.video_end);
  }
  film_clear (&film);
}

/* A sidecar: WebVTT of the same scenes. */
static void
test_webvtt (void)
{
  g_autofree gchar *path =
      record_film (SCENES "! fakesink v.text ! webvttenc ! filesink location=%s", "captions.vtt");
  g_autofree gchar *text = NULL;

  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  g_assert_true (g_str_has_prefix (text, "WEBVTT"));
  g_assert_nonnull (strstr (text, "00:00:00.000 --> 00:00:00.680"));
  g_assert_nonnull (strstr (text, "P 10\n"));
  g_assert_nonnull (strstr (text, "00:00:00.680 --> 00:00:01.920"));
  g_assert_nonnull (strstr (text, "P 120\n"));
  g_assert_nonnull (strstr (text, "00:00:03.840 --> 00:00:03.960"));
  g_assert_nonnull (strstr (text, "P 180\n"));
  g_remove (path);
}

/* ---- Main --------------------------------------------------------------------------------- */

int
main (int argc, char **argv)
{
  int ret;

  g_test_init (&argc, &argv, NULL);
  g_unsetenv ("VLMCAPTION_MODEL");
  gst_init (&argc, &argv);
  GST_PLUGIN_STATIC_REGISTER (vlmcaption);
  directory = g_dir_make_tmp ("vlmcaption-XXXXXX", NULL);

  scripted_add_test ("/subtitles/matroska", test_matroska);
  scripted_add_test ("/subtitles/max-duration", test_max_duration);
  scripted_add_test ("/subtitles/no-room", test_no_room);
  scripted_add_test ("/subtitles/quicktime", test_quicktime);
  scripted_add_test ("/subtitles/interval", test_interval);
  /* It comes with gstreamer1.0-plugins-bad, which nothing else here needs. */
  if (gst_registry_check_feature_version (gst_registry_get (), "webvttenc", 1, 0, 0))
    scripted_add_test ("/subtitles/webvtt", test_webvtt);

  ret = g_test_run ();
  g_rmdir (directory);
  g_free (directory);
  return ret;
}
