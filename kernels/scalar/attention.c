/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Softmax attention in one pass over the keys: a block of scores at a time, with a running maximum
 * and a running sum; what was summed under an older maximum is scaled down when the maximum rises.
 */

#include "scalar.h"

#include <math.h>
#include <string.h>

#define PANEL VLM_KEY_PANEL
#define BLOCK_KEYS 64
#define MAX_HEAD_DIM 256

typedef struct
{
  float out[MAX_HEAD_DIM];
  float max;
  float sum;
} Query;

/* scores[j] = scale * q.k[j] for n keys from a panel boundary on. */
static void
score_keys (float *scores, const float *q, const float *k, size_t n, size_t head_dim, float scale)
{
  float dot[PANEL];
  size_t p, d, j;

  for (p = 0; p < n; p += PANEL) {
    for (j = 0; j < PANEL; j++)
      dot[j] = 0;
    for (d = 0; d < head_dim; d++) {
      for (j = 0; j < PANEL; j++)
        dot[j] += q[d] * k[(p * head_dim) + d * PANEL + j];
    }
    for (j = 0; j < PANEL && p + j < n; j++)
      scores[p + j] = dot[j] * scale;
  }
}

static void
absorb_block (
    Query *query, float *scores, const float *v, size_t v_stride, size_t n, size_t head_dim)
{
  float max = query->max, correction;
  size_t j, d;

  for (j = 0; j < n; j++)
    max = scores[j] > max ? scores[j] : max;

  correction = expf (query->max - max);
  query->max = max;
  query->sum *= correction;
  for (d = 0; d < head_dim; d++)
    query->out[d] *= correction;

  for (j = 0; j < n; j++) {
    float p = expf (scores[j] - max);

    query->sum += p;
    for (d = 0; d < head_dim; d++)
      query->out[d] += p * v[j * v_stride + d];
  }
}

static Query
begin_query (const VlmAttention *args, size_t i)
{
  Query query = { .max = -INFINITY };

  if (args->max == NULL)
    return query;
  query.max = args->max[i];
  query.sum = args->sum[i];
  memcpy (query.out, args->out + i * args->out_stride, args->head_dim * sizeof (float));
  return query;
}

void
vlm_scalar_attention (const VlmAttention *args)
{
  float scores[BLOCK_KEYS];
  Query query;
  size_t i, j, d;

  for (i = 0; i < args->n_queries; i++) {
    size_t n_keys = args->n_keys;

    if (args->causal && args->first_keys + i < n_keys)
      n_keys = args->first_keys + i;

    query = begin_query (args, i);
    for (j = 0; j < n_keys; j += BLOCK_KEYS) {
      size_t n = n_keys - j < BLOCK_KEYS ? n_keys - j : BLOCK_KEYS;

      score_keys (scores, args->q + i * args->q_stride, args->k + j * args->head_dim, n,
          args->head_dim, args->scale);
      absorb_block (
          &query, scores, args->v + j * args->v_stride, args->v_stride, n, args->head_dim);
    }

    for (d = 0; d < args->head_dim; d++)
      args->out[i * args->out_stride + d] = query.out[d] / query.sum;
  }
}
