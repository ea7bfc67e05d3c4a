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

/* Keys of a call of attention_tiled at most. */
#define VLM_TILED_KEYS 128

/* No level has a wider weight panel than this. */
#define VLM_MAX_PANEL 64

/* Integer products walk along a row in steps of this many values; rows are padded to it. */
#define VLM_K_STEP 16

/* No level has a wider panel of integer weights than this. */
#define VLM_MAX_INT_PANEL 64

/* Rows of products in tiles begin at multiples of this many, and there is room for as many at their end. */
#define VLM_TILED_ROWS 32

/* Values of a row that are put into tiles together. */
#define VLM_TILED_STEP 32

/* Panels that may be multiplied in one call. */
#define VLM_TILED_PANELS 4

/* The length of a row of k values in steps. */
static inline size_t
vlm_padded_k (size_t k)
{
  return (k + VLM_K_STEP - 1) / VLM_K_STEP * VLM_K_STEP;
}

/* The groups in a row of k values. The last one may be short. */
static inline size_t
vlm_n_groups (size_t k, size_t group)
{
  return (k + group - 1) / group;
}

/*
 * Rows of activations as quantise_i8 makes them, for the products with integer weights. A run of
 * rows is the same with q, scale and sum moved ahead.
 */
typedef struct
{
  const int8_t *q;    /* [m][ldq], -127 .. 127; zero from k to vlm_padded_k (k) */
  size_t ldq;         /* >= vlm_padded_k (k) */
  const float *scale; /* [m][ldg] */
  const int32_t *sum; /* [m][ldg] */
  size_t ldg;         /* >= vlm_n_groups (k, group) */
  size_t k;
  size_t group; /* a multiple of VLM_K_STEP, at most 65536 */
} VlmActivations;

/* Rows of activations as tile_row makes them, for products with integer weights in bfloat16. */
typedef struct
{
  void *data; /* tiled_bytes (m, k) */
  size_t m, k;
} VlmTiledRows;

/* The kinds of scales of integer weights, in ascending order of detail. */
typedef enum
{
  VLM_SCALE_ROW,  /* one f32 a row */
  VLM_SCALE_F16,  /* one IEEE half for each group of a row */
  VLM_SCALE_F32,  /* one f32 for each group */
  VLM_SCALE_CODES /* for each group an 8-bit code, times one half for each VLM_SUPER_GROUP values */
} VlmIntScale;

/* Values that share the half of VLM_SCALE_CODES. */
#define VLM_SUPER_GROUP 256

/*
 * How the weights of an integer matrix are stored. The value of a weight is
 *   q * scale            q signed, -2^(bits - 1) .. 2^(bits - 1) - 1
 *   q * scale + min      with has_min; q unsigned, 0 .. 2^bits - 1, and bits below 8
 * where scale is the row's or its group's, and min one of the same kind. A scale in codes is
 * (float) code * half, rounded once (codes are signed); so is a min.
 */
typedef struct
{
  unsigned bits; /* 4, 5, 6 or 8 */
  VlmIntScale scale;
  int has_min; /* not with VLM_SCALE_ROW */
  /* Values of a row with one scale: a multiple of VLM_K_STEP, at most 65536. VLM_SCALE_CODES: 16,
   * 32, 64, 128 or 256. Ignored for VLM_SCALE_ROW. */
  size_t group;
} VlmIntFormat;

/* Rows of integer weights as files are read: plain arrays, nothing interleaved. */
typedef struct
{
  const int8_t *q; /* [n][ldq], one value each */
  size_t ldq;
  const void *scale; /* ROW: float [n]; F16: uint16_t, F32: float, CODES: int8_t [n][lds] */
  const void *min;   /* the same, or NULL */
  size_t lds;        /* >= vlm_n_groups (k, group) */
  /* CODES only: [n][ldsuper] halves */
  const uint16_t *super;
  const uint16_t *super_min;
  size_t ldsuper; /* >= vlm_n_groups (k, VLM_SUPER_GROUP) */
} VlmIntRows;

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
  /* [n_queries], with out: what attend_head left of other keys, which count like these; or NULL */
  const float *max, *sum;
} VlmAttention;

