/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The text pad: what it sends towards files, overlays and muxers, and that nothing locks up. */

#include <string.h>

#include "tests/element/element-helpers.h"
#include "tests/element/scripted-engine.h"

GST_PLUGIN_STATIC_DECLARE (vlmcaption);

#define MS GST_MSECOND
#define NONE GST_CLOCK_TIME_NONE

/* ---- The pad in a pipeline ---------------------------------------------------------------- */

typedef struct
{
  GMutex lock;
  GString *log; /* "stream-start caps segment gap text ... eos" */
  guint texts;
} Record;

static GstPadProbeReturn
record_item (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Record *record = user_data;

  g_mutex_lock (&record->lock);
  if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
    GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);

    g_assert_true (GST_BUFFER_PTS_IS_VALID (buffer));
    g_assert_true (GST_BUFFER_DURATION_IS_VALID (buffer));
    g_string_append (record->log, "text ");
    record->texts++;
  } else {
    GstEvent *event = GST_PAD_PROBE_INFO_EVENT (info);
    GstClockTime start, duration;

    if (GST_EVENT_TYPE (event) == GST_EVENT_GAP) {
      gst_event_parse_gap (event, &start, &duration);
      g_assert_true (GST_CLOCK_TIME_IS_VALID (duration) && duration > 0);
    }
    g_string_append_printf (record->log, "%s ", GST_EVENT_TYPE_NAME (event));
  }
  g_mutex_unlock (&record->lock);

  return GST_PAD_PROBE_OK;
}

static gboolean
log_has (Record *record, const gchar *needle)
{
  gboolean has;

  g_mutex_lock (&record->lock);
  has = strstr (record->log->str, needle) != NULL;
  g_mutex_unlock (&record->lock);

  return has;
}

