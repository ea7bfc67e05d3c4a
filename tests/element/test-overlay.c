/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Captions on the picture without being asked for: which overlay is taken, that nothing else is
 * touched, and that every frame looks as if a reference overlay had drawn its caption.
 */

#include <string.h>

#include "tests/element/element-helpers.h"
#include "tests/element/scripted-engine.h"

GST_PLUGIN_STATIC_DECLARE (vlmcaption);

#define MS GST_MSECOND
#define WIDTH 320
#define HEIGHT 80
#define N_FRAMES 75
#define CAPS "video/x-raw,format=RGB,width=320,height=80,framerate=25/1"

/* ---- Who is linked ------------------------------------------------------------------------ */

static GstElement *
launch (const gchar *line)
{
  g_autoptr (GError) error = NULL;
  GstElement *pipeline = gst_parse_launch (line, &error);

  g_assert_no_error (error);
  return pipeline;
}

static void
set_state (GstElement *pipeline, GstState state)
{
  GstStateChangeReturn ret;

  gst_element_set_state (pipeline, state);
  ret = gst_element_get_state (pipeline, NULL, NULL, PATIENCE * GST_USECOND);
  g_assert_true (ret == GST_STATE_CHANGE_SUCCESS || ret == GST_STATE_CHANGE_NO_PREROLL);
}

static guint
count_pads (GstElement *pipeline, const gchar *name)
{
  GstElement *element = gst_bin_get_by_name (GST_BIN (pipeline), name);
  guint n = element->numpads;

  gst_object_unref (element);
  return n;
}

/* The name of the element that feeds the overlay's text_sink, seen through bins; or NULL. */
static gchar *
find_feeder (GstElement *pipeline, const gchar *overlay)
{
  GstElement *element = gst_bin_get_by_name (GST_BIN (pipeline), overlay);
  GstPad *sink = gst_element_get_static_pad (element, "text_sink");
  GstPad *peer = gst_pad_get_peer (sink);
  gchar *name = NULL;

  while (peer != NULL && name == NULL) {
    GstPad *next = NULL;

    if (GST_IS_GHOST_PAD (peer)) {
      next = gst_ghost_pad_get_target (GST_GHOST_PAD (peer));
    } else if (GST_IS_PROXY_PAD (peer)) {
      GstProxyPad *ghost = gst_proxy_pad_get_internal (GST_PROXY_PAD (peer));

      next = gst_pad_get_peer (GST_PAD (ghost));
      gst_object_unref (ghost);
    } else {
      name = g_strdup (GST_OBJECT_NAME (GST_OBJECT_PARENT (peer)));
    }
    gst_object_unref (peer);
    peer = next;
  }
  gst_clear_object (&peer);
  gst_object_unref (sink);
  gst_object_unref (element);

  return name;
}

#define SOURCE "videotestsrc num-buffers=5 ! "

/* In PAUSED the overlay "t" is fed by feeder (or nobody); in READY everything is as it was. */
static void
check_link (const gchar *line, const gchar *feeder)
{
  GstElement *pipeline = launch (line);
  guint pads, round;

  pads = count_pads (pipeline, "v");
  for (round = 0; round < 3; round++) {
    g_autofree gchar *found = NULL;
    g_autofree gchar *after = NULL;

    set_state (pipeline, GST_STATE_PAUSED);
    found = find_feeder (pipeline, "t");
    if (g_strcmp0 (found, feeder) != 0)
      g_error ("%s feeds the overlay, not %s: %s", found, feeder, line);
    set_state (pipeline, GST_STATE_READY);
    after = find_feeder (pipeline, "t");
    if (strstr (line, "text_sink") == NULL)
      g_assert_null (after);
    g_assert_cmpuint (count_pads (pipeline, "v"), ==, pads);
  }
  set_state (pipeline, GST_STATE_NULL);
  g_assert_cmpint (GST_OBJECT_REFCOUNT (pipeline), ==, 1);
  gst_object_unref (pipeline);
}

