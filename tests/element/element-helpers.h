/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the element's test programs share: harnesses, frames, the bus, and bounded waits. */

#ifndef ELEMENT_HELPERS_H
#define ELEMENT_HELPERS_H

#include <gst/check/gstharness.h>
#include <gst/gst.h>
#include <gst/video/video.h>

/*
 * Longest time that any wait may take; far beyond what a loaded machine needs. ThreadSanitizer makes
 * drawing with Pango many times slower.
 */
#ifdef __SANITIZE_THREAD__
#define PATIENCE (300 * G_TIME_SPAN_SECOND)
#else
#define PATIENCE (30 * G_TIME_SPAN_SECOND)
#endif

/* Waits, looking again every few milliseconds, until condition is true, and fails if it never is. */
#define wait_until(condition)                                                                      \
  G_STMT_START                                                                                     \
  {                                                                                                \
    gint64 wait_until_deadline = g_get_monotonic_time () + PATIENCE;                               \
    while (!(condition)) {                                                                         \
      g_assert_cmpint (g_get_monotonic_time (), <, wait_until_deadline);                           \
      g_usleep (2000);                                                                             \
    }                                                                                              \
  }                                                                                                \
  G_STMT_END

/* An element with a bus of its own, in a harness that takes its video. 16x16 RGB, 10 frames/s. */
typedef struct
{
  GstHarness *h;
  GstElement *element;
  GstBus *bus;
} Fixture;

#define FRAME_DURATION (100 * GST_MSECOND)

/* properties: "name", "value" pairs as strings, ended by NULL. Playing when it returns. */
Fixture *fixture_new (const gchar *first_property, ...) G_GNUC_NULL_TERMINATED;
void fixture_free (Fixture *f);

/* A frame whose bytes are all value; (transfer full). */
GstBuffer *fixture_make_frame (GstClockTime pts, guint8 value);

/* Pushes frame number n (PTS n * FRAME_DURATION, bytes n). */
GstFlowReturn fixture_push (Fixture *f, guint n);

/* The same for a GThread, whose result is the flow; user_data is a Push. */
typedef struct
{
  Fixture *f;
  guint n;
} Push;

gpointer push_in_thread (gpointer user_data);

/* The text of the caption meta, or NULL. Borrowed from the buffer. */
const gchar *get_caption (GstBuffer *buffer);

/* The value of one of the counters in the property "stats". */
guint64 fixture_get_stat (Fixture *f, const gchar *name);

/* The next message of this type, waiting for it; messages before it are dropped. */
GstMessage *fixture_pop_message (Fixture *f, GstMessageType type);

/* How many messages of this type are on the bus; all messages are dropped. */
guint fixture_count_messages (Fixture *f, GstMessageType type);

#endif
