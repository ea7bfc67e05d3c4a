/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "settings.h"

#define DEFAULT_PROMPT "Describe this picture in one sentence."
#define DEFAULT_INTERVAL GST_SECOND
#define DEFAULT_MODE GST_VLM_MODE_AUTO
#define DEFAULT_POST_MESSAGES GST_VLM_POST_ALL
#define DEFAULT_PARTIAL_CAPTIONS FALSE
#define DEFAULT_SCENE_THRESHOLD 0
#define DEFAULT_MAX_LOAD 100
#define DEFAULT_IDLE_UNLOAD 0
#define DEFAULT_NICE 0
#define DEFAULT_THREADS 0
#define DEFAULT_PRECISION VLM_PRECISION_AUTO
#define DEFAULT_TILING VLM_TILING_AUTO
#define DEFAULT_AUTO_OVERLAY TRUE
#define DEFAULT_TEXT_TIMING GST_VLM_TEXT_TIMING_AUTO
#define DEFAULT_TEXT_MAX_DURATION (10 * GST_SECOND)
#define AS_THE_MODEL_SAYS -1
/* Limits of the engine, which refuses every frame beyond them. */
#define LEAST_PENALTY 0.01
#define MOST_IMAGE_TOKENS 8192

enum
{
  PROP_MODEL = 1,
  PROP_MMPROJ,
  PROP_PROMPT,
  PROP_SYSTEM_PROMPT,
  PROP_INTERVAL,
  PROP_MODE,
  PROP_MAX_TOKENS,
  PROP_TEMPERATURE,
  PROP_TOP_K,
  PROP_TOP_P,
  PROP_MIN_P,
  PROP_REPETITION_PENALTY,
  PROP_SEED,
  PROP_MIN_IMAGE_TOKENS,
  PROP_MAX_IMAGE_TOKENS,
  PROP_TILING,
  PROP_THREADS,
  PROP_PRECISION,
  PROP_POST_MESSAGES,
  PROP_PARTIAL_CAPTIONS,
  PROP_SCENE_THRESHOLD,
  PROP_ROI,
  PROP_MAX_LOAD,
  PROP_IDLE_UNLOAD,
  PROP_NICE,
  PROP_AUTO_OVERLAY,
  PROP_TEXT_TIMING,
  PROP_TEXT_MAX_DURATION,
  N_PROPERTIES
};

#define READY (G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY)
#define PLAYING (G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING)

/* ---- Enumerations ------------------------------------------------------------------------- */

static const GEnumValue mode_values[] = {
  { GST_VLM_MODE_AUTO, "sync if nothing waits for the clock, else async", "auto" },
  { GST_VLM_MODE_ASYNC, "Video never waits; captions follow when they are ready", "async" },
  { GST_VLM_MODE_SYNC, "A selected frame waits for its caption", "sync" },
  { 0, NULL, NULL },
};

static const GEnumValue post_values[] = {
  { GST_VLM_POST_NONE, "No messages", "none" },
  { GST_VLM_POST_ALL, "A message for each caption", "all" },
  { GST_VLM_POST_CHANGED, "A message when the text differs from the last one", "changed" },
  { 0, NULL, NULL },
};

static const GEnumValue text_timing_values[] = {
  { GST_VLM_TEXT_TIMING_AUTO, "display towards an overlay, else frame", "auto" },
  { GST_VLM_TEXT_TIMING_FRAME, "From the described frame to the next caption", "frame" },
  { GST_VLM_TEXT_TIMING_DISPLAY, "From the moment at which it can be shown", "display" },
  { 0, NULL, NULL },
};

static const GEnumValue tiling_values[] = {
  { VLM_TILING_AUTO, "As the model's files say", "auto" },
  { VLM_TILING_ON, "Large pictures are cut into tiles", "on" },
  { VLM_TILING_OFF, "Each picture is one crop", "off" },
  { 0, NULL, NULL },
};

