/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Properties, states, loading and its errors, messages. The engine is scripted. */

#include "tests/element/element-helpers.h"
#include "tests/element/scripted-engine.h"

GST_PLUGIN_STATIC_DECLARE (vlmcaption);

/* ---- Properties --------------------------------------------------------------------------- */

#define MUTABILITY (GST_PARAM_MUTABLE_READY | GST_PARAM_MUTABLE_PAUSED | GST_PARAM_MUTABLE_PLAYING)

static void
check_property (GParamSpec *spec)
{
  if (g_utf8_strlen (g_param_spec_get_blurb (spec), -1) < 20)
    g_error ("%s: no blurb", spec->name);
  if (spec->flags & G_PARAM_WRITABLE) {
    guint mutability = spec->flags & MUTABILITY;

    /* Exactly one flag. */
    if (mutability == 0 || (mutability & (mutability - 1)) != 0)
      g_error ("%s: mutability %#x", spec->name, mutability);
  }
}

static void
test_inspection (void)
{
  GstElement *element = gst_element_factory_make ("vlmcaption", NULL);
  GParamSpec **specs;
  guint n_specs, n_own = 0;
  guint i;

  specs = g_object_class_list_properties (G_OBJECT_GET_CLASS (element), &n_specs);
  for (i = 0; i < n_specs; i++) {
    if (specs[i]->owner_type == G_OBJECT_TYPE (element)) {
      check_property (specs[i]);
      n_own++;
    }
  }
  g_assert_cmpuint (n_own, ==, 29);
  g_free (specs);
  gst_object_unref (element);
}

static void
test_defaults (void)
{
  static const gchar *const ints[] = { "max-tokens", "top-k", "min-image-tokens",
    "max-image-tokens" };
  static const gchar *const doubles[] = { "temperature", "top-p", "min-p", "repetition-penalty" };
  GstElement *element = gst_element_factory_make ("vlmcaption", NULL);
  g_autofree gchar *prompt = NULL, *model = NULL;
  guint64 interval;
  gint64 seed;
  guint i;

  g_object_get (
      element, "prompt", &prompt, "model", &model, "interval", &interval, "seed", &seed, NULL);
  g_assert_cmpstr (prompt, ==, "Describe this picture in one sentence.");
  g_assert_null (model);
  g_assert_cmpuint (interval, ==, GST_SECOND);
  g_assert_cmpint (seed, ==, -1);
  for (i = 0; i < G_N_ELEMENTS (ints); i++) {
    gint value = 0;

    g_object_get (element, ints[i], &value, NULL);
    g_assert_cmpint (value, ==, -1);
  }
  for (i = 0; i < G_N_ELEMENTS (doubles); i++) {
    gdouble value = 0;

    g_object_get (element, doubles[i], &value, NULL);
    g_assert_cmpfloat (value, ==, -1);
  }
  gst_object_unref (element);
}

/* Values that lie in the range and mean nothing leave the property as it was. */
static void
test_refused (void)
{
  GstElement *element = gst_element_factory_make ("vlmcaption", NULL);
  gint max_tokens;
  gdouble temperature, penalty;

  g_object_set (element, "max-tokens", 20, "temperature", 0.5, NULL);
  g_test_expect_message (NULL, G_LOG_LEVEL_WARNING, "*max-tokens*");
  g_object_set (element, "max-tokens", 0, NULL);
  g_test_expect_message (NULL, G_LOG_LEVEL_WARNING, "*temperature*");
  g_object_set (element, "temperature", -0.5, NULL);
  g_test_expect_message (NULL, G_LOG_LEVEL_WARNING, "*repetition-penalty*");
  g_object_set (element, "repetition-penalty", 0.0, NULL);
  g_test_assert_expected_messages ();

  g_object_get (element, "max-tokens", &max_tokens, "temperature", &temperature,
      "repetition-penalty", &penalty, NULL);
  g_assert_cmpint (max_tokens, ==, 20);
  g_assert_cmpfloat (temperature, ==, 0.5);
  g_assert_cmpfloat (penalty, ==, -1);
  gst_object_unref (element);
}

