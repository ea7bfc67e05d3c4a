/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "clocktime.h"
#include "textpad.h"
#include "textpeer.h"

GST_DEBUG_CATEGORY_EXTERN (gst_vlm_caption_debug);
#define GST_CAT_DEFAULT gst_vlm_caption_debug

/* How long after the end of video the last captions may still come. */
#define EOS_TIMEOUT (5 * G_TIME_SPAN_SECOND)
#define EOS_POLL (20 * G_TIME_SPAN_MILLISECOND)
/* When a muxer has not taken a frame for so long, it waits for the text that we hold back. */
#define STALL (1 * G_TIME_SPAN_SECOND)
/* Captions that a peer does not take are kept up to this number. */
#define MOST_QUEUED 256
/* How long releasing the pad waits for a peer that has just been given something. */
#define RELEASE_TIMEOUT (200 * G_TIME_SPAN_MILLISECOND)

struct _GstVlmTextPad
{
  GstPad parent;

  GstPad *video; /* of the same element */
  GstVlmTextIdleFunc idle;
  gpointer user_data;

  GMutex lock;
  GCond cond; /* anything for the thread to do */

  gboolean flushing;  /* also while the pad is inactive */
  guint busy;         /* threads that are in the peer, which may block */
  GstFlowReturn flow; /* once it is an error, nothing more is sent */
  GstVlmTextPlan plan;
  GstVlmTextWishes wishes;
  gboolean new_peer;   /* linked, and nothing has been sent since */
  gboolean know_rules; /* those of the plan; FALSE after each new link or wish */

  guint group_id; /* of the video, 0 if it has none */
  guint serial;
  GstEvent *segment;
  gboolean need_stream_start;
  gboolean need_segment;
  gboolean reverse; /* the segment is played backwards: no text */
  gboolean started; /* the peer has data of this segment to preroll on */
  gboolean ended;   /* video has ended */
  gboolean over;    /* the end of this stream has been queued: the next one must be a new one */
  gboolean late;    /* linked after that, and nothing has been sent since */

  gboolean paused;     /* after playing: downstream takes nothing */
  gint64 frame_since;  /* when the frame came that downstream has not taken; 0: none */
  gint64 eos_deadline; /* 0: video has not ended */
};

G_DEFINE_TYPE (GstVlmTextPad, gst_vlm_text_pad, GST_TYPE_PAD)

/* ---- Stream events ------------------------------------------------------------------------ */

/* Queues the events that must come before data. Called with the lock. */
static void
put_stream_start (GstVlmTextPad *self)
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

/* Called with the lock. */
static void
put_eos (GstVlmTextPad *self)
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
    put_eos (self);
  else
    g_queue_push_tail (&self->plan.out, gst_event_new_gap (segment->start, 1));
}

