/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Attention with packed heads, as plain as it can be. It stands in no table, since attention in
 * floats is faster in plain C: it says what other levels have to give, bit by bit.
 */

#include "kernels/head.h"
#include "scalar.h"

#include <math.h>
#include <string.h>

/* A packed head is these arrays, one after the other. */
typedef struct
{
  float *k_scale;  /* [n_keys] */
  float *k_mean;   /* [head_dim] */
  float *v_scale;  /* [head_dim] */
  float *v_mean;   /* [head_dim] */
  int16_t *values; /* [n_keys][head_dim] */
  int8_t *keys;    /* [n_keys][padded head_dim] */
} Packed;

typedef struct
{
  float out[HEAD_MAX_DIM];
  float max;
  float sum;
} Query;

size_t
vlm_scalar_head_bytes (size_t n_keys, size_t head_dim)
{
  return (n_keys + 3 * head_dim) * sizeof (float) + n_keys * head_dim * sizeof (int16_t)
      + n_keys * vlm_padded_k (head_dim);
}

static Packed
find_arrays (const void *packed, size_t n_keys, size_t head_dim)
{
  Packed arrays;

  arrays.k_scale = (float *) packed;
  arrays.k_mean = arrays.k_scale + n_keys;
  arrays.v_scale = arrays.k_mean + head_dim;
  arrays.v_mean = arrays.v_scale + head_dim;
  arrays.values = (int16_t *) (arrays.v_mean + head_dim);
  arrays.keys = (int8_t *) (arrays.values + n_keys * head_dim);
  return arrays;
}

static float
mean_of_column (const float *x, size_t stride, size_t n)
{
  float sum = 0;
  size_t j;

  for (j = 0; j < n; j++)
    sum += x[j * stride];
  return sum / (float) n;
}

static void
pack_keys (const Packed *arrays, const VlmHead *head)
{
  float *mean = arrays->k_mean, row[HEAD_MAX_DIM];
  int32_t sum;
  size_t j, d;

  for (d = 0; d < head->head_dim; d++)
    mean[d] = mean_of_column (head->k + d, head->k_stride, head->n_keys);
  for (j = 0; j < head->n_keys; j++) {
    for (d = 0; d < head->head_dim; d++)
      row[d] = head->k[j * head->k_stride + d] - mean[d];
    vlm_scalar_quantise_i8 (arrays->keys + j * vlm_padded_k (head->head_dim), arrays->k_scale + j,
        &sum, row, head->head_dim, HEAD_MAX_DIM);
  }
}

static void
pack_values (const Packed *arrays, const VlmHead *head)
{
  const float most_value = HEAD_VALUE_MAX;
  size_t j, d;

  for (d = 0; d < head->head_dim; d++) {
    const float *column = head->v + d;
    float mean = mean_of_column (column, head->v_stride, head->n_keys), amax = 0, inverse;

    for (j = 0; j < head->n_keys; j++)
      amax = fmaxf (amax, fabsf (column[j * head->v_stride] - mean));
    arrays->v_mean[d] = mean;
    arrays->v_scale[d] = amax >= 0x1p-100f ? amax / most_value : 0;
    inverse = amax >= 0x1p-100f ? most_value / amax : 0;
    for (j = 0; j < head->n_keys; j++) {
      float value = (column[j * head->v_stride] - mean) * inverse;

      arrays->values[j * head->head_dim + d] =
          (int16_t) rintf (fminf (fmaxf (value, -most_value), most_value));
    }
  }
}

void
vlm_scalar_pack_head (void *packed, const VlmHead *head)
{
  Packed arrays = find_arrays (packed, head->n_keys, head->head_dim);

  pack_keys (&arrays, head);
  pack_values (&arrays, head);
}

/* size * 2^x for x <= 0; size is a power of two */
static float
exp2_below (float x, float size)
{
  float n, r, y;

  x = x > -126 ? x : -126;
  n = rintf (x);
  r = x - n;
  y = fmaf (HEAD_EXP2_3 * size, r, HEAD_EXP2_2 * size);
  y = fmaf (y, r, HEAD_EXP2_1 * size);
  y = fmaf (y, r, size);
  return ldexpf (y, (int) n);
}

