/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "answer.h"

GstVlmAnswer *
gst_vlm_answer_new (void)
{
  GstVlmAnswer *answer = g_new0 (GstVlmAnswer, 1);

  answer->refcount = 1;
  return answer;
}

GstVlmAnswer *
gst_vlm_answer_ref (GstVlmAnswer *answer)
{
  g_atomic_int_inc (&answer->refcount);
  return answer;
}

void
gst_vlm_answer_unref (GstVlmAnswer *answer)
{
  if (!g_atomic_int_dec_and_test (&answer->refcount))
    return;

  g_free (answer->text);
  g_free (answer);
}

static GstClockTime
span (GstClockTime from, GstClockTime to)
{
  return to > from ? to - from : 0;
}

GstClockTime
gst_vlm_answer_age (const GstVlmAnswer *answer, const GstVlmTimes *now)
{
  if (GST_CLOCK_TIME_IS_VALID (answer->times.running_time)
      && GST_CLOCK_TIME_IS_VALID (now->running_time))
    return span (answer->times.running_time, now->running_time);

  if (GST_CLOCK_TIME_IS_VALID (answer->times.pts) && GST_CLOCK_TIME_IS_VALID (now->pts))
    return span (answer->times.pts, now->pts);

  return GST_CLOCK_TIME_NONE;
}
