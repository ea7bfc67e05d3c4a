/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "settings.h"

#include <math.h>

#include "decoder.h"

/* Rows of a chunk are scratch memory: no more of them than pay. */
#define MAX_PREFILL_CHUNK 4096

/* -1 stands for "as the model says"; every other value must lie in [low, high]. */
static gboolean
check_range (const gchar *name, gdouble value, gdouble low, gdouble high, GError **error)
{
  if (value == -1 || (value >= low && value <= high))
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_SETTINGS,
      "%s is %g, expected -1 for the model's own or %g..%g", name, value, low, high);
  return FALSE;
}

static gboolean
check_request (const VlmRequest *request, GError **error)
{
  return check_range ("max-tokens", request->max_tokens, 1, G_MAXINT, error)
      && check_range ("temperature", request->temperature, 0, 100, error)
      && check_range ("top-k", request->top_k, 0, G_MAXINT, error)
      && check_range ("top-p", request->top_p, 0, 1, error)
      && check_range ("min-p", request->min_p, 0, 1, error)
      && check_range ("repetition-penalty", request->repetition_penalty, 0.01, 100, error)
      && check_range ("min-image-tokens", request->min_image_tokens, 1, 8192, error)
      && check_range ("max-image-tokens", request->max_image_tokens, 1, 8192, error)
      && check_range ("min-tiles", request->min_tiles, 1, 100, error)
      && check_range ("max-tiles", request->max_tiles, 1, 100, error)
      && check_range ("use-thumbnail", request->use_thumbnail, FALSE, TRUE, error)
      && check_range ("prefill-chunk", request->prefill_chunk, 0, MAX_PREFILL_CHUNK, error);
}

/* The request's value, else the file's, else what switches the thing off. */
static gdouble
choose (gdouble requested, gdouble file, gdouble off)
{
  if (requested != -1)
    return requested;
  return isnan (file) || file < 0 ? off : file;
}

static void
resolve_sampling (VlmSampling *sampling, const VlmGeneration *generation, const VlmRequest *request)
{
  /* Files may name a temperature and still ask for greedy decoding. */
  gdouble file_temperature = generation->do_sample ? choose (-1, generation->temperature, 1) : 0;

  sampling->temperature = choose (request->temperature, file_temperature, 0);
  sampling->top_k = (gint) choose (request->top_k, generation->top_k, 0);
  sampling->top_p = choose (request->top_p, generation->top_p, 1);
  sampling->min_p = choose (request->min_p, generation->min_p, 0);
  sampling->repetition_penalty =
      choose (request->repetition_penalty, generation->repetition_penalty, 1);
}

static gboolean
resolve_processor (
    VlmProcessor *processor, const VlmModel *model, const VlmRequest *request, GError **error)
{
  *processor = model->processor;
  if (request->min_image_tokens != -1)
    processor->min_image_tokens = (guint) request->min_image_tokens;
  if (request->max_image_tokens != -1)
    processor->max_image_tokens = (guint) request->max_image_tokens;
  /* One limit given alone moves the other along rather than contradict it. */
  if (request->max_image_tokens != -1 && request->min_image_tokens == -1)
    processor->min_image_tokens = MIN (processor->min_image_tokens, processor->max_image_tokens);
  if (request->min_image_tokens != -1 && request->max_image_tokens == -1)
    processor->max_image_tokens = MAX (processor->min_image_tokens, processor->max_image_tokens);
  if (request->tiling != VLM_TILING_AUTO)
    processor->do_image_splitting = request->tiling == VLM_TILING_ON;
  if (request->min_tiles != -1)
    processor->min_tiles = (guint) request->min_tiles;
  if (request->max_tiles != -1)
    processor->max_tiles = (guint) request->max_tiles;
  if (request->use_thumbnail != -1)
    processor->use_thumbnail = request->use_thumbnail;
  if (request->resample == VLM_RESAMPLE_FLOAT32)
    processor->path = VLM_RESAMPLE_FLOAT;

  if (processor->min_image_tokens > processor->max_image_tokens) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_SETTINGS,
        "min-image-tokens is %u, expected no more than max-image-tokens, which is %u",
        processor->min_image_tokens, processor->max_image_tokens);
    return FALSE;
  }
  return vlm_processor_validate (processor, error);
}

gboolean
vlm_settings_resolve (
    VlmSettings *settings, const VlmModel *model, const VlmRequest *request, GError **error)
{
  guint max_tokens;

  if (!check_request (request, error)
      || !resolve_processor (&settings->processor, model, request, error))
    return FALSE;
  resolve_sampling (&settings->sampling, &model->generation, request);
  max_tokens = request->max_tokens != -1 ? (guint) request->max_tokens : VLM_DEFAULT_MAX_TOKENS;
  settings->max_tokens = MIN (max_tokens, model->config.text.max_context);
  settings->prefill_chunk = request->prefill_chunk > 0 ? request->prefill_chunk : VLM_PREFILL_CHUNK;
  return TRUE;
}
