/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Rounds and packs the keys and values of a head for head.h. */

#ifndef VLM_KERNELS_SIMD_HEAD_PACK_H
#define VLM_KERNELS_SIMD_HEAD_PACK_H

#include "kernels/head.h"
#include "quantise.h"

#include <math.h>
#include <string.h>

/* Rows that are asked for before they are read. */
#define HEAD_AHEAD 8

/* A packed head is these arrays, one after the other. */
typedef struct
{
  float *k_scale;   /* [n_keys] */
  int32_t *k_start; /* [n_keys]: what a score begins with, see INT_BIAS */
  float *v_scale;   /* [dim] */
  float *v_mean;    /* [dim] */
  /* [dim / HEAD_ROWS][ceil (n_keys / 2)][HEAD_ROWS][2]; zero after the last key */
  int16_t *values;
  int8_t *keys; /* [n_keys][padded_dim] */
  size_t dim, padded_dim, n_pairs;
} HeadArrays;

static size_t
simd_head_bytes (size_t n_keys, size_t head_dim)
{
  return 2 * (n_keys + head_dim) * sizeof (float)
      + (n_keys + n_keys % 2) * head_dim * sizeof (int16_t) + n_keys * vlm_padded_k (head_dim);
}

static HeadArrays
head_find_arrays (const void *packed, size_t n_keys, size_t head_dim)
{
  HeadArrays arrays = {
    .dim = head_dim, .padded_dim = vlm_padded_k (head_dim), .n_pairs = (n_keys + 1) / 2
  };

  arrays.k_scale = (float *) packed;
  arrays.k_start = (int32_t *) (arrays.k_scale + n_keys);
  arrays.v_scale = (float *) (arrays.k_start + n_keys);
  arrays.v_mean = arrays.v_scale + head_dim;
  arrays.values = (int16_t *) (arrays.v_mean + head_dim);
  arrays.keys = (int8_t *) (arrays.values + (n_keys + n_keys % 2) * head_dim);
  return arrays;
}

/* What is known of each column of keys or values. */
typedef struct
{
  float mean[HEAD_MAX_DIM], low[HEAD_MAX_DIM], high[HEAD_MAX_DIM];
} HeadColumns;

/* Rows lie far apart: no hardware asks for them by itself. */
vlm_always_inline void
head_prefetch (const float *row, size_t dim)
{
  size_t d;

  for (d = 0; d < dim; d += 64 / sizeof (float))
    __builtin_prefetch (row + d);
}

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
head_pack_keys (const HeadArrays *arrays, const VlmHead *head)
{
  const size_t dim = head->head_dim;
  float row[HEAD_MAX_DIM];
  HeadColumns columns;
  int32_t sum;
  size_t j, d;

  head_look_at_columns (&columns, head->k, head->k_stride, head->n_keys, dim);
  for (j = 0; j < head->n_keys; j++) {
    const float *k = head->k + j * head->k_stride;

    for (d = 0; d < dim; d += VF_LANES)
      vf_store (row + d, vf_sub (load_rest (k, d, dim), vf_load (columns.mean + d)));
    simd_quantise_i8 (
        arrays->keys + j * arrays->padded_dim, arrays->k_scale + j, &sum, row, dim, HEAD_MAX_DIM);
    arrays->k_start[j] = -INT_BIAS * sum;
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

static void
head_pack_values (const HeadArrays *arrays, const VlmHead *head)
{
  const size_t dim = head->head_dim, n_pairs = (head->n_keys + 1) / 2;
  float inverse[HEAD_MAX_DIM] = { 0 };
  int16_t pairs[HEAD_MAX_DIM][2];
  HeadColumns columns;
  size_t j, d;

  head_look_at_columns (&columns, head->v, head->v_stride, head->n_keys, dim);
  head_scale_values (arrays, inverse, &columns);
  for (j = 0; j < n_pairs; j++) {
    const float *row = head->v + 2 * j * head->v_stride;

    for (d = 0; d < dim; d += VF_LANES) {
      vi even = head_round_values (row, columns.mean, inverse, d, dim), odd = vi_set1 (0);

      if (2 * j + 1 < head->n_keys)
        odd = head_round_values (row + head->v_stride, columns.mean, inverse, d, dim);
      vi_store_pairs (pairs[d], even, odd);
    }
    for (d = 0; d < dim; d += HEAD_ROWS)
      memcpy (arrays->values + 2 * (d * n_pairs + j * HEAD_ROWS), pairs[d],
          HEAD_ROWS * sizeof pairs[0]);
  }
}

static void
simd_pack_head (void *packed, const VlmHead *head)
{
  const HeadArrays arrays = head_find_arrays (packed, head->n_keys, head->head_dim);

  head_pack_keys (&arrays, head);
  head_pack_values (&arrays, head);
}

#endif
