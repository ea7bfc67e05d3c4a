/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/element/stopwatch.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static GstPadProbeReturn
on_enter (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  ((Stopwatch *) user_data)->since = g_get_monotonic_time ();
  return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn
on_leave (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Stopwatch *watch = user_data;
  gint64 spent;

  if (watch->copy != NULL) {
    GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER (info);

    g_byte_array_set_size (watch->copy, gst_buffer_get_size (buffer));
    gst_buffer_extract (buffer, 0, watch->copy->data, watch->copy->len);
  }
  spent = g_get_monotonic_time () - watch->since;
  g_array_append_val (watch->times, spent);
  return GST_PAD_PROBE_OK;
}

void
stopwatch_start (Stopwatch *watch, GstElement *pipeline, const gchar *name, gboolean copies)
{
  GstElement *element = gst_bin_get_by_name (GST_BIN (pipeline), name);
  GstPad *sink = gst_element_get_static_pad (element, "sink");
  GstPad *src = gst_element_get_static_pad (element, "src");

  watch->times = g_array_new (FALSE, FALSE, sizeof (gint64));
  watch->since = 0;
  watch->copy = copies ? g_byte_array_new () : NULL;
  gst_pad_add_probe (sink, GST_PAD_PROBE_TYPE_BUFFER, on_enter, watch, NULL);
  gst_pad_add_probe (src, GST_PAD_PROBE_TYPE_BUFFER, on_leave, watch, NULL);
  gst_object_unref (sink);
  gst_object_unref (src);
  gst_object_unref (element);
}

void
stopwatch_clear (Stopwatch *watch)
{
  g_clear_pointer (&watch->times, g_array_unref);
  g_clear_pointer (&watch->copy, g_byte_array_unref);
}

static gint
compare_times (gconstpointer a, gconstpointer b)
{
  gint64 x = *(const gint64 *) a, y = *(const gint64 *) b;

  return (x > y) - (x < y);
}

gint64
stopwatch_get_percentile (Stopwatch *watch, gdouble share)
{
  g_array_sort (watch->times, compare_times);
  return g_array_index (watch->times, gint64, (guint) (share * (watch->times->len - 1)));
}

gsize
get_resident_bytes (void)
{
  g_autofree gchar *text = NULL;
  gsize pages = 0;

  if (g_file_get_contents ("/proc/self/statm", &text, NULL, NULL))
    pages = g_ascii_strtoull (strchr (text, ' '), NULL, 10);
  return pages * sysconf (_SC_PAGESIZE);
}

/* On the thread that the message is about. */
static GstBusSyncReply
on_thread (GstBus *bus, GstMessage *message, gpointer user_data)
{
  struct sched_param param = { 0 };
  GstStreamStatusType type;
  GstElement *owner;
  int policy = SCHED_OTHER;

  if (GST_MESSAGE_TYPE (message) != GST_MESSAGE_STREAM_STATUS)
    return GST_BUS_PASS;

  gst_message_parse_stream_status (message, &type, &owner);
  if (type == GST_STREAM_STATUS_TYPE_ENTER) {
    policy = SCHED_FIFO;
    param.sched_priority = 20;
  }
  if (type == GST_STREAM_STATUS_TYPE_ENTER || type == GST_STREAM_STATUS_TYPE_LEAVE)
    g_assert_cmpint (pthread_setschedparam (pthread_self (), policy, &param), ==, 0);

  return GST_BUS_PASS;
}

void
stream_in_real_time (GstElement *pipeline)
{
  GstBus *bus = gst_element_get_bus (pipeline);

  if (g_getenv ("VLM_TEST_REALTIME") != NULL)
    gst_bus_set_sync_handler (bus, on_thread, NULL, NULL);
  gst_object_unref (bus);
}
