/* SPDX-License-Identifier: LGPL-2.1-or-later */

/**
 * SECTION:element-vlmcaption
 * @title: vlmcaption
 * @short_description: describes video in words
 *
 * Raw video passes through unchanged while selected frames are described by a small
 * vision-language model on the CPU. The captions leave the element in three ways:
 *
 * * as a custom meta `GstVlmCaptionMeta` on the video buffers,
 * * as `text/x-raw, format=utf8` on the request pad `text`,
 * * as element messages named `vlmcaption` on the bus.
 *
 * The message's structure and the meta have these fields:
 *
 * * `text` #gchararray: the caption.
 * * `id` #guint64: number of the described frame among the selected ones.
 * * `pts` (in the message also as `timestamp`) #guint64: timestamp of the described frame.
 * * `utc-time` #guint64: when it was taken, in nanoseconds since 1970.
 * * `stream-time`, `running-time` #guint64: of the described frame.
 * * `duration` #guint64: of the described frame (message only).
 * * `age` #guint64: how far video has gone since the described frame: to the buffer that carries
 *   the meta, or to the frame that passes when the message is posted.
 * * `latency` #guint64: real time from the selection of the frame to the end of the caption.
 * * `prompt-tokens`, `image-tokens`, `tokens` #guint: length of the prompt with its picture, of
 *   the picture alone, and of what was generated.
 * * `finish-reason` #gchararray: `stop`, `length`, `context` or `repetition`.
 * * `partial` #gboolean: the caption still grows (message only).
 * * `dropped` #guint64: selected frames that were given up for newer ones so far (message only).
 * * `model` #gchararray, `builtin-model` #gboolean: what made the caption (message only).
 * * `note` #gchararray: in the first message of the built-in model, what it cannot do.
 *
 * In `async` mode video never waits: one caption is made at a time, one frame waits, and a newer
 * frame takes its place. In `sync` mode each selected frame waits for its caption. `auto` is
 * `sync` where the source is not live and nothing in the pipeline waits for the clock. The action
 * signal #GstVlmCaption::trigger has the next frame described in either.
 *
 * ## Example launch lines
 * |[
 * gst-launch-1.0 -m videotestsrc pattern=ball num-buffers=90 ! vlmcaption ! fakesink
 * ]| Prints a caption a second as messages.
 * |[
 * gst-launch-1.0 videotestsrc pattern=ball ! vlmcaption ! textoverlay ! videoconvert ! autovideosink
 * ]| Shows the captions on the video: they are linked to an overlay downstream that nobody feeds.
 * |[
 * gst-launch-1.0 filesrc location=in.mp4 ! decodebin ! vlmcaption name=v interval=2000000000 ! fakesink v.text ! srtenc ! filesink location=captions.srt
 * ]| Writes the captions of a recorded file.
 *
 * Since: 0.1
 */

#include "config.h"

#include "message.h"
#include "vlmcaption-private.h"

GST_DEBUG_CATEGORY (gst_vlm_caption_debug);
#define GST_CAT_DEFAULT gst_vlm_caption_debug

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK,
    GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (GST_VLM_FRAME_FORMATS)));

static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC,
    GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_VIDEO_CAPS_MAKE (GST_VLM_FRAME_FORMATS)));

static GstStaticPadTemplate text_template = GST_STATIC_PAD_TEMPLATE (
    "text", GST_PAD_SRC, GST_PAD_REQUEST, GST_STATIC_CAPS ("text/x-raw, format = (string) utf8"));

enum
{
  SIGNAL_TRIGGER,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

#define gst_vlm_caption_parent_class parent_class
G_DEFINE_TYPE (GstVlmCaption, gst_vlm_caption, GST_TYPE_ELEMENT)
GST_ELEMENT_REGISTER_DEFINE (vlmcaption, "vlmcaption", GST_RANK_NONE, GST_TYPE_VLM_CAPTION)

GstVlmTextPad *
gst_vlm_caption_get_text_pad (GstVlmCaption *self)
{
  GstVlmTextPad *text;

  g_mutex_lock (&self->lock);
  text = self->text != NULL ? gst_object_ref (self->text) : NULL;
  g_mutex_unlock (&self->lock);

  return text;
}

/* ---- Events and queries ------------------------------------------------------------------- */

/*
 * An overlay sends each upstream event to both of its inputs, a muxer too, and a pipeline to all of
 * its sinks. What comes through the video pad as well must not act twice.
 */
static gboolean
gst_vlm_caption_text_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstVlmCaption *self = GST_VLM_CAPTION (parent);

  if (!gst_pad_is_linked (self->src))
    return gst_pad_event_default (pad, parent, event);

