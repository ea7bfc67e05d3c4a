/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One stream's way through the model: pictures and a prompt in, an answer out. */

#include <string.h>

#include "decoder.h"
#include "engine/image/crops.h"
#include "engine/runtime/alloc.h"
#include "engine/runtime/arena.h"
#include "engine/text/detokenizer.h"
#include "engine/text/repetition.h"
#include "sampler.h"
#include "settings.h"
#include "vision.h"

/* What requests write and read. Memory taken anew would be cleared first, page by page. */
enum
{
  KEPT_ROWS,
  KEPT_FEATURES,
  KEPT_IMAGE_EMBEDS,
  KEPT_EMBEDS,
  KEPT_LOGITS,
  N_KEPT
};

/* An array that stays from one request to the next. */
typedef struct
{
  gfloat *values;
  gsize n;
} KeptArray;

struct _VlmSession
{
  VlmModel *model;
  VlmArena arena;
  KeptArray kept[N_KEPT];
  VlmCache cache;
  GArray *prefix; /* gint32 ids that the cache is marked behind */
};

/* One request while it is answered. */
typedef struct
{
  VlmSession *session;
  VlmModel *model;
  const VlmRequest *request;
  const VlmWatch *watch;
  VlmTeam *team;
  VlmSettings settings;

  VlmLayout *layouts; /* [n_images] */
  guint n_crops;      /* counted over all pictures, for the watcher */
  GArray *prompt;     /* gint32 ids */
  gsize n_image_tokens;
  gsize n_kept_tokens; /* of the prompt, which the cache has from the request before */
  /* Kept by the session. */
  gfloat *image_embeds; /* [n_image_tokens][hidden] */
  gfloat *embeds;       /* [prefill chunk][hidden] */
  gfloat *logits;       /* [vocab_size] */

  GArray *output; /* gint32 ids */
  GString *text;
  GArray *text_ends; /* gsize, length of text after each of output */
  VlmFinishReason finish_reason;
  VlmTimings timings;
} Answer;

VlmSession *
vlm_session_new (VlmModel *model)
{
  VlmSession *session = g_new0 (VlmSession, 1);

  session->model = vlm_model_ref (model);
  vlm_cache_init (&session->cache, &model->config.text);
  session->prefix = g_array_new (FALSE, FALSE, sizeof (gint32));
  return session;
}

void
vlm_session_free (VlmSession *session)
{
  guint i;

  if (session == NULL)
    return;
  for (i = 0; i < N_KEPT; i++)
    g_free (session->kept[i].values);
  g_array_unref (session->prefix);
  vlm_cache_clear (&session->cache);
  vlm_arena_clear (&session->arena);
  vlm_model_unref (session->model);
  g_free (session);
}

/* The array with that number: at least rows times columns, contents undefined. */
static gfloat *
take_array (VlmSession *session, guint number, gsize rows, gsize columns, GError **error)
{
  static const gchar *const names[N_KEPT] = { "patch rows", "the tower's features",
    "the embeddings of image tokens", "the embeddings of a chunk", "the logits" };
  KeptArray *kept = &session->kept[number];

  if (kept->values != NULL && rows <= kept->n / columns)
    return kept->values;
  g_free (kept->values);
  kept->values = vlm_alloc (rows, columns * sizeof (gfloat), names[number], error);
  kept->n = kept->values != NULL ? rows * columns : 0;
  return kept->values;
}

/* Adds the time since *since to *sum and starts the next measurement. */
static void
lap (gint64 *since, gdouble *sum)
{
  gint64 now = g_get_monotonic_time ();

  *sum += (gdouble) (now - *since) / G_USEC_PER_SEC;
  *since = now;
}

static void
show_array (const Answer *answer, const gchar *name, guint index, VlmArrayType type, gsize rows,
    gsize columns, gconstpointer data)
{
  const VlmWatch *watch = answer->watch;
  const gsize shape[2] = { rows, columns };

  if (watch != NULL && watch->array != NULL)
    watch->array (name, index, type, shape, columns > 0 ? 2 : 1, data, watch->user_data);
}

/* Begins this answer's turn of the team, or reports the cancellation. */
static gboolean
begin_turn (Answer *answer, GError **error)
{
  return vlm_team_begin_turn (answer->team) || vlm_set_cancelled (error);
}

/* Before work that has no turn of its own to look at the cancellable. */
static gboolean
is_cancelled (const Answer *answer, GError **error)
{
  return answer->watch != NULL
      && g_cancellable_set_error_if_cancelled (answer->watch->cancellable, error);
}

