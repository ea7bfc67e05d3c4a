/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/element/element-helpers.h"

#include <string.h>

Fixture *
fixture_new (const gchar *first_property, ...)
{
  Fixture *f = g_new0 (Fixture, 1);
  const gchar *name = first_property;
  va_list properties;

  f->element = gst_element_factory_make ("vlmcaption", NULL);
  g_assert_nonnull (f->element);

  va_start (properties, first_property);
  while (name != NULL) {
    gst_util_set_object_arg (G_OBJECT (f->element), name, va_arg (properties, const gchar *));
    name = va_arg (properties, const gchar *);
  }
  va_end (properties);

  f->bus = gst_bus_new ();
  gst_element_set_bus (f->element, f->bus);
  f->h = gst_harness_new_with_element (f->element, "sink", "src");
  gst_harness_set_src_caps_str (
      f->h, "video/x-raw, format=RGB, width=16, height=16, framerate=10/1");

  return f;
}

void
fixture_free (Fixture *f)
{
  gst_harness_teardown (f->h);
  gst_bus_set_flushing (f->bus, TRUE);
  gst_object_unref (f->bus);
  g_assert_cmpint (GST_OBJECT_REFCOUNT (f->element), ==, 1);
  gst_object_unref (f->element);
  g_free (f);
}

GstBuffer *
fixture_make_frame (GstClockTime pts, guint8 value)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, 16 * 16 * 3, NULL);

  gst_buffer_memset (buffer, 0, value, 16 * 16 * 3);
  GST_BUFFER_PTS (buffer) = pts;
  GST_BUFFER_DURATION (buffer) = FRAME_DURATION;

  return buffer;
}

GstFlowReturn
fixture_push (Fixture *f, guint n)
{
  return gst_harness_push (f->h, fixture_make_frame (n * FRAME_DURATION, n));
}

gpointer
push_in_thread (gpointer user_data)
{
  Push *push = user_data;

  return GINT_TO_POINTER (fixture_push (push->f, push->n));
}

const gchar *
get_caption (GstBuffer *buffer)
{
  GstCustomMeta *meta = gst_buffer_get_custom_meta (buffer, "GstVlmCaptionMeta");

  if (meta == NULL)
    return NULL;
  return gst_structure_get_string (gst_custom_meta_get_structure (meta), "text");
}

guint64
fixture_get_stat (Fixture *f, const gchar *name)
{
  GstStructure *stats;
  guint64 value = 0;

  g_object_get (f->element, "stats", &stats, NULL);
  g_assert_true (gst_structure_get_uint64 (stats, name, &value));
  gst_structure_free (stats);

  return value;
}

GstMessage *
fixture_pop_message (Fixture *f, GstMessageType type)
{
  GstMessage *message = gst_bus_timed_pop_filtered (f->bus, PATIENCE * GST_USECOND, type);

  g_assert_nonnull (message);
  return message;
}

guint
fixture_count_messages (Fixture *f, GstMessageType type)
{
  guint count = 0;
  GstMessage *message;

  while ((message = gst_bus_pop (f->bus)) != NULL) {
    if (GST_MESSAGE_TYPE (message) == type)
      count++;
    gst_message_unref (message);
  }
  return count;
}