static const GEnumValue precision_values[] = {
  { VLM_PRECISION_AUTO, "fast for quantised weights, else exact", "auto" },
  { VLM_PRECISION_EXACT, "32-bit floating point, quantised weights too", "exact" },
  { VLM_PRECISION_FAST, "8-bit integers, floating point weights too", "fast" },
  { 0, NULL, NULL },
};

/* Registers the enumeration on the first call and keeps its type in *type. */
static GType
enum_type (gsize *type, const gchar *name, const GEnumValue *values)
{
  if (g_once_init_enter (type)) {
    GType registered = g_enum_register_static (name, values);

    gst_type_mark_as_plugin_api (registered, 0);
    g_once_init_leave (type, registered);
  }
  return *type;
}

GType
gst_vlm_mode_get_type (void)
{
  static gsize type = 0;

  return enum_type (&type, "GstVlmCaptionMode", mode_values);
}

GType
gst_vlm_post_get_type (void)
{
  static gsize type = 0;

  return enum_type (&type, "GstVlmCaptionPostMessages", post_values);
}

static GType
tiling_get_type (void)
{
  static gsize type = 0;

  return enum_type (&type, "GstVlmCaptionTiling", tiling_values);
}

static GType
text_timing_get_type (void)
{
  static gsize type = 0;

  return enum_type (&type, "GstVlmCaptionTextTiming", text_timing_values);
}

static GType
precision_get_type (void)
{
  static gsize type = 0;

  return enum_type (&type, "GstVlmCaptionPrecision", precision_values);
}

const gchar *
gst_vlm_mode_name (GstVlmMode mode)
{
  return mode_values[mode].value_nick;
}

/* ---- The struct --------------------------------------------------------------------------- */

GstVlmSettings *
gst_vlm_settings_new (void)
{
  GstVlmSettings *settings = g_new0 (GstVlmSettings, 1);

  settings->prompt = g_strdup (DEFAULT_PROMPT);
  settings->interval = DEFAULT_INTERVAL;
  settings->mode = DEFAULT_MODE;
  settings->post_messages = DEFAULT_POST_MESSAGES;
  settings->partial_captions = DEFAULT_PARTIAL_CAPTIONS;
  settings->scene_threshold = DEFAULT_SCENE_THRESHOLD;
  gst_vlm_region_parse (&settings->region, NULL, NULL);
  settings->max_load = DEFAULT_MAX_LOAD;
  settings->idle_unload = DEFAULT_IDLE_UNLOAD;
  settings->nice = DEFAULT_NICE;
  settings->threads = DEFAULT_THREADS;
  settings->precision = DEFAULT_PRECISION;
  settings->tiling = DEFAULT_TILING;
  settings->auto_overlay = DEFAULT_AUTO_OVERLAY;
  settings->text_timing = DEFAULT_TEXT_TIMING;
  settings->text_max_duration = DEFAULT_TEXT_MAX_DURATION;
  settings->max_tokens = AS_THE_MODEL_SAYS;
  settings->temperature = AS_THE_MODEL_SAYS;
  settings->top_k = AS_THE_MODEL_SAYS;
  settings->top_p = AS_THE_MODEL_SAYS;
  settings->min_p = AS_THE_MODEL_SAYS;
  settings->repetition_penalty = AS_THE_MODEL_SAYS;
  settings->seed = AS_THE_MODEL_SAYS;
  settings->min_image_tokens = AS_THE_MODEL_SAYS;
  settings->max_image_tokens = AS_THE_MODEL_SAYS;

  return settings;
}

GstVlmSettings *
gst_vlm_settings_copy (const GstVlmSettings *settings)
{
  GstVlmSettings *copy = g_memdup2 (settings, sizeof *settings);

  copy->model = g_strdup (settings->model);
  copy->mmproj = g_strdup (settings->mmproj);
  copy->prompt = g_strdup (settings->prompt);
  copy->system_prompt = g_strdup (settings->system_prompt);
  copy->roi = g_strdup (settings->roi);

  return copy;
}