  gst_event_unref (event);
  return TRUE;
}

static gboolean
gst_vlm_caption_src_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  GstVlmCaption *self = GST_VLM_CAPTION (parent);
  GstClockTime least, most, added;
  gboolean live;

  if (!gst_pad_query_default (pad, parent, query))
    return FALSE;
  if (GST_QUERY_TYPE (query) != GST_QUERY_LATENCY)
    return TRUE;

  /* Async mode holds no frame and adds nothing. */
  g_mutex_lock (&self->lock);
  added = self->mode == GST_VLM_MODE_SYNC ? self->reported_latency : 0;
  g_mutex_unlock (&self->lock);

  /* Nothing is buffered here: without a queue upstream that lasts for the time of a caption, most
   * becomes less than least, and the pipeline warns that frames will come late. */
  gst_query_parse_latency (query, &live, &least, &most);
  gst_query_set_latency (query, live, least + added, most);

  return TRUE;
}

/* Video to video both ways; text comes from video, but video caps say nothing about text. */
static GstIterator *
gst_vlm_caption_iterate_internal_links (GstPad *pad, GstObject *parent)
{
  GstVlmCaption *self = GST_VLM_CAPTION (parent);
  GValue other = G_VALUE_INIT;
  GstIterator *links;

  g_value_init (&other, GST_TYPE_PAD);
  g_value_set_object (&other, pad == self->sink ? self->src : self->sink);
  links = gst_iterator_new_single (GST_TYPE_PAD, &other);
  g_value_unset (&other);

  return links;
}

/* ---- The text pad ------------------------------------------------------------------------- */

static gboolean
is_idle (guint serial, gpointer user_data)
{
  GstVlmCaption *self = user_data;

  return gst_vlm_worker_is_idle (self->worker, serial);
}

/*
 * Makes text the text pad, unless there is one. What it has missed it is told before the streaming thread
 * sees it, and not from what the video pad keeps: the event that is being taken is not among that yet.
 * Nothing is linked to the pad yet, so that none of this waits for anybody under the lock.
 */
static gboolean
install_text_pad (GstVlmCaption *self, GstVlmTextPad *text)
{
  gboolean taken;

  g_mutex_lock (&self->lock);
  taken = self->text != NULL;
  if (!taken) {
    if (self->stream_start != NULL)
      gst_vlm_text_pad_stream_start (text, self->stream_start);
    if (self->time_segment != NULL)
      gst_vlm_text_pad_segment (text, self->time_segment, self->serial);
    if (self->ended)
      gst_vlm_text_pad_eos (text);
    self->text = gst_object_ref (text);
  }
  g_mutex_unlock (&self->lock);

  return !taken;
}

/* The pad is owned by the element; NULL if there is one already. */
static GstPad *
add_text_pad (GstVlmCaption *self, const gchar *name)
{
  GstPadTemplate *template =
      gst_element_class_get_pad_template (GST_ELEMENT_GET_CLASS (self), "text");
  GstVlmTextPad *text = gst_vlm_text_pad_new (name, template, self->src, is_idle, self);
  GstPad *pad = GST_PAD (text);

  gst_pad_set_event_function (pad, gst_vlm_caption_text_event);
  gst_pad_set_iterate_internal_links_function (pad, gst_vlm_caption_iterate_internal_links);
  gst_object_ref_sink (text);

  /* First of all: a flush that has begun is not undone by it. */
  if (GST_STATE (self) > GST_STATE_READY || GST_STATE_NEXT (self) == GST_STATE_PAUSED)
    gst_pad_set_active (pad, TRUE);
  if (!install_text_pad (self, text))
    goto taken;
  gst_element_add_pad (GST_ELEMENT (self), pad);
  gst_object_unref (text);

  return pad;

taken:
  GST_WARNING_OBJECT (self, "there is a text pad already");
  gst_pad_set_active (pad, FALSE);
  gst_object_unref (text);
  return NULL;
}

/* Links the captions to an overlay downstream, unless somebody has requested the text pad. */
static void
look_for_overlay (GstVlmCaption *self)
{
  GstVlmAutoOverlay *overlay = NULL;
  GstPad *target = NULL;
  GstVlmTextPad *requested;
  GstPad *text;
  gboolean look;

  g_rec_mutex_lock (&self->choice);
  requested = gst_vlm_caption_get_text_pad (self);
  GST_OBJECT_LOCK (self);
  look = self->settings->auto_overlay && requested == NULL;
  GST_OBJECT_UNLOCK (self);
  gst_clear_object (&requested);
  if (look)
    target = gst_vlm_auto_overlay_find (self->src);
  if (target == NULL)
    goto done;

  /* Not "text": who requests that later must not find a pad of this name. */
  text = add_text_pad (self, "auto-text");
  if (text != NULL)
    overlay = gst_vlm_auto_overlay_new (GST_ELEMENT (self), text, target);
  gst_object_unref (target);

  GST_OBJECT_LOCK (self);
  self->auto_overlay = overlay;
  GST_OBJECT_UNLOCK (self);

done:
  g_rec_mutex_unlock (&self->choice);
}

