/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The text pad is requested and released while an overlay plays. */

#include "tests/element/element-helpers.h"
#include "tests/element/scripted-engine.h"

#include <string.h>

GST_PLUGIN_STATIC_DECLARE (vlmcaption);

typedef struct
{
  GstElement *pipeline, *element, *overlay;
  GstPad *text_sink;
  GstEventType moment; /* when want_text() asks for the text pad */
  /* Atomic: what has come out of the overlay, and what has come to it. */
  gint n_frames, n_texts;
  guint log_handler;
} Play;

static GstPadProbeReturn
count_item (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  g_atomic_int_inc ((gint *) user_data);
  return GST_PAD_PROBE_OK;
}

/* An overlay whose text pad is unlinked forgets the segment of its text without the lock under which its
 * video may just be asking it for a time. All else that GStreamer complains of ends the program. */
static gboolean
is_fatal (const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer user_data)
{
  return strstr (message, "gst_segment_to_running_time: assertion 'segment->format == format'")
      == NULL;
}

static void
log_complaint (const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer user_data)
{
  if (is_fatal (domain, level, message, NULL))
    g_log_default_handler (domain, level, message, NULL);
  else
    g_test_message ("%s", message);
}

/* size: of the video; rest: what follows the element, with an overlay "t". Playing when it returns. */
static void
play_init (Play *p, const gchar *size, const gchar *rest)
{
  g_autofree gchar *line =
      g_strdup_printf ("videotestsrc is-live=true ! video/x-raw,format=RGB,framerate=100/1,%s ! "
                       "vlmcaption name=v auto-overlay=false %s",
          size, rest);
  g_autoptr (GError) error = NULL;
  GstPad *src;

  g_test_log_set_fatal_handler (is_fatal, NULL);
  p->log_handler =
      g_log_set_handler ("GStreamer", G_LOG_LEVEL_CRITICAL | G_LOG_FLAG_FATAL, log_complaint, NULL);
  p->n_frames = p->n_texts = 0;
  p->pipeline = gst_parse_launch (line, &error);
  g_assert_no_error (error);
  p->element = gst_bin_get_by_name (GST_BIN (p->pipeline), "v");
  p->overlay = gst_bin_get_by_name (GST_BIN (p->pipeline), "t");
  p->text_sink = gst_element_get_static_pad (p->overlay, "text_sink");
  src = gst_element_get_static_pad (p->overlay, "src");
  gst_pad_add_probe (src, GST_PAD_PROBE_TYPE_BUFFER, count_item, &p->n_frames, NULL);
  gst_pad_add_probe (p->text_sink, GST_PAD_PROBE_TYPE_BUFFER, count_item, &p->n_texts, NULL);
  gst_object_unref (src);
  gst_element_set_state (p->pipeline, GST_STATE_PLAYING);
}

static void
play_clear (Play *p)
{
  gst_element_set_state (p->pipeline, GST_STATE_NULL);
  gst_object_unref (p->text_sink);
  gst_object_unref (p->overlay);
  gst_object_unref (p->element);
  g_assert_cmpint (GST_OBJECT_REFCOUNT (p->pipeline), ==, 1);
  gst_object_unref (p->pipeline);
  g_log_remove_handler ("GStreamer", p->log_handler);
}

static void
play_frames (Play *p)
{
  gint before = g_atomic_int_get (&p->n_frames);

  wait_until (g_atomic_int_get (&p->n_frames) > before + 2);
}

/* A stream start takes its time. Whatever comes next must come after it all the same. */
static GstPadProbeReturn
delay_start (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_STREAM_START)
    g_usleep (5 * G_TIME_SPAN_MILLISECOND);
  return GST_PAD_PROBE_OK;
}

