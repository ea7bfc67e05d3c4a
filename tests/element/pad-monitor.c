/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/element/pad-monitor.h"

#include <string.h>

/* What has gone through one pad. */
typedef struct
{
  GMutex lock;
  GstPad *pad; /* borrowed: the probe dies with it */
  gchar *element;
  gchar *name;

  guint n_buffers;
  gboolean flushing;
  gboolean started;
  gboolean have_caps;
  gboolean is_text;
  gboolean is_raw;
  gboolean have_segment;
  GstSegment segment;
  gboolean ended;
  GstClockTime position; /* end of the last text or gap, start of the last frame; or NONE */
} Monitor;

struct _PadMonitors
{
  GMutex lock;
  GPtrArray *monitors;
};

static void
monitor_free (gpointer data)
{
  Monitor *m = data;

  g_mutex_clear (&m->lock);
  g_free (m->element);
  g_free (m->name);
  g_free (m);
}

static void
monitor_reset (Monitor *m)
{
  m->flushing = m->started = m->have_caps = m->have_segment = m->ended = FALSE;
  m->position = GST_CLOCK_TIME_NONE;
}

#define check(m, condition, what)                                                                  \
  G_STMT_START                                                                                     \
  {                                                                                                \
    if (!(condition))                                                                              \
      g_error ("%s:%s: %s", (m)->element, (m)->name, what);                                        \
  }                                                                                                \
  G_STMT_END

/* ---- Events ------------------------------------------------------------------------------- */

static void
take_stream_start (Monitor *m)
{
  /* What followed the old one does not hold for the new one. */
  m->started = TRUE;
  m->have_caps = m->have_segment = m->ended = FALSE;
  m->position = GST_CLOCK_TIME_NONE;
}

static void
take_caps (Monitor *m, GstEvent *event)
{
  GstCaps *caps;
  const gchar *name;

  check (m, m->started, "caps before stream-start");
  gst_event_parse_caps (event, &caps);
  check (m, gst_caps_is_fixed (caps), "caps are not fixed");
  name = gst_structure_get_name (gst_caps_get_structure (caps, 0));
  m->is_text = g_str_equal (name, "text/x-raw");
  m->is_raw = g_str_equal (name, "video/x-raw");
  m->have_caps = TRUE;
}

static void
take_segment (Monitor *m, GstEvent *event)
{
  const GstSegment *segment;

  check (m, m->started, "segment before stream-start");
  gst_event_parse_segment (event, &segment);
  m->segment = *segment;
  m->have_segment = TRUE;
  m->position = GST_CLOCK_TIME_NONE;
  if (segment->format != GST_FORMAT_TIME)
    return;

  check (m, segment->rate != 0 && segment->applied_rate != 0, "segment without rate");
  check (m, GST_CLOCK_TIME_IS_VALID (segment->start), "segment without start");
  check (m, !GST_CLOCK_TIME_IS_VALID (segment->stop) || segment->stop >= segment->start,
      "segment stops before it starts");
  check (m, GST_CLOCK_TIME_IS_VALID (segment->base), "segment without base");
}

static void
take_gap (Monitor *m, GstEvent *event)
{
  GstClockTime start, duration;

  check (m, m->have_segment, "gap before segment");
  gst_event_parse_gap (event, &start, &duration);
  check (m, GST_CLOCK_TIME_IS_VALID (start), "gap without start");
  if (!m->is_text)
    return;

  check (m, GST_CLOCK_TIME_IS_VALID (duration) && duration > 0, "gap without duration");
  /* One nanosecond only tells a sink that text begins here. */
  if (duration <= 1)
    return;
  if (GST_CLOCK_TIME_IS_VALID (m->position))
    check (m, start >= m->position, "gap over text");
  m->position = start + duration;
}

/* Serialized events that stand in no fixed place. */
static void
take_other (Monitor *m, GstEvent *event)
{
  if (GST_EVENT_IS_SERIALIZED (event))
    check (m, m->started, "event before stream-start");
}

static void
take_flush (Monitor *m, GstEvent *event)
{
  m->flushing = GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_START;
  if (!m->flushing) {
    m->have_segment = m->ended = FALSE;
    m->position = GST_CLOCK_TIME_NONE;
  }
}

static void
take_event (Monitor *m, GstEvent *event)
{
  if (GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_START
      || GST_EVENT_TYPE (event) == GST_EVENT_FLUSH_STOP) {
    take_flush (m, event);
    return;
  }
  if (m->flushing)
    return;

  if (m->ended && GST_EVENT_IS_SERIALIZED (event)
      && GST_EVENT_TYPE (event) != GST_EVENT_STREAM_START)
    g_error ("%s:%s: %s after the end", m->element, m->name, GST_EVENT_TYPE_NAME (event));

  switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_STREAM_START:
      take_stream_start (m);
      break;
    case GST_EVENT_CAPS:
      take_caps (m, event);
      break;
    case GST_EVENT_SEGMENT:
      take_segment (m, event);
      break;
    case GST_EVENT_GAP:
      take_gap (m, event);
      break;
    case GST_EVENT_EOS:
      check (m, m->started, "end before stream-start");
      m->ended = TRUE;
      break;
    default:
      take_other (m, event);
      break;
  }
}

/* ---- Buffers ------------------------------------------------------------------------------ */