static void
drop_auto_overlay (GstVlmCaption *self)
{
  GstVlmAutoOverlay *overlay;

  g_rec_mutex_lock (&self->choice);
  GST_OBJECT_LOCK (self);
  overlay = g_steal_pointer (&self->auto_overlay);
  GST_OBJECT_UNLOCK (self);

  g_clear_pointer (&overlay, gst_vlm_auto_overlay_free);
  g_rec_mutex_unlock (&self->choice);
}

static GstPad *
gst_vlm_caption_request_new_pad (
    GstElement *element, GstPadTemplate *template, const gchar *name, const GstCaps *caps)
{
  GstVlmCaption *self = GST_VLM_CAPTION (element);
  GstPad *pad;

  /* Whoever asks has other plans for the captions. */
  g_rec_mutex_lock (&self->choice);
  drop_auto_overlay (self);
  pad = add_text_pad (self, "text");
  g_rec_mutex_unlock (&self->choice);

  return pad;
}

/* Not gst_pad_set_active(), which does nothing to a pad that has been taken away. */
static void
stop_released (GstElement *element, gpointer pad)
{
  gst_pad_stop_task (pad);
}

static void
gst_vlm_caption_release_pad (GstElement *element, GstPad *pad)
{
  GstVlmCaption *self = GST_VLM_CAPTION (element);
  GstVlmTextPad *text;

  g_mutex_lock (&self->lock);
  text = g_steal_pointer (&self->text);
  g_mutex_unlock (&self->lock);

  if (gst_vlm_text_pad_release_peer (text, TRUE))
    gst_pad_set_active (pad, FALSE);
  else
    /* A muxer or a sink that does not play: the thread ends when it plays on or stops. */
    gst_element_call_async (element, stop_released, gst_object_ref (pad), gst_object_unref);
  gst_element_remove_pad (element, pad);
  gst_object_unref (text);
}

/* ---- States ------------------------------------------------------------------------------- */

/* Looks whether there is a model; posts and fails if not. */
static gboolean
check_model (GstVlmCaption *self)
{
  g_autoptr (GError) error = NULL;
  g_autofree gchar *path = NULL, *mmproj = NULL;

  GST_OBJECT_LOCK (self);
  path = g_strdup (gst_vlm_settings_get_model (self->settings));
  mmproj = g_strdup (gst_vlm_settings_get_mmproj (self->settings));
  GST_OBJECT_UNLOCK (self);

  if (!vlm_model_check_path (path, mmproj, &error)) {
    gst_vlm_message_post_model_error (GST_ELEMENT (self), path, error);
    return FALSE;
  }

  g_mutex_lock (&self->lock);
  g_free (self->model);
  self->model = g_steal_pointer (&path);
  g_mutex_unlock (&self->lock);

  return TRUE;
}

static void
set_running (GstVlmCaption *self, gboolean running)
{
  g_mutex_lock (&self->lock);
  self->running = running;
  g_mutex_unlock (&self->lock);
}

/* A pause is no reason for text to hurry. */
static void
tell_pause (GstVlmCaption *self, gboolean paused)
{
  GstVlmTextPad *text = gst_vlm_caption_get_text_pad (self);

  if (text != NULL)
    gst_vlm_text_pad_set_paused (text, paused);
  gst_clear_object (&text);
}

/* An overlay that waits for video, which may not come, holds the text pad's thread no longer. */
static void
let_go_of_overlay (GstVlmCaption *self)
{
  GstVlmTextPad *text;

  drop_auto_overlay (self);
  text = gst_vlm_caption_get_text_pad (self);
  if (text != NULL)
    gst_vlm_text_pad_release_peer (text, FALSE);
  gst_clear_object (&text);
}

