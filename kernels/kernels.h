/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * kernels: the arithmetic of the engine on plain arrays.
 *
 * One table of function pointers. vlm_kernels_init() fills it with plain C and lets every allowed
 * instruction-set level overwrite the entries it has a better version of; nothing outside kernels/
 * knows which levels exist. No entry allocates, locks, or knows what a model is.
 *
 * Conventions for every entry
 *  - Pointers need no more than the natural alignment of their element type.
 *  - Arrays never overlap unless the comment says "in place".
 *  - Strides (ld...) are in elements, and at least the row length.
 *  - Lengths may be zero; nothing is written then.
 *  - An output element depends on its own inputs only, never on how many rows or columns were asked
 *    for in the same call: results are bit-equal however the work is cut among threads and chunks.
 *  - Levels may round differently from one another. Float entries agree with the double-precision
 *    reference within the bound stated beside them; integer entries are equal to the last bit.
 */

#ifndef VLM_KERNELS_H
#define VLM_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* Keys of the attention entry lie in panels of this many, whatever the level. */
#define VLM_KEY_PANEL 16

/* No level has a wider weight panel than this. */
#define VLM_MAX_PANEL 64

/*
 * One head of softmax attention for a run of consecutive queries.
 *
 *   out[i] = sum_j softmax_j (scale * q[i].k[j]) v[j],  j < keys seen by query i
 *
 * Query i sees min (n_keys, first_keys + i) keys when causal is set (first_keys >= 1), else n_keys.
 * Work goes through the keys in blocks that start at multiples of a fixed size, so that the result
 * for a query does not depend on which other queries are in the call.
 */
typedef struct
{
  float *out; /* [n_queries][out_stride], head_dim values a row */
  size_t out_stride;
  const float *q; /* [n_queries][q_stride] */
  size_t q_stride;
  size_t n_queries;
  const float *k; /* [ceil (n_keys / 16)][head_dim][16]; unused lanes may hold
                                 * anything finite */
  const float *v; /* [n_keys][v_stride] */
  size_t v_stride;
  size_t n_keys; /* >= 1 */
  size_t first_keys;
  int causal;
  size_t head_dim; /* a multiple of 8, at most 256 */
  float scale;
} VlmAttention;