static void
take_times (Monitor *m, GstBuffer *buffer)
{
  GstClockTime start = GST_BUFFER_PTS (buffer);
  GstClockTime duration = GST_BUFFER_DURATION (buffer);
  guint64 from, to;

  check (m, GST_CLOCK_TIME_IS_VALID (start), "no timestamp");
  if (m->is_text)
    check (m, GST_CLOCK_TIME_IS_VALID (duration) && duration > 0, "text without duration");
  if (!GST_CLOCK_TIME_IS_VALID (duration))
    duration = 1;
  if (!gst_segment_clip (&m->segment, GST_FORMAT_TIME, start, start + duration, &from, &to))
    g_error ("%s:%s: %" GST_TIME_FORMAT " + %" GST_TIME_FORMAT
             " is outside of %" GST_SEGMENT_FORMAT,
        m->element, m->name, GST_TIME_ARGS (start), GST_TIME_ARGS (duration), &m->segment);
  if (m->is_text)
    check (m, from == start, "text before the segment");

  if (m->segment.rate < 0) {
    check (m, !m->is_text, "text while playing backwards");
    return;
  }
  if (GST_CLOCK_TIME_IS_VALID (m->position))
    check (m, start >= m->position, m->is_text ? "text over text" : "back in time");
  m->position = m->is_text ? start + duration : start;
}

static void
take_buffer (Monitor *m, GstBuffer *buffer)
{
  m->n_buffers++;
  /* It may have been on its way when the flush began. */
  if (m->flushing)
    return;

  check (m, m->started, "data before stream-start");
  check (m, m->have_segment, "data before segment");
  check (m, !m->ended, "data after the end");
  if (m->is_text || m->is_raw)
    check (m, m->have_caps, "data before caps");
  /* Before a decoder, what leads up to the segment has its place. */
  if (m->have_caps && (m->is_text || m->is_raw))
    take_times (m, buffer);
}

static GstPadProbeReturn
watch (GstPad *pad, GstPadProbeInfo *info, gpointer user_data)
{
  Monitor *m = user_data;

  /* A demuxer reads its file in any order. */
  if (info->type & GST_PAD_PROBE_TYPE_PULL)
    return GST_PAD_PROBE_OK;

  g_mutex_lock (&m->lock);
  if (info->type & GST_PAD_PROBE_TYPE_BUFFER)
    take_buffer (m, GST_PAD_PROBE_INFO_BUFFER (info));
  else
    take_event (m, GST_PAD_PROBE_INFO_EVENT (info));
  g_mutex_unlock (&m->lock);

  return GST_PAD_PROBE_OK;
}

/* ---- All pads ----------------------------------------------------------------------------- */

/* What went through a pad before it was added: demuxers do that. */
static gboolean
take_sticky (GstPad *pad, GstEvent **event, gpointer user_data)
{
  take_event (user_data, *event);
  return TRUE;
}

static void
add_pad (GstElement *element, GstPad *pad, gpointer user_data)
{
  PadMonitors *monitors = user_data;
  Monitor *m = g_new0 (Monitor, 1);

  g_mutex_init (&m->lock);
  m->pad = pad;
  m->element = gst_object_get_name (GST_OBJECT (element));
  m->name = gst_object_get_name (GST_OBJECT (pad));
  m->position = GST_CLOCK_TIME_NONE;
  gst_pad_sticky_events_foreach (pad, take_sticky, m);
  g_mutex_lock (&monitors->lock);
  g_ptr_array_add (monitors->monitors, m);
  g_mutex_unlock (&monitors->lock);
  gst_pad_add_probe (pad,
      GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM
          | GST_PAD_PROBE_TYPE_EVENT_FLUSH,
      watch, m, NULL);
}

static void
add_present_pad (const GValue *item, gpointer user_data)
{
  GstPad *pad = g_value_get_object (item);

  add_pad (GST_ELEMENT (GST_OBJECT_PARENT (pad)), pad, user_data);
}

static void
add_element (const GValue *item, gpointer user_data)
{
  GstElement *element = g_value_get_object (item);
  GstIterator *pads;

  if (g_str_equal (GST_OBJECT_NAME (GST_OBJECT_PARENT (element)), "camera"))
    return;

  pads = gst_element_iterate_pads (element);

  g_signal_connect (element, "pad-added", G_CALLBACK (add_pad), user_data);
  g_assert_cmpint (gst_iterator_foreach (pads, add_present_pad, user_data), ==, GST_ITERATOR_DONE);
  gst_iterator_free (pads);
}

PadMonitors *
pad_monitors_new (GstElement *pipeline)
{
  PadMonitors *monitors = g_new0 (PadMonitors, 1);
  GstIterator *elements = gst_bin_iterate_recurse (GST_BIN (pipeline));

  g_mutex_init (&monitors->lock);
  monitors->monitors = g_ptr_array_new_with_free_func (monitor_free);
  g_assert_cmpint (gst_iterator_foreach (elements, add_element, monitors), ==, GST_ITERATOR_DONE);
  gst_iterator_free (elements);

  return monitors;
}

void
pad_monitors_free (PadMonitors *monitors)
{
  g_ptr_array_unref (monitors->monitors);
  g_mutex_clear (&monitors->lock);
  g_free (monitors);
}

void
pad_monitors_reset (PadMonitors *monitors)
{
  guint i;

  g_mutex_lock (&monitors->lock);
  for (i = 0; i < monitors->monitors->len; i++)
    monitor_reset (monitors->monitors->pdata[i]);
  g_mutex_unlock (&monitors->lock);
}

guint
pad_monitors_count (PadMonitors *monitors, const gchar *element, const gchar *pad)
{
  guint n = 0;
  guint i;

  g_mutex_lock (&monitors->lock);
  for (i = 0; i < monitors->monitors->len; i++) {
    Monitor *m = monitors->monitors->pdata[i];

    g_mutex_lock (&m->lock);
    if (g_str_equal (m->element, element) && g_str_equal (m->name, pad))
      n += m->n_buffers;
    g_mutex_unlock (&m->lock);
  }
  g_mutex_unlock (&monitors->lock);

  return n;
}
