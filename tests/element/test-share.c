/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Many elements on one model, with the plugin as it is installed and a real engine: memory, turns,
 * load, flushes. VLM_TEST_MODEL is the model: by default the built-in one, long.sh sets a large one.
 * VLM_TEST_CAPTIONS is how many captions each stream makes while turns are counted, VLM_TEST_TOKENS how
 * long they are.
 */

#include <sys/resource.h>

#include "tests/element/element-helpers.h"
#include "tests/element/stopwatch.h"

#define N_STREAMS 8
/* Beyond the first element each may hold this much: caches and scratch for a picture in one tile. */
#define MOST_PER_STREAM (32 * 1024 * 1024)

static const gchar *
get_model (void)
{
  const gchar *model = g_getenv ("VLM_TEST_MODEL");

  return model != NULL ? model : "";
}

static guint
get_number (const gchar *variable, guint otherwise)
{
  const gchar *text = g_getenv (variable);

  return text != NULL ? MAX (atoi (text), 1) : otherwise;
}

static guint
get_n_captions (void)
{
  return get_number ("VLM_TEST_CAPTIONS", 20);
}

typedef struct
{
  GstElement *pipeline;
  GstElement *element;
} Stream;

static void
stream_start (Stream *stream, const gchar *properties)
{
  g_autofree gchar *line =
      g_strdup_printf ("videotestsrc is-live=true pattern=circular ! "
                       "video/x-raw,format=RGB,width=256,height=256,framerate=%u/1 ! "
                       "vlmcaption name=v model=\"%s\" mode=async interval=0 max-tokens=%u "
                       "temperature=0 auto-overlay=false %s ! "
                       "fakesink sync=false",
          /* Always a new frame when a caption is done, and hardly more. */
          *get_model () != '\0' ? 20 : 100, get_model (), get_number ("VLM_TEST_TOKENS", 12),
          properties);
  GError *error = NULL;

  stream->pipeline = gst_parse_launch (line, &error);
  g_assert_no_error (error);
  stream->element = gst_bin_get_by_name (GST_BIN (stream->pipeline), "v");
  gst_element_set_state (stream->pipeline, GST_STATE_PLAYING);
}

static void
stream_stop (Stream *stream)
{
  gst_element_set_state (stream->pipeline, GST_STATE_NULL);
  gst_object_unref (stream->element);
  gst_object_unref (stream->pipeline);
}

static guint64
stream_count (Stream *stream)
{
  GstStructure *stats;
  guint64 completed = 0;

  g_object_get (stream->element, "stats", &stats, NULL);
  gst_structure_get_uint64 (stats, "completed", &completed);
  gst_structure_free (stats);

  return completed;
}

/* Waits until every stream has made n captions. */
static void
wait_for_captions (Stream *streams, guint n_streams, guint64 n)
{
  gint64 deadline = g_get_monotonic_time () + 600 * G_TIME_SPAN_SECOND;
  guint i;

  for (i = 0; i < n_streams; i++) {
    while (stream_count (&streams[i]) < n) {
      g_assert_cmpint (g_get_monotonic_time (), <, deadline);
      g_usleep (5000);
    }
  }
}

/* Eight streams hold one copy of the weights, and none is served more often than another. */
static void
test_eight (void)
{
  Stream streams[N_STREAMS];
  guint64 before[N_STREAMS], least = G_MAXUINT64, most = 0;
  GString *turns = g_string_new (NULL);
  gsize one, eight;
  guint i;

  stream_start (&streams[0], "");
  wait_for_captions (streams, 1, 2);
  one = get_resident_bytes ();
  for (i = 1; i < N_STREAMS; i++)
    stream_start (&streams[i], "");
  wait_for_captions (streams, N_STREAMS, 2);

  for (i = 0; i < N_STREAMS; i++)
    before[i] = stream_count (&streams[i]);
  wait_for_captions (&streams[N_STREAMS - 1], 1, before[N_STREAMS - 1] + get_n_captions ());
  for (i = 0; i < N_STREAMS; i++) {
    guint64 made = stream_count (&streams[i]) - before[i];

    least = MIN (least, made);
    most = MAX (most, made);
    g_string_append_printf (turns, " %u", (guint) made);
  }
  eight = get_resident_bytes ();
  g_test_message ("memory with one %.1f MB, with eight %.1f MB; captions of each:%s", one / 1e6,
      eight / 1e6, turns->str);
/* With sanitizers memory is theirs, and a busy machine keeps one stream or another from its frames. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  g_assert_cmpuint (eight, <=, one + (N_STREAMS - 1) * (gsize) MOST_PER_STREAM);
  /* One caption of each may be half done at either end. */
  g_assert_cmpuint (most - least, <=, most / 10 + 2);
#endif

  for (i = 0; i < N_STREAMS; i++)
    stream_stop (&streams[i]);
  g_string_free (turns, TRUE);
}

