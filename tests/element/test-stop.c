/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * An overlay that stops at the worst of moments: it has told its pads that it goes down, and then comes
 * a stream start of the text, which makes it take text as if it played.
 */

#include "tests/element/element-helpers.h"
#include "tests/element/scripted-engine.h"

GST_PLUGIN_STATIC_DECLARE (vlmcaption);

/* A second of it fits into any queue. */
#define VIDEO                                                                                      \
  "videotestsrc num-buffers=60 ! video/x-raw,format=I420,width=64,height=48,framerate=30/1"

typedef struct
{
  GstElement *overlay;
  /* All atomic. */
  gint text_is_there;  /* its first event waits before the overlay */
  gint video_is_there; /* its first frame, too */
  gint video_may_go_on;
  gint n_texts;
  gint n_ends;
  gint stopped;
} Scene;

static gboolean
is_going_down (GstElement *overlay)
{
  GstPad *src = gst_element_get_static_pad (overlay, "src");
  gboolean active = gst_pad_is_active (src);

  gst_object_unref (src);
  return !active;
}

/* Holds the first stream start until the overlay goes down, and counts what follows. */
static GstPadProbeReturn
watch_text (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Scene *scene = user_data;

  if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
    g_atomic_int_inc (&scene->n_texts);
  } else if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_EOS) {
    g_atomic_int_inc (&scene->n_ends);
  } else if (!g_atomic_int_get (&scene->text_is_there)) {
    g_atomic_int_set (&scene->text_is_there, TRUE);
    wait_until (is_going_down (scene->overlay));
  }

  return GST_PAD_PROBE_OK;
}

/* Holds video, and with it the pad that an overlay stops before that of its text. */
static GstPadProbeReturn
hold_video (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Scene *scene = user_data;

  g_atomic_int_set (&scene->video_is_there, TRUE);
  wait_until (g_atomic_int_get (&scene->video_may_go_on));
  return GST_PAD_PROBE_OK;
}

static void
add_probe (GstElement *overlay, const gchar *name, GstPadProbeType type,
    GstPadProbeCallback callback, Scene *scene)
{
  GstPad *pad = gst_element_get_static_pad (overlay, name);

  gst_pad_add_probe (pad, type, callback, scene, NULL);
  gst_object_unref (pad);
}

static gpointer
stop (gpointer user_data)
{
  Scene *scene = user_data;

  gst_element_set_state (scene->overlay, GST_STATE_READY);
  g_atomic_int_set (&scene->stopped, TRUE);
  return NULL;
}

static void
check_stop (const gchar *line)
{
  g_autoptr (GError) error = NULL;
  GstElement *pipeline = gst_parse_launch (line, &error);
  Scene scene = { 0 };
  GThread *thread;

  g_assert_no_error (error);
  scene.overlay = gst_bin_get_by_name (GST_BIN (pipeline), "t");
  add_probe (scene.overlay, "text_sink",
      GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, watch_text, &scene);
  add_probe (scene.overlay, "video_sink", GST_PAD_PROBE_TYPE_BUFFER, hold_video, &scene);

  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  wait_until (g_atomic_int_get (&scene.text_is_there) && g_atomic_int_get (&scene.video_is_there));
  thread = g_thread_new ("stop", stop, &scene);
  /* Either it is told that there will be no text, or it has one and is brought another. */
  wait_until (g_atomic_int_get (&scene.n_ends) > 0 || g_atomic_int_get (&scene.n_texts) > 1);
  g_atomic_int_set (&scene.video_may_go_on, TRUE);
  wait_until (g_atomic_int_get (&scene.stopped));
  g_thread_join (thread);

  /* The next time it is fed again. */
  g_atomic_int_set (&scene.n_texts, 0);
  gst_element_set_state (pipeline, GST_STATE_READY);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  wait_until (g_atomic_int_get (&scene.n_texts) > 2);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (scene.overlay);
  g_assert_cmpint (GST_OBJECT_REFCOUNT (pipeline), ==, 1);
  gst_object_unref (pipeline);
}

static void
test_queue (void)
{
  check_stop (VIDEO " ! vlmcaption mode=sync interval=100000000 ! queue ! textoverlay name=t ! "
                    "fakesink");
}

/* The element goes down after the overlay, whatever its state says. */
static void
test_bin (void)
{
  check_stop (VIDEO " ! bin.( vlmcaption mode=sync interval=100000000 ! queue ) ! "
                    "textoverlay name=t ! fakesink");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);
  GST_PLUGIN_STATIC_REGISTER (vlmcaption);

  scripted_add_test ("/stop/queue", test_queue);
  scripted_add_test ("/stop/bin", test_bin);

  return g_test_run ();
}
