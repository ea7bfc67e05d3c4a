/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a player does to a pipeline - play, seek with and without flush, pause, go on, play faster
 * and backwards, end, start again - while every pad is watched (pad-monitor.h).
 */

#include <glib/gstdio.h>

#include "tests/element/element-helpers.h"
#include "tests/element/pad-monitor.h"
#include "tests/element/scripted-engine.h"

GST_PLUGIN_STATIC_DECLARE (vlmcaption);

#define MS GST_MSECOND
#define WAIT (PATIENCE * GST_USECOND)

/* Who takes video and text. To pause does not wait for the next text, as in playbin. */
#define SCREEN "fakesink name=out sync=true"
#define READER "fakesink sync=true async=false"
/* So short that one caption never comes while the one before lasts. */
#define BRIEF "text-timing=display text-max-duration=10000000"

typedef struct
{
  const gchar *line;
  GstElement *pipeline;
  GstBus *bus;
  PadMonitors *monitors;
} Player;

static gchar *directory;

/* ---- A player ----------------------------------------------------------------------------- */

static void
player_init (Player *p, const gchar *line)
{
  g_autoptr (GError) error = NULL;

  g_test_message ("%s", line);
  p->line = line;
  p->pipeline = gst_parse_launch (line, &error);
  g_assert_no_error (error);
  p->bus = gst_element_get_bus (p->pipeline);
  p->monitors = pad_monitors_new (p->pipeline);
}

static void
player_clear (Player *p)
{
  gst_element_set_state (p->pipeline, GST_STATE_NULL);
  gst_object_unref (p->bus);
  g_assert_cmpint (GST_OBJECT_REFCOUNT (p->pipeline), ==, 1);
  gst_object_unref (p->pipeline);
  pad_monitors_free (p->monitors);
}

static void
fail_on_error (Player *p)
{
  GstMessage *message = gst_bus_pop_filtered (p->bus, GST_MESSAGE_ERROR);

  if (message != NULL)
    g_error ("error: %" GST_PTR_FORMAT, (gpointer) message);
}

static void
go (Player *p, GstState state)
{
  GstStateChangeReturn ret;

  gst_element_set_state (p->pipeline, state);
  ret = gst_element_get_state (p->pipeline, NULL, NULL, WAIT);
  if (ret != GST_STATE_CHANGE_SUCCESS && ret != GST_STATE_CHANGE_NO_PREROLL)
    g_error ("%s is not reached: %s", gst_element_state_get_name (state), p->line);
  fail_on_error (p);
}

/* More frames come out. */
static void
play_frames (Player *p, guint n)
{
  guint before = pad_monitors_count (p->monitors, "out", "sink");

  wait_until (pad_monitors_count (p->monitors, "out", "sink") >= before + n);
  fail_on_error (p);
}

static void
seek (Player *p, gdouble rate, GstSeekFlags flags, GstClockTime start, GstClockTime stop)
{
  gboolean ok = gst_element_seek (p->pipeline, rate, GST_FORMAT_TIME, flags, GST_SEEK_TYPE_SET,
      start, GST_CLOCK_TIME_IS_VALID (stop) ? GST_SEEK_TYPE_SET : GST_SEEK_TYPE_NONE, stop);

  if (!ok)
    g_error ("no seek: %s", p->line);
  if (flags & GST_SEEK_FLAG_FLUSH)
    go (p, GST_STATE_TARGET (p->pipeline));
}

static void
wait_for_end (Player *p)
{
  GstMessage *message =
      gst_bus_timed_pop_filtered (p->bus, WAIT, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);

  if (message == NULL || GST_MESSAGE_TYPE (message) != GST_MESSAGE_EOS)
    g_error ("no end: %s", p->line);
  gst_message_unref (message);
}

/* ---- A file ------------------------------------------------------------------------------- */

/* Three seconds of Motion JPEG at 100 frames a second. */
static gchar *
make_file (void)
{
  gchar *path = g_build_filename (directory, "in.mkv", NULL);
  g_autofree gchar *line =
      g_strdup_printf ("videotestsrc pattern=ball num-buffers=300 ! "
                       "video/x-raw,width=64,height=48,framerate=100/1 ! jpegenc ! matroskamux ! "
                       "filesink location=%s",
          path);
  g_autoptr (GError) error = NULL;
  Player p = { .line = line };

  p.pipeline = gst_parse_launch (line, &error);
  g_assert_no_error (error);
  p.bus = gst_element_get_bus (p.pipeline);
  gst_element_set_state (p.pipeline, GST_STATE_PLAYING);
  wait_for_end (&p);
  gst_element_set_state (p.pipeline, GST_STATE_NULL);
  gst_object_unref (p.bus);
  gst_object_unref (p.pipeline);

  return path;
}

#define FLUSH GST_SEEK_FLAG_FLUSH
#define ACCURATE GST_SEEK_FLAG_ACCURATE

