/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/element/scripted-engine.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define BUILTIN "resource:scripted"

struct _VlmModel
{
  gint refcount;
  gchar *path;
};

struct _VlmSession
{
  VlmModel *model;
};

static GMutex lock;
static GCond cond;

static gboolean loading_held;
static gboolean captions_held;
static guint permits;
static guint failures;
static guint begun, done, cancelled, alive, loads_begun, loaded, load_threads;
static gint64 time_taken, word_pause;
static gboolean time_busy;
static gint64 starved;
static const gchar *const *words_said;
static VlmFinishReason said_reason;
static GBytes *picture;
static guint picture_width, picture_height;
static VlmRequest last_request;
static gchar *last_prompt, *last_system_prompt;

G_DEFINE_QUARK (vlm - error - quark, vlm_error)

/* ---- Control ------------------------------------------------------------------------------ */

void
scripted_reset (void)
{
  g_mutex_lock (&lock);
  loading_held = captions_held = FALSE;
  permits = failures = begun = done = cancelled = loads_begun = loaded = load_threads = 0;
  time_taken = word_pause = starved = 0;
  words_said = NULL;
  g_clear_pointer (&picture, g_bytes_unref);
  g_cond_broadcast (&cond);
  g_mutex_unlock (&lock);
}

void
scripted_hold_loading (gboolean hold)
{
  g_mutex_lock (&lock);
  loading_held = hold;
  g_cond_broadcast (&cond);
  g_mutex_unlock (&lock);
}

void
scripted_hold_captions (void)
{
  g_mutex_lock (&lock);
  captions_held = TRUE;
  permits = 0;
  g_mutex_unlock (&lock);
}

void
scripted_permit (guint n_captions)
{
  g_mutex_lock (&lock);
  permits += n_captions;
  g_cond_broadcast (&cond);
  g_mutex_unlock (&lock);
}

void
scripted_fail_next (guint n_captions)
{
  g_mutex_lock (&lock);
  failures = n_captions;
  g_mutex_unlock (&lock);
}

void
scripted_take_time (gint64 us, gboolean busy)
{
  g_mutex_lock (&lock);
  time_taken = us;
  time_busy = busy;
  g_mutex_unlock (&lock);
}

gint64
scripted_get_starved (void)
{
  gint64 us;

  g_mutex_lock (&lock);
  us = starved;
  g_mutex_unlock (&lock);

  return us;
}

void
scripted_say (const gchar *const *words, gint64 pause_us, VlmFinishReason reason)
{
  g_mutex_lock (&lock);
  words_said = words;
  word_pause = pause_us;
  said_reason = reason;
  g_mutex_unlock (&lock);
}

static guint
read_count (const guint *count)
{
  guint value;

  g_mutex_lock (&lock);
  value = *count;
  g_mutex_unlock (&lock);

  return value;
}

guint
scripted_count_begun (void)
{
  return read_count (&begun);
}

guint
scripted_count_done (void)
{
  return read_count (&done);
}

guint
scripted_count_cancelled (void)
{
  return read_count (&cancelled);
}

guint
scripted_count_loads_begun (void)
{
  return read_count (&loads_begun);
}

guint
scripted_count_loaded (void)
{
  return read_count (&loaded);
}

guint
scripted_get_load_threads (void)
{
  return read_count (&load_threads);
}

guint
scripted_count_alive (void)
{
  return read_count (&alive);
}

GBytes *
scripted_get_picture (guint *width, guint *height)
{
  GBytes *bytes;

  g_mutex_lock (&lock);
  bytes = picture != NULL ? g_bytes_ref (picture) : NULL;
  *width = picture_width;
  *height = picture_height;
  g_mutex_unlock (&lock);

  return bytes;
}

VlmRequest
scripted_get_request (void)
{
  VlmRequest request;

  g_mutex_lock (&lock);
  request = last_request;
  g_mutex_unlock (&lock);

  return request;
}

/* ---- The engine's interface --------------------------------------------------------------- */

static void
wake_up (GCancellable *cancellable, gpointer user_data)
{
  g_mutex_lock (&lock);
  g_cond_broadcast (&cond);
  g_mutex_unlock (&lock);
}