typedef struct
{
  /* The highest level that the table was made for: "scalar", "avx2", "avx512", "neon", ... */
  const char *name;

  /*
   * Dense product with one panel of weights:
   *   y[i][j] = bias[j] + sum_l x[i][l] w[l][j],   i < m, j < n <= panel
   * w is [k][panel] (the panel's rows of the matrix, transposed; columns beyond n are zero).
   * bias may be NULL. The sum runs over l in ascending order in one f32 accumulator per element,
   * and starts from zero; the bias is added last.
   * Error: <= k * (2^-23 * (|bias| + sum |x w|) + 2^-149).
   */
  size_t panel;
  void (*matmul_f32) (float *y, size_t ldy, const float *x, size_t ldx, size_t m, const float *w,
      size_t k, size_t n, const float *bias);
  /* The same with IEEE half weights, subnormals included. */
  void (*matmul_f16) (float *y, size_t ldy, const float *x, size_t ldx, size_t m, const uint16_t *w,
      size_t k, size_t n, const float *bias);
  /* The same with bfloat16 weights. */
  void (*matmul_bf16) (float *y, size_t ldy, const float *x, size_t ldx, size_t m,
      const uint16_t *w, size_t k, size_t n, const float *bias);

  /*
   * See VlmAttention. Error: <= 2^-21 * (8 + max_j sum_d |scale * q[d] k[j][d]|) * max_j |v[j]|.
   * It grows with the terms of a score, not with the score: a score is rounded like its largest
   * partial sum, and its error becomes a relative one of its weight. (A statistical bound for sums
   * of up to 4096 keys: roundings that all point the same way could exceed it.)
   */
  void (*attention) (const VlmAttention *args);

  /* y = w * (x * rsqrt (mean (x^2) + eps)); in place allowed. Relative error <= 8 * 2^-23. */
  void (*rms_norm) (float *y, const float *x, const float *w, size_t n, float eps);

  /*
   * y = (x - mean) * rsqrt (var + eps) * w + b, biased variance; in place allowed.
   * Error: <= 4 * 2^-23 * (|y - b| + |b|).
   */
  void (*layer_norm) (
      float *y, const float *x, const float *w, const float *b, size_t n, float eps);

  /* 0.5 x (1 + tanh (sqrt (2/pi) (x + 0.044715 x^3))), in place. Error <= 2^-21 * (1 + |x|). */
  void (*gelu_tanh) (float *x, size_t n);

  /* 0.5 x (1 + erf (x / sqrt 2)), in place. Error <= 2^-21 * (1 + |x|). */
  void (*gelu_erf) (float *x, size_t n);

  /* y = gate / (1 + exp (-gate)) * up; y may be gate or up. Error <= 2^-21 * (1 + |gate|) |up|. */
  void (*silu_mul) (float *y, const float *gate, const float *up, size_t n);

  /* add, mul, rope and short_conv are single IEEE operations in the order written: every level
   * gives the same bits. */

  /* y += x */
  void (*add) (float *y, const float *x, size_t n);

  /* y = a * b; in place allowed */
  void (*mul) (float *y, const float *a, const float *b, size_t n);

  /* Half-split rotation of one head in place: x[i], x[i + half] by cos[i], sin[i], i < half. */
  void (*rope) (float *x, const float *cos, const float *sin, size_t half);

  /*
   * One token of the gated depthwise causal convolution:
   *   y[c] = gate[c] * sum_t taps[t * n + c] * u[t][c],   t = 0 (oldest) .. n_taps - 1
   * with the sum starting from zero.
   */
  void (*short_conv) (float *y, const float *gate, const float *const *u, const float *taps,
      size_t n_taps, size_t n);

  /* Widening copies, exact. */
  void (*f16_to_f32) (float *y, const uint16_t *x, size_t n);
  void (*bf16_to_f32) (float *y, const uint16_t *x, size_t n);

  /*
   * Antialiased resample of 8-bit pixels with int16 weights, one row each:
   *   v = clamp ((2^(bits-1) + sum_t src[..] * weight[t]) >> bits, 0, 255)
   * resample_row:    interleaved RGB; output pixel i reads source pixels start[i] .. start[i] +
   *                  count[i] - 1 with weights + i * max_taps.
   * resample_column: n bytes; tap t is the row src + t * stride.
   */
  void (*resample_row) (uint8_t *dst, const uint8_t *src, size_t n_pixels, const int32_t *start,
      const int32_t *count, const int16_t *weights, size_t max_taps, unsigned bits);
  void (*resample_column) (uint8_t *dst, const uint8_t *src, size_t stride, size_t n,
      const int16_t *weights, size_t n_taps, unsigned bits);
} VlmKernels;

/* Instruction-set levels, in ascending order within a family. */
typedef enum
{
  VLM_CPU_SCALAR = 0,
  VLM_CPU_ORC,
  VLM_CPU_AVX2, /* with FMA and F16C */
  VLM_CPU_AVXVNNI,
  VLM_CPU_AVX512, /* F, BW, DQ, VL */
  VLM_CPU_AVX512VNNI,
  VLM_CPU_NEON,
  VLM_CPU_DOTPROD,
  VLM_CPU_I8MM,
  VLM_CPU_N_LEVELS
} VlmCpuLevel;

/* The printable name of a level ("scalar", "avx2", ...); NULL beyond the last. */
const char *vlm_cpu_level_name (VlmCpuLevel level);

/* The level with that name, or -1. */
int vlm_cpu_level_from_name (const char *name);

/* Non-zero when this processor and this build can run the level. */
int vlm_cpu_supports (VlmCpuLevel level);

/* The best level that this processor and build can run. */
VlmCpuLevel vlm_cpu_best_level (void);

/*
 * Fills the table for one level: plain C, then every supported level up to and including this one.
 * Returns 0, or -1 when the processor or the build does not support the level.
 */
int vlm_kernels_init (VlmKernels *kernels, VlmCpuLevel level);

#endif