/* Called with the lock. */
static void
put_stream_events (GstVlmTextPad *self)
{
  if (self->need_stream_start)
    put_stream_start (self);

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

static const gchar *const style_names[] = { "cues", "slices", "held text" };

/* Settles how the peer wants its text. Not under the lock: it walks over other elements. */
static void
find_rules (GstVlmTextPad *self)
{
  GstVlmTextPeer peer = gst_vlm_text_peer_find (GST_PAD (self), self->video);
  GstVlmTextRules rules;

  g_mutex_lock (&self->lock);
  rules = gst_vlm_text_rules_choose (peer, &self->wishes);
  if (self->new_peer) {
    gst_vlm_text_plan_clear (&self->plan);
    gst_vlm_text_plan_init (&self->plan, &rules);
    self->need_stream_start = TRUE;
  } else if (!gst_vlm_text_rules_equal (&rules, &self->plan.rules)) {
    gst_vlm_text_plan_change (&self->plan, &rules);
  }
  self->new_peer = FALSE;
  self->know_rules = TRUE;
  g_mutex_unlock (&self->lock);

  GST_INFO_OBJECT (self, "text is sent as %s", style_names[rules.style]);
}

gboolean
gst_vlm_text_pad_prepare (GstVlmTextPad *self)
{
  gboolean know_rules;

  if (!gst_pad_is_linked (GST_PAD (self)))
    return FALSE;

  g_mutex_lock (&self->lock);
  know_rules = self->know_rules;
  g_mutex_unlock (&self->lock);
  if (!know_rules)
    find_rules (self);

  return TRUE;
}

static void
on_linked (GstPad *pad, GstPad *peer, gpointer user_data)
{
  GstVlmTextPad *self = GST_VLM_TEXT_PAD (pad);

  g_mutex_lock (&self->lock);
  self->new_peer = TRUE;
  self->know_rules = FALSE;
  self->need_stream_start = TRUE;
  self->flow = GST_FLOW_OK;
  if (self->ended) {
    /* No frame will come that would bring the events. */
    gst_vlm_text_plan_restart (&self->plan);
    g_queue_clear_full (&self->plan.out, (GDestroyNotify) gst_mini_object_unref);
    put_stream_events (self);
    self->eos_deadline = g_get_monotonic_time () + EOS_TIMEOUT;
    self->late = TRUE;
    g_cond_signal (&self->cond);
  }
  g_mutex_unlock (&self->lock);
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

/* Kept text: STREAM_START makes the overlay let go of what it has, so that nothing blocks. */
static void
put_kept_restart (GstVlmTextPad *self)
{
  GstMiniObject *text = g_queue_pop_tail (&self->plan.out);

  put_stream_start (self);
  put_stream_events (self);
  g_queue_push_tail (&self->plan.out, text);
}

/* Sends everything from the calling thread. Called with the lock, which is given up. */
static void
send_all_unlock (GstVlmTextPad *self)
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

/* Gives up the oldest text, never an event that the peer needs. Called with the lock. */
static void
drop_oldest_text (GstVlmTextPad *self)
{
  GList *link = self->plan.out.head;

  while (link != NULL && !GST_IS_BUFFER (link->data))
    link = link->next;
  if (link == NULL)
    return;

  GST_WARNING_OBJECT (self, "text is not taken, giving up %" GST_PTR_FORMAT, link->data);
  gst_mini_object_unref (link->data);
  g_queue_delete_link (&self->plan.out, link);
}

/* Hands the queue to the thread. Called with the lock, which is given up. */
static void
wake_unlock (GstVlmTextPad *self)
{
  if (g_queue_get_length (&self->plan.out) > MOST_QUEUED)
    drop_oldest_text (self);
  g_cond_signal (&self->cond);
  g_mutex_unlock (&self->lock);
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
    if (!g_queue_is_empty (&self->plan.out))
      return g_queue_pop_head (&self->plan.out);

    if (self->eos_deadline != 0) {
      if (is_drained (self)) {
        gst_vlm_text_plan_finish (&self->plan);
        put_eos (self);
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

static void
run_task (gpointer user_data)
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

/* ---- From the video pad ------------------------------------------------------------------- */

void
gst_vlm_text_pad_set_wishes (GstVlmTextPad *self, const GstVlmTextWishes *wishes)
{
  const GstVlmTextWishes *known = &self->wishes;

  g_mutex_lock (&self->lock);
  if (known->sync != wishes->sync || known->foreseen != wishes->foreseen
      || known->timing != wishes->timing || known->max_duration != wishes->max_duration) {
    self->wishes = *wishes;
    self->know_rules = FALSE;
  }
  g_mutex_unlock (&self->lock);
}

void
gst_vlm_text_pad_stream_start (GstVlmTextPad *self, GstEvent *stream_start)
{
  g_mutex_lock (&self->lock);
  self->group_id = 0;
  gst_event_parse_group_id (stream_start, &self->group_id);
  self->need_stream_start = TRUE;
  self->ended = FALSE;
  self->late = FALSE;
  self->eos_deadline = 0;
  self->flow = GST_FLOW_OK;
  g_mutex_unlock (&self->lock);
}

void
gst_vlm_text_pad_segment (GstVlmTextPad *self, GstEvent *event, guint serial)
{
  const GstSegment *segment;

  gst_event_parse_segment (event, &segment);

  g_mutex_lock (&self->lock);
  gst_vlm_text_plan_finish (&self->plan);
  gst_vlm_text_plan_restart (&self->plan);
  gst_event_replace (&self->segment, event);
  self->need_segment = TRUE;
  if (self->over)
    self->need_stream_start = TRUE;
  self->reverse = segment->rate < 0;
  self->started = FALSE;
  self->ended = FALSE;
  self->late = FALSE;
  self->serial = serial;
  wake_unlock (self);
}

void
gst_vlm_text_pad_frame (GstVlmTextPad *self, const GstVlmTextFrame *frame)
{
  if (!gst_vlm_text_pad_prepare (self))
    return;

  g_mutex_lock (&self->lock);
  if (self->flushing || self->flow != GST_FLOW_OK || self->segment == NULL)
    goto nothing;

  put_stream_events (self);
  self->started = TRUE;
  self->frame_since = g_get_monotonic_time ();
  if (!self->reverse) {
    guint before = g_queue_get_length (&self->plan.out);

    gst_vlm_text_plan_frame (&self->plan, frame);
    if (gst_vlm_text_rules_is_kept (&self->plan.rules)
        && g_queue_get_length (&self->plan.out) > before
        && GST_IS_BUFFER (g_queue_peek_tail (&self->plan.out)))
      put_kept_restart (self);
  }

  if (gst_vlm_text_rules_is_kept (&self->plan.rules))
    send_all_unlock (self);
  else
    wake_unlock (self);
  return;

nothing:
  g_mutex_unlock (&self->lock);
}

void
gst_vlm_text_pad_untimed_frame (GstVlmTextPad *self)
{
  const GstSegment *segment;

  if (!gst_vlm_text_pad_prepare (self))
    return;

  g_mutex_lock (&self->lock);
  /* An overlay throws such frames away, and the gap would let the first one that it draws pass
   * before its text has come. */
  if (self->flushing || self->flow != GST_FLOW_OK || self->segment == NULL || self->started
      || self->reverse || gst_vlm_text_peer_draws (self->plan.rules.peer)) {
    g_mutex_unlock (&self->lock);
    return;
  }

  put_stream_events (self);
  gst_event_parse_segment (self->segment, &segment);
  g_queue_push_tail (&self->plan.out, gst_event_new_gap (segment->start, 1));
  self->started = TRUE;
  wake_unlock (self);
}

void
gst_vlm_text_pad_set_paused (GstVlmTextPad *self, gboolean paused)
{
  g_mutex_lock (&self->lock);
  self->paused = paused;
  if (self->frame_since != 0)
    self->frame_since = g_get_monotonic_time ();
  g_cond_signal (&self->cond);
  g_mutex_unlock (&self->lock);
}

GstFlowReturn
gst_vlm_text_pad_frame_taken (GstVlmTextPad *self, GstFlowReturn flow)
{
  gboolean linked = gst_pad_is_linked (GST_PAD (self));
  GstFlowReturn text;

  g_mutex_lock (&self->lock);
  self->frame_since = 0;
  text = self->flow;
  g_mutex_unlock (&self->lock);

  if (flow == GST_FLOW_FLUSHING || flow <= GST_FLOW_NOT_NEGOTIATED)
    return flow;
  if (text <= GST_FLOW_NOT_NEGOTIATED)
    return text;
  if (linked && text == GST_FLOW_OK && (flow == GST_FLOW_NOT_LINKED || flow == GST_FLOW_EOS))
    return GST_FLOW_OK;

  return flow;
}

void
gst_vlm_text_pad_answer (GstVlmTextPad *self, GstVlmAnswer *answer)
{
  g_mutex_lock (&self->lock);
  if (!self->flushing && self->flow == GST_FLOW_OK && !self->reverse && !self->new_peer
      && self->serial == answer->serial) {
    put_stream_events (self);
    gst_vlm_text_plan_answer (&self->plan, answer);
  }
  wake_unlock (self);
}

void
gst_vlm_text_pad_eos (GstVlmTextPad *self)
{
  g_mutex_lock (&self->lock);
  self->ended = TRUE;
  g_mutex_unlock (&self->lock);

  if (!gst_vlm_text_pad_prepare (self))
    return;

  g_mutex_lock (&self->lock);
  if (self->flushing || self->flow != GST_FLOW_OK) {
    g_mutex_unlock (&self->lock);
    return;
  }

  put_stream_events (self);
  if (self->over) {
    wake_unlock (self);
  } else if (self->plan.rules.style == GST_VLM_TEXT_HELD) {
    /* No frame is left that a late caption could be shown with. */
    put_eos (self);
    if (gst_vlm_text_rules_is_kept (&self->plan.rules))
      send_all_unlock (self);
    else
      wake_unlock (self);
  } else {
    self->eos_deadline = g_get_monotonic_time () + EOS_TIMEOUT;
    wake_unlock (self);
  }
}

void
gst_vlm_text_pad_flush_start (GstVlmTextPad *self, GstEvent *flush_start)
{
  g_mutex_lock (&self->lock);
  self->flushing = TRUE;
  g_cond_signal (&self->cond);
  g_mutex_unlock (&self->lock);

  gst_pad_push_event (GST_PAD (self), gst_event_ref (flush_start));
  gst_pad_pause_task (GST_PAD (self));
}

/* Nothing of the old stream is left to send. Called with the lock. */
static void
forget_stream (GstVlmTextPad *self)
{
  GstVlmTextRules rules = self->plan.rules;

  gst_vlm_text_plan_clear (&self->plan);
  gst_vlm_text_plan_init (&self->plan, &rules);
  gst_clear_event (&self->segment);
  /* Its events may have been queued and never sent. */
  self->need_stream_start = TRUE;
  self->over = FALSE;
  self->reverse = FALSE;
  self->started = FALSE;
  self->ended = FALSE;
  self->late = FALSE;
  self->paused = FALSE;
  self->eos_deadline = 0;
  self->frame_since = 0;
  self->flow = GST_FLOW_OK;
}

void
gst_vlm_text_pad_flush_stop (GstVlmTextPad *self, GstEvent *flush_stop)
{
  gst_pad_push_event (GST_PAD (self), gst_event_ref (flush_stop));

  g_mutex_lock (&self->lock);
  forget_stream (self);
  self->flushing = !GST_PAD_IS_ACTIVE (GST_PAD (self));
  g_mutex_unlock (&self->lock);

  if (GST_PAD_IS_ACTIVE (GST_PAD (self)))
    gst_pad_start_task (GST_PAD (self), run_task, self, NULL);
}

/*
 * An overlay that has been flushed drops its text, and after an end of stream it does not hold
 * video back to wait for more. The stream start of a new link ends that.
 */
static void
end_overlay (GstVlmTextPad *self)
{
  gst_pad_push_event (GST_PAD (self), gst_event_new_flush_stop (FALSE));

  g_mutex_lock (&self->lock);
  g_queue_clear_full (&self->plan.out, (GDestroyNotify) gst_mini_object_unref);
  put_stream_start (self);
  put_stream_events (self);
  if (!self->over)
    put_eos (self);
  send_all_unlock (self);
}

gboolean
gst_vlm_text_pad_release_peer (GstVlmTextPad *self)
{
  gint64 deadline = g_get_monotonic_time () + RELEASE_TIMEOUT;
  gboolean overlay, busy;

  g_mutex_lock (&self->lock);
  self->flushing = TRUE;
  overlay = !self->new_peer && gst_vlm_text_peer_draws (self->plan.rules.peer);
  g_cond_broadcast (&self->cond);
  g_mutex_unlock (&self->lock);

  /* An overlay blocks its text until the video needs it, which may be never. A muxer would flush
   * all that it writes. */
  if (overlay)
    gst_pad_push_event (GST_PAD (self), gst_event_new_flush_start ());

  g_mutex_lock (&self->lock);
  while (self->busy > 0 && g_cond_wait_until (&self->cond, &self->lock, deadline))
    continue;
  busy = self->busy > 0;
  g_mutex_unlock (&self->lock);

  if (overlay && !busy)
    end_overlay (self);

  return !busy;
}

/* ---- GObject ------------------------------------------------------------------------------ */

static gboolean
activate_mode (GstPad *pad, GstObject *parent, GstPadMode mode, gboolean active)
{
  GstVlmTextPad *self = GST_VLM_TEXT_PAD (pad);

  if (mode != GST_PAD_MODE_PUSH)
    return FALSE;

  g_mutex_lock (&self->lock);
  self->flushing = !active;
  if (!active) {
    forget_stream (self);
    self->new_peer = TRUE;
    self->know_rules = FALSE;
  }
  g_cond_signal (&self->cond);
  g_mutex_unlock (&self->lock);

  return active ? gst_pad_start_task (pad, run_task, self, NULL) : gst_pad_stop_task (pad);
}

static void
gst_vlm_text_pad_init (GstVlmTextPad *self)
{
  static const GstVlmTextRules no_rules = { 0 };

  g_mutex_init (&self->lock);
  g_cond_init (&self->cond);
  gst_vlm_text_plan_init (&self->plan, &no_rules);
  self->flushing = TRUE;
  self->new_peer = TRUE;
  self->need_stream_start = TRUE;
}

static void
gst_vlm_text_pad_finalize (GObject *object)
{
  GstVlmTextPad *self = GST_VLM_TEXT_PAD (object);

  gst_vlm_text_plan_clear (&self->plan);
  gst_clear_event (&self->segment);
  gst_clear_object (&self->video);
  g_cond_clear (&self->cond);
  g_mutex_clear (&self->lock);

  G_OBJECT_CLASS (gst_vlm_text_pad_parent_class)->finalize (object);
}

static void
gst_vlm_text_pad_class_init (GstVlmTextPadClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gst_vlm_text_pad_finalize;
}

GstVlmTextPad *
gst_vlm_text_pad_new (const gchar *name, GstPadTemplate *template, GstPad *video,
    GstVlmTextIdleFunc idle, gpointer user_data)
{
  GstVlmTextPad *self = g_object_new (
      GST_TYPE_VLM_TEXT_PAD, "name", name, "direction", GST_PAD_SRC, "template", template, NULL);

  self->video = gst_object_ref (video);
  self->idle = idle;
  self->user_data = user_data;
  gst_pad_set_activatemode_function (GST_PAD (self), activate_mode);
  gst_pad_use_fixed_caps (GST_PAD (self));
  g_signal_connect (self, "linked", G_CALLBACK (on_linked), NULL);

  return self;
}
