/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Rows of heads are asked for before they are read: they lie far apart, and no hardware does it. */

#ifndef VLM_KERNELS_SIMD_HEAD_AHEAD_H
#define VLM_KERNELS_SIMD_HEAD_AHEAD_H

#include "kernels/kernels.h"

#include "compiler.h"

/* So many rows before. */
#define HEAD_AHEAD 8

vlm_always_inline void
head_prefetch (const float *row, size_t dim)
{
  size_t d;

  for (d = 0; d < dim; d += 64 / sizeof (float))
    __builtin_prefetch (row + d);
}

/*
 * Asks for what the n queries from number first on read and write, or for those of them there are. It
 * has to be inlined: gcc takes a function that only prefetches for one without effects, and drops calls.
 */
vlm_always_inline void
head_prefetch_queries (const VlmHeadAttention *args, size_t first, size_t n)
{
  size_t i;

  for (i = first; i < first + n && i < args->n_queries; i++) {
    head_prefetch (args->q + i * args->q_stride, args->head_dim);
    head_prefetch (args->out + i * args->out_stride, args->head_dim);
  }
}

#endif