/* Text is wanted until some has come, and then no more. */
static void
come_and_go (Play *p)
{
  GstPad *text = gst_element_request_pad_simple (p->element, "text");
  gint before = g_atomic_int_get (&p->n_texts);

  gst_pad_add_probe (text, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, delay_start, NULL, NULL);
  g_assert_cmpint (gst_pad_link (text, p->text_sink), ==, GST_PAD_LINK_OK);
  wait_until (g_atomic_int_get (&p->n_texts) > before);
  play_frames (p);
  gst_element_release_request_pad (p->element, text);
  gst_object_unref (text);
}

#define SMALL "width=64,height=48"
/* To copy it takes so long that the last caption comes meanwhile; with ThreadSanitizer anything does. */
#ifndef __SANITIZE_THREAD__
#define LARGE "width=1920,height=1080"
#else
#define LARGE SMALL
#endif

/* In every mode; video never stops. */
static void
test_come_and_go (void)
{
  static const gchar *const lines[][2] = {
    { LARGE, "interval=0 ! textoverlay name=t ! fakesink" },
    { SMALL, "interval=0 ! textoverlay name=t ! fakesink" },
    { SMALL, "mode=sync interval=30000000 ! textoverlay name=t ! fakesink" },
    { SMALL, "mode=sync interval=30000000 ! queue ! textoverlay name=t ! fakesink" },
  };
  guint i, round;

  for (i = 0; i < G_N_ELEMENTS (lines); i++) {
    Play p;

    play_init (&p, lines[i][0], lines[i][1]);
    for (round = 0; round < 15; round++) {
      come_and_go (&p);
      play_frames (&p);
    }
    play_clear (&p);
  }
}

static GstPadProbeReturn
dawdle (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  g_usleep (400 * G_TIME_SPAN_MILLISECOND);
  return GST_PAD_PROBE_OK;
}

/*
 * Text is on its way and does not move for a while, as if the machine had no time for it. An overlay that
 * is let go of so late can be linked again and is fed again.
 */
static void
test_slow_overlay (void)
{
  guint round;
  Play p;

  play_init (&p, SMALL, "mode=sync interval=30000000 ! queue ! textoverlay name=t ! fakesink");
  gst_pad_add_probe (p.text_sink, GST_PAD_PROBE_TYPE_BUFFER, dawdle, NULL, NULL);
  for (round = 0; round < 3; round++)
    come_and_go (&p);
  play_clear (&p);
}

/* ---- While an event is taken ---------------------------------------------------------------- */

static GstPadProbeReturn
want_text (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Play *p = user_data;
  GstPad *text;

  if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) != p->moment)
    return GST_PAD_PROBE_OK;
  text = gst_element_request_pad_simple (p->element, "text");
  g_assert_cmpint (gst_pad_link (text, p->text_sink), ==, GST_PAD_LINK_OK);
  gst_object_unref (text);
  /* What the pad does wrong about it, it has the time for. */
  g_usleep (100 * G_TIME_SPAN_MILLISECOND);
  return GST_PAD_PROBE_REMOVE;
}

/* The text pad will be requested and linked while the element has the next event of this type in its hands. */
static void
play_want_text (Play *p, GstEventType moment)
{
  GstPad *src = gst_element_get_static_pad (p->element, "src");

  p->moment = moment;
  gst_pad_add_probe (src, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM | GST_PAD_PROBE_TYPE_EVENT_FLUSH,
      want_text, p, NULL);
  gst_object_unref (src);
}

#define OVERLAY "mode=sync interval=30000000 ! queue ! textoverlay name=t ! fakesink"

/* A text pad that is requested while the element has the segment in its hands gets it all the same. */
static void
test_within_segment (void)
{
  Play p;

  play_init (&p, SMALL, OVERLAY);
  play_frames (&p);
  gst_element_set_state (p.pipeline, GST_STATE_READY);
  play_want_text (&p, GST_EVENT_SEGMENT);
  gst_element_set_state (p.pipeline, GST_STATE_PLAYING);
  wait_until (g_atomic_int_get (&p.n_texts) > 0);
  play_frames (&p);
  play_clear (&p);
}

