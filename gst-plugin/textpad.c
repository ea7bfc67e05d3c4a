/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "textpad-private.h"

#define GST_CAT_DEFAULT gst_vlm_caption_debug

/* How long after the end of video the last captions may still come. */
#define EOS_TIMEOUT (5 * G_TIME_SPAN_SECOND)
/* How long releasing the pad waits for a peer that has just been given something. */
#define RELEASE_TIMEOUT (200 * G_TIME_SPAN_MILLISECOND)
/* And for an overlay, which lets go when it is flushed: only a busy machine keeps us waiting for it. */
#define OVERLAY_TIMEOUT (10 * G_TIME_SPAN_SECOND)

G_DEFINE_TYPE (GstVlmTextPad, gst_vlm_text_pad, GST_TYPE_PAD)

/* ---- The peer ------------------------------------------------------------------------------ */

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
    gst_vlm_text_pad_put_stream_events (self);
    self->eos_deadline = g_get_monotonic_time () + EOS_TIMEOUT;
    self->late = TRUE;
    g_cond_signal (&self->cond);
  }
  g_mutex_unlock (&self->lock);
}

/* ---- From the video pad ------------------------------------------------------------------- */

/* Kept text: STREAM_START makes the overlay let go of what it has, so that nothing blocks. */
static void
put_kept_restart (GstVlmTextPad *self)
{
  GstMiniObject *text = g_queue_pop_tail (&self->plan.out);

  gst_vlm_text_pad_put_stream_start (self);
  gst_vlm_text_pad_put_stream_events (self);
  g_queue_push_tail (&self->plan.out, text);
}

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
  gst_vlm_text_pad_wake_unlock (self);
}

void
gst_vlm_text_pad_frame (GstVlmTextPad *self, const GstVlmTextFrame *frame)
{
  if (!gst_vlm_text_pad_prepare (self))
    return;

  g_mutex_lock (&self->lock);
  if (self->flushing || self->flow != GST_FLOW_OK || self->segment == NULL)
    goto nothing;

  gst_vlm_text_pad_put_stream_events (self);
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
    gst_vlm_text_pad_send_all_unlock (self);
  else
    gst_vlm_text_pad_wake_unlock (self);
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

  gst_vlm_text_pad_put_stream_events (self);
  gst_event_parse_segment (self->segment, &segment);
  g_queue_push_tail (&self->plan.out, gst_event_new_gap (segment->start, 1));
  self->started = TRUE;
  gst_vlm_text_pad_wake_unlock (self);
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
  /* In all other styles text goes with the frames; what is held is sent by their thread, and what were queued
   * here would be sent by another at the same time. */
  if (!self->flushing && self->flow == GST_FLOW_OK && !self->reverse && !self->new_peer
      && self->plan.rules.style == GST_VLM_TEXT_CUES && self->serial == answer->serial) {
    gst_vlm_text_pad_put_stream_events (self);
    gst_vlm_text_plan_answer (&self->plan, answer);
  }
  gst_vlm_text_pad_wake_unlock (self);
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

  gst_vlm_text_pad_put_stream_events (self);
  if (self->over) {
    gst_vlm_text_pad_wake_unlock (self);
  } else if (self->plan.rules.style == GST_VLM_TEXT_HELD) {
    /* No frame is left that a late caption could be shown with. */
    gst_vlm_text_pad_put_eos (self);
    if (gst_vlm_text_rules_is_kept (&self->plan.rules))
      gst_vlm_text_pad_send_all_unlock (self);
    else
      gst_vlm_text_pad_wake_unlock (self);
  } else {
    self->eos_deadline = g_get_monotonic_time () + EOS_TIMEOUT;
    gst_vlm_text_pad_wake_unlock (self);
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
  gboolean start;

  gst_pad_push_event (GST_PAD (self), gst_event_ref (flush_stop));

  g_mutex_lock (&self->lock);
  forget_stream (self);
  self->flushing = self->retired || !GST_PAD_IS_ACTIVE (GST_PAD (self));
  start = !self->flushing;
  g_mutex_unlock (&self->lock);

  if (start)
    gst_pad_start_task (GST_PAD (self), gst_vlm_text_pad_run_task, self, NULL);
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
  gst_vlm_text_pad_put_stream_start (self);
  gst_vlm_text_pad_put_stream_events (self);
  if (!self->over)
    gst_vlm_text_pad_put_eos (self);
  gst_vlm_text_pad_send_all_unlock (self);
}

gboolean
gst_vlm_text_pad_release_peer (GstVlmTextPad *self, gboolean for_good)
{
  /* Not by the rules: a frame may be about to come to an overlay that has just been linked and not been
   * looked at yet. It would wait there for text. */
  gboolean overlay = gst_vlm_text_peer_draws (gst_vlm_text_peer_find (GST_PAD (self), self->video));
  gint64 deadline;
  gboolean busy;

  g_mutex_lock (&self->lock);
  self->flushing = TRUE;
  self->retired = self->retired || for_good;
  g_cond_broadcast (&self->cond);
  g_mutex_unlock (&self->lock);

  /* An overlay blocks its text until the video needs it, which may be never. A muxer would flush
   * all that it writes. */
  if (overlay)
    gst_pad_push_event (GST_PAD (self), gst_event_new_flush_start ());

  deadline = g_get_monotonic_time () + (overlay ? OVERLAY_TIMEOUT : RELEASE_TIMEOUT);
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
  /* The element may be starting, and its pads with it, just when this one is taken away. */
  active = active && !self->retired;
  self->flushing = !active;
  if (!active) {
    forget_stream (self);
    self->new_peer = TRUE;
    self->know_rules = FALSE;
  }
  g_cond_signal (&self->cond);
  g_mutex_unlock (&self->lock);

  return active ? gst_pad_start_task (pad, gst_vlm_text_pad_run_task, self, NULL)
                : gst_pad_stop_task (pad);
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