/* How the keys and values of a packed head are kept, and what is computed with them. */
typedef enum
{
  VLM_HEAD_NONE,     /* there are no packed heads: attention is as fast */
  VLM_HEAD_INTEGERS, /* scores of 8-bit, values and their weights of 12 and 14-bit integers */
  VLM_HEAD_BF16      /* all of them in bfloat16, sums in f32 */
} VlmHeadForm;

/* The keys and values of one head as they are before they are packed. */
typedef struct
{
  const float *k; /* [n_keys][k_stride], head_dim values a row */
  size_t k_stride;
  const float *v; /* [n_keys][v_stride] */
  size_t v_stride;
  size_t n_keys;   /* >= 1 */
  size_t head_dim; /* a multiple of 8, at most 256 */
} VlmHead;

/*
 * The same as VlmAttention for many queries that see all keys of a packed head:
 *   out[i] = sum_j softmax_j (scale * q[i].k[j]) v[j],  j < n_keys
 *
 * With max and sum, over n_more packed heads after that one too, and to go on from in attention:
 *   max[i] = about the largest score, scale * q[i].k[j]
 *   sum[i] = sum_j e^(scale * q[i].k[j] - max[i])
 *   out[i] = sum_j e^(scale * q[i].k[j] - max[i]) v[j]
 */
