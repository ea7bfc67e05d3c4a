/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "utctime.h"

/* From 1900, where NTP starts to count, to 1970. */
#define NTP_OFFSET (G_GUINT64_CONSTANT (2208988800) * GST_SECOND)

static GstStaticCaps unix_caps = GST_STATIC_CAPS ("timestamp/x-unix");
static GstStaticCaps ntp_caps = GST_STATIC_CAPS ("timestamp/x-ntp");

static GstClockTime
read_meta (GstBuffer *buffer, GstStaticCaps *reference)
{
  GstCaps *caps = gst_static_caps_get (reference);
  GstReferenceTimestampMeta *meta = gst_buffer_get_reference_timestamp_meta (buffer, caps);

  gst_caps_unref (caps);
  return meta != NULL ? meta->timestamp : GST_CLOCK_TIME_NONE;
}

/* How long ago this running time was by the pipeline's clock; 0 if it cannot be told. */
static GstClockTime
get_time_since (GstElement *element, GstClockTime running_time)
{
  GstClock *clock = gst_element_get_clock (element);
  GstClockTime now;

  if (clock == NULL)
    return 0;
  now = gst_clock_get_time (clock);
  gst_object_unref (clock);
  running_time += gst_element_get_base_time (element);

  return now > running_time ? now - running_time : 0;
}

GstClockTime
gst_vlm_utc_time_find (GstElement *element, GstBuffer *buffer, GstClockTime running_time)
{
  GstClockTime now = g_get_real_time () * GST_USECOND;
  GstClockTime time = read_meta (buffer, &unix_caps);
  GstClockTime since;

  if (GST_CLOCK_TIME_IS_VALID (time))
    return time;
  time = read_meta (buffer, &ntp_caps);
  if (GST_CLOCK_TIME_IS_VALID (time) && time >= NTP_OFFSET)
    return time - NTP_OFFSET;

  if (!GST_CLOCK_TIME_IS_VALID (running_time))
    return now;
  since = get_time_since (element, running_time);
  return since < now ? now - since : now;
}