static void
play_file (const gchar *path, const gchar *rest)
{
  g_autofree gchar *line = g_strdup_printf (
      "filesrc location=%s ! matroskademux ! jpegdec ! videoconvert ! vlmcaption name=v "
      "interval=200000000 %s",
      path, rest);
  const GstClockTime none = GST_CLOCK_TIME_NONE;
  Player p;

  player_init (&p, line);
  go (&p, GST_STATE_PAUSED);
  go (&p, GST_STATE_PLAYING);
  play_frames (&p, 5);
  seek (&p, 1, FLUSH | ACCURATE, 1010 * MS, none);
  play_frames (&p, 5);
  go (&p, GST_STATE_PAUSED);
  seek (&p, 1, FLUSH | GST_SEEK_FLAG_KEY_UNIT, 300 * MS, none);
  seek (&p, 1, FLUSH | ACCURATE, 500 * MS, 2000 * MS);
  go (&p, GST_STATE_PLAYING);
  play_frames (&p, 5);
  seek (&p, 1, 0, 700 * MS, none);
  play_frames (&p, 3);
  go (&p, GST_STATE_PAUSED);
  go (&p, GST_STATE_PLAYING);
  seek (&p, 4, FLUSH, 1000 * MS, none);
  wait_for_end (&p);

  /* From the end back to the start, backwards, and up to a point. */
  seek (&p, 1, FLUSH, 0, none);
  play_frames (&p, 5);
  seek (&p, -2, FLUSH | ACCURATE, 0, 1000 * MS);
  wait_for_end (&p);
  seek (&p, 2, FLUSH | ACCURATE, 2510 * MS, 2905 * MS);
  wait_for_end (&p);
  player_clear (&p);
}

static void
test_file (void)
{
  static const gchar *const lines[] = {
    "! textoverlay ! " SCREEN,
    "mode=sync ! queue ! videoconvert ! textoverlay ! " SCREEN,
    "mode=sync : textoverlay ! queue ! " SCREEN,
    "! " SCREEN " v.text ! " READER,
    "mode=sync ! " SCREEN " v.text ! queue ! " READER,
    BRIEF " ! " SCREEN " v.text ! " READER,
  };
  g_autofree gchar *path = make_file ();
  guint i;

  for (i = 0; i < G_N_ELEMENTS (lines); i++)
    play_file (path, lines[i]);
  g_remove (path);
}

/* ---- A camera ----------------------------------------------------------------------------- */

static GstClockTime
get_position (Player *p)
{
  gint64 position;

  g_assert_true (gst_element_query_position (p->pipeline, GST_FORMAT_TIME, &position));
  return position;
}

/*
 * A live videotestsrc waits for the time on its frames, so it is only sent to where it is already.
 * After a seek its first frames lie a little before the segment: the decoder drops these.
 */
#define CAMERA                                                                                     \
  "bin.( name=camera videotestsrc is-live=true pattern=ball ! "                                    \
  "video/x-raw,width=64,height=48,framerate=100/1 ! jpegenc ! jpegdec ) ! videoconvert ! "

static void
play_live (const gchar *rest)
{
  g_autofree gchar *line = g_strconcat (CAMERA, rest, NULL);
  const GstClockTime none = GST_CLOCK_TIME_NONE;
  guint round;
  Player p;

  player_init (&p, line);
  for (round = 0; round < 2; round++) {
    go (&p, GST_STATE_PLAYING);
    play_frames (&p, 10);
    go (&p, GST_STATE_PAUSED);
    go (&p, GST_STATE_PLAYING);
    play_frames (&p, 10);
    seek (&p, 1, FLUSH, 100 * MS, none);
    play_frames (&p, 10);
    seek (&p, 1, 0, get_position (&p) + 50 * MS, none);
    play_frames (&p, 10);
    gst_element_send_event (p.pipeline, gst_event_new_eos ());
    wait_for_end (&p);
    go (&p, GST_STATE_READY);
    pad_monitors_reset (p.monitors);
  }
  player_clear (&p);
}

static void
test_live (void)
{
  static const gchar *const lines[] = {
    "vlmcaption interval=50000000 ! textoverlay ! " SCREEN,
    "vlmcaption interval=50000000 ! queue ! videoconvert ! textoverlay ! " SCREEN,
    "queue ! vlmcaption mode=sync interval=50000000 ! textoverlay ! " SCREEN,
    "vlmcaption interval=50000000 name=v ! " SCREEN " v.text ! " READER,
    "vlmcaption interval=50000000 name=v " BRIEF " ! " SCREEN " v.text ! queue ! " READER,
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (lines); i++)
    play_live (lines[i]);
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

  scripted_add_test ("/scenario/file", test_file);
  scripted_add_test ("/scenario/live", test_live);

  ret = g_test_run ();
  g_rmdir (directory);
  g_free (directory);
  return ret;
}