void
gst_vlm_settings_free (GstVlmSettings *settings)
{
  g_free (settings->model);
  g_free (settings->mmproj);
  g_free (settings->prompt);
  g_free (settings->system_prompt);
  g_free (settings->roi);
  g_free (settings);
}

const gchar *
gst_vlm_settings_get_model (const GstVlmSettings *settings)
{
  const gchar *path = settings->model;

  if (path == NULL || *path == '\0')
    path = g_getenv ("VLMCAPTION_MODEL");
  if (path == NULL || *path == '\0')
    path = vlm_builtin_model ();

  return path;
}

const gchar *
gst_vlm_settings_get_mmproj (const GstVlmSettings *settings)
{
  return settings->mmproj != NULL && *settings->mmproj != '\0' ? settings->mmproj : NULL;
}

void
gst_vlm_settings_fill_request (const GstVlmSettings *settings, VlmRequest *request)
{
  request->prompt = settings->prompt;
  request->system_prompt = settings->system_prompt;
  request->max_tokens = settings->max_tokens;
  request->temperature = settings->temperature;
  request->top_k = settings->top_k;
  request->top_p = settings->top_p;
  request->min_p = settings->min_p;
  request->repetition_penalty = settings->repetition_penalty;
  request->seed = settings->seed < 0 ? 0 : (guint64) settings->seed;
  request->min_image_tokens = settings->min_image_tokens;
  request->max_image_tokens = settings->max_image_tokens;
  /* They are set one after the other, so that they may contradict each other for a while. */
  if (settings->max_image_tokens != AS_THE_MODEL_SAYS)
    request->min_image_tokens = MIN (settings->min_image_tokens, settings->max_image_tokens);
  request->tiling = settings->tiling;
  request->n_threads = settings->threads;
  request->nice = settings->nice;
  request->end_loops = TRUE;
}

/* ---- GObject properties ------------------------------------------------------------------- */

static void
install_general (GObjectClass *klass)
{
  g_object_class_install_property (klass, PROP_MODEL,
      g_param_spec_string ("model", "Model",
          "Path of the model: a Hugging Face directory, or a .slm, .gguf or .cellm file. Unset, it "
          "is that of the environment variable VLMCAPTION_MODEL, else the small built-in model, "
          "which only knows shapes and test patterns.",
          NULL, READY));
  g_object_class_install_property (klass, PROP_MMPROJ,
      g_param_spec_string ("mmproj", "Vision part",
          "Path of the file with the vision part of a GGUF model. Unset, it is the one that lies "
          "beside the model.",
          NULL, READY));
  g_object_class_install_property (klass, PROP_PROMPT,
      g_param_spec_string ("prompt", "Prompt",
          "What the model is asked about each selected frame. A change applies from the next "
          "selected frame on.",
          DEFAULT_PROMPT, PLAYING));
  g_object_class_install_property (klass, PROP_SYSTEM_PROMPT,
      g_param_spec_string ("system-prompt", "System prompt",
          "Instruction that stands before the prompt. Unset, there is none.", NULL, PLAYING));
  g_object_class_install_property (klass, PROP_INTERVAL,
      g_param_spec_uint64 ("interval", "Interval",
          "Time from one selected frame to the next by their timestamps, in nanoseconds. The first "
          "frame is always selected; 0 selects every frame, the largest value none but those that "
          "the signal \"trigger\" asks for.",
          0, G_MAXUINT64, DEFAULT_INTERVAL, PLAYING));
  g_object_class_install_property (klass, PROP_MODE,
      g_param_spec_enum ("mode", "Mode",
          "Whether video waits for captions. auto is sync where the source is not live and no "
          "sink in the pipeline waits for the clock, and async elsewhere.",
          gst_vlm_mode_get_type (), DEFAULT_MODE, READY));
  g_object_class_install_property (klass, PROP_THREADS,
      g_param_spec_uint ("threads", "Threads",
          "How many threads compute a caption. 0 is as many as the process may use CPUs.", 0, 1024,
          DEFAULT_THREADS, READY));
  g_object_class_install_property (klass, PROP_PRECISION,
      g_param_spec_enum ("precision", "Precision",
          "Arithmetic of the model. auto suits it to the weights.", precision_get_type (),
          DEFAULT_PRECISION, READY));
  g_object_class_install_property (klass, PROP_POST_MESSAGES,
      g_param_spec_enum ("post-messages", "Post messages",
          "For which captions an element message \"vlmcaption\" is posted on the bus.",
          gst_vlm_post_get_type (), DEFAULT_POST_MESSAGES, PLAYING));
}

