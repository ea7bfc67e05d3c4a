/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* State and errors of sessions. */

#include <sys/resource.h>
#include <string.h>

#include "engine/model/decoder.h"
#include "engine/text/detokenizer.h"
#include "engine/text/repetition.h"
#include "engine/vlm.h"
#include "cpu-seconds.h"
#include "golden.h"
#include "session-answers.h"
#include "test-image-draw.h"

/* A sanitizer needs address space of its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VLM_SANITIZED 1
#else
#define VLM_SANITIZED 0
#endif

#define BIASED_MODEL "models/untied"

/* However the work is cut: the same bits. The prompt is longer than the default chunk. */
static void
check_threads_and_chunks (const gchar *name, guint width, guint height)
{
  static const guint chunks[] = { 1, 2, 3, 16, 0, 4096 };
  VlmModel *model = session_load (name);
  VlmSession *session = vlm_session_new (model);
  VlmImage image;
  VlmRequest request;
  SessionAnswer first, other;
  guint threads, i;

  session_image_init (&image, width, height, 5);
  session_request_init (&request, &image);
  request.system_prompt = SESSION_LONG_SYSTEM_PROMPT;
  request.max_tokens = 8;
  request.n_threads = 1;
  session_ask (session, &request, &first);
  g_assert_cmpuint (first.result.n_prompt_tokens, >, VLM_PREFILL_CHUNK);
  vlm_session_free (session);
  for (threads = 1; threads <= 3; threads++) {
    for (i = 0; i < G_N_ELEMENTS (chunks); i++) {
      request.n_threads = threads;
      request.prefill_chunk = chunks[i];
      session = vlm_session_new (model);
      session_ask (session, &request, &other);
      session_assert_equal (&first, &other);
      session_answer_clear (&other);
      vlm_session_free (session);
    }
  }
  session_answer_clear (&first);
  g_free ((gpointer) image.pixels);
  vlm_model_unref (model);
}

static void
test_threads_and_chunks (void)
{
  check_threads_and_chunks (SESSION_VL_MODEL, 640, 360);
  check_threads_and_chunks (BIASED_MODEL, 900, 200);
}

static void
test_a_used_session_equals_a_fresh_one (void)
{
  VlmModel *model = session_load (SESSION_VL_MODEL);
  VlmSession *used = vlm_session_new (model);
  VlmSession *fresh;
  VlmImage large, small;
  VlmRequest a, b;
  SessionAnswer first, again, other;

  session_image_init (&large, 300, 300, 1);
  session_image_init (&small, 64, 40, 2);
  session_request_init (&a, &large);
  session_request_init (&b, &small);
  b.prompt = "What do you see?";
  b.max_tokens = 33;

  session_ask (used, &a, &first);
  session_ask (used, &b, &again);
  fresh = vlm_session_new (model);
  session_ask (fresh, &b, &other);
  session_assert_equal (&again, &other);
  session_answer_clear (&again);
  session_answer_clear (&other);
  session_ask (used, &a, &again);
  session_assert_equal (&first, &again);

  session_answer_clear (&first);
  session_answer_clear (&again);
  g_free ((gpointer) large.pixels);
  g_free ((gpointer) small.pixels);
  vlm_session_free (used);
  vlm_session_free (fresh);
  vlm_model_unref (model);
}

typedef struct
{
  VlmModel *model;
  VlmRequest request;
  const SessionAnswer *expected;
} Worker;

static gpointer
generate_many (gpointer data)
{
  Worker *worker = data;
  VlmSession *session = vlm_session_new (worker->model);
  guint i;

  for (i = 0; i < 4; i++) {
    SessionAnswer answer;

    session_ask (session, &worker->request, &answer);
    session_assert_equal (&answer, worker->expected);
    session_answer_clear (&answer);
  }
  vlm_session_free (session);
  return NULL;
}