static void
test_linked (void)
{
  check_link (SOURCE "vlmcaption name=v ! textoverlay name=t ! fakesink", "v");
  check_link (SOURCE "vlmcaption name=v ! queue ! videoconvert ! capsfilter caps=video/x-raw ! "
                     "videoscale ! identity ! textoverlay name=t ! fakesink",
      "v");
  /* Past overlays that have a text or none of their own, to the first that is free. */
  check_link (SOURCE "vlmcaption name=v ! timeoverlay ! textoverlay text=mine ! "
                     "textoverlay name=t ! textoverlay ! fakesink",
      "v");
  check_link (SOURCE "vlmcaption name=v mode=async ! textoverlay name=t ! fakesink", "v");
}

static void
test_in_bins (void)
{
  check_link (SOURCE "vlmcaption name=v ! bin.( queue ! textoverlay name=t ) ! fakesink", "v");
  check_link (SOURCE "bin.( videoconvert ! vlmcaption name=v ! queue ) ! "
                     "bin.( videoconvert ! bin.( textoverlay name=t ) ) ! fakesink",
      "v");
  check_link ("bin.( " SOURCE "bin.( vlmcaption name=v ) ! textoverlay name=t ) ! fakesink", "v");
  check_link (SOURCE "bin.( vlmcaption name=v ! textoverlay name=t ) ! fakesink", "v");
}

static void
test_left_alone (void)
{
  check_link (SOURCE "vlmcaption name=v auto-overlay=false ! textoverlay name=t ! fakesink", NULL);
  check_link (SOURCE "vlmcaption name=v ! textoverlay name=t text=mine ! fakesink", NULL);
  /* It would wait for ever. */
  check_link (SOURCE "vlmcaption name=v ! textoverlay name=t silent=true ! fakesink", NULL);
  /* The text pad is somebody else's already. */
  check_link (
      SOURCE "vlmcaption name=v ! textoverlay name=t ! fakesink v.text ! queue ! fakesink", NULL);
  /* So is the overlay's. */
  check_link (SOURCE "vlmcaption name=v ! textoverlay name=t ! fakesink "
                     "videotestsrc num-buffers=5 ! vlmcaption name=w ! fakesink w.text ! "
                     "queue name=q ! t.text_sink",
      "q");
  /* Where video goes several ways nobody can say which one is meant. */
  check_link (SOURCE "vlmcaption name=v ! tee name=x ! queue ! textoverlay name=t ! fakesink "
                     "x. ! queue ! fakesink",
      NULL);
  check_link (SOURCE "vlmcaption name=v ! tee ! queue ! textoverlay name=t ! fakesink", NULL);
  /* An overlay that is not downstream. */
  check_link (
      "videotestsrc num-buffers=5 ! textoverlay name=t ! vlmcaption name=v ! fakesink", NULL);
}

/* A bin that shows its overlay's text pad to the outside is taken by that pad, which stays. */
static void
test_exposed (void)
{
  GstElement *pipeline = launch (
      SOURCE "vlmcaption name=v ! bin.( name=b videoconvert ! textoverlay name=t ) ! fakesink");
  GstElement *bin = gst_bin_get_by_name (GST_BIN (pipeline), "b");
  GstElement *overlay = gst_bin_get_by_name (GST_BIN (pipeline), "t");
  GstPad *sink = gst_element_get_static_pad (overlay, "text_sink");
  GstPad *ghost = gst_ghost_pad_new ("captions", sink);
  guint pads;

  gst_element_add_pad (bin, ghost);
  pads = bin->numpads;
  set_state (pipeline, GST_STATE_PAUSED);
  g_assert_true (gst_pad_is_linked (ghost));
  g_assert_cmpuint (bin->numpads, ==, pads);
  set_state (pipeline, GST_STATE_NULL);
  g_assert_false (gst_pad_is_linked (ghost));
  g_assert_cmpuint (bin->numpads, ==, pads);

  gst_object_unref (sink);
  gst_object_unref (overlay);
  gst_object_unref (bin);
  gst_object_unref (pipeline);
}