/* And not the one before: an overlay would take all text to be an hour late, and wait for more. */
static void
test_within_next_segment (void)
{
  const GstSegment *told;
  GstSegment segment;
  GstEvent *event;
  GstPad *sink;
  Play p;

  play_init (&p, SMALL, OVERLAY);
  play_frames (&p);
  play_want_text (&p, GST_EVENT_SEGMENT);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  segment.base = 3600 * GST_SECOND;
  sink = gst_element_get_static_pad (p.element, "sink");
  g_assert_true (gst_pad_send_event (sink, gst_event_new_segment (&segment)));
  gst_object_unref (sink);

  wait_until (g_atomic_int_get (&p.n_texts) > 0);
  play_frames (&p);
  event = gst_pad_get_sticky_event (p.text_sink, GST_EVENT_SEGMENT, 0);
  gst_event_parse_segment (event, &told);
  g_assert_cmpuint (told->base, ==, segment.base);
  gst_event_unref (event);
  play_clear (&p);
}

/* Text goes to a sink of its own, for whose end the pipeline waits. */
static void
play_use_sink (Play *p)
{
  GstElement *sink = gst_element_factory_make ("fakesink", NULL);

  g_object_set (sink, "async", FALSE, NULL);
  gst_bin_add (GST_BIN (p->pipeline), sink);
  gst_object_unref (p->text_sink);
  p->text_sink = gst_element_get_static_pad (sink, "sink");
  g_assert_true (gst_element_sync_state_with_parent (sink));
}

static void
play_end (Play *p)
{
  GstBus *bus = gst_element_get_bus (p->pipeline);
  GstMessage *message;

  gst_element_send_event (p->pipeline, gst_event_new_eos ());
  message = gst_bus_timed_pop_filtered (bus, PATIENCE * GST_USECOND, GST_MESSAGE_EOS);
  g_assert_nonnull (message);
  gst_message_unref (message);
  gst_object_unref (bus);
}

/* A text pad that is requested while the element has the end in its hands ends too. */
static void
test_within_end (void)
{
  Play p;

  play_init (&p, SMALL, OVERLAY);
  play_frames (&p);
  play_use_sink (&p);
  play_want_text (&p, GST_EVENT_EOS);
  play_end (&p);
  play_clear (&p);
}

static GstPadProbeReturn
count_end (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_EOS)
    g_atomic_int_inc ((gint *) user_data);
  return GST_PAD_PROBE_OK;
}

/* One that is requested while a flush takes back the end begins with what comes after. */
static void
test_within_flush (void)
{
  gint n_ends = 0;
  Play p;

  play_init (&p, SMALL, OVERLAY);
  play_frames (&p);
  play_end (&p);
  play_use_sink (&p);
  gst_pad_add_probe (p.text_sink, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, count_end, &n_ends, NULL);
  gst_pad_add_probe (p.text_sink, GST_PAD_PROBE_TYPE_BUFFER, count_item, &p.n_texts, NULL);
  play_want_text (&p, GST_EVENT_FLUSH_START);
  g_assert_true (gst_element_seek_simple (p.element, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, 0));
  wait_until (g_atomic_int_get (&p.n_texts) > 0);
  g_assert_cmpint (g_atomic_int_get (&n_ends), ==, 0);
  play_clear (&p);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);
  GST_PLUGIN_STATIC_REGISTER (vlmcaption);

  scripted_add_test ("/release/come-and-go", test_come_and_go);
  scripted_add_test ("/release/slow-overlay", test_slow_overlay);
  scripted_add_test ("/release/within-segment", test_within_segment);
  scripted_add_test ("/release/within-next-segment", test_within_next_segment);
  scripted_add_test ("/release/within-end", test_within_end);
  scripted_add_test ("/release/within-flush", test_within_flush);

  return g_test_run ();
}