/* What the engine refuses with every frame is refused here, and nothing else is. */
static void
test_limits (void)
{
  GstElement *element = gst_element_factory_make ("vlmcaption", NULL);
  GParamSpecInt *tokens;
  gdouble top_p, penalty;
  guint i;

  g_object_set (element, "top-p", 0.0, "repetition-penalty", 0.01, NULL);
  g_test_expect_message (NULL, G_LOG_LEVEL_WARNING, "*repetition-penalty*");
  g_object_set (element, "repetition-penalty", 0.009, NULL);
  g_test_assert_expected_messages ();
  g_object_get (element, "top-p", &top_p, "repetition-penalty", &penalty, NULL);
  g_assert_cmpfloat (top_p, ==, 0);
  g_assert_cmpfloat (penalty, ==, 0.01);

  for (i = 0; i < 2; i++) {
    tokens = G_PARAM_SPEC_INT (g_object_class_find_property (
        G_OBJECT_GET_CLASS (element), i == 0 ? "min-image-tokens" : "max-image-tokens"));
    g_assert_cmpint (tokens->minimum, ==, -1);
    g_assert_cmpint (tokens->maximum, ==, 8192);
  }
  gst_object_unref (element);
}

/* Two limits that contradict each other do not make every frame fail: the upper one holds. */
static void
test_contradiction (void)
{
  Fixture *f =
      fixture_new ("mode", "sync", "min-image-tokens", "100", "max-image-tokens", "50", NULL);
  VlmRequest request;

  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  request = scripted_get_request ();
  g_assert_cmpint (request.min_image_tokens, ==, 50);
  g_assert_cmpint (request.max_image_tokens, ==, 50);
  fixture_free (f);
}

/* Settings reach the engine with the frame that was selected after they were set. */
static void
test_settings_reach_request (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", "threads", "2", NULL);
  VlmRequest request;

  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  request = scripted_get_request ();
  g_assert_cmpstr (request.prompt, ==, "Describe this picture in one sentence.");
  g_assert_null (request.system_prompt);
  g_assert_cmpint (request.max_tokens, ==, -1);
  g_assert_cmpfloat (request.temperature, ==, -1);
  g_assert_cmpuint (request.seed, ==, 0);
  g_assert_cmpuint (request.n_threads, ==, 2);
  g_assert_cmpuint (scripted_get_load_threads (), ==, 2);

  g_object_set (f->element, "prompt", "Where?", "system-prompt", "Be brief.", "max-tokens", 9,
      "temperature", 0.7, "top-k", 5, "top-p", 0.9, "min-p", 0.1, "repetition-penalty", 1.1, "seed",
      (gint64) 42, "min-image-tokens", 16, "max-image-tokens", 32, NULL);
  gst_util_set_object_arg (G_OBJECT (f->element), "tiling", "off");
  g_assert_cmpint (fixture_push (f, 1), ==, GST_FLOW_OK);
  request = scripted_get_request ();
  g_assert_cmpstr (request.prompt, ==, "Where?");
  g_assert_cmpstr (request.system_prompt, ==, "Be brief.");
  g_assert_cmpint (request.max_tokens, ==, 9);
  g_assert_cmpfloat (request.temperature, ==, 0.7);
  g_assert_cmpint (request.top_k, ==, 5);
  g_assert_cmpfloat (request.top_p, ==, 0.9);
  g_assert_cmpfloat (request.min_p, ==, 0.1);
  g_assert_cmpfloat (request.repetition_penalty, ==, 1.1);
  g_assert_cmpuint (request.seed, ==, 42);
  g_assert_cmpint (request.min_image_tokens, ==, 16);
  g_assert_cmpint (request.max_image_tokens, ==, 32);
  g_assert_cmpint (request.tiling, ==, VLM_TILING_OFF);

  fixture_free (f);
}

/* ---- Models that are not there or not good ------------------------------------------------ */