/* ---- Pictures ----------------------------------------------------------------------------- */

/* Whether n_tokens of prompt, or at least as many, leave room for an answer. */
static gboolean
check_context (const Answer *answer, gsize n_tokens, GError **error)
{
  guint max_context = answer->model->config.text.max_context;

  if (n_tokens < max_context)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_CONTEXT,
      "The prompt has at least %" G_GSIZE_FORMAT " tokens (%" G_GSIZE_FORMAT
      " of them from pictures), but the model's context holds %u and the answer needs room",
      n_tokens, answer->n_image_tokens, max_context);
  return FALSE;
}

static gboolean
plan_images (Answer *answer, GError **error)
{
  const VlmRequest *request = answer->request;
  guint i;

  if (request->n_images > 0 && !answer->model->config.has_vision) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
        "%s is a text model and cannot look at pictures, but %u were given (the vision part of a "
        "GGUF model lies beside it, or is what mmproj names)",
        answer->model->path, request->n_images);
    return FALSE;
  }
  answer->layouts = g_new0 (VlmLayout, MAX (request->n_images, 1));
  for (i = 0; i < request->n_images; i++) {
    const VlmImage *image = &request->images[i];

    if (image->stride / 3 < image->width) {
      g_set_error (error, VLM_ERROR, VLM_ERROR_IMAGE,
          "A picture %u pixels wide has rows of %" G_GSIZE_FORMAT
          " bytes, expected at least 3 bytes a pixel",
          image->width, image->stride);
      return FALSE;
    }
    if (!vlm_layout_plan (
            &answer->layouts[i], &answer->settings.processor, image->width, image->height, error))
      return FALSE;
    answer->n_image_tokens += answer->layouts[i].image_tokens;
    /* Now, and not after the prompt of all pictures has been built. */
    if (!check_context (answer, answer->n_image_tokens, error))
      return FALSE;
  }
  return TRUE;
}

/* Takes one crop through tower and projector; returns the number of its tokens, 0 on failure. */
static gsize
encode_crop (
    Answer *answer, GBytes *crop, guint width, guint height, gfloat *tokens, GError **error)
{
  VlmModel *model = answer->model;
  const VlmProcessor *processor = &answer->settings.processor;
  guint patch = processor->patch_size;
  guint grid_rows = height / patch;
  guint grid_columns = width / patch;
  gsize n = (gsize) grid_rows * grid_columns;
  gsize patch_len = (gsize) patch * patch * 3;
  gsize hidden = model->config.vision.hidden_size;
  guint factor = model->config.projector.downsample_factor;
  gfloat *rows = take_array (answer->session, KEPT_ROWS, n, patch_len, error);
  gfloat *features;
  const gsize crop_shape[3] = { height, width, 3 };
  gint64 since = g_get_monotonic_time ();
  gboolean ok;

  if (rows == NULL)
    return 0;
  features = take_array (answer->session, KEPT_FEATURES, n, hidden, error);
  if (features == NULL)
    return 0;
  vlm_crop_patches (processor, g_bytes_get_data (crop, NULL), width, height, rows);
  lap (&since, &answer->timings.image);

  if (!begin_turn (answer, error))
    return 0;
  ok = vlm_vision_tower (model, answer->team, &answer->session->arena, rows, grid_rows,
           grid_columns, features, error)
      && vlm_vision_project (model, answer->team, &answer->session->arena, features, grid_rows,
          grid_columns, tokens, error);
  vlm_team_end_turn (answer->team);
  if (!ok)
    return 0;
  lap (&since, &answer->timings.vision);

  if (answer->watch != NULL && answer->watch->array != NULL)
    answer->watch->array ("crop", answer->n_crops, VLM_ARRAY_U8, crop_shape, 3,
        g_bytes_get_data (crop, NULL), answer->watch->user_data);
  show_array (answer, "patches", answer->n_crops, VLM_ARRAY_F32, n, patch_len, rows);
  show_array (answer, "tower", answer->n_crops, VLM_ARRAY_F32, n, hidden, features);
  answer->n_crops++;
  return n / factor / factor;
}