/* Sessions take turns stage by stage; none may see anything of another. */
static void
test_two_sessions_at_once (void)
{
  VlmModel *model = session_load (SESSION_VL_MODEL);
  SessionAnswer expected[2];
  Worker workers[2];
  GThread *threads[2];
  VlmImage images[2];
  guint i;

  for (i = 0; i < 2; i++) {
    VlmSession *session = vlm_session_new (model);

    session_image_init (&images[i], 100 + 60 * i, 90, 7 + i);
    session_request_init (&workers[i].request, &images[i]);
    workers[i].request.n_threads = 2;
    workers[i].model = model;
    workers[i].expected = &expected[i];
    session_ask (session, &workers[i].request, &expected[i]);
    vlm_session_free (session);
  }
  for (i = 0; i < 2; i++)
    threads[i] = g_thread_new ("session", generate_many, &workers[i]);
  for (i = 0; i < 2; i++)
    g_thread_join (threads[i]);
  for (i = 0; i < 2; i++) {
    session_answer_clear (&expected[i]);
    g_free ((gpointer) images[i].pixels);
  }
  vlm_model_unref (model);
}

/* One decoder with a cache of its own, driven by ids. */
typedef struct
{
  VlmModel *model;
  VlmTeam *team;
  VlmArena arena;
  VlmCache cache;
} Decoder;

static void
decoder_init (Decoder *decoder, VlmModel *model)
{
  GError *error = NULL;

  memset (decoder, 0, sizeof (*decoder));
  decoder->model = model;
  decoder->team = vlm_team_new (2, NULL);
  vlm_cache_init (&decoder->cache, &model->config.text);
  vlm_cache_reset (&decoder->cache, 64, &error);
  g_assert_no_error (error);
}

static void
decoder_clear (Decoder *decoder)
{
  vlm_cache_clear (&decoder->cache);
  vlm_arena_clear (&decoder->arena);
  vlm_team_free (decoder->team);
}

/* Feeds n ids; leaves what comes out for the last n_wanted in x [n][hidden], and the last's logits. */
static void
decoder_feed_rows (
    Decoder *decoder, const gint32 *ids, gsize n, gsize n_wanted, gfloat *x, gfloat *logits)
{
  VlmModel *model = decoder->model;
  gsize hidden = model->config.text.hidden_size;
  GError *error = NULL;
  gsize i;

  for (i = 0; i < n; i++)
    vlm_matrix_get_row (model->weights->embedding, &model->kernels, ids[i], x + i * hidden);
  g_assert_true (vlm_team_begin_turn (decoder->team));
  vlm_decoder_forward (
      model, decoder->team, &decoder->arena, &decoder->cache, x, n, n_wanted, &error);
  g_assert_no_error (error);
  vlm_decoder_logits (model, decoder->team, &decoder->arena, x + (n - 1) * hidden, logits, &error);
  g_assert_no_error (error);
  vlm_team_end_turn (decoder->team);
}

/* Feeds n ids and leaves the logits after the last. */
static void
decoder_feed (Decoder *decoder, const gint32 *ids, gsize n, gfloat *logits)
{
  g_autofree gfloat *x = g_new (gfloat, n * decoder->model->config.text.hidden_size);

  decoder_feed_rows (decoder, ids, n, 1, x, logits);
}

/* Token by token with a cache, and each prefix anew without one: the same logits, bit by bit. */
static void
test_cache_equals_no_cache (void)
{
  static const gchar *const names[] = { SESSION_VL_MODEL, SESSION_TEXT_MODEL };
  gint32 ids[40];
  guint i, m;

  for (m = 0; m < G_N_ELEMENTS (names); m++) {
    VlmModel *model = session_load (names[m]);
    gsize vocab = model->config.text.vocab_size;
    g_autofree gfloat *stepped = g_new (gfloat, vocab);
    g_autofree gfloat *whole = g_new (gfloat, vocab);
    Decoder cached;

    for (i = 0; i < G_N_ELEMENTS (ids); i++)
      ids[i] = test_image_splitmix (i) % vocab;
    decoder_init (&cached, model);
    for (i = 0; i < G_N_ELEMENTS (ids); i++) {
      Decoder fresh;

      decoder_feed (&cached, &ids[i], 1, stepped);
      decoder_init (&fresh, model);
      decoder_feed (&fresh, ids, i + 1, whole);
      g_assert_cmpmem (stepped, vocab * sizeof (gfloat), whole, vocab * sizeof (gfloat));
      decoder_clear (&fresh);
    }
    decoder_clear (&cached);
    vlm_model_unref (model);
  }
}

