/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Watches every pad of a pipeline, those that appear later too, and fails the test at the first
 * thing that no pad may do: events out of order, data before caps or segment, data outside of the
 * segment or back in time, text over text, gaps without length, anything after the end. What is
 * inside of a bin called "camera" is not watched.
 */

#ifndef PAD_MONITOR_H
#define PAD_MONITOR_H

#include <gst/gst.h>

typedef struct _PadMonitors PadMonitors;

PadMonitors *pad_monitors_new (GstElement *pipeline);

/* The pipeline must be in NULL. */
void pad_monitors_free (PadMonitors *monitors);

/* The pipeline went down to READY: its pads have forgotten their streams. */
void pad_monitors_reset (PadMonitors *monitors);

/* How many buffers went through the pads of this name of the element of this name. */
guint pad_monitors_count (PadMonitors *monitors, const gchar *element, const gchar *pad);

#endif
