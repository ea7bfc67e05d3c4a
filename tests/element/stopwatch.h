/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How long frames spend in an element, and how much memory the process has. */

#ifndef STOPWATCH_H
#define STOPWATCH_H

#include <gst/gst.h>

typedef struct
{
  GArray
      *times; /* gint64, of each frame, in the order of arrival until a percentile is asked for */
  gint64 since;
  GByteArray *copy; /* the last frame, if each is copied on its way; else NULL */
} Stopwatch;

/*
 * Times each frame from the sink pad to the source pad of the element of this name, in us. With
 * copies each frame is copied between them: what no element that copies can go below.
 */
void stopwatch_start (Stopwatch *watch, GstElement *pipeline, const gchar *name, gboolean copies);
void stopwatch_clear (Stopwatch *watch);

/* The time within which this share (0 to 1) of the frames went through. */
gint64 stopwatch_get_percentile (Stopwatch *watch, gdouble share);

gsize get_resident_bytes (void);

/*
 * If VLM_TEST_REALTIME is set, the pipeline's streaming threads, and no others, come before all else on the
 * machine, as an application may ask for them. Before it plays; the pipeline's bus can still be read.
 */
void stream_in_real_time (GstElement *pipeline);

#endif