static void
install_text (GObjectClass *klass)
{
  g_object_class_install_property (klass, PROP_AUTO_OVERLAY,
      g_param_spec_boolean ("auto-overlay", "Automatic overlay",
          "Whether going to PAUSED links the captions to the first overlay downstream that has no "
          "text of its own, if the text pad has not been requested.",
          DEFAULT_AUTO_OVERLAY, READY));
  g_object_class_install_property (klass, PROP_TEXT_TIMING,
      g_param_spec_enum ("text-timing", "Text timing",
          "Which times captions on the text pad have: those of the frames that they describe, for "
          "files, or those at which they can be shown, for overlays. auto looks at who takes them.",
          text_timing_get_type (), DEFAULT_TEXT_TIMING, READY));
  g_object_class_install_property (klass, PROP_TEXT_MAX_DURATION,
      g_param_spec_uint64 ("text-max-duration", "Maximum text duration",
          "Longest duration of a caption on the text pad in nanoseconds, except towards an "
          "overlay, "
          "which shows it until the next.",
          GST_MSECOND, G_MAXUINT64 - 1, DEFAULT_TEXT_MAX_DURATION, READY));
}

static void
install_selection (GObjectClass *klass)
{
  g_object_class_install_property (klass, PROP_SCENE_THRESHOLD,
      g_param_spec_double ("scene-threshold", "Scene threshold",
          "A selected frame is described only if its brightness differs at least this much, on "
          "average over the picture, from the frame described last: 0 describes every selected "
          "frame, 1 is the step from black to white. The last caption stays in force.",
          0, 1, DEFAULT_SCENE_THRESHOLD, PLAYING));
  g_object_class_install_property (klass, PROP_ROI,
      g_param_spec_string ("roi", "Region of interest",
          "The part of the frame that is described: x,y,width,height, in fractions of the frame "
          "if none is above 1, else in pixels. Unset, it is the whole frame.",
          NULL, PLAYING));
  g_object_class_install_property (klass, PROP_PARTIAL_CAPTIONS,
      g_param_spec_boolean ("partial-captions", "Partial captions",
          "Whether messages are also posted while a caption grows, at most five a second.",
          DEFAULT_PARTIAL_CAPTIONS, PLAYING));
}

static void
install_budget (GObjectClass *klass)
{
  g_object_class_install_property (klass, PROP_MAX_LOAD,
      g_param_spec_uint ("max-load", "Maximum load",
          "Share of the CPUs that the process may use which captions of this element take on "
          "average, in percent. 100 is no limit.",
          1, 100, DEFAULT_MAX_LOAD, PLAYING));
  g_object_class_install_property (klass, PROP_IDLE_UNLOAD,
      g_param_spec_uint64 ("idle-unload", "Idle unload",
          "The element lets go of its model when it has made no caption for this long, in "
          "nanoseconds, and loads it again for the next one. 0 is never.",
          0, G_MAXUINT64 - 1, DEFAULT_IDLE_UNLOAD, PLAYING));
  g_object_class_install_property (klass, PROP_NICE,
      g_param_spec_int ("nice", "Nice",
          "Least niceness of the threads that make captions, so that decoding and display come "
          "first. A thread cannot take niceness back.",
          0, 19, DEFAULT_NICE, PLAYING));
}