/* Ghost pads that were needed are gone afterwards. */
static void
test_ghosts_go (void)
{
  GstElement *pipeline = launch (SOURCE "bin.( name=a videoconvert ! vlmcaption name=v ) ! "
                                        "bin.( name=b videoconvert ! textoverlay name=t ) ! "
                                        "fakesink");
  guint round;

  for (round = 0; round < 5; round++) {
    set_state (pipeline, GST_STATE_PLAYING);
    g_assert_cmpuint (count_pads (pipeline, "a"), ==, 3);
    g_assert_cmpuint (count_pads (pipeline, "b"), ==, 3);
    set_state (pipeline, GST_STATE_READY);
    g_assert_cmpuint (count_pads (pipeline, "a"), ==, 2);
    g_assert_cmpuint (count_pads (pipeline, "b"), ==, 2);
  }
  set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
}

static GstPadProbeReturn
count_frame (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  g_atomic_int_inc ((gint *) user_data);
  return GST_PAD_PROBE_OK;
}

/* Somebody who asks for the text pad later gets it, and the overlay goes on without captions. */
static void
test_request_takes_over (void)
{
  GstElement *pipeline = launch ("videotestsrc is-live=true ! vlmcaption name=v ! "
                                 "textoverlay name=t ! fakesink name=out");
  GstElement *element = gst_bin_get_by_name (GST_BIN (pipeline), "v");
  GstElement *out = gst_bin_get_by_name (GST_BIN (pipeline), "out");
  GstPad *sink = gst_element_get_static_pad (out, "sink");
  g_autofree gchar *feeder = NULL;
  gint n_frames = 0, before;
  GstPad *pad;

  gst_pad_add_probe (sink, GST_PAD_PROBE_TYPE_BUFFER, count_frame, &n_frames, NULL);
  set_state (pipeline, GST_STATE_PLAYING);
  wait_until (g_atomic_int_get (&n_frames) > 2);
  pad = gst_element_request_pad_simple (element, "text");
  g_assert_nonnull (pad);
  feeder = find_feeder (pipeline, "t");
  g_assert_null (feeder);
  before = g_atomic_int_get (&n_frames);
  wait_until (g_atomic_int_get (&n_frames) > before + 2);

  gst_element_release_request_pad (element, pad);
  gst_object_unref (pad);
  set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (sink);
  gst_object_unref (out);
  gst_object_unref (element);
  gst_object_unref (pipeline);
}

static gpointer
request_text (gpointer element)
{
  return gst_element_request_pad_simple (element, "text");
}

/* Another thread asks just when the overlay is about to be linked. */
static void
ask_in_between (GstElement *element, GstPad *pad, gpointer user_data)
{
  GThread **thread = user_data;

  if (*thread != NULL)
    return;
  *thread = g_thread_new ("ask", request_text, element);
  g_usleep (50 * G_TIME_SPAN_MILLISECOND);
}

static void
test_request_while_linking (void)
{
  GstElement *pipeline = launch ("videotestsrc num-buffers=5 ! vlmcaption name=v ! "
                                 "textoverlay name=t ! fakesink");
  GstElement *element = gst_bin_get_by_name (GST_BIN (pipeline), "v");
  g_autofree gchar *feeder = NULL;
  GThread *thread = NULL;
  GstPad *pad;

  g_signal_connect (element, "pad-added", G_CALLBACK (ask_in_between), &thread);
  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  g_assert_nonnull (thread);
  pad = g_thread_join (thread);
  g_assert_nonnull (pad);
  g_assert_cmpstr (GST_PAD_NAME (pad), ==, "text");
  feeder = find_feeder (pipeline, "t");
  g_assert_null (feeder);
  g_assert_cmpuint (count_pads (pipeline, "v"), ==, 3);
  set_state (pipeline, GST_STATE_PAUSED);

  gst_element_release_request_pad (element, pad);
  gst_object_unref (pad);
  set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (element);
  gst_object_unref (pipeline);
}

/* A second of it fits into any queue. */
#define SMALL "video/x-raw,format=I420,width=64,height=48,framerate=30/1"