static GstPadProbeReturn
block_item (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn
count_frame (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  g_atomic_int_inc ((gint *) user_data);
  return GST_PAD_PROBE_OK;
}

static void
probe (GstElement *pipeline, const gchar *element, const gchar *pad_name, GstPadProbeType type,
    GstPadProbeCallback callback, gpointer user_data)
{
  GstElement *found = gst_bin_get_by_name (GST_BIN (pipeline), element);
  GstPad *pad = gst_element_get_static_pad (found, pad_name);

  g_assert_nonnull (pad);
  gst_pad_add_probe (pad, type, callback, user_data, NULL);
  gst_object_unref (pad);
  gst_object_unref (found);
}

/* Plays a launch line, in which "v" is the element, to its end; checks frames in = frames out. */
static void
play (const gchar *line, Record *record)
{
  g_autoptr (GError) error = NULL;
  GstElement *pipeline = gst_parse_launch (line, &error);
  GstBus *bus;
  GstMessage *message;
  gint in = 0, out = 0;

  g_assert_no_error (error);
  record->log = g_string_new (NULL);
  record->texts = 0;
  probe (pipeline, "v", "sink", GST_PAD_PROBE_TYPE_BUFFER, count_frame, &in);
  probe (pipeline, "v", "src", GST_PAD_PROBE_TYPE_BUFFER, count_frame, &out);
  probe (pipeline, "v", "text", GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM,
      record_item, record);

  bus = gst_element_get_bus (pipeline);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message =
      gst_bus_timed_pop_filtered (bus, PATIENCE * GST_USECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  if (message == NULL || GST_MESSAGE_TYPE (message) != GST_MESSAGE_EOS)
    g_error ("no end: %s, %d frames in, %d out, text: %s", line, in, out, record->log->str);
  gst_message_unref (message);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  g_assert_cmpint (in, >, 0);
  g_assert_cmpint (in, ==, out);
  g_assert_true (g_str_has_prefix (record->log->str, "stream-start caps segment "));

  gst_object_unref (bus);
  gst_object_unref (pipeline);
}

#define SOURCE "videotestsrc pattern=ball num-buffers=45 "
#define LIVE "videotestsrc pattern=ball num-buffers=15 is-live=true "

/* Every way to link to an overlay comes to its end. */
static void
test_overlay (void)
{
  static const gchar *const lines[] = {
    SOURCE "! vlmcaption name=v : textoverlay ! fakesink",
    SOURCE "! vlmcaption name=v mode=async : textoverlay ! fakesink",
    SOURCE "! vlmcaption name=v mode=sync interval=0 : textoverlay ! fakesink",
    SOURCE
    "! vlmcaption name=v mode=sync interval=50000000 ! queue ! textoverlay name=t ! fakesink "
    "v.text ! queue ! t.text_sink",
    SOURCE "! vlmcaption name=v mode=async interval=50000000 ! queue ! textoverlay name=t "
           "! fakesink v.text ! t.text_sink",
    SOURCE "! vlmcaption name=v mode=sync ! queue ! textoverlay name=t ! queue ! fakesink "
           "v.text ! queue ! t.text_sink",
    LIVE "! vlmcaption name=v : textoverlay ! fakesink sync=true",
    LIVE "! vlmcaption name=v mode=sync : textoverlay ! fakesink sync=true",
    LIVE "! vlmcaption name=v mode=async interval=0 : textoverlay ! fakesink sync=true",
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (lines); i++) {
    Record record = { 0 };

    play (lines[i], &record);
    if (strstr (lines[i], "mode=sync") != NULL)
      g_assert_cmpuint (record.texts, >, 0);
    g_string_free (record.log, TRUE);
  }
}

/* A seek to a point inside of a frame comes to its end, in PAUSED and to the last frame. */
static void
check_seek (const gchar *branch)
{
  g_autofree gchar *line = g_strdup_printf (SOURCE "! vlmcaption name=v %s", branch);
  g_autoptr (GError) error = NULL;
  GstElement *pipeline = gst_parse_launch (line, &error);
  GstBus *bus = gst_element_get_bus (pipeline);
  GstClockTime wait = PATIENCE * GST_USECOND;
  GstMessage *message;

  g_assert_no_error (error);
  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  g_assert_cmpint (
      gst_element_get_state (pipeline, NULL, NULL, wait), ==, GST_STATE_CHANGE_SUCCESS);
  g_assert_true (gst_element_seek (pipeline, 1.0, GST_FORMAT_TIME,
      GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE, GST_SEEK_TYPE_SET, 341 * MS, GST_SEEK_TYPE_SET,
      1250 * MS));
  if (gst_element_get_state (pipeline, NULL, NULL, wait) != GST_STATE_CHANGE_SUCCESS)
    g_error ("no preroll after the seek: %s", line);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, wait, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  if (message == NULL || GST_MESSAGE_TYPE (message) != GST_MESSAGE_EOS)
    g_error ("no end after the seek: %s", line);
  gst_element_set_state (pipeline, GST_STATE_NULL);

  gst_message_unref (message);
  gst_object_unref (bus);
  gst_object_unref (pipeline);
}

static void
test_seek_into_frame (void)
{
  check_seek ("mode=sync : textoverlay ! fakesink");
  check_seek ("mode=async interval=0 : textoverlay ! fakesink");
  check_seek ("mode=sync ! fakesink v.text ! fakesink");
  check_seek ("mode=async ! fakesink v.text ! fakesink");
}

/* The first frame after the seek is described, with the times at which it begins to be seen. */
static void
test_cut_frame_is_described (void)
{
  Fixture *f = fixture_new ("mode", "sync", NULL);
  GstSegment segment;
  GstMessage *message;
  guint64 timestamp, running_time, stream_time;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  segment.start = segment.time = 250 * MS;
  segment.base = 7 * MS;
  gst_harness_push_event (f->h, gst_event_new_segment (&segment));
  g_assert_cmpint (fixture_push (f, 1), ==, GST_FLOW_OK);
  g_assert_cmpuint (scripted_count_done (), ==, 0);
  g_assert_cmpint (fixture_push (f, 2), ==, GST_FLOW_OK);
  message = fixture_pop_message (f, GST_MESSAGE_ELEMENT);
  g_assert_true (gst_structure_get (gst_message_get_structure (message), "timestamp", G_TYPE_UINT64,
      &timestamp, "running-time", G_TYPE_UINT64, &running_time, "stream-time", G_TYPE_UINT64,
      &stream_time, NULL));
  g_assert_cmpuint (timestamp, ==, 200 * MS);
  g_assert_cmpuint (running_time, ==, 7 * MS);
  g_assert_cmpuint (stream_time, ==, 250 * MS);
  gst_message_unref (message);
  fixture_free (f);
}

/* Files get each caption once; the pad comes to its end after the last one. */
static void
test_file (void)
{
  Record record = { 0 };

  play ("videotestsrc num-buffers=91 ! vlmcaption name=v mode=sync ! fakesink "
        "v.text ! fakesink",
      &record);
  g_assert_cmpuint (record.texts, ==, 4);
  g_assert_true (g_str_has_suffix (record.log->str, "text eos "));
  g_string_free (record.log, TRUE);

  /* In PAUSED the text sink must preroll, too: play() would find no end otherwise. */
  play ("videotestsrc num-buffers=31 ! vlmcaption name=v mode=async ! fakesink sync=true "
        "v.text ! fakesink sync=true",
      &record);
  g_assert_cmpuint (record.texts, >=, 1);
  g_string_free (record.log, TRUE);
}

/* A stream without a single frame ends, too: both sinks preroll on their EOS. */
static void
test_no_frames (void)
{
  g_autoptr (GError) error = NULL;
  GstElement *pipeline = gst_parse_launch ("videotestsrc num-buffers=0 ! vlmcaption name=v ! "
                                           "fakesink v.text ! fakesink",
      &error);
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message;

  g_assert_no_error (error);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message =
      gst_bus_timed_pop_filtered (bus, PATIENCE * GST_USECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  g_assert_true (message != NULL && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS);
  gst_element_set_state (pipeline, GST_STATE_NULL);

  gst_message_unref (message);
  gst_object_unref (bus);
  gst_object_unref (pipeline);
}

static void
test_muxer (void)
{
  Record record = { 0 };

  play (SOURCE "! vlmcaption name=v mode=sync ! jpegenc ! matroskamux name=m ! fakesink "
               "v.text ! m.",
      &record);
  g_assert_cmpuint (record.texts, ==, 2);
  g_string_free (record.log, TRUE);

  /* Unqueued and async: the muxer holds video back; text must give way. */
  play (SOURCE "! vlmcaption name=v mode=async ! jpegenc ! matroskamux name=m ! fakesink "
               "v.text ! m.",
      &record);
  g_string_free (record.log, TRUE);
}

/* ---- The pad by hand ---------------------------------------------------------------------- */

typedef struct
{
  Fixture *f;
  GstPad *text;
  GstElement *sink;
  Record record;
} TextFixture;

/* kind: the element that text goes to; an identity looks like the way to a muxer. */
static void
text_fixture_init_with (TextFixture *t, Fixture *f, const gchar *kind, GstState state)
{
  GstPad *peer;

  t->f = f;
  t->record.log = g_string_new (NULL);
  t->record.texts = 0;
  t->text = gst_element_request_pad_simple (f->element, "text");
  g_assert_nonnull (t->text);
  gst_pad_add_probe (t->text,
      GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM
          | GST_PAD_PROBE_TYPE_EVENT_FLUSH,
      record_item, &t->record, NULL);
  t->sink = gst_element_factory_make (kind, NULL);
  g_object_set (t->sink, "sync", FALSE, NULL);
  if (g_str_equal (kind, "fakesink"))
    g_object_set (t->sink, "async", FALSE, NULL);
  gst_element_set_state (t->sink, state);
  peer = gst_element_get_static_pad (t->sink, "sink");
  g_assert_cmpint (
      gst_pad_link_full (t->text, peer, GST_PAD_LINK_CHECK_NOTHING), ==, GST_PAD_LINK_OK);
  gst_object_unref (peer);
}

static void
text_fixture_init (TextFixture *t, Fixture *f)
{
  text_fixture_init_with (t, f, "fakesink", GST_STATE_PLAYING);
}

static void
text_fixture_clear (TextFixture *t)
{
  gst_element_release_request_pad (t->f->element, t->text);
  gst_object_unref (t->text);
  gst_element_set_state (t->sink, GST_STATE_NULL);
  gst_object_unref (t->sink);
  g_string_free (t->record.log, TRUE);
}

/* Video's end passes at once; text's end waits for the caption that is being made. */
static void
test_eos_drains (void)
{
  TextFixture t = { 0 };
  GstEvent *event;
  GstEventType type;

  text_fixture_init (&t, fixture_new ("mode", "async", NULL));
  scripted_hold_captions ();
  g_assert_cmpint (fixture_push (t.f, 0), ==, GST_FLOW_OK);
  g_assert_true (gst_harness_push_event (t.f->h, gst_event_new_eos ()));
  do {
    event = gst_harness_pull_event (t.f->h);
    type = GST_EVENT_TYPE (event);
    gst_event_unref (event);
  } while (type != GST_EVENT_EOS);
  wait_until (log_has (&t.record, "gap"));
  g_assert_false (log_has (&t.record, "eos"));

  scripted_permit (1);
  wait_until (log_has (&t.record, "eos"));
  g_assert_true (g_str_has_suffix (t.record.log->str, "text eos "));

  text_fixture_clear (&t);
  fixture_free (t.f);
}

/* Without timestamps there is no text, but something that a sink prerolls on. */
static void
test_untimed_frames (void)
{
  TextFixture t = { 0 };
  guint i;

  text_fixture_init (&t, fixture_new ("mode", "async", NULL));
  for (i = 0; i < 3; i++)
    g_assert_cmpint (gst_harness_push (t.f->h, fixture_make_frame (NONE, i)), ==, GST_FLOW_OK);
  wait_until (log_has (&t.record, "stream-start caps segment gap"));
  g_assert_true (gst_harness_push_event (t.f->h, gst_event_new_eos ()));
  wait_until (log_has (&t.record, "eos"));
  g_assert_cmpstr (t.record.log->str, ==, "stream-start caps segment gap eos ");

  text_fixture_clear (&t);
  fixture_free (t.f);
}

/* A pad that is requested after the end learns of the end, also by a sink that starts later. */
static void
test_late_pad (void)
{
  static const GstState states[] = { GST_STATE_PLAYING, GST_STATE_NULL };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (states); i++) {
    Fixture *f = fixture_new ("mode", "async", NULL);
    TextFixture t = { 0 };

    g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
    g_assert_true (gst_harness_push_event (f->h, gst_event_new_eos ()));
    text_fixture_init_with (&t, f, "fakesink", states[i]);
    if (states[i] == GST_STATE_NULL) {
      g_usleep (50000);
      g_assert_false (log_has (&t.record, "eos"));
      gst_element_set_state (t.sink, GST_STATE_PLAYING);
    }
    wait_until (log_has (&t.record, "stream-start caps segment eos"));
    text_fixture_clear (&t);
    fixture_free (f);
  }
}

/* Longer than text towards a muxer waits for video that is not taken. */
#define LONG_PAUSE (1300 * G_TIME_SPAN_MILLISECOND)

/* Where video says that nothing comes, nobody waits for text: the cue goes on. */
static void
test_gap_is_no_stall (void)
{
  TextFixture t = { 0 };

  text_fixture_init_with (&t, fixture_new ("mode", "async", NULL), "identity", GST_STATE_PLAYING);
  g_assert_cmpint (fixture_push (t.f, 0), ==, GST_FLOW_OK);
  wait_until (fixture_get_stat (t.f, "completed") == 1);
  gst_harness_push_event (t.f->h, gst_event_new_gap (FRAME_DURATION, 5 * FRAME_DURATION));
  g_usleep (LONG_PAUSE);
  g_assert_false (log_has (&t.record, "text"));
  g_assert_true (gst_harness_push_event (t.f->h, gst_event_new_eos ()));
  wait_until (log_has (&t.record, "text eos"));

  text_fixture_clear (&t);
  fixture_free (t.f);
}

static GstPadProbeReturn
hold_frame (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  g_atomic_int_set ((gint *) user_data, TRUE);
  return GST_PAD_PROBE_OK;
}

static gpointer
push_second (gpointer user_data)
{
  g_assert_cmpint (fixture_push (user_data, 1), ==, GST_FLOW_OK);
  return NULL;
}

/* A recording that pauses for a while does not wait for text, either. */
static void
test_pause_is_no_stall (void)
{
  TextFixture t = { 0 };
  GThread *thread;
  gint held = FALSE;
  gulong block;

  text_fixture_init_with (&t, fixture_new ("mode", "async", NULL), "identity", GST_STATE_PLAYING);
  g_assert_cmpint (fixture_push (t.f, 0), ==, GST_FLOW_OK);
  wait_until (fixture_get_stat (t.f, "completed") == 1);
  block = gst_pad_add_probe (t.f->h->sinkpad, GST_PAD_PROBE_TYPE_BLOCK | GST_PAD_PROBE_TYPE_BUFFER,
      hold_frame, &held, NULL);
  gst_element_set_state (t.f->element, GST_STATE_PAUSED);
  thread = g_thread_new ("push", push_second, t.f);
  wait_until (g_atomic_int_get (&held));
  g_usleep (LONG_PAUSE);
  gst_element_set_state (t.f->element, GST_STATE_PLAYING);
  gst_pad_remove_probe (t.f->h->sinkpad, block);
  g_thread_join (thread);
  g_assert_false (log_has (&t.record, "text"));
  g_assert_true (gst_harness_push_event (t.f->h, gst_event_new_eos ()));
  wait_until (log_has (&t.record, "text eos"));

  text_fixture_clear (&t);
  fixture_free (t.f);
}

/* Releasing the pad flushes an overlay and nothing else: a muxer would lose what it writes. */
static void
test_release_muxer (void)
{
  TextFixture t = { 0 };

  text_fixture_init_with (&t, fixture_new ("mode", "sync", NULL), "identity", GST_STATE_PLAYING);
  g_assert_cmpint (fixture_push (t.f, 0), ==, GST_FLOW_OK);
  wait_until (log_has (&t.record, "text gap"));
  gst_element_release_request_pad (t.f->element, t.text);
  g_assert_false (log_has (&t.record, "flush"));
  gst_object_unref (t.text);
  gst_element_set_state (t.sink, GST_STATE_NULL);
  gst_object_unref (t.sink);
  g_string_free (t.record.log, TRUE);
  fixture_free (t.f);
}

static gboolean
has_task (GstPad *pad)
{
  gboolean has;

  GST_OBJECT_LOCK (pad);
  has = GST_PAD_TASK (pad) != NULL;
  GST_OBJECT_UNLOCK (pad);

  return has;
}

/* Releasing the pad does not wait for a peer that holds its thread, as muxers do in PAUSED. */
static void
test_release_blocked (void)
{
  TextFixture t = { 0 };
  gint64 deadline = g_get_monotonic_time () + PATIENCE;
  GstPad *peer;
  gulong block;

  text_fixture_init_with (&t, fixture_new ("mode", "async", NULL), "identity", GST_STATE_PLAYING);
  peer = gst_element_get_static_pad (t.sink, "sink");
  block = gst_pad_add_probe (
      peer, GST_PAD_PROBE_TYPE_BLOCK | GST_PAD_PROBE_TYPE_DATA_DOWNSTREAM, block_item, NULL, NULL);
  g_assert_cmpint (fixture_push (t.f, 0), ==, GST_FLOW_OK);
  wait_until (log_has (&t.record, "stream-start"));
  gst_element_release_request_pad (t.f->element, t.text);
  g_assert_null (GST_OBJECT_PARENT (t.text));
  g_assert_cmpint (fixture_push (t.f, 1), ==, GST_FLOW_OK);

  gst_pad_remove_probe (peer, block);
  wait_until (!has_task (t.text));
  /* Messages on the thread's status hold references. */
  do
    fixture_count_messages (t.f, GST_MESSAGE_ANY);
  while (GST_OBJECT_REFCOUNT (t.text) > 1 && g_get_monotonic_time () < deadline);
  g_assert_cmpint (GST_OBJECT_REFCOUNT (t.text), ==, 1);
  gst_object_unref (peer);
  gst_object_unref (t.text);
  gst_element_set_state (t.sink, GST_STATE_NULL);
  gst_object_unref (t.sink);
  g_string_free (t.record.log, TRUE);
  fixture_free (t.f);
}

/* The text stream has an id and group of its own and the segment of the video. */
static void
test_stream_events (void)
{
  TextFixture t = { 0 };
  GstEvent *event = gst_event_new_stream_start ("video");
  GstSegment video;
  const GstSegment *text;
  const gchar *stream_id;
  GstStreamFlags flags;
  guint group;

  text_fixture_init (&t, fixture_new ("mode", "async", NULL));
  gst_event_set_group_id (event, 1234);
  gst_harness_push_event (t.f->h, event);
  gst_harness_set_src_caps_str (
      t.f->h, "video/x-raw, format=RGB, width=16, height=16, framerate=10/1");
  gst_segment_init (&video, GST_FORMAT_TIME);
  video.base = 77;
  gst_harness_push_event (t.f->h, gst_event_new_segment (&video));
  g_assert_cmpint (fixture_push (t.f, 0), ==, GST_FLOW_OK);
  wait_until (log_has (&t.record, "stream-start caps segment gap"));

  event = gst_pad_get_sticky_event (t.text, GST_EVENT_STREAM_START, 0);
  gst_event_parse_stream_start (event, &stream_id);
  gst_event_parse_stream_flags (event, &flags);
  g_assert_cmpstr (stream_id, ==, "video/text");
  g_assert_true (flags & GST_STREAM_FLAG_SPARSE);
  g_assert_true (gst_event_parse_group_id (event, &group) && group == 1234);
  gst_event_unref (event);
  event = gst_pad_get_sticky_event (t.text, GST_EVENT_SEGMENT, 0);
  gst_event_parse_segment (event, &text);
  g_assert_cmpuint (text->base, ==, 77);
  gst_event_unref (event);

  text_fixture_clear (&t);
  fixture_free (t.f);
}

static void
test_flush_text (void)
{
  TextFixture t = { 0 };
  GstSegment segment;
  guint i;

  text_fixture_init (&t, fixture_new ("mode", "async", "interval", "0", NULL));
  for (i = 0; i < 20; i++) {
    g_assert_cmpint (fixture_push (t.f, 0), ==, GST_FLOW_OK);
    g_assert_cmpint (fixture_push (t.f, 1), ==, GST_FLOW_OK);
    gst_harness_push_event (t.f->h, gst_event_new_flush_start ());
    gst_harness_push_event (t.f->h, gst_event_new_flush_stop (TRUE));
    gst_segment_init (&segment, GST_FORMAT_TIME);
    gst_harness_push_event (t.f->h, gst_event_new_segment (&segment));
  }
  g_assert_true (log_has (&t.record, "flush-start flush-stop"));
  g_assert_cmpint (fixture_push (t.f, 5), ==, GST_FLOW_OK);
  g_assert_true (gst_harness_push_event (t.f->h, gst_event_new_eos ()));
  wait_until (log_has (&t.record, "eos"));

  text_fixture_clear (&t);
  fixture_free (t.f);
}

static gpointer
push_many (gpointer user_data)
{
  Fixture *f = user_data;
  guint i;

  for (i = 0; i < 2000; i++) {
    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
    gst_buffer_unref (gst_harness_pull (f->h));
  }
  return NULL;
}

/* The pad comes and goes while video plays. */
static void
test_request_release (void)
{
  Fixture *f = fixture_new ("mode", "async", "interval", "0", NULL);
  GThread *thread = g_thread_new ("push", push_many, f);
  guint i;

  for (i = 0; i < 50; i++) {
    TextFixture t = { 0 };

    text_fixture_init (&t, f);
    text_fixture_clear (&t);
  }
  g_thread_join (thread);

  fixture_free (f);
}

/* Text that is wanted at once comes once for each caption, with the time at which it comes. */
static void
test_display_to_sink (void)
{
  TextFixture t = { 0 };

  text_fixture_init (&t, fixture_new ("mode", "async", "text-timing", "display", NULL));
  scripted_hold_captions ();
  g_assert_cmpint (fixture_push (t.f, 0), ==, GST_FLOW_OK);
  g_assert_cmpint (fixture_push (t.f, 1), ==, GST_FLOW_OK);
  scripted_permit (1);
  wait_until (fixture_get_stat (t.f, "completed") == 1);
  g_assert_false (log_has (&t.record, "text"));
  g_assert_cmpint (fixture_push (t.f, 2), ==, GST_FLOW_OK);
  wait_until (log_has (&t.record, "text"));
  g_assert_cmpint (fixture_push (t.f, 3), ==, GST_FLOW_OK);
  g_assert_true (gst_harness_push_event (t.f->h, gst_event_new_eos ()));
  wait_until (log_has (&t.record, "eos"));
  g_assert_true (g_str_has_suffix (t.record.log->str, "gap text eos "));
  g_assert_cmpuint (t.record.texts, ==, 1);

  text_fixture_clear (&t);
  fixture_free (t.f);
}

/* The frame's times towards an overlay that does not have them yet: late, but it plays on. */
static void
test_frame_timing_to_overlay (void)
{
  Record record = { 0 };

  play ("videotestsrc num-buffers=45 ! vlmcaption name=v mode=async text-timing=frame : "
        "textoverlay ! fakesink",
      &record);
  g_string_free (record.log, TRUE);
  play ("videotestsrc num-buffers=45 ! vlmcaption name=v mode=sync text-timing=frame : "
        "textoverlay ! fakesink",
      &record);
  g_assert_cmpuint (record.texts, >, 1);
  g_string_free (record.log, TRUE);
}

/* There is no text while video plays backwards, and there is again when it plays on. */
static void
test_backwards (void)
{
  TextFixture t = { 0 };
  GstSegment segment;

  text_fixture_init (&t, fixture_new ("mode", "sync", NULL));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  segment.rate = -1;
  segment.stop = 10 * GST_SECOND;
  gst_harness_push_event (t.f->h, gst_event_new_segment (&segment));
  g_assert_cmpint (fixture_push (t.f, 20), ==, GST_FLOW_OK);
  g_assert_cmpint (fixture_push (t.f, 19), ==, GST_FLOW_OK);
  wait_until (log_has (&t.record, "gap"));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_push_event (t.f->h, gst_event_new_segment (&segment));
  g_assert_cmpint (fixture_push (t.f, 0), ==, GST_FLOW_OK);
  g_assert_true (gst_harness_push_event (t.f->h, gst_event_new_eos ()));
  wait_until (log_has (&t.record, "eos"));
  g_assert_cmpstr (t.record.log->str, ==, "stream-start caps segment gap segment gap text eos ");

  text_fixture_clear (&t);
  fixture_free (t.f);
}

static GstFlowReturn
fail_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  gst_buffer_unref (buffer);
  return GST_FLOW_ERROR;
}

/* Video goes on beside a text pad without peer and is not told that text is not linked; a peer that
 * fails ends it. */
static void
test_flow (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", NULL);
  GstPad *text = gst_element_request_pad_simple (f->element, "text");
  GstPad *sink = gst_pad_new ("sink", GST_PAD_SINK);
  gint64 deadline = g_get_monotonic_time () + PATIENCE;
  GstFlowReturn flow;
  guint i = 0;

  for (; i < 5; i++)
    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);

  gst_pad_set_chain_function (sink, fail_chain);
  gst_pad_set_active (sink, TRUE);
  g_assert_cmpint (gst_pad_link (text, sink), ==, GST_PAD_LINK_OK);
  do {
    flow = fixture_push (f, i++);
    g_usleep (1000);
  } while (flow == GST_FLOW_OK && g_get_monotonic_time () < deadline);
  g_assert_cmpint (flow, ==, GST_FLOW_ERROR);

  gst_element_release_request_pad (f->element, text);
  g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
  gst_pad_set_active (sink, FALSE);
  gst_object_unref (sink);
  gst_object_unref (text);
  fixture_free (f);
}