static void
install_sampling (GObjectClass *klass)
{
  g_object_class_install_property (klass, PROP_MAX_TOKENS,
      g_param_spec_int ("max-tokens", "Maximum tokens",
          "Longest caption in tokens, at least 1. -1 is what the model's files say, else 64.", -1,
          G_MAXINT, AS_THE_MODEL_SAYS, PLAYING));
  g_object_class_install_property (klass, PROP_TEMPERATURE,
      g_param_spec_double ("temperature", "Temperature",
          "Randomness of the wording; 0 always takes the likeliest token. -1 is what the model's "
          "files say, else 0.",
          -1, 100, AS_THE_MODEL_SAYS, PLAYING));
  g_object_class_install_property (klass, PROP_TOP_K,
      g_param_spec_int ("top-k", "Top k",
          "Sample among this many likeliest tokens; 0 is all. -1 is what the model's files say, "
          "else 0.",
          -1, G_MAXINT, AS_THE_MODEL_SAYS, PLAYING));
  g_object_class_install_property (klass, PROP_TOP_P,
      g_param_spec_double ("top-p", "Top p",
          "Sample among the likeliest tokens that together have this probability; 1 is all. -1 is "
          "what the model's files say, else 1.",
          -1, 1, AS_THE_MODEL_SAYS, PLAYING));
  g_object_class_install_property (klass, PROP_MIN_P,
      g_param_spec_double ("min-p", "Minimum p",
          "Sample among tokens of at least this share of the likeliest token's probability; 0 is "
          "all. -1 is what the model's files say, else 0.",
          -1, 1, AS_THE_MODEL_SAYS, PLAYING));
  g_object_class_install_property (klass, PROP_REPETITION_PENALTY,
      g_param_spec_double ("repetition-penalty", "Repetition penalty",
          "Divides the score of tokens that were used before; at least 0.01, and 1 is none. -1 is "
          "what "
          "the model's files say, else 1.",
          -1, 100, AS_THE_MODEL_SAYS, PLAYING));
  g_object_class_install_property (klass, PROP_SEED,
      g_param_spec_int64 ("seed", "Seed",
          "Start of the random numbers for sampling: equal seeds give equal captions. -1 is what "
          "the model's files say, else 0.",
          -1, G_MAXINT64, AS_THE_MODEL_SAYS, PLAYING));
}

static void
install_picture (GObjectClass *klass)
{
  g_object_class_install_property (klass, PROP_MIN_IMAGE_TOKENS,
      g_param_spec_int ("min-image-tokens", "Minimum image tokens",
          "Fewest tokens that a picture becomes, at least 1 and no more than max-image-tokens: "
          "small ones are enlarged. -1 is what the model's files say.",
          -1, MOST_IMAGE_TOKENS, AS_THE_MODEL_SAYS, PLAYING));
  g_object_class_install_property (klass, PROP_MAX_IMAGE_TOKENS,
      g_param_spec_int ("max-image-tokens", "Maximum image tokens",
          "Most tokens that an untiled picture or the thumbnail of a tiled one becomes, at least "
          "1; fewer are faster and see less. -1 is what the model's files say.",
          -1, MOST_IMAGE_TOKENS, AS_THE_MODEL_SAYS, PLAYING));
  g_object_class_install_property (klass, PROP_TILING,
      g_param_spec_enum ("tiling", "Tiling",
          "Whether large pictures are cut into tiles, which shows the model more detail and takes "
          "a multiple of the time. auto is what the model's files say.",
          tiling_get_type (), DEFAULT_TILING, PLAYING));
}

guint
gst_vlm_settings_install (GObjectClass *klass)
{
  install_general (klass);
  install_selection (klass);
  install_budget (klass);
  install_text (klass);
  install_sampling (klass);
  install_picture (klass);

  return N_PROPERTIES - 1;
}

static void
take_string (gchar **field, const GValue *value)
{
  g_free (*field);
  *field = g_value_dup_string (value);
}

