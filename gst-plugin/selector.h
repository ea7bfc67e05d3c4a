/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which frames are described: the first one, and then one per interval, by the frames' own times.
 * Due times form a grid, so that an interval of 1 s gives one caption a second at any frame rate.
 * Timestamps may be missing, repeat, or jump; the selector then counts on by frame durations, or
 * by the clock where nothing else is known.
 */

#ifndef GST_VLM_SELECTOR_H
#define GST_VLM_SELECTOR_H

#include <gst/gst.h>

G_BEGIN_DECLS

typedef struct
{
  gboolean started;        /* the first frame has been selected */
  GstClockTime last_pts;   /* of the previous frame, as it came; may be NONE */
  GstClockTime last_time;  /* of the previous frame, as reckoned here */
  GstClockTime last_clock; /* when the previous frame came */
  GstClockTime last_selected;
  GstClockTime due; /* on or after which the next frame is selected */
} GstVlmSelector;

/* Forgets everything: the next frame is a first one. */
void gst_vlm_selector_reset (GstVlmSelector *selector);

/*
 * Whether to describe this frame. Must be asked once for each frame, in order. pts and duration
 * may be GST_CLOCK_TIME_NONE; clock is any monotonic time in ns; interval 0 selects every frame,
 * NONE none at all.
 */
gboolean gst_vlm_selector_select (GstVlmSelector *selector, GstClockTime pts, GstClockTime duration,
    GstClockTime clock, GstClockTime interval);

/* The PTS on or after which the next frame is selected, or NONE before the first frame. */
GstClockTime gst_vlm_selector_get_due (const GstVlmSelector *selector);

G_END_DECLS

#endif