/* Begins a stream: nothing is known of it, and the model starts to load. */
static gboolean
start (GstVlmCaption *self)
{
  g_autoptr (GError) error = NULL;
  g_autofree gchar *mmproj = NULL;
  VlmLoadOptions options = { 0 };

  /* The property may have changed since NULL->READY. */
  if (!check_model (self))
    return FALSE;

  gst_vlm_caption_reset_stream (self);

  GST_OBJECT_LOCK (self);
  options.precision = self->settings->precision;
  options.mmproj = mmproj = g_strdup (gst_vlm_settings_get_mmproj (self->settings));
  options.n_threads = self->settings->threads;
  GST_OBJECT_UNLOCK (self);

  g_mutex_lock (&self->lock);
  self->told_model = FALSE;
  self->builtin = FALSE;
  self->note_due = FALSE;
  g_clear_pointer (&self->last_text, g_free);
  g_mutex_unlock (&self->lock);

  if (!gst_vlm_worker_start (self->worker, self->model, &options, &error))
    goto no_thread;
  set_running (self, TRUE);

  return TRUE;

no_thread:
  gst_vlm_message_post_progress (GST_ELEMENT (self), GST_PROGRESS_TYPE_ERROR, self->model, 0);
  GST_ELEMENT_ERROR (self, RESOURCE, FAILED, (NULL), ("no thread: %s", error->message));
  return FALSE;
}

static GstStateChangeReturn
gst_vlm_caption_change_state (GstElement *element, GstStateChange transition)
{
  GstVlmCaption *self = GST_VLM_CAPTION (element);
  GstStateChangeReturn ret;

  switch (transition) {
    case GST_STATE_CHANGE_NULL_TO_READY:
      if (!check_model (self))
        return GST_STATE_CHANGE_FAILURE;
      break;
    case GST_STATE_CHANGE_READY_TO_PAUSED:
      if (!start (self))
        return GST_STATE_CHANGE_FAILURE;
      look_for_overlay (self);
      break;
    case GST_STATE_CHANGE_PLAYING_TO_PAUSED:
    case GST_STATE_CHANGE_PAUSED_TO_PLAYING:
      tell_pause (self, transition == GST_STATE_CHANGE_PLAYING_TO_PAUSED);
      break;
    case GST_STATE_CHANGE_PAUSED_TO_READY:
      /* Lets go of threads that wait for a caption or in the overlay, so that pads can stop. */
      set_running (self, FALSE);
      gst_vlm_caption_begin_flush (self);
      let_go_of_overlay (self);
      break;
    default:
      break;
  }

  ret = GST_ELEMENT_CLASS (parent_class)->change_state (element, transition);

  switch (transition) {
    case GST_STATE_CHANGE_READY_TO_PAUSED:
      if (ret == GST_STATE_CHANGE_FAILURE) {
        set_running (self, FALSE);
        gst_vlm_worker_stop (self->worker);
        drop_auto_overlay (self);
      }
      break;
    case GST_STATE_CHANGE_PAUSED_TO_READY:
      gst_vlm_worker_stop (self->worker);
      gst_vlm_frame_pool_clear (&self->pool);
      break;
    case GST_STATE_CHANGE_READY_TO_NULL:
      gst_vlm_worker_release_model (self->worker);
      break;
    default:
      break;
  }
  return ret;
}

/* ---- Properties --------------------------------------------------------------------------- */

static void
gst_vlm_caption_set_property (GObject *object, guint id, const GValue *value, GParamSpec *spec)
{
  GstVlmCaption *self = GST_VLM_CAPTION (object);
  const gchar *refused;
  gboolean taken;

  GST_OBJECT_LOCK (self);
  taken = gst_vlm_settings_set (self->settings, id, value, &refused);
  GST_OBJECT_UNLOCK (self);

  /* An unchanged picture may look different to another prompt. */
  g_mutex_lock (&self->lock);
  self->new_scene = TRUE;
  g_mutex_unlock (&self->lock);
  if (g_str_equal (spec->name, "max-load"))
    gst_vlm_worker_wake (self->worker);
  else if (g_str_equal (spec->name, "idle-unload"))
    gst_vlm_worker_set_idle_unload (self->worker, g_value_get_uint64 (value));

  if (refused != NULL)
    g_warning (
        "%s: property \"%s\" keeps its value: %s", GST_OBJECT_NAME (self), spec->name, refused);
  else if (!taken)
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, spec);
}

static void
gst_vlm_caption_get_property (GObject *object, guint id, GValue *value, GParamSpec *spec)
{
  GstVlmCaption *self = GST_VLM_CAPTION (object);
  gboolean known;

  GST_OBJECT_LOCK (self);
  known = gst_vlm_settings_get (self->settings, id, value);
  GST_OBJECT_UNLOCK (self);

  if (!known && g_str_equal (spec->name, "stats"))
    g_value_take_boxed (value, gst_vlm_caption_make_stats (self));
  else if (!known)
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, spec);
}

