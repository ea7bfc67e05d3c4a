/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The way out of the text pad: what is queued, and the thread that sends it. */

#include "config.h"

#include "clocktime.h"
#include "textpad-private.h"

#define GST_CAT_DEFAULT gst_vlm_caption_debug

/* How often it is looked whether the last captions are in. */
#define EOS_POLL (20 * G_TIME_SPAN_MILLISECOND)
/* When a muxer has not taken a frame for so long, it waits for the text that we hold back. */
#define STALL (1 * G_TIME_SPAN_SECOND)
/* Text that a peer does not take is kept up to this number: a quarter of an hour of slices. */
#define MOST_QUEUED 4096

/* ---- Stream events ------------------------------------------------------------------------ */

void
gst_vlm_text_pad_put_stream_start (GstVlmTextPad *self)
{
  GstElement *element = gst_pad_get_parent_element (GST_PAD (self));
  g_autofree gchar *stream_id = NULL;
  GstEvent *event;
  GstCaps *caps;

  if (element == NULL)
    return;

  stream_id = gst_pad_create_stream_id (GST_PAD (self), element, "text");
  event = gst_event_new_stream_start (stream_id);
  gst_event_set_stream_flags (event, GST_STREAM_FLAG_SPARSE);
  if (self->group_id != 0)
    gst_event_set_group_id (event, self->group_id);
  g_queue_push_tail (&self->plan.out, event);

  caps = gst_caps_new_simple ("text/x-raw", "format", G_TYPE_STRING, "utf8", NULL);
  g_queue_push_tail (&self->plan.out, gst_event_new_caps (caps));
  gst_caps_unref (caps);
  gst_object_unref (element);

  self->need_stream_start = FALSE;
  self->need_segment = TRUE;
  self->over = FALSE;
}

void
gst_vlm_text_pad_put_eos (GstVlmTextPad *self)
{
  g_queue_push_tail (&self->plan.out, gst_event_new_eos ());
  self->over = TRUE;
}

/*
 * Text has no place in time that runs backwards, and nobody shall wait for any: a sink gets what it
 * can preroll on, an overlay its end, since the last frame waits even behind a gap. Called with the
 * lock.
 */
static void
put_no_text (GstVlmTextPad *self, const GstSegment *segment)
{
  if (!self->new_peer && gst_vlm_text_peer_draws (self->plan.rules.peer))
    gst_vlm_text_pad_put_eos (self);
  else
    g_queue_push_tail (&self->plan.out, gst_event_new_gap (segment->start, 1));
}

void
gst_vlm_text_pad_put_stream_events (GstVlmTextPad *self)
{
  if (self->need_stream_start)
    gst_vlm_text_pad_put_stream_start (self);

  if (self->need_segment && self->segment != NULL) {
    const GstSegment *segment;

    /* A copy: a pad does not send the very event again, which a new stream start calls for. */
    g_queue_push_tail (&self->plan.out, gst_event_copy (self->segment));
    gst_event_parse_segment (self->segment, &segment);
    if (segment->rate < 0)
      put_no_text (self, segment);
    self->need_segment = FALSE;
  }
}

/* ---- Sending ------------------------------------------------------------------------------ */

/*
 * The peer goes down before we do. What is left would be lost; should the peer go on, it begins with the
 * next frame. Video that has come to an overlay at this moment does not wait for text after an end.
 */
static void
part_from_peer (GstVlmTextPad *self)
{
  gboolean overlay;

  GST_DEBUG_OBJECT (self, "no text for a peer that stops");
  g_mutex_lock (&self->lock);
  g_queue_clear_full (&self->plan.out, (GDestroyNotify) gst_mini_object_unref);
  gst_vlm_text_plan_restart (&self->plan);
  self->need_stream_start = TRUE;
  overlay = gst_vlm_text_peer_draws (self->plan.rules.peer);
  g_mutex_unlock (&self->lock);

  if (overlay)
    gst_pad_push_event (GST_PAD (self), gst_event_new_eos ());
}

/*
 * Sends one item (transfer full); FALSE if the peer takes no more. Not under the lock.
 *
 * An overlay that goes down lets go of its text's thread once and refuses text from then on, but the
 * start of a stream or the end of a flush that comes just then makes it forget that. It would take
 * one more text and hold this thread with the second, and who stops it would wait for the thread.
 * Such an event is followed by a look at the overlay's state here, which has changed before all that.
 */
static gboolean
send_item (GstVlmTextPad *self, GstMiniObject *item)
{
  GstPad *pad = GST_PAD (self);
  GstFlowReturn flow;

  if (GST_IS_EVENT (item)) {
    gst_pad_push_event (pad, GST_EVENT_CAST (item));
    return TRUE;
  }
  if (gst_vlm_text_peer_stops (pad)) {
    gst_mini_object_unref (item);
    part_from_peer (self);
    return FALSE;
  }

  flow = gst_pad_push (pad, GST_BUFFER_CAST (item));
  if (flow == GST_FLOW_OK || flow == GST_FLOW_NOT_LINKED || flow == GST_FLOW_FLUSHING)
    return TRUE;

  GST_DEBUG_OBJECT (self, "no more text: %s", gst_flow_get_name (flow));
  g_mutex_lock (&self->lock);
  self->flow = flow;
  g_queue_clear_full (&self->plan.out, (GDestroyNotify) gst_mini_object_unref);
  g_mutex_unlock (&self->lock);
  return FALSE;
}

