/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The entries that ORC does better than a compiler does plain C for the same processor. Its
 * programs are compiled when the level is first filled in, so that no entry allocates or locks.
 * Where ORC is missing, or knows nothing of the processor, the programs are what orcc made of them
 * in C; the level has the same bits then.
 */

#include "kernels/levels.h"
#include "programs.h"

#include <pthread.h>
#include <string.h>

/* Sums of so many bytes of a row stay in the nearest cache. */
#define COLUMN_BLOCK 512

static pthread_once_t programs_once = PTHREAD_ONCE_INIT;

/* The largest |x| but for NaNs. Floats without a sign are ordered like their bits, and a compiler
 * finds several at once among integers. */
static float
largest (const float *x, size_t n)
{
  int32_t most = 0;
  float amax;
  size_t l;

  for (l = 0; l < n; l++) {
    int32_t bits;

    memcpy (&bits, x + l, sizeof bits);
    bits &= 0x7fffffff;
    bits = bits > 0x7f800000 ? 0 : bits;
    most = bits > most ? bits : most;
  }
  memcpy (&amax, &most, sizeof amax);

  return amax;
}

static void
orc_quantise_i8 (int8_t *q, float *scale, int32_t *sum, const float *x, size_t n, size_t group)
{
  size_t at;

  for (at = 0; at < n; at += group) {
    size_t len = n - at < group ? n - at : group;
    float amax = largest (x + at, len);
    int counts = amax >= 0x1p-100f;

    scale[at / group] = counts ? amax / 127 : 0;
    vlm_orc_quantise (q + at, sum + at / group, x + at, counts ? 127 / amax : 0, (int) len);
  }
  for (at = n; at < vlm_padded_k (n); at++)
    q[at] = 0;
}

static void
orc_resample_column (uint8_t *dst, const uint8_t *src, size_t stride, size_t n,
    const int16_t *weights, size_t n_taps, unsigned bits)
{
  int32_t sums[COLUMN_BLOCK];
  size_t at, i, t;

  for (at = 0; at < n; at += COLUMN_BLOCK) {
    int len = (int) (n - at < COLUMN_BLOCK ? n - at : COLUMN_BLOCK);
    const uint8_t *row = src + at;

    for (i = 0; i < (size_t) len; i++)
      sums[i] = (int32_t) (1u << (bits - 1));
    for (t = 0; t + 4 <= n_taps; t += 4, row += 4 * stride)
      vlm_orc_column_add4 (sums, row, row + stride, row + 2 * stride, row + 3 * stride, weights[t],
          weights[t + 1], weights[t + 2], weights[t + 3], len);
    for (; t < n_taps; t++, row += stride)
      vlm_orc_column_add1 (sums, row, weights[t], len);
    vlm_orc_column_end (dst + at, sums, (int) bits, len);
  }
}

void
vlm_kernels_fill_orc (VlmKernels *kernels)
{
  pthread_once (&programs_once, vlm_orc_programs_init);
  kernels->quantise_i8 = orc_quantise_i8;
  kernels->resample_column = orc_resample_column;
}