/* A seek that an overlay sends to both of its inputs acts once. */
static void
test_upstream_events (void)
{
  Fixture *f = fixture_new ("mode", "async", NULL);
  GstPad *text = gst_element_request_pad_simple (f->element, "text");
  guint before = gst_harness_upstream_events_received (f->h);

  g_assert_true (gst_pad_send_event (text,
      gst_event_new_seek (1.0, GST_FORMAT_TIME, 0, GST_SEEK_TYPE_SET, 0, GST_SEEK_TYPE_NONE, 0)));
  g_assert_true (gst_pad_send_event (
      text, gst_video_event_new_upstream_force_key_unit (GST_CLOCK_TIME_NONE, TRUE, 0)));
  g_assert_cmpuint (gst_harness_upstream_events_received (f->h), ==, before);
  gst_harness_push_upstream_event (f->h,
      gst_event_new_seek (1.0, GST_FORMAT_TIME, 0, GST_SEEK_TYPE_SET, 0, GST_SEEK_TYPE_NONE, 0));
  g_assert_cmpuint (gst_harness_upstream_events_received (f->h), ==, before + 1);

  gst_element_release_request_pad (f->element, text);
  gst_object_unref (text);
  fixture_free (f);
}

/* ---- Main --------------------------------------------------------------------------------- */

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_unsetenv ("VLMCAPTION_MODEL");
  gst_init (&argc, &argv);
  GST_PLUGIN_STATIC_REGISTER (vlmcaption);

  scripted_add_test ("/text/overlay", test_overlay);
  scripted_add_test ("/text/seek-into-frame", test_seek_into_frame);
  scripted_add_test ("/text/cut-frame-is-described", test_cut_frame_is_described);
  scripted_add_test ("/text/file", test_file);
  scripted_add_test ("/text/no-frames", test_no_frames);
  scripted_add_test ("/text/muxer", test_muxer);
  scripted_add_test ("/text/eos-drains", test_eos_drains);
  scripted_add_test ("/text/untimed-frames", test_untimed_frames);
  scripted_add_test ("/text/late-pad", test_late_pad);
  scripted_add_test ("/text/gap-is-no-stall", test_gap_is_no_stall);
  scripted_add_test ("/text/pause-is-no-stall", test_pause_is_no_stall);
  scripted_add_test ("/text/release-muxer", test_release_muxer);
  scripted_add_test ("/text/release-blocked", test_release_blocked);
  scripted_add_test ("/text/stream-events", test_stream_events);
  scripted_add_test ("/text/flush", test_flush_text);
  scripted_add_test ("/text/request-release", test_request_release);
  scripted_add_test ("/text/display-to-sink", test_display_to_sink);
  scripted_add_test ("/text/frame-timing-to-overlay", test_frame_timing_to_overlay);
  scripted_add_test ("/text/backwards", test_backwards);
  scripted_add_test ("/text/flow", test_flow);
  scripted_add_test ("/text/upstream-events", test_upstream_events);

  return g_test_run ();
}