/* Waits while *held and no permit is left; FALSE with an error when cancelled. */
static gboolean
pass_gate (const gboolean *held, guint *allowed, GCancellable *cancellable, GError **error)
{
  gulong handler = 0;

  if (cancellable != NULL)
    handler = g_cancellable_connect (cancellable, G_CALLBACK (wake_up), NULL, NULL);

  g_mutex_lock (&lock);
  while (*held && (allowed == NULL || *allowed == 0) && !g_cancellable_is_cancelled (cancellable))
    g_cond_wait (&cond, &lock);
  if (*held && allowed != NULL && *allowed > 0)
    (*allowed)--;
  g_mutex_unlock (&lock);

  g_cancellable_disconnect (cancellable, handler);

  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}

const gchar *
vlm_builtin_model (void)
{
  return BUILTIN;
}

guint
vlm_count_cpus (void)
{
  return 2;
}

const gchar *
vlm_finish_reason_name (VlmFinishReason reason)
{
  static const gchar *const names[] = { "stop", "length", "context", "cancelled", "repetition" };

  return names[reason];
}

gboolean
vlm_model_check_path (const gchar *path, const gchar *mmproj, GError **error)
{
  if (g_str_equal (path, "missing")) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_NOT_FOUND, "%s: no such directory", path);
    return FALSE;
  }
  if (mmproj != NULL) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_NOT_FOUND, "%s: no such file", mmproj);
    return FALSE;
  }
  if (g_str_equal (path, "unreadable")) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_READ, "%s: permission denied", path);
    return FALSE;
  }
  if (g_str_equal (path, "unsettled")) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_SETTINGS, "VLM_CPU is \"typo\"");
    return FALSE;
  }
  return TRUE;
}

VlmModel *
vlm_model_load (const gchar *path, const VlmLoadOptions *options, VlmProgressFunc progress,
    gpointer user_data, GCancellable *cancellable, GError **error)
{
  VlmModel *model;

  g_mutex_lock (&lock);
  loads_begun++;
  g_mutex_unlock (&lock);
  progress (0.5, user_data);
  if (!pass_gate (&loading_held, NULL, cancellable, error))
    return NULL;
  if (g_str_equal (path, "damaged")) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT, "%s: model.safetensors is cut short", path);
    return NULL;
  }
  progress (1.0, user_data);

  model = g_new0 (VlmModel, 1);
  model->refcount = 1;
  model->path = g_strdup (path);
  g_mutex_lock (&lock);
  alive++;
  loaded++;
  load_threads = options->n_threads;
  g_mutex_unlock (&lock);

  return model;
}

VlmModel *
vlm_model_ref (VlmModel *model)
{
  g_atomic_int_inc (&model->refcount);
  return model;
}

void
vlm_model_unref (VlmModel *model)
{
  if (!g_atomic_int_dec_and_test (&model->refcount))
    return;

  g_free (model->path);
  g_free (model);
  g_mutex_lock (&lock);
  alive--;
  g_mutex_unlock (&lock);
}

void
vlm_model_get_info (const VlmModel *model, VlmModelInfo *info)
{
  memset (info, 0, sizeof *info);
  info->path = model->path;
  info->builtin = g_str_equal (model->path, BUILTIN);
  info->has_vision = !g_str_equal (model->path, "blind");
  info->family = "scripted";
}

VlmSession *
vlm_session_new (VlmModel *model)
{
  VlmSession *session = g_new0 (VlmSession, 1);

  session->model = vlm_model_ref (model);
  g_mutex_lock (&lock);
  alive++;
  g_mutex_unlock (&lock);

  return session;
}

void
vlm_session_free (VlmSession *session)
{
  vlm_model_unref (session->model);
  g_free (session);
  g_mutex_lock (&lock);
  alive--;
  g_mutex_unlock (&lock);
}

/* Called with the lock. */
static void
remember (const VlmRequest *request)
{
  const VlmImage *image = &request->images[0];
  guint8 *pixels = g_malloc (3 * image->width * image->height);
  guint y;

  for (y = 0; y < image->height; y++)
    memcpy (pixels + 3 * image->width * y, image->pixels + image->stride * y, 3 * image->width);
  g_clear_pointer (&picture, g_bytes_unref);
  picture = g_bytes_new_take (pixels, 3 * image->width * image->height);
  picture_width = image->width;
  picture_height = image->height;

  g_free (last_prompt);
  g_free (last_system_prompt);
  last_prompt = g_strdup (request->prompt);
  last_system_prompt = g_strdup (request->system_prompt);
  last_request = *request;
  last_request.prompt = last_prompt;
  last_request.system_prompt = last_system_prompt;
  last_request.images = NULL;
}