static gboolean
encode_image (Answer *answer, guint index, gfloat **tokens, GError **error)
{
  const VlmLayout *layout = &answer->layouts[index];
  gsize hidden = answer->model->config.text.hidden_size;
  gint64 since = g_get_monotonic_time ();
  g_autoptr (GPtrArray) crops = NULL;
  guint i, width, height;

  if (is_cancelled (answer, error))
    return FALSE;
  crops = vlm_image_crops (&answer->model->kernels, &answer->settings.processor, layout,
      &answer->request->images[index], error);
  if (crops == NULL)
    return FALSE;
  lap (&since, &answer->timings.image);

  for (i = 0; i < crops->len; i++) {
    gsize n;

    vlm_layout_crop_size (layout, i, &width, &height);
    n = encode_crop (answer, crops->pdata[i], width, height, *tokens, error);
    if (n == 0)
      return FALSE;
    *tokens += n * hidden;
  }
  return TRUE;
}

static gboolean
encode_images (Answer *answer, GError **error)
{
  gsize hidden = answer->model->config.text.hidden_size;
  gfloat *tokens;
  guint i;

  if (answer->n_image_tokens == 0)
    return TRUE;
  answer->image_embeds =
      take_array (answer->session, KEPT_IMAGE_EMBEDS, answer->n_image_tokens, hidden, error);
  if (answer->image_embeds == NULL)
    return FALSE;
  tokens = answer->image_embeds;
  for (i = 0; i < answer->request->n_images; i++) {
    if (!encode_image (answer, i, &tokens, error))
      return FALSE;
  }
  show_array (answer, "image_embeds", 0, VLM_ARRAY_F32, answer->n_image_tokens, hidden,
      answer->image_embeds);
  return TRUE;
}

/* ---- Text --------------------------------------------------------------------------------- */

static gsize
text_length (const gchar *text)
{
  return text != NULL ? strlen (text) : 0;
}

/* Builds the prompt's ids and checks that it and at least one answer token fit the context. */
static gboolean
build_prompt (Answer *answer, GError **error)
{
  VlmModel *model = answer->model;
  const VlmRequest *request = answer->request;
  gsize n_bytes = text_length (request->system_prompt) + text_length (request->prompt);
  gsize i, n_placeholders = 0;

  /* No token stands for more bytes than the longest: a text far too long is not tokenised first. */
  if (!check_context (answer, n_bytes / model->longest_token, error))
    return FALSE;
  answer->prompt = g_array_new (FALSE, FALSE, sizeof (gint32));
  if (!vlm_chat_build (model->tokenizer, &model->chat_tokens, request->system_prompt,
          request->prompt, answer->layouts, request->n_images, answer->prompt, error))
    return FALSE;

  if (!check_context (answer, answer->prompt->len, error))
    return FALSE;
  for (i = 0; i < answer->prompt->len; i++) {
    gint32 id = g_array_index (answer->prompt, gint32, i);

    if (model->config.has_vision && id == model->chat_tokens.image)
      n_placeholders++;
  }
  /* A vocabulary whose plain merges spell the image token would misplace every picture row. */
  if (n_placeholders != answer->n_image_tokens) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "The prompt has %" G_GSIZE_FORMAT " image tokens, expected %" G_GSIZE_FORMAT
        " for its pictures",
        n_placeholders, answer->n_image_tokens);
    return FALSE;
  }
  return TRUE;
}

/* Embeddings of prompt tokens first .. first + n - 1; image tokens take the next image row. */
static void
embed_prompt (Answer *answer, gsize first, gsize n, gsize *next_image_row)
{
  VlmModel *model = answer->model;
  gsize hidden = model->config.text.hidden_size;
  gsize i;

  for (i = 0; i < n; i++) {
    gint32 id = g_array_index (answer->prompt, gint32, first + i);
    gfloat *row = answer->embeds + i * hidden;

    if (answer->n_image_tokens > 0 && id == model->chat_tokens.image)
      memcpy (row, answer->image_embeds + (*next_image_row)++ * hidden, hidden * sizeof (gfloat));
    else
      vlm_matrix_get_row (model->weights->embedding, &model->kernels, (guint) id, row);
  }
}

/* Tokens of the prompt before its first picture, which are often those of the last request. */
static gsize
count_prefix (const Answer *answer)
{
  gsize i;

  for (i = 0; answer->n_image_tokens > 0 && i < answer->prompt->len; i++) {
    if (g_array_index (answer->prompt, gint32, i) == answer->model->chat_tokens.image)
      return i;
  }
  return 0;
}

/* Takes the prompt from where the cache ends, before the first picture, up to token end through the
 * decoder. */
