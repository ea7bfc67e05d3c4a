/* SPDX-License-Identifier: LGPL-2.1-or-later */

#ifndef GST_VLM_UTC_TIME_H
#define GST_VLM_UTC_TIME_H

#include <gst/gst.h>

G_BEGIN_DECLS

/*
 * When the frame in buffer was taken, in ns since 1970: as a GstReferenceTimestampMeta of the buffer
 * says (timestamp/x-unix or timestamp/x-ntp), else by the system clock. running_time is the frame's
 * if the source is live: then the time that has passed since it is taken off. Else NONE.
 */
GstClockTime gst_vlm_utc_time_find (
    GstElement *element, GstBuffer *buffer, GstClockTime running_time);

G_END_DECLS

#endif