/* -1 or at least least; what lies between means nothing. */
static gboolean
take_int (gint *field, const GValue *value, gint least, const gchar **refused)
{
  gint number = g_value_get_int (value);

  if (number != AS_THE_MODEL_SAYS && number < least) {
    *refused = least > 0 ? "it must be -1 or at least 1" : "it must be -1 or not negative";
    return FALSE;
  }
  *field = number;
  return TRUE;
}

/* -1 or at least least, and a number. */
static gboolean
take_double (gdouble *field, const GValue *value, gdouble least, const gchar **refused)
{
  gdouble number = g_value_get_double (value);

  if (number != AS_THE_MODEL_SAYS && !(number >= least)) {
    *refused = least > 0 ? "it must be -1 or at least 0.01" : "it must be -1 or not negative";
    return FALSE;
  }
  *field = number;
  return TRUE;
}

static gboolean
take_roi (GstVlmSettings *settings, const GValue *value, const gchar **refused)
{
  if (!gst_vlm_region_parse (&settings->region, g_value_get_string (value), refused))
    return FALSE;
  take_string (&settings->roi, value);
  return TRUE;
}

static gboolean
set_budget (GstVlmSettings *settings, guint id, const GValue *value)
{
  switch (id) {
    case PROP_SCENE_THRESHOLD:
      settings->scene_threshold = g_value_get_double (value);
      break;
    case PROP_PARTIAL_CAPTIONS:
      settings->partial_captions = g_value_get_boolean (value);
      break;
    case PROP_MAX_LOAD:
      settings->max_load = g_value_get_uint (value);
      break;
    case PROP_IDLE_UNLOAD:
      settings->idle_unload = g_value_get_uint64 (value);
      break;
    case PROP_NICE:
      settings->nice = g_value_get_int (value);
      break;
    default:
      return FALSE;
  }
  return TRUE;
}

static gboolean
set_general (GstVlmSettings *settings, guint id, const GValue *value)
{
  switch (id) {
    case PROP_MODEL:
      take_string (&settings->model, value);
      break;
    case PROP_MMPROJ:
      take_string (&settings->mmproj, value);
      break;
    case PROP_PROMPT:
      take_string (&settings->prompt, value);
      if (settings->prompt == NULL)
        settings->prompt = g_strdup (DEFAULT_PROMPT);
      break;
    case PROP_SYSTEM_PROMPT:
      take_string (&settings->system_prompt, value);
      break;
    case PROP_INTERVAL:
      settings->interval = g_value_get_uint64 (value);
      break;
    case PROP_MODE:
      settings->mode = g_value_get_enum (value);
      break;
    case PROP_SEED:
      settings->seed = g_value_get_int64 (value);
      break;
    case PROP_TILING:
      settings->tiling = g_value_get_enum (value);
      break;
    case PROP_THREADS:
      settings->threads = g_value_get_uint (value);
      break;
    case PROP_PRECISION:
      settings->precision = g_value_get_enum (value);
      break;
    case PROP_POST_MESSAGES:
      settings->post_messages = g_value_get_enum (value);
      break;
    case PROP_AUTO_OVERLAY:
      settings->auto_overlay = g_value_get_boolean (value);
      break;
    case PROP_TEXT_TIMING:
      settings->text_timing = g_value_get_enum (value);
      break;
    case PROP_TEXT_MAX_DURATION:
      settings->text_max_duration = g_value_get_uint64 (value);
      break;
    default:
      return set_budget (settings, id, value);
  }
  return TRUE;
}

gboolean
gst_vlm_settings_set (
    GstVlmSettings *settings, guint id, const GValue *value, const gchar **refused)
{
  *refused = NULL;

  switch (id) {
    case PROP_ROI:
      return take_roi (settings, value, refused);
    case PROP_MAX_TOKENS:
      return take_int (&settings->max_tokens, value, 1, refused);
    case PROP_TOP_K:
      return take_int (&settings->top_k, value, 0, refused);
    case PROP_MIN_IMAGE_TOKENS:
      return take_int (&settings->min_image_tokens, value, 1, refused);
    case PROP_MAX_IMAGE_TOKENS:
      return take_int (&settings->max_image_tokens, value, 1, refused);
    case PROP_TEMPERATURE:
      return take_double (&settings->temperature, value, 0, refused);
    case PROP_TOP_P:
      return take_double (&settings->top_p, value, 0, refused);
    case PROP_MIN_P:
      return take_double (&settings->min_p, value, 0, refused);
    case PROP_REPETITION_PENALTY:
      return take_double (&settings->repetition_penalty, value, LEAST_PENALTY, refused);
    default:
      return set_general (settings, id, value);
  }
}

