/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "message.h"
#include "vlmcaption-private.h"

#define GST_CAT_DEFAULT gst_vlm_caption_debug

GstVlmAnswer *
gst_vlm_caption_get_answer (GstVlmCaption *self)
{
  GstVlmAnswer *answer;

  g_mutex_lock (&self->lock);
  answer = self->answer != NULL ? gst_vlm_answer_ref (self->answer) : NULL;
  g_mutex_unlock (&self->lock);

  return answer;
}

GstVlmMode
gst_vlm_caption_get_mode (GstVlmCaption *self)
{
  GstVlmMode mode;

  g_mutex_lock (&self->lock);
  mode = self->mode;
  g_mutex_unlock (&self->lock);

  return mode;
}

guint64
gst_vlm_caption_ask (GstVlmCaption *self)
{
  guint64 id = 0;

  g_mutex_lock (&self->lock);
  if (self->running) {
    if (self->asked_id == 0)
      self->asked_id = ++self->last_id;
    id = self->asked_id;
  }
  g_mutex_unlock (&self->lock);

  return id;
}

GstStructure *
gst_vlm_caption_make_stats (GstVlmCaption *self)
{
  GstVlmWorkerStats stats;
  GstStructure *structure;

  gst_vlm_worker_get_stats (self->worker, &stats);

  g_mutex_lock (&self->lock);
  /* clang-format off */
  structure = gst_structure_new ("vlmcaption-stats",
      "submitted", G_TYPE_UINT64, stats.submitted,
      "completed", G_TYPE_UINT64, stats.completed,
      "dropped", G_TYPE_UINT64, stats.dropped,
      "failed", G_TYPE_UINT64, stats.failed,
      "cancelled", G_TYPE_UINT64, stats.cancelled,
      "last-latency", G_TYPE_UINT64, stats.last_latency,
      "mean-latency", G_TYPE_UINT64, stats.mean_latency,
      "unchanged", G_TYPE_UINT64, self->unchanged,
      "busy-ratio", G_TYPE_DOUBLE, stats.busy_ratio,
      "loaded", G_TYPE_BOOLEAN, stats.loaded,
      "mode", G_TYPE_STRING, gst_vlm_mode_name (self->mode),
      "live", G_TYPE_BOOLEAN, self->live,
      "model", G_TYPE_STRING, self->model,
      "builtin-model", G_TYPE_BOOLEAN, self->builtin, NULL);
  /* clang-format on */
  g_mutex_unlock (&self->lock);

  return structure;
}

/* ---- What the worker tells, on its thread ------------------------------------------------- */

static void
on_loading (gpointer user_data)
{
  GstVlmCaption *self = user_data;

  g_mutex_lock (&self->lock);
  self->percent = 0;
  g_mutex_unlock (&self->lock);

  gst_vlm_message_post_progress (GST_ELEMENT (self), GST_PROGRESS_TYPE_START, self->model, 0);
}

static void
on_progress (gdouble fraction, gpointer user_data)
{
  GstVlmCaption *self = user_data;
  gint percent = CLAMP (fraction, 0, 1) * 100;
  gboolean post;

  /* Ten messages a load are enough for a bar and do not crowd the bus. */
  g_mutex_lock (&self->lock);
  post = percent >= self->percent + 10;
  if (post)
    self->percent = percent;
  g_mutex_unlock (&self->lock);

  if (post)
    gst_vlm_message_post_progress (
        GST_ELEMENT (self), GST_PROGRESS_TYPE_CONTINUE, self->model, percent);
}

static void
on_loaded (VlmModel *model, const GError *error, gpointer user_data)
{
  GstVlmCaption *self = user_data;
  GstElement *element = GST_ELEMENT (self);
  VlmModelInfo info = { 0 };
  gboolean first = FALSE;

  if (model != NULL) {
    vlm_model_get_info (model, &info);
    g_mutex_lock (&self->lock);
    first = !self->told_model;
    self->told_model = TRUE;
    self->builtin = info.builtin;
    if (first)
      self->note_due = info.builtin;
    g_mutex_unlock (&self->lock);

    GST_INFO_OBJECT (self, "loaded %s: %s, %" G_GUINT64_FORMAT " parameters", info.path,
        info.family, info.n_parameters);
    if (info.builtin && first)
      gst_vlm_message_post_builtin (element);
    gst_vlm_message_post_progress (element, GST_PROGRESS_TYPE_COMPLETE, self->model, 100);
  } else if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
    gst_vlm_message_post_progress (element, GST_PROGRESS_TYPE_CANCELED, self->model, 0);
  } else {
    gst_vlm_message_post_progress (element, GST_PROGRESS_TYPE_ERROR, self->model, 0);
    gst_vlm_message_post_model_error (element, self->model, error);
  }
}