/* The element alone stops while its text waits in an overlay that waits for video. */
static void
check_stops_alone (const gchar *rest, const gchar *feeder_then)
{
  g_autofree gchar *line =
      g_strconcat ("videotestsrc num-buffers=30 ! " SMALL " ! "
                   "vlmcaption name=v mode=sync interval=100000000 ! queue ! textoverlay name=t ! "
                   "fakesink sync=true",
          rest, NULL);
  GstElement *pipeline = launch (line);
  GstElement *element = gst_bin_get_by_name (GST_BIN (pipeline), "v");
  g_autofree gchar *feeder = NULL;

  set_state (pipeline, GST_STATE_PAUSED);
  wait_until (scripted_count_done () == 10);
  g_assert_cmpint (gst_element_set_state (element, GST_STATE_READY), ==, GST_STATE_CHANGE_SUCCESS);
  feeder = find_feeder (pipeline, "t");
  g_assert_cmpstr (feeder, ==, feeder_then);

  set_state (pipeline, GST_STATE_READY);
  set_state (pipeline, GST_STATE_PAUSED);
  wait_until (scripted_count_done () == 20);
  set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (element);
  gst_object_unref (pipeline);
}

static void
test_stops_alone (void)
{
  check_stops_alone ("", NULL);
  scripted_reset ();
  check_stops_alone (" v.text ! t.text_sink", "v");
}

/* ---- What is drawn ------------------------------------------------------------------------ */

/* Black, with its number in the first pixel. */
static GstBuffer *
make_picture (guint n)
{
  GstBuffer *frame = gst_buffer_new_allocate (NULL, WIDTH * HEIGHT * 3, NULL);
  guint8 number = n;

  gst_buffer_memset (frame, 0, 0, WIDTH * HEIGHT * 3);
  gst_buffer_fill (frame, 0, &number, 1);
  GST_BUFFER_PTS (frame) = gst_util_uint64_scale (n, GST_SECOND, 25);
  GST_BUFFER_DURATION (frame) = GST_SECOND / 25;

  return frame;
}

static gchar *
get_checksum (GstBuffer *buffer)
{
  GstMapInfo map;
  gchar *sum;

  g_assert_true (gst_buffer_map (buffer, &map, GST_MAP_READ));
  sum = g_compute_checksum_for_data (G_CHECKSUM_MD5, map.data, WIDTH * HEIGHT * 3);
  gst_buffer_unmap (buffer, &map);

  return sum;
}

/* An overlay that is given its text as a property. */
static GstHarness *reference;

/* How picture n looks with this text on it, or with none. */
static gchar *
draw_reference (guint n, const gchar *text)
{
  g_autofree gchar *markup = g_markup_escape_text (text != NULL ? text : "", -1);
  GstBuffer *drawn;
  gchar *sum;

  if (reference == NULL) {
    reference = gst_harness_new_with_padnames ("textoverlay", "video_sink", "src");
    gst_harness_set_src_caps_str (reference, CAPS);
  }
  g_object_set (reference->element, "text", markup, NULL);
  drawn = gst_harness_push_and_pull (reference, make_picture (n));
  sum = get_checksum (drawn);
  gst_buffer_unref (drawn);

  return sum;
}

typedef struct
{
  guint n;
  gchar *looks[N_FRAMES];
  gchar *captions[N_FRAMES]; /* of the meta, or NULL */
} Shown;

static GstPadProbeReturn
keep_look (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);
  Shown *shown = user_data;

  g_assert_cmpuint (shown->n, <, N_FRAMES);
  shown->looks[shown->n] = get_checksum (buffer);
  shown->captions[shown->n] = g_strdup (get_caption (buffer));
  shown->n++;

  return GST_PAD_PROBE_OK;
}

static void
shown_clear (Shown *shown)
{
  guint i;

  for (i = 0; i < shown->n; i++) {
    g_free (shown->looks[i]);
    g_free (shown->captions[i]);
  }
}

