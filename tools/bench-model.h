/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A model that is asked again and again, by the very calls that the element makes. */

#ifndef TOOLS_BENCH_MODEL_H
#define TOOLS_BENCH_MODEL_H

#include "bench-work.h"

#define BENCH_PROMPT "Describe this picture in one sentence."

typedef struct
{
  VlmModel *model;
  VlmSession *session;
  VlmModelInfo info; /* its strings are gone with the model */
  BenchShape shape;
  gdouble load; /* seconds */
} BenchModel;

/* n_threads load it, 0: the CPUs that this process may use. Errors: those of vlm_model_load (). */
gboolean bench_model_open (BenchModel *model, const gchar *path, const gchar *mmproj,
    VlmPrecision precision, guint n_threads, GError **error);
void bench_model_close (BenchModel *model);

typedef struct
{
  VlmTimings timings;
  gdouble token; /* seconds of one step of decoding */
  guint n_prompt_tokens, n_image_tokens;
  guint n_kept_tokens; /* in front of the prompt, not prefilled again */
  gsize n_tokens;      /* of the answer */
  BenchCost prefill, token_cost;
  /* Only when pictures were watched: */
  guint n_patches;
  BenchCost vision;
} BenchAnswer;

/*
 * Answers a request. Watching tells how much work its pictures are; what is watched takes longer.
 * Errors: those of vlm_session_generate ().
 */
gboolean bench_model_ask (BenchModel *model, const VlmRequest *request, gboolean watched,
    BenchAnswer *answer, GError **error);

/* Pixels with something to look at everywhere, for bench_picture (). (transfer full) */
guint8 *bench_draw (guint width, guint height);

/* pixels as a picture of width * height. */
VlmImage bench_picture (const guint8 *pixels, guint width, guint height);

#endif
