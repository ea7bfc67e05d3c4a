/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What packing a head has in common: keys as rounded rows, scales of values. Levels order values
 * themselves. HEAD_BIAS is what vi_dot wants to be added to queries: it is taken out of the scores.
 */

#ifndef VLM_KERNELS_SIMD_HEAD_PACK_H
#define VLM_KERNELS_SIMD_HEAD_PACK_H

#include "kernels/head.h"
#include "head-ahead.h"
#include "quantise.h"

#include <math.h>
#include <string.h>

/* A value of a key, and how many of them, or of a query, products take at once. */
#ifdef HEAD_KEY_PAIRS
typedef int16_t HeadKey;
#else
typedef int8_t HeadKey;
#endif
#define HEAD_PER_WORD (4 / sizeof (HeadKey))

/* What is in a packed head, in an order of the level's own. */
typedef struct
{
  float *k_scale;   /* [n_keys] */
  int32_t *k_start; /* [n_keys]: what a score begins with, see HEAD_BIAS */
  float *k_mean;    /* [dim] */
  float *v_scale;   /* [dim] */
  float *v_mean;    /* [dim] */
  HeadKey *keys;    /* [n_keys][padded_dim] */
  void *values;
  size_t dim, padded_dim;
} HeadArrays;

/* What is known of each column of keys or values. */
typedef struct
{
  float mean[HEAD_MAX_DIM], low[HEAD_MAX_DIM], high[HEAD_MAX_DIM];
} HeadColumns;

static void
head_look_at_columns (HeadColumns *columns, const float *x, size_t stride, size_t n, size_t dim)
{
  size_t j, d;

  for (d = 0; d < dim; d += VF_LANES) {
    vf_store (columns->mean + d, vf_zero ());
    vf_store (columns->low + d, vf_set1 (INFINITY));
    vf_store (columns->high + d, vf_set1 (-INFINITY));
  }
  for (j = 0; j < n; j++, x += stride) {
    if (n - j > HEAD_AHEAD)
      head_prefetch (x + HEAD_AHEAD * stride, dim);
    for (d = 0; d < dim; d += VF_LANES) {
      vf value = load_rest (x, d, dim);

      vf_store (columns->mean + d, vf_add (vf_load (columns->mean + d), value));
      vf_store (columns->low + d, vf_min (value, vf_load (columns->low + d)));
      vf_store (columns->high + d, vf_max (value, vf_load (columns->high + d)));
    }
  }
  for (d = 0; d < dim; d += VF_LANES)
    vf_store (columns->mean + d, vf_div (vf_load (columns->mean + d), vf_set1 ((float) n)));
}

static void
head_store_key (HeadKey *restrict key, const int8_t *restrict rounded, size_t n)
{
  size_t d;

  for (d = 0; d < n; d++)
    key[d] = rounded[d];
}

static void
head_pack_keys (const HeadArrays *arrays, const VlmHead *head)
{
  const size_t dim = head->head_dim;
  float row[HEAD_MAX_DIM];
  int8_t rounded[HEAD_MAX_DIM];
  HeadColumns columns;
  int32_t sum;
  size_t j, d;

  head_look_at_columns (&columns, head->k, head->k_stride, head->n_keys, dim);
  memcpy (arrays->k_mean, columns.mean, dim * sizeof (float));
  for (j = 0; j < head->n_keys; j++) {
    const float *k = head->k + j * head->k_stride;

    for (d = 0; d < dim; d += VF_LANES)
      vf_store (row + d, vf_sub (load_rest (k, d, dim), vf_load (columns.mean + d)));
    simd_quantise_i8 (rounded, arrays->k_scale + j, &sum, row, dim, HEAD_MAX_DIM);
    head_store_key (arrays->keys + j * arrays->padded_dim, rounded, vlm_padded_k (dim));
    if (HEAD_BIAS != 0)
      arrays->k_start[j] = -HEAD_BIAS * sum;
  }
}

/* Keeps means and scales of values; what they are multiplied by before they are rounded. */
static void
head_scale_values (const HeadArrays *arrays, float *inverse, const HeadColumns *columns)
{
  size_t d;

  for (d = 0; d < arrays->dim; d++) {
    /* The largest distance of a value from the mean is that of the lowest or of the highest. */
    const float below = columns->mean[d] - columns->low[d];
    const float above = columns->high[d] - columns->mean[d];
    const float most = above > below ? above : below;

    arrays->v_mean[d] = columns->mean[d];
    arrays->v_scale[d] = most >= 0x1p-100f ? most / HEAD_VALUE_MAX : 0;
    inverse[d] = most >= 0x1p-100f ? HEAD_VALUE_MAX / most : 0;
  }
}

/* VF_LANES values of a row from d on, rounded; those beyond dim are anything. */
vlm_always_inline vi
head_round_values (const float *row, const float *mean, const float *inverse, size_t d, size_t dim)
{
  vf value = vf_sub (load_rest (row, d, dim), vf_load (mean + d));

  value = vf_mul (value, vf_load (inverse + d));
  value = vf_max_number (value, vf_set1 (-HEAD_VALUE_MAX));
  return vi_from_vf (vf_min (value, vf_set1 (HEAD_VALUE_MAX)));
}

#endif