typedef struct
{
  float *out; /* [n_queries][out_stride], head_dim values a row */
  size_t out_stride;
  const float *q; /* [n_queries][q_stride] */
  size_t q_stride;
  size_t n_queries;
  const void *head; /* as pack_head left it */
  size_t n_keys;    /* those of the packed head, as is head_dim */
  size_t head_dim;
  float scale;
  float *max, *sum;   /* [n_queries], or both NULL */
  size_t n_more;      /* 0 without max */
  size_t head_stride; /* bytes from a packed head to the next */
} VlmHeadAttention;

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
   * Integers. Unlike the float entries, these give the same bits on every level, the f32 part too.
   *
   * quantise_i8 takes one row x of n values in groups, with the largest |x| of the group as amax:
   *   scale[g] = amax / 127
   *   q[l]     = rint (x[l] * (127 / amax)), ties to even, kept within -127 .. 127
   *   sum[g]   = sum of the q of the group
   * A group whose amax is below 2^-100 counts as zero: scale, q, sum are 0. NaNs do not count for
   * amax and become -127; so does an infinity, whose group has an infinite scale. q is written up
   * to vlm_padded_k (n), with zeros from n on. -128 never occurs, which the instructions rely on.
   */
  void (*quantise_i8) (
      int8_t *q, float *scale, int32_t *sum, const float *x, size_t n, size_t group);

  /*
   * Product of m rows of activations with one panel of integer weights, j < n <= int_panel:
   *   VLM_SCALE_ROW: y[i][j] = w_scale[j] * sum_g x_scale[i][g] * dot (i, j, g)  (+ bias[j])
   *   others:        y[i][j] = sum_g ((x_scale[i][g] * w_scale[j][g]) * dot (i, j, g)
   *                              (+ (x_scale[i][g] * x_sum[i][g]) * w_min[j][g]))  (+ bias[j])
   * dot is the exact integer product of group g. The sum runs over g in ascending order from zero
   * in f32: one fused multiply-add for the dot of a group, then one for its minimum. The end of
   * VLM_SCALE_ROW is fma (sum, w_scale, bias), or a product without bias. bias may be NULL.
   *
   * VLM_SCALE_ROW takes any group of activations, so that they are as fine as accuracy wants; the
   * others need that of the weights. 256 is nearly free, 64 costs a quarter of the rate (AVX-512
   * VNNI). w is a panel as vlm_int_pack () leaves it; its tile order is the level's own. Integers
   * do not overflow for groups of up to 65536.
   */
  size_t int_panel;
  void (*matmul_int) (float *y, size_t ldy, const VlmActivations *x, size_t m,
      const VlmIntFormat *format, const void *w, size_t n, const float *bias);

  /* Private to kernels/: the tile order of a panel, see pack.c. */
  size_t int_inner;
  uint8_t int_flip;

  /*
   * Products of many rows with integer weights in bfloat16: sums are floats, which no scale
   * interrupts. All three entries are NULL on levels where that is not faster than matmul_int.
   *
   * tile_row puts values first .. first + n - 1 of row i where they belong, each rounded to the
   * nearest bfloat16. first is a multiple of VLM_TILED_STEP, and so is n unless the row ends with
   * it. All rows together have tiled_bytes (m, k) bytes, in the level's own order.
   *
   * matmul_tiled multiplies rows first .. first + m - 1 of x with panels as matmul_int takes them,
   * panel_bytes apart:
   *   y[i][j] = sum_l x[first + i][l] w[j][l]  (+ bias[j]),   j < n <= VLM_TILED_PANELS * int_panel
   * Weights with VLM_SCALE_ROW are exact, and their scale comes in at the end; others are rounded to
   * the nearest bfloat16. first is a multiple of VLM_TILED_ROWS. y has room for m rounded up to
   * VLM_TILED_ROWS rows, and for whole panels of columns: what is beyond m and n may be anything
   * afterwards. bias may be NULL. k is not zero, and scales are below 2^119. Values of x, products
   * and sums below 2^-126 may count as zero, where products of VLM_SCALE_ROW are 2^-8 of what they
   * are with a scale of one.
   *
   * Error: <= (2^-7 + k * 2^-22) * (|bias| + sum_l |x| (|q * scale| + |min|))
   *          + k * 2^-125 * (1 + 2^8 * the row's scale), and what values of x below 2^-126 would have
   *          given
   */
  size_t (*tiled_bytes) (size_t m, size_t k);
  void (*tile_row) (const VlmTiledRows *rows, size_t i, size_t first, const float *x, size_t n);
  void (*matmul_tiled) (float *y, size_t ldy, const VlmTiledRows *x, size_t first, size_t m,
      const VlmIntFormat *format, const void *w, size_t panel_bytes, size_t n, const float *bias);

  /*
   * See VlmAttention. Error: <= 2^-21 * (8 + max_j sum_d |scale * q[d] k[j][d]|) * max_j |v[j]|.
   * It grows with the terms of a score, not with the score: a score is rounded like its largest
   * partial sum, and its error becomes a relative one of its weight. (A statistical bound for sums
   * of up to 4096 keys: roundings that all point the same way could exceed it.)
   */
  void (*attention) (const VlmAttention *args);

  /*
   * The same over at most VLM_TILED_KEYS keys, for many queries, in tiles of bfloat16; NULL on levels
   * where that is not faster. Each of q and k is the sum of two bfloat16 numbers, and the product of
   * the smaller two is left out. Values and their weights are rounded to bfloat16; max, sum and out of
   * other keys are not. Numbers below 2^-126 count as zero. Values of keys that a query does not see
   * may be multiplied by zero: k, v and their products with q are finite.
   *
   * Error, where m_j is the error of a score:
   *   m_j   <= (2^-16 + 2^-22 head_dim) * sum_d |scale * q[d] k[j][d]|
   *   error <= (e^(2 m) (1 + 2^-7) - 1 + 2^-8) * max |v|,   m = max_j m_j
   */
  void (*attention_tiled) (const VlmAttention *args);

  /*
   * Attention that rounds its inputs, for many queries of one head. pack_head brings keys and values
   * into the level's own order, head_bytes () of them; attend_head reads that. All three are NULL
   * where head_form is VLM_HEAD_NONE.
   *
   * VLM_HEAD_INTEGERS gives the same bits on every level, those of scalar/head.c:
   *   c[j] = k[j] - mean of all keys, which no weight depends on, rounded as by quantise_i8 in one
   *          group: ks[j], ck[j]
   *   u[i] = q[i] * (scale * log2 e), rounded likewise: qs[i], cq[i]
   *   w[d] = v[.][d] - mean, rounded to -2047 .. 2047 with one scale for each d
   *   s[j] = ks[j] * (cq[i].ck[j])
   *   p[j] = rint (2^13 2^(qs[i] * (s[j] - max of its block)))
   * Keys come in blocks of 128. Within one, sums of p and of p * w are exact integers; blocks are
   * brought together as in attention. 2^x is a polynomial of relative error 2^-13. Where several
   * heads are brought together, scores get back what their keys lost with the mean, u[i].mean in
   * floats.
   *
   * Error of out[i][d], where m_j is the error of a score and rounded what p lose in all:
   *   m_j     <= |scale| * (sum_d (max |q| |c[j][d]| + max |c[j]| |q[d]| + max |q| max |c[j]| / 254)
   *                / 254 + 2^-20 * sum_d |q[d]| (|k[j][d]| + |mean[d]|))
   *   rounded <= sum_j 2^-14 max of the block of j (e^score) / sum_j e^score, at most 2^-7
   *   error   <= (e^(2 m) - 1 + 2^-11 + 2 rounded e^(2 m)) * max_j |v[j][d] - mean[d]|
   *                + max_j |v[j][d] - mean[d]| / 4093 + 2^-20 max |v|,   m = max_j m_j
   * Each more head adds 2^-12 to 2^-11; v[j][d] - mean[d] are then, but for 4093, from any mean.
   * These are worst cases. All outputs of random values together are wrong by 0.6 to 1.5 %.
   *
   * VLM_HEAD_BF16 rounds to bfloat16 and adds up in f32; numbers below 2^-126 count as zero:
   *   c[j] = k[j] - mean of all keys, u[i] = q[i] * (2^8 scale * log2 e)
   *   w[j] = v[j] - mean
   *   p[j] = 2^(u[i].c[j] 2^-8 - r), as a bfloat16 that is wrong by up to 2^-7
   * where r is 30 above the mean score, of the first head if there are several; where the sum of
   * weights would not be within 2^-60 .. 2^60 then, r is 30 above the largest score. The sum is that
   * of the rounded weights. Several heads are brought together as above.
   *
   * Error of out[i][d], where m_j is the error of a score:
   *   m_j   <= |scale| * (2^-7 + 2^-12) * sum_d |q[d]| |c[j][d]|
   *              + 2^-20 |scale| * sum_d |q[d]| (|k[j][d]| + |mean[d]|)
   *   error <= (e^(2 m) (1 + 2^-6 + 2^-12) - 1) * max_j |v[j][d] - mean[d]|
   *              + 2^-8 max_j |v[j][d] - mean[d]| + (2^-20 + 2^-24 n_keys) max |v|,   m = max_j m_j
   * with v[j][d] - mean[d] from any mean. All outputs of random values together are wrong by 0.2 to
   * 0.8 %. With max, it is from ln 2 below the largest score to ln (the number of keys) above it, but
   * for m and 2^-6.
   */
  VlmHeadForm head_form;
  size_t (*head_bytes) (size_t n_keys, size_t head_dim);
  void (*pack_head) (void *packed, const VlmHead *head);
  void (*attend_head) (const VlmHeadAttention *args);

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
  VLM_CPU_AMX, /* tiles of bfloat16, on top of avx512vnni */
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
 * Fills the table for one level: plain C, then every supported level up to and including this one,
 * but for orc below another. The first call for orc compiles its programs; threads may race to it.
 * Returns 0, or -1 when the processor or the build does not support the level.
 */
int vlm_kernels_init (VlmKernels *kernels, VlmCpuLevel level);

/*
 * Panels of integer weights. A panel holds up to int_panel consecutive rows of a matrix; rows
 * beyond n are packed as zeros.
 */

/* Bytes of one panel, of rows of k values; k < SIZE_MAX / 256. */
size_t vlm_int_panel_bytes (const VlmKernels *kernels, const VlmIntFormat *format, size_t k);

/* Packs n rows of k values into a panel. */
void vlm_int_pack (const VlmKernels *kernels, const VlmIntFormat *format, void *panel,
    const VlmIntRows *rows, size_t k, size_t n);

/* y[l] = the value of element l < k of row j of a panel; each operation is rounded once. */
void vlm_int_unpack_row (const VlmKernels *kernels, const VlmIntFormat *format, float *y,
    const void *panel, size_t j, size_t k);

/* The same of row i of plain rows. */
void vlm_int_dequantise_row (
    const VlmIntFormat *format, float *y, const VlmIntRows *rows, size_t i, size_t k);

#endif
