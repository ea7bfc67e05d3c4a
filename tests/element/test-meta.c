/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The caption on its way downstream: through converters, scalers, tees, and over the wire. */

#include "tests/element/element-helpers.h"
#include "tests/element/scripted-engine.h"

GST_PLUGIN_STATIC_DECLARE (vlmcaption);

typedef struct
{
  guint n_buffers;
  guint n_captions;
} Tally;

static GstPadProbeReturn
count_captions (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  const gchar *caption = get_caption (GST_PAD_PROBE_INFO_BUFFER (info));
  Tally *tally = user_data;

  tally->n_buffers++;
  if (caption != NULL && g_str_has_prefix (caption, "P "))
    tally->n_captions++;
  return GST_PAD_PROBE_OK;
}

static void
watch_sink (GstElement *pipeline, const gchar *name, Tally *tally)
{
  GstElement *sink = gst_bin_get_by_name (GST_BIN (pipeline), name);
  GstPad *pad = gst_element_get_static_pad (sink, "sink");

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, count_captions, tally, NULL);
  gst_object_unref (pad);
  gst_object_unref (sink);
}

/* Every buffer that arrives at sink a, and at b if there is one, has the caption. */
static void
check_survives (const gchar *elements)
{
  g_autofree gchar *line =
      g_strdup_printf ("videotestsrc num-buffers=5 ! video/x-raw,format=NV12,width=64,height=48 ! "
                       "vlmcaption mode=sync prompt=P interval=0 ! %s",
          elements);
  g_autoptr (GError) error = NULL;
  GstElement *pipeline = gst_parse_launch (line, &error);
  gboolean two = g_strrstr (elements, "name=b") != NULL;
  Tally a = { 0 }, b = { 0 };
  GstMessage *message;
  GstBus *bus;

  g_assert_no_error (error);
  watch_sink (pipeline, "a", &a);
  if (two)
    watch_sink (pipeline, "b", &b);
  bus = gst_element_get_bus (pipeline);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message =
      gst_bus_timed_pop_filtered (bus, PATIENCE * GST_USECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  g_assert_nonnull (message);
  g_assert_cmpint (GST_MESSAGE_TYPE (message), ==, GST_MESSAGE_EOS);
  gst_message_unref (message);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (bus);
  gst_object_unref (pipeline);

  g_assert_cmpuint (a.n_buffers, ==, 5);
  g_assert_cmpuint (a.n_captions, ==, 5);
  if (two) {
    g_assert_cmpuint (b.n_buffers, ==, 5);
    g_assert_cmpuint (b.n_captions, ==, 5);
  }
}

static void
test_survives (void)
{
  check_survives ("fakesink name=a");
  check_survives ("videoconvert ! video/x-raw,format=RGB ! fakesink name=a");
  check_survives ("videoscale ! video/x-raw,width=32,height=32 ! fakesink name=a");
  check_survives ("videorate ! video/x-raw,framerate=30/1 ! queue ! identity ! fakesink name=a");
  check_survives ("tee name=t ! queue ! videoconvert ! video/x-raw,format=BGRA ! fakesink name=a "
                  "t. ! queue ! videoscale ! video/x-raw,width=32 ! fakesink name=b");
}

#if GST_CHECK_VERSION(1, 24, 0)
/* From 1.24 on a custom meta can be written to bytes and read again. */
static void
test_serialised (void)
{
  Fixture *f = fixture_new ("mode", "sync", "prompt", "P", NULL);
  GByteArray *bytes = g_byte_array_new ();
  GstBuffer *out, *read = gst_buffer_new ();
  guint32 consumed = 0;

  g_assert_cmpint (fixture_push (f, 3), ==, GST_FLOW_OK);
  out = gst_harness_pull (f->h);
  g_assert_true (gst_meta_serialize_simple (
      (GstMeta *) gst_buffer_get_custom_meta (out, "GstVlmCaptionMeta"), bytes));
  g_assert_nonnull (gst_meta_deserialize (read, bytes->data, bytes->len, &consumed));
  g_assert_cmpuint (consumed, ==, bytes->len);
  g_assert_cmpstr (get_caption (read), ==, "P 3");
  gst_buffer_unref (read);
  gst_buffer_unref (out);
  g_byte_array_unref (bytes);
  fixture_free (f);
}
#endif

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  gst_init (&argc, &argv);
  GST_PLUGIN_STATIC_REGISTER (vlmcaption);

  g_test_add_func ("/meta/survives", test_survives);
#if GST_CHECK_VERSION(1, 24, 0)
  g_test_add_func ("/meta/serialised", test_serialised);
#endif

  return g_test_run ();
}