static gboolean
feed_prompt (Answer *answer, gsize end, GError **error)
{
  VlmSession *session = answer->session;
  gsize hidden = answer->model->config.text.hidden_size;
  gsize n, image_row = 0;

  while (session->cache.length < end) {
    gboolean last, ok;

    n = MIN (answer->settings.prefill_chunk, end - session->cache.length);
    last = session->cache.length + n == answer->prompt->len;
    embed_prompt (answer, session->cache.length, n, &image_row);
    if (!begin_turn (answer, error))
      return FALSE;
    ok = vlm_decoder_forward (answer->model, answer->team, &session->arena, &session->cache,
             answer->embeds, n, 1, error)
        && (!last
            || vlm_decoder_logits (answer->model, answer->team, &session->arena,
                answer->embeds + (n - 1) * hidden, answer->logits, error));
    vlm_team_end_turn (answer->team);
    if (!ok)
      return FALSE;
  }
  return TRUE;
}

/* Leaves what comes before the first picture in the cache: computed, or from the request before. */
static gboolean
feed_prefix (Answer *answer, GError **error)
{
  VlmSession *session = answer->session;
  const gint32 *ids = (const gint32 *) answer->prompt->data;
  const gsize n = count_prefix (answer), bytes = n * sizeof (gint32);
  const gsize n_tokens = MIN (answer->prompt->len + answer->settings.max_tokens,
      (gsize) answer->model->config.text.max_context);

  if (n > 0 && n == session->prefix->len && memcmp (session->prefix->data, ids, bytes) == 0
      && vlm_cache_rewind (&session->cache, n_tokens)) {
    answer->n_kept_tokens = n;
    return TRUE;
  }
  if (!vlm_cache_reset (&session->cache, n_tokens, error))
    return FALSE;
  if (n == 0)
    return TRUE;
  if (!feed_prompt (answer, n, error) || !vlm_cache_mark (&session->cache, error))
    return FALSE;
  g_array_set_size (session->prefix, 0);
  g_array_append_vals (session->prefix, ids, (guint) n);
  return TRUE;
}

static gboolean
prefill (Answer *answer, GError **error)
{
  const VlmTextConfig *config = &answer->model->config.text;
  gsize n_prompt = answer->prompt->len;

  show_array (answer, "input_ids", 0, VLM_ARRAY_I32, n_prompt, 0, answer->prompt->data);
  answer->embeds = take_array (answer->session, KEPT_EMBEDS,
      MIN (answer->settings.prefill_chunk, n_prompt), config->hidden_size, error);
  if (answer->embeds == NULL)
    return FALSE;
  answer->logits = take_array (answer->session, KEPT_LOGITS, 1, config->vocab_size, error);
  if (answer->logits == NULL)
    return FALSE;
  if (!feed_prefix (answer, error) || !feed_prompt (answer, n_prompt, error))
    return FALSE;
  show_array (answer, "logits", 0, VLM_ARRAY_F32, config->vocab_size, 0, answer->logits);
  return TRUE;
}

static gboolean
is_end (const Answer *answer, gint32 id)
{
  const VlmGeneration *generation = &answer->model->generation;
  guint i;

  for (i = 0; i < generation->n_eos; i++) {
    if (generation->eos_ids[i] == id)
      return TRUE;
  }
  return FALSE;
}

/* Feeds one token to the decoder and leaves the next logits. */
static gboolean
step (Answer *answer, gint32 id, GError **error)
{
  VlmModel *model = answer->model;
  VlmSession *session = answer->session;
  gboolean ok;

  vlm_matrix_get_row (model->weights->embedding, &model->kernels, (guint) id, answer->embeds);
  if (!begin_turn (answer, error))
    return FALSE;
  ok = vlm_decoder_step (
           model, answer->team, &session->arena, &session->cache, answer->embeds, error)
      && vlm_decoder_logits (
          model, answer->team, &session->arena, answer->embeds, answer->logits, error);
  vlm_team_end_turn (answer->team);
  return ok;
}

static void
show_text (Answer *answer, gsize shown)
{
  const VlmWatch *watch = answer->watch;

  if (watch != NULL && watch->text != NULL && answer->text->len > shown)
    watch->text (answer->text->str + shown, watch->user_data);
}

/* Whether the answer goes round in a loop; then its text is cut after the first round. */
static gboolean
end_loop (Answer *answer)
{
  gsize n_kept;

  g_array_append_val (answer->text_ends, answer->text->len);
  if (!answer->request->end_loops
      || !vlm_repetition_find ((const gint32 *) answer->output->data, answer->output->len, &n_kept))
    return FALSE;

  g_string_truncate (answer->text, g_array_index (answer->text_ends, gsize, n_kept - 1));
  answer->finish_reason = VLM_FINISH_REPETITION;
  return TRUE;
}