static void
check_refused (const gchar *path, const gchar *mmproj, GQuark domain, gint code, const gchar *words)
{
  GstElement *element = gst_element_factory_make ("vlmcaption", NULL);
  GstBus *bus = gst_bus_new ();
  g_autoptr (GError) error = NULL;
  GstMessage *message;

  gst_element_set_bus (element, bus);
  g_object_set (element, "model", path, "mmproj", mmproj, NULL);
  g_assert_cmpint (gst_element_set_state (element, GST_STATE_READY), ==, GST_STATE_CHANGE_FAILURE);
  message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR);
  g_assert_nonnull (message);
  gst_message_parse_error (message, &error, NULL);
  g_assert_error (error, domain, code);
  g_assert_nonnull (strstr (error->message, path));
  g_assert_nonnull (strstr (error->message, words));
  gst_message_unref (message);
  g_assert_null (gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR));

  gst_element_set_state (element, GST_STATE_NULL);
  gst_bus_set_flushing (bus, TRUE);
  gst_object_unref (bus);
  gst_object_unref (element);
}

static void
check_refused_path (const gchar *path, GQuark domain, gint code)
{
  check_refused (path, NULL, domain, code, "model");
}

static void
test_missing (void)
{
  check_refused (
      "missing", NULL, GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND, "There is no model");
}

/* The model is there, its vision part is not; an empty path is none. */
static void
test_missing_vision (void)
{
  GstElement *element = gst_element_factory_make ("vlmcaption", NULL);

  check_refused ("model", "nowhere.gguf", GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND,
      "A part of the model");
  g_object_set (element, "model", "model", "mmproj", "", NULL);
  g_assert_cmpint (gst_element_set_state (element, GST_STATE_READY), ==, GST_STATE_CHANGE_SUCCESS);
  gst_element_set_state (element, GST_STATE_NULL);
  gst_object_unref (element);
}

static void
test_unreadable (void)
{
  check_refused_path ("unreadable", GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_OPEN_READ);
}

/* A wrong setting is told at once, before a pipeline waits for the model. */
static void
test_unsettled (void)
{
  check_refused_path ("unsettled", GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS);
}

/* One error, and buffers pass until the application acts. */
static void
check_failed_load (const gchar *path, const gchar *mode)
{
  Fixture *f = fixture_new ("model", path, "mode", mode, "interval", "0", NULL);
  GstMessage *message = fixture_pop_message (f, GST_MESSAGE_ERROR);
  g_autoptr (GError) error = NULL;
  guint i;

  gst_message_parse_error (message, &error, NULL);
  g_assert_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT);
  gst_message_unref (message);

  for (i = 0; i < 5; i++) {
    GstBuffer *out;

    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
    out = gst_harness_pull (f->h);
    g_assert_null (get_caption (out));
    gst_buffer_unref (out);
  }
  g_assert_cmpuint (scripted_count_begun (), ==, 0);
  g_assert_cmpuint (fixture_count_messages (f, GST_MESSAGE_ERROR), ==, 0);

  fixture_free (f);
}

static void
test_damaged (void)
{
  check_failed_load ("damaged", "async");
  check_failed_load ("damaged", "sync");
}

static void
test_blind (void)
{
  check_failed_load ("blind", "async");
}

static gpointer
push_first (gpointer user_data)
{
  return GINT_TO_POINTER (fixture_push (user_data, 0));
}

/* A frame that waits for a model that turns out damaged goes on. */
static void
test_damaged_while_waiting (void)
{
  Fixture *f;
  GThread *thread;

  scripted_hold_loading (TRUE);
  f = fixture_new ("model", "damaged", "mode", "sync", NULL);
  thread = g_thread_new ("push", push_first, f);
  wait_until (fixture_get_stat (f, "submitted") == 1);
  scripted_hold_loading (FALSE);
  g_assert_cmpint (GPOINTER_TO_INT (g_thread_join (thread)), ==, GST_FLOW_OK);
  gst_message_unref (fixture_pop_message (f, GST_MESSAGE_ERROR));

  fixture_free (f);
}