/* A prefill of one, two or three tokens and a step, against all at once. */
static void
test_short_prefill_keeps_the_convolution_state (void)
{
  VlmModel *model = session_load (SESSION_VL_MODEL);
  gsize vocab = model->config.text.vocab_size;
  g_autofree gfloat *stepped = g_new (gfloat, vocab);
  g_autofree gfloat *whole = g_new (gfloat, vocab);
  const gint32 ids[] = { 5, 9, 300, 17, 44 };
  guint n;

  for (n = 1; n <= 3; n++) {
    Decoder a, b;

    decoder_init (&a, model);
    decoder_init (&b, model);
    decoder_feed (&a, ids, n, stepped);
    decoder_feed (&a, ids + n, G_N_ELEMENTS (ids) - n, stepped);
    decoder_feed (&b, ids, G_N_ELEMENTS (ids), whole);
    g_assert_cmpmem (stepped, vocab * sizeof (gfloat), whole, vocab * sizeof (gfloat));
    decoder_clear (&a);
    decoder_clear (&b);
  }
  vlm_model_unref (model);
}

/* A second chunk of ids, of which n_wanted rows are asked for, and a token: rows and both logits. */
static void
feed_wanted (VlmModel *model, const gint32 *ids, gsize n, gsize n_wanted, gfloat *x, gfloat *logits)
{
  static const gint32 before[] = { 3, 250, 11, 4 }, after = 21;
  gsize vocab = model->config.text.vocab_size;
  Decoder decoder;

  decoder_init (&decoder, model);
  decoder_feed (&decoder, before, G_N_ELEMENTS (before), logits);
  decoder_feed_rows (&decoder, ids, n, n_wanted, x, logits);
  decoder_feed (&decoder, &after, 1, logits + vocab);
  decoder_clear (&decoder);
}

/* Rows that nobody wants are left out; all others, the logits and the cache have the same bits. */
static void
test_wanted_rows (void)
{
  static const gchar *const names[] = { SESSION_VL_MODEL, SESSION_TEXT_MODEL };
  static const gint32 ids[] = { 5, 9, 300, 17, 44, 8, 8, 120, 61, 2, 77, 39 };
  const gsize n = G_N_ELEMENTS (ids);
  guint m;

  for (m = 0; m < G_N_ELEMENTS (names); m++) {
    VlmModel *model = session_load (names[m]);
    gsize hidden = model->config.text.hidden_size, vocab = model->config.text.vocab_size, wanted;
    g_autofree gfloat *all = g_new (gfloat, n * hidden), *rows = g_new (gfloat, n * hidden);
    g_autofree gfloat *logits = g_new (gfloat, 2 * vocab), *same = g_new (gfloat, 2 * vocab);

    feed_wanted (model, ids, n, n, all, logits);
    for (wanted = 1; wanted < n; wanted++) {
      gsize first = (n - wanted) * hidden;

      feed_wanted (model, ids, n, wanted, rows, same);
      g_assert_cmpmem (all + first, wanted * hidden * sizeof (gfloat), rows + first,
          wanted * hidden * sizeof (gfloat));
      g_assert_cmpmem (logits, 2 * vocab * sizeof (gfloat), same, 2 * vocab * sizeof (gfloat));
      /* It is worth nothing unless rows are left out. */
      g_assert_cmpint (wanted == 1 && memcmp (all, rows, hidden * sizeof (gfloat)) == 0, ==, FALSE);
    }
    vlm_model_unref (model);
  }
}

static void
expect_error (
    VlmModel *model, const VlmRequest *request, GQuark domain, gint code, const gchar *mentions)
{
  VlmSession *session = vlm_session_new (model);
  VlmResult result = { 0 };
  GError *error = NULL;

  g_assert_false (vlm_session_generate (session, request, NULL, &result, &error));
  g_assert_error (error, domain, code);
  g_assert_nonnull (strstr (error->message, mentions));
  g_assert_null (result.text);
  g_clear_error (&error);
  vlm_session_free (session);
}

