/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Arithmetic of stream times that come from outside and may be anything. */

#ifndef GST_VLM_CLOCK_TIME_H
#define GST_VLM_CLOCK_TIME_H

#include <gst/gst.h>

G_BEGIN_DECLS

/* time + step, both valid. Saturates below GST_CLOCK_TIME_NONE, which would mean no time. */
static inline GstClockTime
gst_vlm_clock_time_add (GstClockTime time, GstClockTime step)
{
  return step < GST_CLOCK_TIME_NONE - 1 - time ? time + step : GST_CLOCK_TIME_NONE - 1;
}

G_END_DECLS

#endif