/* One failed caption is a warning; the next frame is described. */
static void
test_failed_caption (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", "prompt", "P", NULL);
  g_autoptr (GError) error = NULL;
  GstMessage *message;
  GstBuffer *out;

  scripted_fail_next (1);
  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  message = fixture_pop_message (f, GST_MESSAGE_WARNING);
  gst_message_parse_warning (message, &error, NULL);
  g_assert_error (error, GST_STREAM_ERROR, GST_STREAM_ERROR_FAILED);
  gst_message_unref (message);
  out = gst_harness_pull (f->h);
  g_assert_null (get_caption (out));
  gst_buffer_unref (out);

  g_assert_cmpint (fixture_push (f, 1), ==, GST_FLOW_OK);
  out = gst_harness_pull (f->h);
  g_assert_cmpstr (get_caption (out), ==, "P 1");
  gst_buffer_unref (out);
  g_assert_cmpuint (fixture_get_stat (f, "failed"), ==, 1);
  g_assert_cmpuint (fixture_get_stat (f, "completed"), ==, 1);

  fixture_free (f);
}

/* ---- Messages ----------------------------------------------------------------------------- */

static GstProgressType
pop_progress (Fixture *f)
{
  GstMessage *message = fixture_pop_message (f, GST_MESSAGE_PROGRESS);
  g_autofree gchar *code = NULL;
  GstProgressType type;

  gst_message_parse_progress (message, &type, &code, NULL);
  g_assert_cmpstr (code, ==, "load");
  gst_message_unref (message);

  return type;
}

static void
test_progress (void)
{
  Fixture *f = fixture_new ("mode", "async", NULL);

  g_assert_cmpint (pop_progress (f), ==, GST_PROGRESS_TYPE_START);
  g_assert_cmpint (pop_progress (f), ==, GST_PROGRESS_TYPE_CONTINUE);
  g_assert_cmpint (pop_progress (f), ==, GST_PROGRESS_TYPE_CONTINUE);
  g_assert_cmpint (pop_progress (f), ==, GST_PROGRESS_TYPE_COMPLETE);
  fixture_free (f);

  f = fixture_new ("model", "damaged", NULL);
  g_assert_cmpint (pop_progress (f), ==, GST_PROGRESS_TYPE_START);
  g_assert_cmpint (pop_progress (f), ==, GST_PROGRESS_TYPE_CONTINUE);
  g_assert_cmpint (pop_progress (f), ==, GST_PROGRESS_TYPE_ERROR);
  fixture_free (f);

  scripted_hold_loading (TRUE);
  f = fixture_new ("mode", "async", NULL);
  g_assert_cmpint (pop_progress (f), ==, GST_PROGRESS_TYPE_START);
  g_assert_cmpint (pop_progress (f), ==, GST_PROGRESS_TYPE_CONTINUE);
  gst_element_set_state (f->element, GST_STATE_READY);
  g_assert_cmpint (pop_progress (f), ==, GST_PROGRESS_TYPE_CANCELED);
  fixture_free (f);
}

static void
test_caption_message (void)
{
  Fixture *f = fixture_new ("mode", "sync", "prompt", "P", NULL);
  GstMessage *message;
  const GstStructure *s;
  guint64 u64;
  gboolean flag;
  guint u;

  g_assert_cmpint (fixture_push (f, 2), ==, GST_FLOW_OK);
  message = fixture_pop_message (f, GST_MESSAGE_ELEMENT);
  s = gst_message_get_structure (message);
  g_assert_true (GST_MESSAGE_SRC (message) == GST_OBJECT (f->element));
  g_assert_true (gst_structure_has_name (s, "vlmcaption"));
  g_assert_cmpstr (gst_structure_get_string (s, "text"), ==, "P 2");
  g_assert_cmpstr (gst_structure_get_string (s, "finish-reason"), ==, "stop");
  g_assert_cmpstr (gst_structure_get_string (s, "model"), ==, vlm_builtin_model ());
  g_assert_true (gst_structure_get_uint64 (s, "timestamp", &u64) && u64 == 2 * FRAME_DURATION);
  g_assert_true (gst_structure_get_uint64 (s, "stream-time", &u64) && u64 == 2 * FRAME_DURATION);
  g_assert_true (gst_structure_get_uint64 (s, "running-time", &u64) && u64 == 2 * FRAME_DURATION);
  g_assert_true (gst_structure_get_uint64 (s, "duration", &u64) && u64 == FRAME_DURATION);
  g_assert_true (gst_structure_get_uint64 (s, "age", &u64) && u64 == 0);
  g_assert_true (gst_structure_get_uint64 (s, "id", &u64) && u64 == 1);
  g_assert_true (gst_structure_get_uint64 (s, "dropped", &u64) && u64 == 0);
  g_assert_true (gst_structure_has_field_typed (s, "latency", G_TYPE_UINT64));
  g_assert_true (gst_structure_get_uint (s, "prompt-tokens", &u) && u == 70);
  g_assert_true (gst_structure_get_uint (s, "image-tokens", &u) && u == 64);
  g_assert_true (gst_structure_get_uint (s, "tokens", &u) && u == 3);
  g_assert_true (gst_structure_get_boolean (s, "builtin-model", &flag) && flag);
  gst_message_unref (message);

  fixture_free (f);
}