/* Plays the numbered pictures through a line that leads from "s" to "out". */
static void
show (const gchar *line, gboolean live, Shown *shown)
{
  GstElement *pipeline = launch (line);
  GstElement *source = gst_bin_get_by_name (GST_BIN (pipeline), "s");
  GstElement *out = gst_bin_get_by_name (GST_BIN (pipeline), "out");
  GstPad *pad = gst_element_get_static_pad (out, "sink");
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message;
  GstFlowReturn flow;
  guint i;

  memset (shown, 0, sizeof *shown);
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, keep_look, shown, NULL);
  g_object_set (source, "is-live", live, NULL);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (i = 0; i < N_FRAMES; i++) {
    GstBuffer *frame = make_picture (i);

    g_signal_emit_by_name (source, "push-buffer", frame, &flow);
    gst_buffer_unref (frame);
  }
  g_signal_emit_by_name (source, "end-of-stream", &flow);
  message =
      gst_bus_timed_pop_filtered (bus, PATIENCE * GST_USECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  if (message == NULL || GST_MESSAGE_TYPE (message) != GST_MESSAGE_EOS)
    g_error ("no end: %s", line);
  gst_message_unref (message);
  set_state (pipeline, GST_STATE_NULL);
  g_assert_cmpuint (shown->n, ==, N_FRAMES);

  gst_object_unref (bus);
  gst_object_unref (pad);
  gst_object_unref (out);
  gst_object_unref (source);
  gst_object_unref (pipeline);
}

#define PICTURES "appsrc name=s format=time max-buffers=3 block=true caps=" CAPS " ! "
/* Of a caption, textoverlay must escape what looks like markup. */
#define PROMPT "\"R&D <b>shows</b>\""

/* The frame that is selected at or before frame n: the first one after each multiple of interval. */
static guint
find_selected (guint n, GstClockTime interval)
{
  guint selected = 0;
  GstClockTime due;

  for (due = 0; gst_util_uint64_scale_ceil (due, 25, GST_SECOND) <= n; due += interval)
    selected = gst_util_uint64_scale_ceil (due, 25, GST_SECOND);

  return selected;
}

/* Video waits: each frame, from the first to the last, shows the caption of its selected one. */
static void
check_every_frame (const gchar *rest, GstClockTime interval)
{
  g_autofree gchar *line = g_strdup_printf (PICTURES "%s ! fakesink name=out", rest);
  Shown shown;
  guint i;

  show (line, FALSE, &shown);
  for (i = 0; i < N_FRAMES; i++) {
    g_autofree gchar *text = g_strdup_printf ("R&D <b>shows</b> %u", find_selected (i, interval));
    g_autofree gchar *expected = draw_reference (i, text);

    g_assert_cmpstr (shown.captions[i], ==, text);
    if (!g_str_equal (shown.looks[i], expected))
      g_error ("frame %u does not show \"%s\": %s", i, text, line);
  }
  shown_clear (&shown);
}

static void
test_every_frame (void)
{
  const GstClockTime second = GST_SECOND;

  check_every_frame ("vlmcaption prompt=" PROMPT " ! textoverlay", second);
  check_every_frame ("vlmcaption prompt=" PROMPT " ! queue ! videoconvert ! textoverlay", second);
  check_every_frame ("vlmcaption prompt=" PROMPT " : textoverlay", second);
  check_every_frame ("vlmcaption name=v prompt=" PROMPT
                     " ! queue ! textoverlay name=t v.text ! queue ! t.text_sink t.",
      second);
  check_every_frame ("bin.( vlmcaption prompt=" PROMPT
                     " ! queue max-size-buffers=7 ) ! bin.( videoconvert ! textoverlay )",
      second);
  check_every_frame ("vlmcaption interval=330000000 prompt=" PROMPT " ! textoverlay", 330 * MS);
  check_every_frame (
      "vlmcaption interval=400000000 prompt=" PROMPT " ! queue ! textoverlay", 400 * MS);
}

/* Video does not wait: each frame shows the caption that was in force when it left the element. */
static void
test_live_frames (void)
{
  Shown shown;
  guint i, n_captioned = 0;

  show (PICTURES "identity sleep-time=2000 ! vlmcaption interval=200000000 prompt=P ! textoverlay "
                 "! fakesink name=out",
      TRUE, &shown);
  for (i = 0; i < N_FRAMES; i++) {
    g_autofree gchar *expected = draw_reference (i, shown.captions[i]);

    g_assert_cmpstr (shown.looks[i], ==, expected);
    n_captioned += shown.captions[i] != NULL;
  }
  g_assert_cmpuint (n_captioned, >, 0);
  shown_clear (&shown);
}