static void
test_bad_requests (void)
{
  VlmModel *model = session_load (SESSION_VL_MODEL);
  VlmModel *text = session_load (SESSION_TEXT_MODEL);
  VlmRequest request;
  VlmImage image;
  guint8 pixel[3] = { 0 };

  session_image_init (&image, 64, 64, 1);
  session_request_init (&request, &image);
  expect_error (text, &request, VLM_ERROR, VLM_ERROR_UNSUPPORTED, "1 were given");

  image.stride = 64;
  expect_error (model, &request, VLM_ERROR, VLM_ERROR_IMAGE, "64 bytes");
  image.stride = 64 * 3;

  request.temperature = -3;
  expect_error (model, &request, VLM_ERROR, VLM_ERROR_SETTINGS, "temperature is -3");
  request.temperature = 0;
  request.max_tokens = 0;
  expect_error (model, &request, VLM_ERROR, VLM_ERROR_SETTINGS, "max-tokens is 0");
  request.max_tokens = 8;
  request.min_image_tokens = 100;
  request.max_image_tokens = 50;
  expect_error (model, &request, VLM_ERROR, VLM_ERROR_SETTINGS, "min-image-tokens is 100");
  request.min_image_tokens = request.max_image_tokens = -1;
  request.max_tiles = 101;
  expect_error (model, &request, VLM_ERROR, VLM_ERROR_SETTINGS, "max-tiles is 101");
  request.min_tiles = 8;
  request.max_tiles = 3;
  expect_error (model, &request, VLM_ERROR, VLM_ERROR_SETTINGS, "min_tiles 8");
  request.min_tiles = request.max_tiles = -1;
  request.prefill_chunk = 5000;
  expect_error (model, &request, VLM_ERROR, VLM_ERROR_SETTINGS, "prefill-chunk is 5000");
  g_free ((gpointer) image.pixels);

  session_request_init (&request, &image);
  image.pixels = pixel;
  image.width = 0;
  image.height = 10;
  image.stride = 3;
  expect_error (model, &request, VLM_ERROR, VLM_ERROR_IMAGE, "0");
  vlm_model_unref (model);
  vlm_model_unref (text);
}

/* A prompt that does not fit is refused; an answer that runs into the end says so. */
static void
test_context (void)
{
  VlmModel *model = session_load (SESSION_TEXT_MODEL);
  VlmSession *session = vlm_session_new (model);
  VlmRequest request;
  SessionAnswer answer;
  guint context = model->config.text.max_context;

  session_request_init (&request, NULL);
  session_ask (session, &request, &answer);
  model->config.text.max_context = answer.result.n_prompt_tokens + 3;
  session_answer_clear (&answer);
  session_ask (session, &request, &answer);
  g_assert_cmpint (answer.result.finish_reason, ==, VLM_FINISH_CONTEXT);
  g_assert_cmpuint (answer.result.n_ids, ==, 4);
  model->config.text.max_context = answer.result.n_prompt_tokens;
  expect_error (model, &request, VLM_ERROR, VLM_ERROR_CONTEXT, "the model's context holds");
  session_answer_clear (&answer);
  model->config.text.max_context = context;
  vlm_session_free (session);
  vlm_model_unref (model);
}

/* A text that cannot fit is refused before it is tokenised, however long. */
static void
test_endless_prompt (void)
{
  VlmModel *model = session_load (SESSION_TEXT_MODEL);
  gsize length = 100 * 1000 * 1000;
  g_autofree gchar *prompt = g_malloc (length + 1);
  VlmRequest request;

  memset (prompt, 'a', length);
  prompt[length] = '\0';
  session_request_init (&request, NULL);
  request.prompt = prompt;
  expect_error (model, &request, VLM_ERROR, VLM_ERROR_CONTEXT, "the model's context holds");
  vlm_model_unref (model);
}

static guint
count_image_tokens (VlmModel *model, const VlmRequest *request)
{
  VlmSession *session = vlm_session_new (model);
  SessionAnswer answer;
  guint n;

  session_ask (session, request, &answer);
  n = answer.result.n_image_tokens;
  session_answer_clear (&answer);
  vlm_session_free (session);
  return n;
}

/* What the processor file says can be asked otherwise. lfm2-first: see its processor file. */
static void
test_image_settings (void)
{
  VlmModel *model = session_load (SESSION_VL_MODEL);
  const VlmProcessor *processor = &model->processor;
  guint tile_tokens = processor->tile_size * processor->tile_size / 1024;
  VlmImage image;
  VlmRequest request;
  guint as_is, untiled, bare;

  session_image_init (&image, 640, 360, 1);
  session_request_init (&request, &image);
  request.max_tokens = 1;
  as_is = count_image_tokens (model, &request);

  request.tiling = VLM_TILING_OFF;
  untiled = count_image_tokens (model, &request);
  g_assert_cmpuint (untiled, <=, processor->max_image_tokens);
  g_assert_cmpuint (untiled, <, as_is);

  request.tiling = VLM_TILING_ON;
  request.use_thumbnail = FALSE;
  bare = count_image_tokens (model, &request);
  g_assert_cmpuint (bare % tile_tokens, ==, 0);
  request.use_thumbnail = TRUE;
  g_assert_cmpuint (count_image_tokens (model, &request), ==, bare + untiled);

  request.use_thumbnail = FALSE;
  request.min_tiles = request.max_tiles = 3;
  g_assert_cmpuint (count_image_tokens (model, &request), ==, 3 * tile_tokens);

  request.tiling = VLM_TILING_OFF;
  request.max_image_tokens = 20;
  g_assert_cmpuint (count_image_tokens (model, &request), <=, 20);

  g_free ((gpointer) image.pixels);
  vlm_model_unref (model);
}