/* The latency that sync mode adds grew or shrank by a quarter: 5 % are added as headroom. */
static void
report_latency (GstVlmCaption *self, GstClockTime latency)
{
  GstClockTime needed = latency + latency / 20;
  gboolean post = FALSE;

  g_mutex_lock (&self->lock);
  if (self->mode == GST_VLM_MODE_SYNC && self->live
      && ABS (GST_CLOCK_DIFF (needed, self->reported_latency))
          > (GstClockTimeDiff) (self->reported_latency / 4)) {
    self->reported_latency = needed;
    post = TRUE;
  }
  g_mutex_unlock (&self->lock);

  if (post)
    gst_element_post_message (GST_ELEMENT (self), gst_message_new_latency (GST_OBJECT (self)));
}

/* Tells how many frames went undescribed, at most once a caption. */
static void
post_drops (GstVlmCaption *self, const GstVlmWorkerStats *stats, const GstVlmAnswer *answer)
{
  gboolean live, post;

  g_mutex_lock (&self->lock);
  live = self->live;
  post = stats->dropped > self->told_drops;
  self->told_drops = stats->dropped;
  g_mutex_unlock (&self->lock);

  if (post)
    gst_vlm_message_post_drops (
        GST_ELEMENT (self), live, &answer->times, stats->completed + 1, stats->dropped);
}

static void
on_grew (const GstVlmJob *job, const gchar *text, gpointer user_data)
{
  GstVlmCaption *self = user_data;
  GstVlmMessageContext context = { .partial = TRUE };
  GstVlmAnswer *answer = gst_vlm_answer_new ();
  GstVlmWorkerStats stats;

  answer->id = job->id;
  answer->times = job->times;
  answer->text = g_strstrip (g_strdup (text));
  answer->latency = (g_get_monotonic_time () - job->selected_at) * GST_USECOND;
  gst_vlm_worker_get_stats (self->worker, &stats);

  g_mutex_lock (&self->lock);
  context.age = gst_vlm_answer_age (answer, &self->now);
  context.builtin = self->builtin;
  g_mutex_unlock (&self->lock);
  context.dropped = stats.dropped;
  context.model = self->model;
  if (*answer->text != '\0')
    gst_vlm_message_post_caption (GST_ELEMENT (self), answer, &context);
  gst_vlm_answer_unref (answer);
}

static void
post_caption (GstVlmCaption *self, GstVlmAnswer *answer)
{
  GstVlmMessageContext context = { 0 };
  GstVlmWorkerStats stats;
  GstVlmPost when;
  gboolean changed;

  GST_OBJECT_LOCK (self);
  when = self->settings->post_messages;
  GST_OBJECT_UNLOCK (self);
  gst_vlm_worker_get_stats (self->worker, &stats);
  post_drops (self, &stats, answer);

  g_mutex_lock (&self->lock);
  changed = g_strcmp0 (self->last_text, answer->text) != 0;
  if (when == GST_VLM_POST_ALL || (when == GST_VLM_POST_CHANGED && changed)) {
    g_free (self->last_text);
    self->last_text = g_strdup (answer->text);
    context.age = gst_vlm_answer_age (answer, &self->now);
    context.builtin = self->builtin;
    context.note = self->note_due ? gst_vlm_message_builtin_note () : NULL;
    self->note_due = FALSE;
  } else {
    when = GST_VLM_POST_NONE;
  }
  g_mutex_unlock (&self->lock);

  context.dropped = stats.dropped;
  context.model = self->model;
  if (when != GST_VLM_POST_NONE)
    gst_vlm_message_post_caption (GST_ELEMENT (self), answer, &context);
}

static void
on_answered (GstVlmAnswer *answer, gpointer user_data)
{
  GstVlmCaption *self = user_data;
  GstVlmTextPad *text = gst_vlm_caption_get_text_pad (self);
  gboolean wanted;

  GST_DEBUG_OBJECT (self, "frame %" GST_TIME_FORMAT " after %" GST_TIME_FORMAT ": %s",
      GST_TIME_ARGS (answer->times.pts), GST_TIME_ARGS (answer->latency), answer->text);

  /* A flush may have come since the worker looked. */
  g_mutex_lock (&self->lock);
  wanted = answer->serial >= self->first_wanted;
  if (wanted) {
    g_clear_pointer (&self->answer, gst_vlm_answer_unref);
    self->answer = gst_vlm_answer_ref (answer);
  }
  g_mutex_unlock (&self->lock);

  if (wanted) {
    if (text != NULL)
      gst_vlm_text_pad_answer (text, answer);
    post_caption (self, answer);
    report_latency (self, answer->work);
  }
  gst_clear_object (&text);
}

static void
on_failed (const GstVlmJob *job, const GError *error, gpointer user_data)
{
  GstVlmCaption *self = user_data;

  /* The picture has no caption yet, even if it stays as it is. */
  g_mutex_lock (&self->lock);
  self->new_scene = TRUE;
  g_mutex_unlock (&self->lock);

  gst_vlm_message_post_failed (GST_ELEMENT (user_data), job->times.pts, error);
}

const GstVlmWorkerHooks gst_vlm_caption_worker_hooks = { on_loading, on_progress, on_loaded,
  on_grew, on_answered, on_failed };