/* Generates until an end token, the limit, a loop, or the end of the context. */
static gboolean
decode (Answer *answer, VlmSampler *sampler, VlmDetokenizer *detokenizer, GError **error)
{
  const VlmSettings *settings = &answer->settings;
  gsize shown;

  vlm_sampler_accept (sampler, (const gint32 *) answer->prompt->data, answer->prompt->len);
  answer->finish_reason = VLM_FINISH_LENGTH;
  while (answer->output->len < settings->max_tokens) {
    gint32 id = vlm_sampler_pick (sampler, answer->logits);

    g_array_append_val (answer->output, id);
    vlm_sampler_accept (sampler, &id, 1);
    if (is_end (answer, id)) {
      answer->finish_reason = VLM_FINISH_STOP;
      break;
    }
    shown = answer->text->len;
    vlm_detokenizer_push (detokenizer, id, answer->text);
    show_text (answer, shown);
    if (end_loop (answer) || answer->output->len == settings->max_tokens)
      break;
    if (answer->session->cache.length >= answer->model->config.text.max_context) {
      answer->finish_reason = VLM_FINISH_CONTEXT;
      break;
    }
    if (!step (answer, id, error))
      return FALSE;
  }
  if (answer->finish_reason != VLM_FINISH_REPETITION) {
    shown = answer->text->len;
    vlm_detokenizer_finish (detokenizer, answer->text);
    show_text (answer, shown);
  }
  show_array (answer, "output_ids", 0, VLM_ARRAY_I32, answer->output->len, 0, answer->output->data);
  return TRUE;
}

/* ---- The whole ---------------------------------------------------------------------------- */

static gboolean
run_stages (Answer *answer, GError **error)
{
  VlmSampler sampler;
  VlmDetokenizer *detokenizer;
  gint64 since;
  gboolean ok;

  if (is_cancelled (answer, error) || !plan_images (answer, error) || !build_prompt (answer, error)
      || !encode_images (answer, error))
    return FALSE;

  since = g_get_monotonic_time ();
  if (!prefill (answer, error))
    return FALSE;
  lap (&since, &answer->timings.prefill);

  detokenizer = vlm_detokenizer_new (answer->model->tokenizer, TRUE);
  ok = vlm_sampler_init (&sampler, &answer->settings.sampling,
           answer->model->config.text.vocab_size, answer->request->seed, error)
      && decode (answer, &sampler, detokenizer, error);
  vlm_detokenizer_free (detokenizer);
  vlm_sampler_clear (&sampler);
  lap (&since, &answer->timings.decode);
  return ok;
}

static void
fill_result (Answer *answer, VlmResult *result)
{
  result->n_ids = answer->output->len;
  result->ids = (gint32 *) g_array_free (g_steal_pointer (&answer->output), FALSE);
  result->text = g_strstrip (g_string_free (g_steal_pointer (&answer->text), FALSE));
  result->n_prompt_tokens = answer->prompt->len;
  result->n_image_tokens = answer->n_image_tokens;
  result->n_kept_tokens = answer->n_kept_tokens;
  result->finish_reason = answer->finish_reason;
  result->timings = answer->timings;
}

static void
answer_clear (Answer *answer)
{
  g_clear_pointer (&answer->team, vlm_team_free);
  g_free (answer->layouts);
  g_clear_pointer (&answer->prompt, g_array_unref);
  g_clear_pointer (&answer->output, g_array_unref);
  if (answer->text != NULL)
    g_string_free (answer->text, TRUE);
  g_clear_pointer (&answer->text_ends, g_array_unref);
}

gboolean
vlm_session_generate (VlmSession *session, const VlmRequest *request, const VlmWatch *watch,
    VlmResult *result, GError **error)
{
  GCancellable *cancellable = watch != NULL ? watch->cancellable : NULL;
  Answer answer = { 0 };
  gint64 since = g_get_monotonic_time ();
  gboolean ok;

  answer.session = session;
  answer.model = session->model;
  answer.request = request;
  answer.watch = watch;
  if (!vlm_settings_resolve (&answer.settings, session->model, request, error))
    return FALSE;
  answer.team = vlm_team_new (request->n_threads, cancellable);
  vlm_team_set_nice (answer.team, request->nice);
  answer.output = g_array_new (FALSE, FALSE, sizeof (gint32));
  answer.text = g_string_new (NULL);
  answer.text_ends = g_array_new (FALSE, FALSE, sizeof (gsize));

  ok = run_stages (&answer, error);
  if (ok) {
    lap (&since, &answer.timings.total);
    fill_result (&answer, result);
  }
  answer_clear (&answer);
  return ok;
}
