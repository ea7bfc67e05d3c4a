/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Whether ThreadSanitizer understands the GLib and GStreamer that this is run with: "correct" must
 * be silent, "pipeline" too, "race" and "order" must be reported. Built and run by tests/tsan.sh.
 */

#include <gst/gst.h>

#define N_THREADS 4
#define N_ROUNDS 2000

typedef struct
{
  GMutex mutex;
  GRecMutex rec_mutex;
  GCond all_done;
  gint bit_lock;
  GAsyncQueue *queue;

  /* Each behind the lock of its name. */
  guint by_mutex, by_rec_mutex, by_bit_lock;
  guint n_done;

  /* Behind nothing. */
  guint by_nobody;
} Shared;

static gpointer
count_with_locks (gpointer user_data)
{
  Shared *shared = user_data;
  guint i;

  for (i = 0; i < N_ROUNDS; i++) {
    g_mutex_lock (&shared->mutex);
    shared->by_mutex++;
    g_mutex_unlock (&shared->mutex);
    g_rec_mutex_lock (&shared->rec_mutex);
    shared->by_rec_mutex++;
    g_rec_mutex_unlock (&shared->rec_mutex);
    g_bit_lock (&shared->bit_lock, 3);
    shared->by_bit_lock++;
    g_bit_unlock (&shared->bit_lock, 3);
    g_async_queue_push (shared->queue, g_memdup2 (&i, sizeof i));
  }
  g_mutex_lock (&shared->mutex);
  shared->n_done++;
  g_cond_signal (&shared->all_done);
  g_mutex_unlock (&shared->mutex);

  return NULL;
}

static gpointer
count_without (gpointer user_data)
{
  Shared *shared = user_data;
  guint i;

  for (i = 0; i < N_ROUNDS; i++)
    shared->by_nobody++;

  return NULL;
}

/* Takes a mutex and a recursive one in either order: two threads that do so may wait for each other. */
static void
take_both_ways (Shared *shared)
{
  g_mutex_lock (&shared->mutex);
  g_rec_mutex_lock (&shared->rec_mutex);
  g_rec_mutex_unlock (&shared->rec_mutex);
  g_mutex_unlock (&shared->mutex);

  g_rec_mutex_lock (&shared->rec_mutex);
  g_mutex_lock (&shared->mutex);
  g_mutex_unlock (&shared->mutex);
  g_rec_mutex_unlock (&shared->rec_mutex);
}

static void
run_threads (GThreadFunc func, Shared *shared)
{
  GThread *threads[N_THREADS];
  guint i;

  for (i = 0; i < N_THREADS; i++)
    threads[i] = g_thread_new ("count", func, shared);
  if (func == count_with_locks) {
    guint sum = 0;

    g_mutex_lock (&shared->mutex);
    while (shared->n_done < N_THREADS)
      g_cond_wait (&shared->all_done, &shared->mutex);
    /* Written by others, read here, with the mutex alone between. */
    sum = shared->by_mutex;
    g_mutex_unlock (&shared->mutex);
    g_assert_cmpuint (sum, ==, N_THREADS * N_ROUNDS);
    for (i = 0; i < N_THREADS * N_ROUNDS; i++) {
      guint *value = g_async_queue_pop (shared->queue);

      g_assert_cmpuint (*value, <, N_ROUNDS);
      g_free (value);
    }
  }
  for (i = 0; i < N_THREADS; i++)
    g_thread_join (threads[i]);
}

static void
play (void)
{
  GstElement *pipeline = gst_parse_launch ("videotestsrc num-buffers=60 ! queue ! videoconvert ! "
                                           "video/x-raw,format=RGB ! queue ! fakesink",
      NULL);
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message =
      gst_bus_timed_pop_filtered (bus, GST_CLOCK_TIME_NONE, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  g_assert_cmpint (GST_MESSAGE_TYPE (message), ==, GST_MESSAGE_EOS);
  gst_message_unref (message);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (bus);
  gst_object_unref (pipeline);
}

int
main (int argc, char **argv)
{
  const gchar *what = argc > 1 ? argv[1] : "";
  Shared shared = { 0 };

  shared.queue = g_async_queue_new_full (g_free);
  if (g_str_equal (what, "correct")) {
    run_threads (count_with_locks, &shared);
  } else if (g_str_equal (what, "race")) {
    run_threads (count_without, &shared);
  } else if (g_str_equal (what, "order")) {
    take_both_ways (&shared);
  } else if (g_str_equal (what, "pipeline")) {
    gst_init (&argc, &argv);
    play ();
  } else {
    g_printerr ("usage: %s correct|race|order|pipeline\n", argv[0]);
    return 2;
  }
  g_async_queue_unref (shared.queue);

  return 0;
}