static gboolean
get_budget (const GstVlmSettings *settings, guint id, GValue *value)
{
  switch (id) {
    case PROP_SCENE_THRESHOLD:
      g_value_set_double (value, settings->scene_threshold);
      break;
    case PROP_ROI:
      g_value_set_string (value, settings->roi);
      break;
    case PROP_PARTIAL_CAPTIONS:
      g_value_set_boolean (value, settings->partial_captions);
      break;
    case PROP_MAX_LOAD:
      g_value_set_uint (value, settings->max_load);
      break;
    case PROP_IDLE_UNLOAD:
      g_value_set_uint64 (value, settings->idle_unload);
      break;
    case PROP_NICE:
      g_value_set_int (value, settings->nice);
      break;
    default:
      return FALSE;
  }
  return TRUE;
}

static gboolean
get_numbers (const GstVlmSettings *settings, guint id, GValue *value)
{
  switch (id) {
    case PROP_MAX_TOKENS:
      g_value_set_int (value, settings->max_tokens);
      break;
    case PROP_TOP_K:
      g_value_set_int (value, settings->top_k);
      break;
    case PROP_MIN_IMAGE_TOKENS:
      g_value_set_int (value, settings->min_image_tokens);
      break;
    case PROP_MAX_IMAGE_TOKENS:
      g_value_set_int (value, settings->max_image_tokens);
      break;
    case PROP_TEMPERATURE:
      g_value_set_double (value, settings->temperature);
      break;
    case PROP_TOP_P:
      g_value_set_double (value, settings->top_p);
      break;
    case PROP_MIN_P:
      g_value_set_double (value, settings->min_p);
      break;
    case PROP_REPETITION_PENALTY:
      g_value_set_double (value, settings->repetition_penalty);
      break;
    case PROP_SEED:
      g_value_set_int64 (value, settings->seed);
      break;
    default:
      return get_budget (settings, id, value);
  }
  return TRUE;
}

gboolean
gst_vlm_settings_get (const GstVlmSettings *settings, guint id, GValue *value)
{
  switch (id) {
    case PROP_MODEL:
      g_value_set_string (value, settings->model);
      break;
    case PROP_MMPROJ:
      g_value_set_string (value, settings->mmproj);
      break;
    case PROP_PROMPT:
      g_value_set_string (value, settings->prompt);
      break;
    case PROP_SYSTEM_PROMPT:
      g_value_set_string (value, settings->system_prompt);
      break;
    case PROP_INTERVAL:
      g_value_set_uint64 (value, settings->interval);
      break;
    case PROP_MODE:
      g_value_set_enum (value, settings->mode);
      break;
    case PROP_TILING:
      g_value_set_enum (value, settings->tiling);
      break;
    case PROP_THREADS:
      g_value_set_uint (value, settings->threads);
      break;
    case PROP_PRECISION:
      g_value_set_enum (value, settings->precision);
      break;
    case PROP_POST_MESSAGES:
      g_value_set_enum (value, settings->post_messages);
      break;
    case PROP_AUTO_OVERLAY:
      g_value_set_boolean (value, settings->auto_overlay);
      break;
    case PROP_TEXT_TIMING:
      g_value_set_enum (value, settings->text_timing);
      break;
    case PROP_TEXT_MAX_DURATION:
      g_value_set_uint64 (value, settings->text_max_duration);
      break;
    default:
      return get_numbers (settings, id, value);
  }
  return TRUE;
}