void
gst_vlm_text_pad_send_all_unlock (GstVlmTextPad *self)
{
  GQueue items = self->plan.out;
  GstMiniObject *item;

  g_queue_init (&self->plan.out);
  self->busy++;
  g_mutex_unlock (&self->lock);

  while ((item = g_queue_pop_head (&items)) != NULL) {
    if (!send_item (self, item))
      break;
  }
  g_queue_clear_full (&items, (GDestroyNotify) gst_mini_object_unref);

  g_mutex_lock (&self->lock);
  self->busy--;
  g_cond_broadcast (&self->cond);
  g_mutex_unlock (&self->lock);
}

static gboolean
is_gap (gpointer item)
{
  return GST_IS_EVENT (item) && GST_EVENT_TYPE (item) == GST_EVENT_GAP;
}

/*
 * Gives up the oldest text, and gaps before it, as long as there is too much; never an event that the
 * peer needs. Whether any was text. Called with the lock.
 */
static gboolean
drop_oldest (GstVlmTextPad *self)
{
  GList *link = self->plan.out.head;
  gboolean lost = FALSE;

  while (link != NULL && g_queue_get_length (&self->plan.out) > MOST_QUEUED) {
    GList *next = link->next;

    if (GST_IS_BUFFER (link->data) || is_gap (link->data)) {
      lost = lost || GST_IS_BUFFER (link->data);
      GST_WARNING_OBJECT (self, "not taken, giving up %" GST_PTR_FORMAT, link->data);
      gst_mini_object_unref (link->data);
      g_queue_delete_link (&self->plan.out, link);
    }
    link = next;
  }
  return lost;
}

/* Not under the lock. */
static void
post_loss (GstVlmTextPad *self)
{
  GstElement *element = gst_pad_get_parent_element (GST_PAD (self));

  if (element != NULL)
    GST_ELEMENT_WARNING (element, RESOURCE, NO_SPACE_LEFT, ("Captions are lost."),
        ("%d texts wait for the peer of the text pad; older ones are given up", MOST_QUEUED));
  gst_clear_object (&element);
}

void
gst_vlm_text_pad_wake_unlock (GstVlmTextPad *self)
{
  gboolean lost = drop_oldest (self);
  gboolean tell = lost && !self->losing;

  self->losing = lost || self->losing;
  g_cond_signal (&self->cond);
  g_mutex_unlock (&self->lock);

  if (tell)
    post_loss (self);
}

/* The end of video: true once the last captions are in or have taken too long. */
static gboolean
is_drained (GstVlmTextPad *self)
{
  return g_get_monotonic_time () >= self->eos_deadline
      || self->idle (self->serial, self->user_data);
}

/* A sink that is linked after the end of video may be started later still, and would miss it. */
static gboolean
peer_is_active (GstVlmTextPad *self)
{
  GstPad *peer = gst_pad_get_peer (GST_PAD (self));
  gboolean active = peer != NULL && GST_PAD_IS_ACTIVE (peer);

  gst_clear_object (&peer);
  return active;
}

/* Waits for the next thing to send. Called with the lock; NULL when flushing. */
static GstMiniObject *
wait_for_item (GstVlmTextPad *self)
{
  while (!self->flushing) {
    gint64 now = g_get_monotonic_time ();

    if (self->late && !peer_is_active (self)) {
      g_cond_wait_until (&self->cond, &self->lock, now + EOS_POLL);
      continue;
    }
    self->late = FALSE;
    if (!g_queue_is_empty (&self->plan.out)) {
      self->losing = self->losing && g_queue_get_length (&self->plan.out) > MOST_QUEUED / 2;
      return g_queue_pop_head (&self->plan.out);
    }

    if (self->eos_deadline != 0) {
      if (is_drained (self)) {
        gst_vlm_text_plan_finish (&self->plan);
        gst_vlm_text_pad_put_eos (self);
        self->eos_deadline = 0;
      } else {
        g_cond_wait_until (&self->cond, &self->lock, now + EOS_POLL);
      }
    } else if (self->frame_since == 0 || self->paused
        || !gst_vlm_text_rules_may_stall (&self->plan.rules)) {
      g_cond_wait (&self->cond, &self->lock);
    } else if (now < self->frame_since + STALL) {
      g_cond_wait_until (&self->cond, &self->lock, self->frame_since + STALL);
    } else {
      GST_WARNING_OBJECT (self,
          "video waits for text: captions start late from now on; a larger "
          "queue for video before the muxer lets them start at their frames");
      gst_vlm_text_plan_hurry (&self->plan);
    }
  }
  return NULL;
}

void
gst_vlm_text_pad_run_task (gpointer user_data)
{
  GstVlmTextPad *self = user_data;
  GstMiniObject *item;

  g_mutex_lock (&self->lock);
  item = wait_for_item (self);
  if (item != NULL)
    self->busy++;
  g_mutex_unlock (&self->lock);

  if (item == NULL) {
    gst_pad_pause_task (GST_PAD (self));
    return;
  }
  send_item (self, item);

  g_mutex_lock (&self->lock);
  self->busy--;
  g_cond_broadcast (&self->cond);
  g_mutex_unlock (&self->lock);
}
