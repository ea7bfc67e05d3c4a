/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bench-model.h"

#include "engine/model/decoder.h"

gboolean
bench_model_open (BenchModel *model, const gchar *path, const gchar *mmproj, VlmPrecision precision,
    guint n_threads, GError **error)
{
  const VlmLoadOptions options = {
    .precision = precision, .mmproj = mmproj, .n_threads = n_threads
  };
  gint64 since = g_get_monotonic_time ();

  *model = (BenchModel){ .model = vlm_model_load (path, &options, NULL, NULL, NULL, error) };
  if (model->model == NULL)
    return FALSE;
  model->load = (gdouble) (g_get_monotonic_time () - since) / G_USEC_PER_SEC;
  vlm_model_get_info (model->model, &model->info);
  model->session = vlm_session_new (model->model);
  if (bench_shape_find (&model->shape, path, mmproj, &model->info, error))
    return TRUE;
  bench_model_close (model);
  return FALSE;
}

void
bench_model_close (BenchModel *model)
{
  g_clear_pointer (&model->session, vlm_session_free);
  g_clear_pointer (&model->model, vlm_model_unref);
}

typedef struct
{
  const BenchShape *shape;
  BenchAnswer *answer;
} Watched;

/* Rows of patches that the tower sees. */
static void
count_patches (const gchar *name, guint index, VlmArrayType type, const gsize *shape, guint n_dims,
    gconstpointer data, gpointer user_data)
{
  Watched *watched = user_data;
  BenchCost cost;

  (void) index, (void) type, (void) n_dims, (void) data;
  if (!g_str_equal (name, "patches"))
    return;
  cost = bench_crop_cost (watched->shape, (guint) shape[0]);
  watched->answer->n_patches += (guint) shape[0];
  watched->answer->vision.operations += cost.operations;
  watched->answer->vision.bytes += cost.bytes;
}

gboolean
bench_model_ask (BenchModel *model, const VlmRequest *request, gboolean watched,
    BenchAnswer *answer, GError **error)
{
  Watched data = { &model->shape, answer };
  const VlmWatch watch = { NULL, count_patches, &data, NULL };
  const guint chunk = request->prefill_chunk > 0 ? request->prefill_chunk : VLM_PREFILL_CHUNK;
  VlmResult result = { 0 };
  gsize n_steps;

  *answer = (BenchAnswer){ 0 };
  if (!vlm_session_generate (model->session, request, watched ? &watch : NULL, &result, error))
    return FALSE;
  /* The first token comes out of the prefill. */
  n_steps = MAX (result.n_ids, 2) - 1;
  answer->timings = result.timings;
  answer->token = result.timings.decode / (gdouble) n_steps;
  answer->n_prompt_tokens = result.n_prompt_tokens;
  answer->n_image_tokens = result.n_image_tokens;
  answer->n_kept_tokens = result.n_kept_tokens;
  answer->n_tokens = result.n_ids;
  answer->prefill =
      bench_prefill_cost (&model->shape, result.n_kept_tokens, result.n_prompt_tokens, chunk);
  answer->token_cost =
      bench_token_cost (&model->shape, result.n_prompt_tokens + (gdouble) (n_steps - 1) / 2);
  vlm_result_clear (&result);
  return TRUE;
}

guint8 *
bench_draw (guint width, guint height)
{
  guint8 *pixels = g_malloc ((gsize) width * height * 3);
  gsize i;

  /* A plain picture would be no other for the time it takes. */
  for (i = 0; i < (gsize) width * height * 3; i++)
    pixels[i] = (guint8) ((i * 2654435761u) >> 11);
  return pixels;
}

VlmImage
bench_picture (const guint8 *pixels, guint width, guint height)
{
  return (VlmImage){ pixels, (gsize) width * 3, width, height };
}