/* ---- Init --------------------------------------------------------------------------------- */

static void
gst_vlm_caption_init (GstVlmCaption *self)
{
  GstElement *element = GST_ELEMENT (self);

  self->settings = gst_vlm_settings_new ();
  self->worker = gst_vlm_worker_new (&gst_vlm_caption_worker_hooks, self);
  g_mutex_init (&self->lock);
  g_rec_mutex_init (&self->choice);

  self->sink = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sink, GST_DEBUG_FUNCPTR (gst_vlm_caption_chain));
  gst_pad_set_event_function (self->sink, GST_DEBUG_FUNCPTR (gst_vlm_caption_sink_event));
  gst_pad_set_iterate_internal_links_function (
      self->sink, GST_DEBUG_FUNCPTR (gst_vlm_caption_iterate_internal_links));
  GST_PAD_SET_PROXY_CAPS (self->sink);
  GST_PAD_SET_PROXY_ALLOCATION (self->sink);
  gst_element_add_pad (element, self->sink);

  self->src = gst_pad_new_from_static_template (&src_template, "src");
  gst_pad_set_query_function (self->src, GST_DEBUG_FUNCPTR (gst_vlm_caption_src_query));
  gst_pad_set_iterate_internal_links_function (
      self->src, GST_DEBUG_FUNCPTR (gst_vlm_caption_iterate_internal_links));
  GST_PAD_SET_PROXY_CAPS (self->src);
  gst_element_add_pad (element, self->src);

  gst_segment_init (&self->segment, GST_FORMAT_TIME);
  gst_vlm_selector_reset (&self->selector);
}

static void
gst_vlm_caption_finalize (GObject *object)
{
  GstVlmCaption *self = GST_VLM_CAPTION (object);

  gst_vlm_worker_free (self->worker);
  gst_vlm_frame_pool_clear (&self->pool);
  gst_vlm_settings_free (self->settings);
  g_clear_pointer (&self->answer, gst_vlm_answer_unref);
  gst_clear_object (&self->text);
  gst_clear_event (&self->stream_start);
  gst_clear_event (&self->time_segment);
  g_free (self->model);
  g_free (self->last_text);
  g_mutex_clear (&self->lock);
  g_rec_mutex_clear (&self->choice);

  G_OBJECT_CLASS (parent_class)->finalize (object);
}

static void
gst_vlm_caption_class_init (GstVlmCaptionClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  guint n_settings;

  GST_DEBUG_CATEGORY_INIT (gst_vlm_caption_debug, "vlmcaption", 0, "video captions");

  object_class->set_property = gst_vlm_caption_set_property;
  object_class->get_property = gst_vlm_caption_get_property;
  object_class->finalize = gst_vlm_caption_finalize;

  n_settings = gst_vlm_settings_install (object_class);
  g_object_class_install_property (object_class, n_settings + 1,
      g_param_spec_boxed ("stats", "Statistics",
          "Counters since the last READY->PAUSED, the latency of captions in nanoseconds, the "
          "share of time spent on captions, the mode in use, and the model.",
          GST_TYPE_STRUCTURE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));

  /**
   * GstVlmCaption::trigger:
   *
   * Has the next frame described at once, whatever the interval, the scene threshold and the load
   * are. Until that frame has come further calls ask for the same one.
   *
   * Returns: the id that the caption's message and meta will have, or 0 while the element is not
   *   in PAUSED or PLAYING. A flush, a stop or a later trigger may take the caption's place; then
   *   no message has that id.
   */
  signals[SIGNAL_TRIGGER] = g_signal_new_class_handler ("trigger", G_TYPE_FROM_CLASS (klass),
      G_SIGNAL_RUN_LAST | G_SIGNAL_ACTION, G_CALLBACK (gst_vlm_caption_ask), NULL, NULL, NULL,
      G_TYPE_UINT64, 0);

  element_class->change_state = GST_DEBUG_FUNCPTR (gst_vlm_caption_change_state);
  element_class->request_new_pad = GST_DEBUG_FUNCPTR (gst_vlm_caption_request_new_pad);
  element_class->release_pad = GST_DEBUG_FUNCPTR (gst_vlm_caption_release_pad);

  gst_element_class_set_static_metadata (element_class, "Video captioner", "Filter/Analyzer/Video",
      "Describes video in words with a small vision-language model",
      "The gst-vlmcaption developers");
  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_add_static_pad_template_with_gtype (
      element_class, &text_template, GST_TYPE_VLM_TEXT_PAD);
  gst_type_mark_as_plugin_api (GST_TYPE_VLM_TEXT_PAD, 0);
}
