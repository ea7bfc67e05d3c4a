/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a session keeps from one request to the next: the prompt up to the first picture. */

#include <string.h>

#include "golden.h"
#include "session-answers.h"

typedef struct
{
  VlmModel *model;
  VlmSession *used;
  VlmImage images[2];
  guint n_asked;
} Talk;

static void
talk_init (Talk *talk)
{
  memset (talk, 0, sizeof (*talk));
  talk->model = session_load (SESSION_VL_MODEL);
  talk->used = vlm_session_new (talk->model);
  session_image_init (&talk->images[0], 300, 200, 1);
  session_image_init (&talk->images[1], 300, 200, 2);
}

static void
talk_clear (Talk *talk)
{
  vlm_session_free (talk->used);
  g_free ((gpointer) talk->images[0].pixels);
  g_free ((gpointer) talk->images[1].pixels);
  vlm_model_unref (talk->model);
}

/* Another picture each time. */
static VlmRequest
talk_request (Talk *talk, const gchar *system_prompt)
{
  VlmRequest request;

  session_request_init (&request, &talk->images[talk->n_asked++ % 2]);
  request.system_prompt = system_prompt;
  request.max_tokens = 8;
  return request;
}

/* Of a used session and a new one: the same answers. Returns how much of the prompt was kept. */
static guint
talk_ask (Talk *talk, const VlmRequest *request)
{
  VlmSession *fresh = vlm_session_new (talk->model);
  SessionAnswer answer, same;
  guint n_kept;

  session_ask (talk->used, request, &answer);
  session_ask (fresh, request, &same);
  session_assert_equal (&answer, &same);
  g_assert_cmpuint (same.result.n_kept_tokens, ==, 0);
  n_kept = answer.result.n_kept_tokens;
  g_assert_cmpuint (n_kept + answer.result.n_image_tokens, <, answer.result.n_prompt_tokens);
  session_answer_clear (&answer);
  session_answer_clear (&same);
  vlm_session_free (fresh);
  return n_kept;
}

static void
test_other_pictures (void)
{
  static const gchar *const system_prompts[] = { NULL, "Be brief.", SESSION_LONG_SYSTEM_PROMPT };
  Talk talk;
  guint i, round, n_kept, shorter = 0;

  talk_init (&talk);
  for (i = 0; i < G_N_ELEMENTS (system_prompts); i++) {
    VlmRequest request;

    for (round = 0; round < 4; round++) {
      request = talk_request (&talk, system_prompts[i]);
      n_kept = talk_ask (&talk, &request);
      g_assert_cmpint (n_kept > 0, ==, round > 0);
    }
    /* What follows the picture does not matter. */
    request = talk_request (&talk, system_prompts[i]);
    request.prompt = "Where?";
    request.prefill_chunk = 7;
    g_assert_cmpuint (talk_ask (&talk, &request), ==, n_kept);
    g_assert_cmpuint (n_kept, >, shorter);
    shorter = n_kept;
  }
  talk_clear (&talk);
}

static void
test_what_takes_it_away (void)
{
  VlmRequest request;
  Talk talk;

  talk_init (&talk);
  request = talk_request (&talk, "Be number 1.");
  g_assert_cmpuint (talk_ask (&talk, &request), ==, 0);
  /* Another text of as many tokens, and the first again. */
  request = talk_request (&talk, "Be number 2.");
  g_assert_cmpuint (talk_ask (&talk, &request), ==, 0);
  request = talk_request (&talk, "Be number 1.");
  g_assert_cmpuint (talk_ask (&talk, &request), ==, 0);
  g_assert_cmpuint (talk_ask (&talk, &request), >, 0);
  /* More room. */
  request.max_tokens = 400;
  g_assert_cmpuint (talk_ask (&talk, &request), ==, 0);
  g_assert_cmpuint (talk_ask (&talk, &request), >, 0);
  /* A request without a picture. */
  request.n_images = 0;
  request.max_tokens = 8;
  g_assert_cmpuint (talk_ask (&talk, &request), ==, 0);
  g_assert_cmpuint (talk_ask (&talk, &request), ==, 0);
  request = talk_request (&talk, "Be number 1.");
  g_assert_cmpuint (talk_ask (&talk, &request), ==, 0);
  g_assert_cmpuint (talk_ask (&talk, &request), >, 0);
  talk_clear (&talk);
}

/* Cancels when the prompt is known, before any of it is in the cache. */
static void
cancel (const gchar *name, guint index, VlmArrayType type, const gsize *shape, guint n_dims,
    gconstpointer data, gpointer user_data)
{
  (void) index, (void) type, (void) shape, (void) n_dims, (void) data;
  if (strcmp (name, "input_ids") == 0)
    g_cancellable_cancel (user_data);
}

static void
test_cancelled (void)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  const VlmWatch watch = { NULL, cancel, cancellable, cancellable };
  VlmResult result = { 0 };
  VlmRequest request;
  GError *error = NULL;
  Talk talk;
  guint i;

  talk_init (&talk);
  for (i = 0; i < 2; i++) {
    request = talk_request (&talk, "Be number 1.");
    talk_ask (&talk, &request);
    request.system_prompt = i == 0 ? "Be number 1." : "Be number 2.";
    g_assert_false (vlm_session_generate (talk.used, &request, &watch, &result, &error));
    g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    g_clear_error (&error);
    g_cancellable_reset (cancellable);
    talk_ask (&talk, &request);
    g_assert_cmpuint (talk_ask (&talk, &request), >, 0);
  }
  talk_clear (&talk);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  golden_skip_without_level ();

  g_test_add_func ("/session-prefix/other-pictures", test_other_pictures);
  g_test_add_func ("/session-prefix/what-takes-it-away", test_what_takes_it_away);
  g_test_add_func ("/session-prefix/cancelled", test_cancelled);

  return g_test_run ();
}