/* In us; busy: that which this thread has computed. */
static gint64
get_time (gboolean busy)
{
  struct timespec time;

  if (!busy)
    return g_get_monotonic_time ();
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * G_TIME_SPAN_SECOND + time.tv_nsec / 1000;
}

/* For how long this thread has waited for a CPU, in us. */
static gint64
get_run_delay (void)
{
  g_autofree gchar *text = NULL;
  guint64 ran, waited;

  if (!g_file_get_contents ("/proc/thread-self/schedstat", &text, NULL, NULL)
      || sscanf (text, "%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT, &ran, &waited) != 2)
    return 0;
  return waited / 1000;
}

/* FALSE with an error when cancelled. */
static gboolean
pass_time (gint64 us, gboolean busy, GCancellable *cancellable, GError **error)
{
  gint64 until = get_time (busy) + us;

  while (us > 0 && get_time (busy) < until && !g_cancellable_is_cancelled (cancellable)) {
    if (!busy)
      g_usleep (MIN (1000, us));
  }
  if (busy) {
    g_mutex_lock (&lock);
    starved = get_run_delay ();
    g_mutex_unlock (&lock);
  }
  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}

/* What is said and how long it takes, as scripted when the caption is let through. */
typedef struct
{
  gint64 time_taken, word_pause;
  gboolean time_busy;
  const gchar *const *words;
  VlmFinishReason reason;
} Script;

/* Called with the lock. */
static Script
get_script (void)
{
  return (Script){ time_taken, word_pause, time_busy, words_said, said_reason };
}

/* The scripted words, or the usual text. */
static gboolean
speak (const Script *script, const VlmRequest *request, const VlmWatch *watch, VlmResult *result,
    GError **error)
{
  GString *text;
  guint i;

  if (script->words == NULL) {
    result->text = g_strdup_printf ("%s %u", request->prompt, request->images[0].pixels[0]);
    result->finish_reason = VLM_FINISH_STOP;
    return TRUE;
  }

  text = g_string_new (NULL);
  for (i = 0; script->words[i] != NULL; i++) {
    if (!pass_time (script->word_pause, FALSE, watch->cancellable, error)) {
      g_string_free (text, TRUE);
      return FALSE;
    }
    g_string_append (text, script->words[i]);
    if (watch->text != NULL)
      watch->text (script->words[i], watch->user_data);
  }
  result->text = g_string_free (text, FALSE);
  result->finish_reason = script->reason;
  return TRUE;
}

gboolean
vlm_session_generate (VlmSession *session, const VlmRequest *request, const VlmWatch *watch,
    VlmResult *result, GError **error)
{
  VlmResult said = { 0 };
  Script script;
  gboolean fails;

  g_mutex_lock (&lock);
  begun++;
  remember (request);
  g_mutex_unlock (&lock);

  if (!pass_gate (&captions_held, &permits, watch->cancellable, error))
    goto cancelled;

  g_mutex_lock (&lock);
  script = get_script ();
  g_mutex_unlock (&lock);
  if (!pass_time (script.time_taken, script.time_busy, watch->cancellable, error)
      || !speak (&script, request, watch, &said, error))
    goto cancelled;

  g_mutex_lock (&lock);
  fails = failures > 0;
  if (fails)
    failures--;
  done++;
  g_mutex_unlock (&lock);
  if (fails) {
    vlm_result_clear (&said);
    g_set_error (error, VLM_ERROR, VLM_ERROR_CONTEXT, "scripted failure");
    return FALSE;
  }

  *result = said;
  result->n_ids = 3;
  result->n_prompt_tokens = 70;
  result->n_image_tokens = 64;
  return TRUE;

cancelled:
  g_mutex_lock (&lock);
  cancelled++;
  g_mutex_unlock (&lock);
  return FALSE;
}

void
vlm_result_clear (VlmResult *result)
{
  g_clear_pointer (&result->text, g_free);
  g_clear_pointer (&result->ids, g_free);
}

typedef void (*TestFunc) (void);

static void
run_test (gconstpointer func)
{
  scripted_reset ();
  ((TestFunc) func) ();
  g_assert_cmpuint (scripted_count_alive (), ==, 0);
}

void
scripted_add_test (const gchar *path, void (*func) (void))
{
  g_test_add_data_func (path, (gconstpointer) func, run_test);
}