/* The built-in model says what it is: as INFO, and in its first message. */
static void
test_builtin_note (void)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", NULL);
  g_autoptr (GError) info = NULL;
  GstMessage *message = fixture_pop_message (f, GST_MESSAGE_INFO);
  guint i;

  gst_message_parse_info (message, &info, NULL);
  g_assert_nonnull (strstr (info->message, "hf download LiquidAI/LFM2.5-VL-450M"));
  gst_message_unref (message);

  for (i = 0; i < 2; i++) {
    const gchar *note;

    g_assert_cmpint (fixture_push (f, i), ==, GST_FLOW_OK);
    message = fixture_pop_message (f, GST_MESSAGE_ELEMENT);
    note = gst_structure_get_string (gst_message_get_structure (message), "note");
    if (i == 0)
      g_assert_nonnull (strstr (note, "hf download LiquidAI/LFM2.5-VL-450M"));
    else
      g_assert_null (note);
    gst_message_unref (message);
  }
  fixture_free (f);

  /* Another model says nothing. */
  f = fixture_new ("mode", "sync", "model", "some", NULL);
  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  message = fixture_pop_message (f, GST_MESSAGE_ELEMENT);
  g_assert_false (gst_structure_has_field (gst_message_get_structure (message), "note"));
  gst_message_unref (message);
  g_assert_cmpuint (fixture_count_messages (f, GST_MESSAGE_INFO), ==, 0);
  fixture_free (f);
}

static guint
count_posted (const gchar *post_messages)
{
  Fixture *f = fixture_new ("mode", "sync", "interval", "0", "post-messages", post_messages, NULL);
  static const guint8 values[] = { 1, 1, 2, 2, 2, 1 };
  guint count, i;

  for (i = 0; i < G_N_ELEMENTS (values); i++) {
    GstBuffer *frame = fixture_make_frame (i * FRAME_DURATION, values[i]);

    g_assert_cmpint (gst_harness_push (f->h, frame), ==, GST_FLOW_OK);
  }
  count = fixture_count_messages (f, GST_MESSAGE_ELEMENT);
  fixture_free (f);

  return count;
}

static void
test_post_messages (void)
{
  g_assert_cmpuint (count_posted ("none"), ==, 0);
  g_assert_cmpuint (count_posted ("changed"), ==, 3);
  g_assert_cmpuint (count_posted ("all"), ==, 6);
}

/* ---- States ------------------------------------------------------------------------------- */

/* The environment's model stands between the property and the built-in one. */
static void
test_environment (void)
{
  GstElement *element = gst_element_factory_make ("vlmcaption", NULL);

  g_setenv ("VLMCAPTION_MODEL", "missing", TRUE);
  g_assert_cmpint (gst_element_set_state (element, GST_STATE_READY), ==, GST_STATE_CHANGE_FAILURE);
  gst_element_set_state (element, GST_STATE_NULL);
  g_object_set (element, "model", "some", NULL);
  g_assert_cmpint (gst_element_set_state (element, GST_STATE_READY), ==, GST_STATE_CHANGE_SUCCESS);
  gst_element_set_state (element, GST_STATE_NULL);
  g_unsetenv ("VLMCAPTION_MODEL");
  gst_object_unref (element);
}