/* Too little memory ends a request or a load with an error, not the process. */
static void
test_little_memory (void)
{
  if (g_test_subprocess ()) {
    VlmModel *model = session_load (SESSION_VL_MODEL);
    struct rlimit limit = { 0, RLIM_INFINITY };
    VlmResult result = { 0 };
    VlmImage image;
    VlmRequest request;
    VlmSession *session = vlm_session_new (model);
    GError *error = NULL;

    session_image_init (&image, 16384, 16, 1);
    session_request_init (&request, &image);
    /* Less than what is mapped already: nothing that needs new pages succeeds. */
    limit.rlim_cur = 1 << 20;
    g_assert_cmpint (setrlimit (RLIMIT_AS, &limit), ==, 0);
    if (vlm_session_generate (session, &request, NULL, &result, &error))
      exit (2);
    exit (g_error_matches (error, VLM_ERROR, VLM_ERROR_MEMORY) ? 0 : 3);
  }
  g_test_trap_subprocess (NULL, 0, 0);
  g_test_trap_assert_passed ();
}

typedef struct
{
  GCancellable *cancellable;
  guint left;
} CancelText;

static void
cancel_after_some_text (const gchar *delta, gpointer user_data)
{
  CancelText *cancel = user_data;

  if (cancel->left-- == 0)
    g_cancellable_cancel (cancel->cancellable);
}