/* Takes n keys from key number first on into the query, whose rounded values are q and q_scale. */
static void
absorb_block (Query *query, const Packed *arrays, const int8_t *q, float q_scale, size_t first,
    size_t n, size_t head_dim)
{
  float scores[HEAD_BLOCK], most = -INFINITY, max, older, newer;
  int32_t sums[HEAD_MAX_DIM] = { 0 }, sum = 0;
  size_t j, d;

  for (j = 0; j < n; j++) {
    const int8_t *key = arrays->keys + (first + j) * vlm_padded_k (head_dim);
    int32_t dot = 0;

    for (d = 0; d < head_dim; d++)
      dot += q[d] * key[d];
    scores[j] = (float) dot * arrays->k_scale[first + j];
    most = scores[j] > most ? scores[j] : most;
  }

  for (j = 0; j < n; j++) {
    int32_t p = (int32_t) rintf (exp2_below ((scores[j] - most) * q_scale, HEAD_WEIGHT_MAX));

    sum += p;
    for (d = 0; d < head_dim; d++)
      sums[d] += p * arrays->values[(first + j) * head_dim + d];
  }

  max = query->max > most ? query->max : most;
  older = exp2_below ((query->max - max) * q_scale, 1);
  newer = exp2_below ((most - max) * q_scale, 1);
  query->max = max;
  query->sum = fmaf (query->sum, older, (float) sum * newer);
  for (d = 0; d < head_dim; d++)
    query->out[d] = fmaf (query->out[d], older, (float) sums[d] * newer);
}

/* A query times what makes scores powers of two, and the same rounded. */
typedef struct
{
  float row[HEAD_MAX_DIM];
  int8_t rounded[HEAD_MAX_DIM];
  float scale;
} Factor;

static void
round_query (Factor *factor, const float *q, const VlmHeadAttention *args)
{
  int32_t sum;
  size_t d;

  for (d = 0; d < args->head_dim; d++)
    factor->row[d] = q[d] * (args->scale * HEAD_LOG2_E);
  vlm_scalar_quantise_i8 (
      factor->rounded, &factor->scale, &sum, factor->row, args->head_dim, HEAD_MAX_DIM);
}

/* What one packed head comes to. */
static Query
attend (const Factor *factor, const Packed *arrays, const VlmHeadAttention *args)
{
  Query query = { .max = HEAD_NO_MAX };
  size_t j;

  for (j = 0; j < args->n_keys; j += HEAD_BLOCK) {
    size_t n = args->n_keys - j < HEAD_BLOCK ? args->n_keys - j : HEAD_BLOCK;

    absorb_block (&query, arrays, factor->rounded, factor->scale, j, n, args->head_dim);
  }
  return query;
}

/* Adds it to what others came to, with the largest of whole scores as maximum. */
static void
add_head (Query *total, const Query *head, const Factor *factor, const Packed *arrays, size_t dim)
{
  float offset = 0, most, max, older, newer;
  size_t d;

  for (d = 0; d < dim; d++)
    offset = fmaf (factor->row[d], arrays->k_mean[d], offset);
  most = fmaf (head->max, factor->scale, offset);
  max = total->max > most ? total->max : most;
  older = exp2_below (total->max - max, 1);
  newer = exp2_below (most - max, 1) / HEAD_WEIGHT_MAX;
  total->max = max;
  total->sum = fmaf (total->sum, older, head->sum * newer);
  for (d = 0; d < dim; d++) {
    float out = fmaf (head->out[d], arrays->v_scale[d], head->sum * arrays->v_mean[d]);

    total->out[d] = fmaf (total->out[d], older, out * newer);
  }
}

static void
attend_one (float *out, const Factor *factor, const VlmHeadAttention *args)
{
  const Packed arrays = find_arrays (args->head, args->n_keys, args->head_dim);
  const Query query = attend (factor, &arrays, args);
  const float inverse = 1 / query.sum;
  size_t d;

  for (d = 0; d < args->head_dim; d++)
    out[d] = fmaf (query.out[d] * inverse, arrays.v_scale[d], arrays.v_mean[d]);
}

static void
attend_several (
    float *out, float *max, float *sum, const Factor *factor, const VlmHeadAttention *args)
{
  Query total = { .max = HEAD_NO_MAX };
  size_t i;

  for (i = 0; i <= args->n_more; i++) {
    const void *head = (const char *) args->head + i * args->head_stride;
    const Packed arrays = find_arrays (head, args->n_keys, args->head_dim);
    const Query query = attend (factor, &arrays, args);

    add_head (&total, &query, factor, &arrays, args->head_dim);
  }
  memcpy (out, total.out, args->head_dim * sizeof *out);
  *max = total.max * HEAD_LN_2;
  *sum = total.sum;
}

void
vlm_scalar_attend_head (const VlmHeadAttention *args)
{
  Factor factor;
  size_t i;

  for (i = 0; i < args->n_queries; i++) {
    float *out = args->out + i * args->out_stride;

    round_query (&factor, args->q + i * args->q_stride, args);
    if (args->max == NULL)
      attend_one (out, &factor, args);
    else
      attend_several (out, args->max + i, args->sum + i, &factor, args);
  }
}
