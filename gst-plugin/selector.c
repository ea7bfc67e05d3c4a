/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "clocktime.h"
#include "selector.h"

void
gst_vlm_selector_reset (GstVlmSelector *selector)
{
  selector->started = FALSE;
  selector->last_pts = GST_CLOCK_TIME_NONE;
  selector->last_time = 0;
  selector->last_clock = GST_CLOCK_TIME_NONE;
  selector->last_selected = 0;
  selector->due = GST_CLOCK_TIME_NONE;
}

/* The frame's time: its PTS if that moved, else a step on from the previous frame. */
static GstClockTime
reckon_time (
    const GstVlmSelector *selector, GstClockTime pts, GstClockTime duration, GstClockTime clock)
{
  if (GST_CLOCK_TIME_IS_VALID (pts) && pts != selector->last_pts)
    return pts;

  if (GST_CLOCK_TIME_IS_VALID (duration) && duration > 0)
    return gst_vlm_clock_time_add (selector->last_time, duration);

  if (GST_CLOCK_TIME_IS_VALID (selector->last_clock) && clock > selector->last_clock)
    return gst_vlm_clock_time_add (selector->last_time, clock - selector->last_clock);

  return selector->last_time;
}

/* A step back by a whole interval is a jump; a smaller one is jitter and waits for its due time. */
static gboolean
jumped_back (const GstVlmSelector *selector, GstClockTime time, GstClockTime interval)
{
  return time < selector->last_selected && selector->last_selected - time >= interval;
}

gboolean
gst_vlm_selector_select (GstVlmSelector *selector, GstClockTime pts, GstClockTime duration,
    GstClockTime clock, GstClockTime interval)
{
  GstClockTime time = reckon_time (selector, pts, duration, clock);
  gboolean first = !selector->started;
  gboolean selected;

  /* The interval may have been shortened since the due time was set. */
  if (!first)
    selector->due = MIN (selector->due, gst_vlm_clock_time_add (selector->last_selected, interval));

  selected = GST_CLOCK_TIME_IS_VALID (interval)
      && (first || time >= selector->due || jumped_back (selector, time, interval));
  if (selected) {
    GstClockTime next = first ? 0 : gst_vlm_clock_time_add (selector->due, interval);

    /* Off the grid after a jump either way: a new grid starts here. */
    if (next <= time || next > gst_vlm_clock_time_add (time, interval))
      next = gst_vlm_clock_time_add (time, interval);
    selector->due = next;
    selector->last_selected = time;
    selector->started = TRUE;
  }

  selector->last_pts = pts;
  selector->last_time = time;
  selector->last_clock = clock;

  return selected;
}

GstClockTime
gst_vlm_selector_get_due (const GstVlmSelector *selector)
{
  return selector->due;
}
