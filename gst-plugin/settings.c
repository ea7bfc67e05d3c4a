/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "settings.h"

#define DEFAULT_PROMPT "Describe this picture in one sentence."
#define DEFAULT_INTERVAL GST_SECOND
#define DEFAULT_MODE GST_VLM_MODE_AUTO
#define DEFAULT_POST_MESSAGES GST_VLM_POST_ALL
#define DEFAULT_THREADS 0
#define DEFAULT_PRECISION VLM_PRECISION_AUTO
#define DEFAULT_TILING VLM_TILING_AUTO
#define AS_THE_MODEL_SAYS -1
/* Limits of the engine, which refuses every frame beyond them. */
#define LEAST_PENALTY 0.01
#define MOST_IMAGE_TOKENS 8192

enum
{
  PROP_MODEL = 1,
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
  settings->threads = DEFAULT_THREADS;
  settings->precision = DEFAULT_PRECISION;
  settings->tiling = DEFAULT_TILING;
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
  copy->prompt = g_strdup (settings->prompt);
  copy->system_prompt = g_strdup (settings->system_prompt);

  return copy;
}

void
gst_vlm_settings_free (GstVlmSettings *settings)
{
  g_free (settings->model);
  g_free (settings->prompt);
  g_free (settings->system_prompt);
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
}

/* ---- GObject properties ------------------------------------------------------------------- */

static void
install_general (GObjectClass *klass)
{
  g_object_class_install_property (klass, PROP_MODEL,
      g_param_spec_string ("model", "Model",
          "Path of the model: a Hugging Face directory. Unset, it is that of the environment "
          "variable VLMCAPTION_MODEL, else the small built-in model, which only knows shapes and "
          "test patterns.",
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
          "frame is always selected; 0 selects every frame.",
          0, G_MAXUINT64 - 1, DEFAULT_INTERVAL, PLAYING));
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
set_general (GstVlmSettings *settings, guint id, const GValue *value)
{
  switch (id) {
    case PROP_MODEL:
      take_string (&settings->model, value);
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
    default:
      return FALSE;
  }
  return TRUE;
}

gboolean
gst_vlm_settings_set (
    GstVlmSettings *settings, guint id, const GValue *value, const gchar **refused)
{
  *refused = NULL;

  switch (id) {
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
      return FALSE;
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
    default:
      return get_numbers (settings, id, value);
  }
  return TRUE;
}