static void
test_cancel (void)
{
  VlmModel *model = session_load (SESSION_VL_MODEL);
  VlmSession *session = vlm_session_new (model);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  CancelText cancel = { cancellable, 2 };
  VlmWatch watch = { cancel_after_some_text, NULL, &cancel, cancellable };
  VlmResult result = { 0 };
  VlmImage image;
  VlmRequest request;
  GError *error = NULL;
  SessionAnswer before, after;

  session_image_init (&image, 80, 60, 3);
  session_request_init (&request, &image);
  session_ask (session, &request, &before);
  g_assert_false (vlm_session_generate (session, &request, &watch, &result, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_null (result.text);

  /* Cancelled from the start. */
  g_assert_false (vlm_session_generate (session, &request, &watch, &result, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);

  /* The session is as good as new. */
  session_ask (session, &request, &after);
  session_assert_equal (&before, &after);
  session_answer_clear (&before);
  session_answer_clear (&after);
  g_free ((gpointer) image.pixels);
  vlm_session_free (session);
  vlm_model_unref (model);
}

static void
append_delta (const gchar *delta, gpointer user_data)
{
  g_assert_true (g_utf8_validate (delta, -1, NULL));
  g_string_append (user_data, delta);
}

static void
test_streamed_text_adds_up (void)
{
  VlmModel *model = session_load (SESSION_TEXT_MODEL);
  VlmSession *session = vlm_session_new (model);
  g_autoptr (GString) streamed = g_string_new (NULL);
  VlmWatch watch = { append_delta, NULL, streamed, NULL };
  VlmResult result = { 0 };
  VlmRequest request;
  GError *error = NULL;

  session_request_init (&request, NULL);
  request.max_tokens = 64;
  g_assert_true (vlm_session_generate (session, &request, &watch, &result, &error));
  g_assert_no_error (error);
  g_assert_cmpstr (g_strstrip (streamed->str), ==, result.text);
  vlm_result_clear (&result);
  vlm_session_free (session);
  vlm_model_unref (model);
}

/* How many of the ids there are when a loop is noticed, and how many are kept; FALSE if never. */
static gboolean
find_loop (const VlmResult *result, gsize *n_seen, gsize *n_kept)
{
  for (*n_seen = 1; *n_seen <= result->n_ids; (*n_seen)++) {
    if (vlm_repetition_find (result->ids, *n_seen, n_kept))
      return TRUE;
  }
  return FALSE;
}

/* What n ids show before the text ends: half a character at the cut is not. (transfer full) */
static gchar *
shown_text (VlmModel *model, const gint32 *ids, gsize n)
{
  VlmDetokenizer *detokenizer = vlm_detokenizer_new (model->tokenizer, TRUE);
  GString *text = g_string_new (NULL);
  gsize i;

  for (i = 0; i < n; i++)
    vlm_detokenizer_push (detokenizer, ids[i], text);
  vlm_detokenizer_free (detokenizer);
  return g_string_free (text, FALSE);
}

/* The answer that is ended is the one that goes on, up to the loop's third round. */
static void
test_loops_end (void)
{
  static const gchar *const prompts[] = { "a", "Describe.", "What is it?", "one two three" };
  VlmModel *model = session_load (SESSION_TEXT_MODEL);
  VlmSession *session = vlm_session_new (model);
  VlmRequest request;
  SessionAnswer endless, ended;
  guint i, n_loops = 0;

  session_request_init (&request, NULL);
  request.max_tokens = 100;
  request.repetition_penalty = 0.5; /* rewards what was said before */
  for (i = 0; i < G_N_ELEMENTS (prompts); i++) {
    g_autofree gchar *text = NULL;
    gsize n_seen, n_kept;

    request.prompt = prompts[i];
    request.end_loops = FALSE;
    session_ask (session, &request, &endless);
    request.end_loops = TRUE;
    session_ask (session, &request, &ended);
    if (find_loop (&endless.result, &n_seen, &n_kept)) {
      n_loops++;
      g_assert_cmpint (ended.result.finish_reason, ==, VLM_FINISH_REPETITION);
      g_assert_cmpmem (ended.result.ids, ended.result.n_ids * sizeof (gint32), endless.result.ids,
          n_seen * sizeof (gint32));
      text = shown_text (model, ended.result.ids, n_kept);
      g_assert_cmpstr (ended.result.text, ==, g_strstrip (text));
    } else {
      session_assert_equal (&endless, &ended);
    }
    session_answer_clear (&endless);
    session_answer_clear (&ended);
  }
  g_assert_cmpuint (n_loops, >, 0);
  vlm_session_free (session);
  vlm_model_unref (model);
}

/* After an answer its threads sleep: less than half a percent of a CPU. */
static void
test_idle (void)
{
  VlmModel *model = session_load (SESSION_TEXT_MODEL);
  VlmSession *session = vlm_session_new (model);
  VlmRequest request;
  SessionAnswer answer;
  gdouble before;

  session_request_init (&request, NULL);
  request.n_threads = 4;
  session_ask (session, &request, &answer);
  before = cpu_seconds ();
  g_usleep (G_USEC_PER_SEC);
  g_assert_cmpfloat (cpu_seconds () - before, <, 0.005);
  session_answer_clear (&answer);
  vlm_session_free (session);
  vlm_model_unref (model);
}

int
main (int argc, char **argv)
{
  golden_skip_without_level ();
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/session/threads-and-chunks", test_threads_and_chunks);
  g_test_add_func ("/session/reuse", test_a_used_session_equals_a_fresh_one);
  g_test_add_func ("/session/two-at-once", test_two_sessions_at_once);
  g_test_add_func ("/session/cache", test_cache_equals_no_cache);
  g_test_add_func ("/session/short-prefill", test_short_prefill_keeps_the_convolution_state);
  g_test_add_func ("/session/wanted-rows", test_wanted_rows);
  g_test_add_func ("/session/bad-requests", test_bad_requests);
  g_test_add_func ("/session/context", test_context);
  g_test_add_func ("/session/endless-prompt", test_endless_prompt);
  g_test_add_func ("/session/image-settings", test_image_settings);
  if (!VLM_SANITIZED)
    g_test_add_func ("/session/little-memory", test_little_memory);
  g_test_add_func ("/session/cancel", test_cancel);
  g_test_add_func ("/session/streaming", test_streamed_text_adds_up);
  g_test_add_func ("/session/loops-end", test_loops_end);
  g_test_add_func ("/session/idle", test_idle);
  return g_test_run ();
}