static gdouble
get_cpu_seconds (void)
{
  struct rusage usage;

  getrusage (RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
      + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* How long the large video is watched, in seconds. */
static guint
get_seconds (void)
{
  return get_number ("VLM_TEST_SECONDS", 2);
}

/* Full HD beside a real model on one thread that is asked at every frame: no frame is lost. */
static void
test_full_hd (void)
{
  guint n_frames = 30 * get_seconds ();
  g_autofree gchar *line = g_strdup_printf (
      "videotestsrc is-live=true num-buffers=%u ! "
      "video/x-raw,format=NV12,width=1920,height=1080,framerate=30/1 ! identity name=i ! "
      "identity name=c ! vlmcaption name=v model=\"%s\" interval=0 threads=1 nice=10 tiling=off "
      "max-tokens=12 temperature=0 ! fakesink sync=true",
      n_frames, get_model ());
  GError *error = NULL;
  Stream stream = { gst_parse_launch (line, &error), NULL };
  Stopwatch identity, copy, us;
  GstMessage *message;
  GstBus *bus;

  g_assert_no_error (error);
  stream.element = gst_bin_get_by_name (GST_BIN (stream.pipeline), "v");
  stopwatch_start (&identity, stream.pipeline, "i", FALSE);
  stopwatch_start (&copy, stream.pipeline, "c", TRUE);
  stopwatch_start (&us, stream.pipeline, "v", FALSE);
  bus = gst_element_get_bus (stream.pipeline);
  stream_in_real_time (stream.pipeline);
  gst_element_set_state (stream.pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, (get_seconds () + 60) * GST_SECOND,
      GST_MESSAGE_EOS | GST_MESSAGE_ERROR | GST_MESSAGE_WARNING);
  g_assert_nonnull (message);
  g_assert_cmpint (GST_MESSAGE_TYPE (message), ==, GST_MESSAGE_EOS);
  gst_message_unref (message);
  g_assert_cmpuint (identity.times->len, ==, n_frames);
  g_assert_cmpuint (us.times->len, ==, n_frames);
  g_test_message ("%u frames, %u captions; 99.9 %% within %d us, identity %d us, a mere copy %d us",
      n_frames, (guint) stream_count (&stream), (gint) stopwatch_get_percentile (&us, 0.999),
      (gint) stopwatch_get_percentile (&identity, 0.999),
      (gint) stopwatch_get_percentile (&copy, 0.999));

  stopwatch_clear (&identity);
  stopwatch_clear (&copy);
  stopwatch_clear (&us);
  gst_object_unref (bus);
  stream_stop (&stream);
}

/* The share of the CPUs that a stream takes while it makes n captions, or for a second if n is 0. */
static gdouble
measure_load (const gchar *properties, guint n)
{
  gdouble cpu, elapsed;
  gint64 since;
  Stream stream;

  stream_start (&stream, properties);
  if (n > 0)
    wait_for_captions (&stream, 1, 2);
  since = g_get_monotonic_time ();
  cpu = get_cpu_seconds ();
  if (n > 0)
    wait_for_captions (&stream, 1, stream_count (&stream) + n);
  else
    g_usleep (G_USEC_PER_SEC);
  cpu = get_cpu_seconds () - cpu;
  elapsed = (g_get_monotonic_time () - since) / 1e6;
  stream_stop (&stream);

  return 100 * cpu / elapsed / g_get_num_processors ();
}

/* A quarter of the CPUs, all threads counted, beside what the video itself costs. */
static void
test_load (void)
{
  gdouble idle = measure_load ("interval=18446744073709551615", 0);
  gdouble load = measure_load ("max-load=25", get_n_captions ());

  g_test_message ("without captions: %.1f %%, with max-load=25: %.1f %%", idle, load);
  g_assert_cmpfloat (load - idle, <=, 28);
}

typedef struct
{
  GstHarness *h;
  GMutex lock; /* the stream lock: held for a frame, and from the end of a flush to the segment */
  gint stop;   /* atomic */
} Pusher;

/* A source that goes on after each flush. */
static gpointer
push_frames (gpointer user_data)
{
  Pusher *pusher = user_data;
  guint i;

  for (i = 0; !g_atomic_int_get (&pusher->stop); i++) {
    GstBuffer *buffer = gst_buffer_new_allocate (NULL, 256 * 256 * 3, NULL);

    gst_buffer_memset (buffer, 0, i, 256 * 256 * 3);
    GST_BUFFER_PTS (buffer) = i * 10 * GST_MSECOND;
    g_mutex_lock (&pusher->lock);
    gst_harness_push (pusher->h, buffer);
    g_mutex_unlock (&pusher->lock);
    g_usleep (2000);
  }
  return NULL;
}

/*
 * A flush at any moment of a caption returns at once, the streaming thread with it. A machine that is
 * busy elsewhere may hold a few of them up; waiting for the caption would hold nearly all up.
 */
static void
check_flush (const gchar *mode)
{
  GRand *random = g_rand_new_with_seed (5);
  GstElement *element = gst_element_factory_make ("vlmcaption", NULL);
  Pusher pusher = { .h = gst_harness_new_with_element (element, "sink", "src") };
  Stopwatch flushes = { .times = g_array_new (FALSE, FALSE, sizeof (gint64)) };
  GThread *thread;
  Stream stream = { NULL, element };
  guint i;

  g_object_set (element, "interval", (guint64) 0, "max-tokens", 12, "threads", 1, "model",
      get_model (), NULL);
  gst_util_set_object_arg (G_OBJECT (element), "mode", mode);
  gst_harness_set_drop_buffers (pusher.h, TRUE);
  gst_harness_set_src_caps_str (
      pusher.h, "video/x-raw, format=RGB, width=256, height=256, framerate=100/1");
  g_mutex_init (&pusher.lock);
  thread = g_thread_new ("push", push_frames, &pusher);
  wait_for_captions (&stream, 1, 1);
  for (i = 0; i < 2 * get_n_captions (); i++) {
    GstSegment segment;
    gint64 since, taken;

    g_usleep (g_rand_int_range (random, 0, 60000));
    since = g_get_monotonic_time ();
    gst_harness_push_event (pusher.h, gst_event_new_flush_start ());
    g_mutex_lock (&pusher.lock);
    gst_harness_push_event (pusher.h, gst_event_new_flush_stop (TRUE));
    taken = g_get_monotonic_time () - since;
    g_array_append_val (flushes.times, taken);
    gst_segment_init (&segment, GST_FORMAT_TIME);
    gst_harness_push_event (pusher.h, gst_event_new_segment (&segment));
    g_mutex_unlock (&pusher.lock);
    if (i % 8 == 7)
      wait_for_captions (&stream, 1, stream_count (&stream) + 1);
  }
  gst_harness_push_event (pusher.h, gst_event_new_flush_start ());
  g_atomic_int_set (&pusher.stop, TRUE);
  g_thread_join (thread);
  g_test_message ("%s: half of the flushes took %.1f ms, the longest %.1f ms", mode,
      stopwatch_get_percentile (&flushes, 0.5) / 1e3, stopwatch_get_percentile (&flushes, 1) / 1e3);
  g_assert_cmpint (stopwatch_get_percentile (&flushes, 0.8), <, 100 * G_TIME_SPAN_MILLISECOND);
  stopwatch_clear (&flushes);
  gst_harness_teardown (pusher.h);
  g_mutex_clear (&pusher.lock);
  gst_object_unref (element);
  g_rand_free (random);
}

static void
test_flush (void)
{
  check_flush ("async");
  check_flush ("sync");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);

  g_test_add_func ("/share/eight", test_eight);
  g_test_add_func ("/share/full-hd", test_full_hd);
  g_test_add_func ("/share/load", test_load);
  g_test_add_func ("/share/flush", test_flush);

  return g_test_run ();
}