/*
 * Each frame shows the caption that was in force when it left the element, or for a quarter of a
 * second still the one before; and none goes without.
 */
static void
check_kept_frames (const gchar *line)
{
  Shown shown;
  guint i, first;

  show (line, FALSE, &shown);
  for (first = 0; first < N_FRAMES && shown.captions[first] == NULL; first++)
    continue;
  g_assert_cmpuint (first, <, N_FRAMES);
  for (i = 0; i < N_FRAMES; i++) {
    guint since = i < first ? 0 : MAX (first, i - MIN (i, 7));
    gboolean right = FALSE;
    guint j;

    for (j = since; j <= i && !right; j++) {
      g_autofree gchar *allowed = draw_reference (i, shown.captions[j]);

      right = g_str_equal (shown.looks[i], allowed);
    }
    if (!right)
      g_error ("frame %u shows none of its captions, such as \"%s\"", i, shown.captions[i]);
  }
  shown_clear (&shown);
}

static void
test_behind_queue (void)
{
  /* The queue is full: captions are made of frames that come out of it much later. */
  check_kept_frames (
      PICTURES "vlmcaption mode=async interval=400000000 prompt=P ! queue max-size-buffers=20 ! "
               "videoconvert ! textoverlay ! identity sleep-time=4000 ! fakesink name=out");
  /* Which keeps one frame that it has been given. */
  check_kept_frames (
      PICTURES "identity sleep-time=4000 ! vlmcaption mode=async interval=200000000 prompt=P ! "
               "videorate ! textoverlay ! fakesink name=out");
}

/* The user's text stays, and only that. */
static void
test_user_text (void)
{
  Shown shown;
  guint i;

  show (PICTURES "vlmcaption ! textoverlay text=mine ! fakesink name=out", FALSE, &shown);
  for (i = 0; i < N_FRAMES; i += 10) {
    g_autofree gchar *expected = draw_reference (i, "mine");

    g_assert_nonnull (shown.captions[i]);
    g_assert_cmpstr (shown.looks[i], ==, expected);
  }
  shown_clear (&shown);
}

/* A model that cannot be loaded holds nothing up: frames pass as they are. */
static void
test_no_model (void)
{
  GstElement *pipeline = launch ("videotestsrc num-buffers=30 ! vlmcaption model=damaged name=v ! "
                                 "textoverlay ! fakesink");
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, PATIENCE * GST_USECOND, GST_MESSAGE_ERROR);
  g_assert_nonnull (message);
  gst_message_unref (message);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, PATIENCE * GST_USECOND, GST_MESSAGE_EOS);
  g_assert_nonnull (message);
  gst_message_unref (message);
  set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (bus);
  gst_object_unref (pipeline);
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

  scripted_add_test ("/overlay/linked", test_linked);
  scripted_add_test ("/overlay/in-bins", test_in_bins);
  scripted_add_test ("/overlay/left-alone", test_left_alone);
  scripted_add_test ("/overlay/exposed", test_exposed);
  scripted_add_test ("/overlay/ghosts-go", test_ghosts_go);
  scripted_add_test ("/overlay/request-takes-over", test_request_takes_over);
  scripted_add_test ("/overlay/request-while-linking", test_request_while_linking);
  scripted_add_test ("/overlay/stops-alone", test_stops_alone);
  scripted_add_test ("/overlay/every-frame", test_every_frame);
  scripted_add_test ("/overlay/live-frames", test_live_frames);
  scripted_add_test ("/overlay/behind-queue", test_behind_queue);
  scripted_add_test ("/overlay/user-text", test_user_text);
  scripted_add_test ("/overlay/no-model", test_no_model);

  ret = g_test_run ();
  g_clear_pointer (&reference, gst_harness_teardown);
  return ret;
}