/* Up and down with a caption running, one waiting, or a model loading. */
static void
test_state_loop (void)
{
  Fixture *f = fixture_new ("mode", "async", "interval", "0", NULL);
  guint i;

  for (i = 0; i < 30; i++) {
    guint begun = scripted_count_begun ();

    scripted_hold_loading (i % 3 == 2);
    scripted_hold_captions ();
    gst_element_set_state (f->element, GST_STATE_PLAYING);
    gst_harness_play (f->h);
    gst_harness_push_event (f->h, gst_event_new_stream_start ("test"));
    gst_harness_set_src_caps_str (
        f->h, "video/x-raw, format=RGB, width=16, height=16, framerate=10/1");
    g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
    g_assert_cmpint (fixture_push (f, 1), ==, GST_FLOW_OK);
    if (i % 3 == 1)
      wait_until (scripted_count_begun () > begun);
    gst_element_set_state (f->element, i % 2 ? GST_STATE_NULL : GST_STATE_READY);
  }
  g_assert_cmpuint (fixture_count_messages (f, GST_MESSAGE_ERROR), ==, 0);

  fixture_free (f);
}

/* A frame that waits for its caption does not hold up the way down. */
static void
test_stop_while_waiting (void)
{
  Fixture *f = fixture_new ("mode", "sync", NULL);
  GThread *thread;

  scripted_hold_captions ();
  thread = g_thread_new ("push", push_first, f);
  wait_until (scripted_count_begun () == 1);
  g_assert_cmpint (
      gst_element_set_state (f->element, GST_STATE_NULL), ==, GST_STATE_CHANGE_SUCCESS);
  g_assert_cmpint (GPOINTER_TO_INT (g_thread_join (thread)), ==, GST_FLOW_FLUSHING);
  g_assert_cmpuint (scripted_count_cancelled (), ==, 1);

  fixture_free (f);
}

/* READY keeps the model for the next run, NULL lets it go. */
static void
test_model_kept (void)
{
  Fixture *f = fixture_new ("mode", "sync", NULL);

  g_assert_cmpint (fixture_push (f, 0), ==, GST_FLOW_OK);
  gst_element_set_state (f->element, GST_STATE_READY);
  g_assert_cmpuint (scripted_count_alive (), ==, 1);
  gst_element_set_state (f->element, GST_STATE_NULL);
  g_assert_cmpuint (scripted_count_alive (), ==, 0);

  fixture_free (f);
}

/* ---- Main --------------------------------------------------------------------------------- */

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_unsetenv ("VLMCAPTION_MODEL");
  gst_init (&argc, &argv);
  GST_PLUGIN_STATIC_REGISTER (vlmcaption);

  scripted_add_test ("/properties/inspection", test_inspection);
  scripted_add_test ("/properties/defaults", test_defaults);
  scripted_add_test ("/properties/refused", test_refused);
  scripted_add_test ("/properties/limits", test_limits);
  scripted_add_test ("/properties/contradiction", test_contradiction);
  scripted_add_test ("/properties/reach-request", test_settings_reach_request);
  scripted_add_test ("/model/missing", test_missing);
  scripted_add_test ("/model/missing-vision", test_missing_vision);
  scripted_add_test ("/model/unreadable", test_unreadable);
  scripted_add_test ("/model/unsettled", test_unsettled);
  scripted_add_test ("/model/damaged", test_damaged);
  scripted_add_test ("/model/blind", test_blind);
  scripted_add_test ("/model/damaged-while-waiting", test_damaged_while_waiting);
  scripted_add_test ("/model/failed-caption", test_failed_caption);
  scripted_add_test ("/model/environment", test_environment);
  scripted_add_test ("/messages/progress", test_progress);
  scripted_add_test ("/messages/caption", test_caption_message);
  scripted_add_test ("/messages/builtin-note", test_builtin_note);
  scripted_add_test ("/messages/post", test_post_messages);
  scripted_add_test ("/states/loop", test_state_loop);
  scripted_add_test ("/states/stop-while-waiting", test_stop_while_waiting);
  scripted_add_test ("/states/model-kept", test_model_kept);

  return g_test_run ();
}
