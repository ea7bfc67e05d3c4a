/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Attention with packed heads: as near to double precision as kernels.h says, and with integers bit
 * by bit what scalar/head.c makes of the same inputs.
 */

#include "check.h"

#include "kernels/scalar/scalar.h"

#define MAX_DIM 256
#define MAX_KEYS 700
#define MAX_HEADS 4
#define BLOCK 128

typedef size_t (*HeadBytes) (size_t n_keys, size_t head_dim);
typedef void (*PackHead) (void *packed, const VlmHead *head);

enum
{
  SLOT_Q,
  SLOT_K,
  SLOT_V,
  SLOT_HEAD,
  SLOT_OUT,
  SLOT_PLAIN_HEAD,
  SLOT_PLAIN,
  SLOT_AGAIN,
  SLOT_STATE,
  SLOT_PLAIN_STATE,
  SLOT_AGAIN_STATE
};

/* What the inputs are like. */
typedef enum
{
  RANDOM,
  PEAKY,   /* one key far above the others, for every query */
  FLAT,    /* all scores are equal */
  SINK,    /* one key is above the others, but they have half of the weight together */
  HEAVY,   /* a few channels of everything are much larger than the rest */
  FAR,     /* all keys and values lie far from zero */
  NOTHING, /* zeros */
  RISING,  /* every block has a larger score than those before */
  LARGEST, /* queries and keys round to the largest numbers there are */
  FULL,    /* all weights and values of a block are the largest there are, so are their sums */
  N_KINDS
} Kind;

typedef struct
{
  VlmHead head; /* all keys; where there are several heads, each has as many of them */
  VlmHeadAttention args;
  Kind kind;
  int state; /* whether maximum and sum are wanted */
} Case;

/* Some inputs as double precision has them: means taken out. */
typedef struct
{
  double k_mean[MAX_DIM], v_mean[MAX_DIM], v_size[MAX_DIM], v_most;
} Centre;

/* Those of each head, and of all keys. */
typedef struct
{
  Centre heads[MAX_HEADS], all;
} Centres;

static double
channel_size (Kind kind, size_t d)
{
  return kind == HEAVY && d % 17 == 3 ? 30 : 1;
}

static float
random_key (const Case *c, size_t j, size_t d)
{
  double x = check_uniform (-1, 1) * channel_size (c->kind, d);

  switch (c->kind) {
    case PEAKY:
      return (float) (j == c->head.n_keys / 2 ? 6 : x);
    case SINK:
      return (float) (x * 0.01 + (j == c->head.n_keys / 2 ? 1 : 0));
    case FLAT:
      return 0.25f;
    case FAR:
      return (float) (x + 100);
    case NOTHING:
      return 0;
    case RISING:
      return (float) (x * 0.1 + (double) j / 64);
    case LARGEST:
      return j % 2 == 0 ? 1 : -1;
    case FULL:
      return 1;
    default:
      return (float) x;
  }
}

static float
random_query (const Case *c, size_t i, size_t d)
{
  const int is_positive = c->kind == PEAKY || c->kind == SINK || c->kind == RISING;

  if (c->kind == NOTHING && i % 2 == 0)
    return 0;
  if (c->kind == LARGEST)
    return check_below (4) == 0 ? -1 : 1;
  return (float) (check_uniform (is_positive ? 0.5 : -1, 1) * channel_size (c->kind, d));
}

static float
random_value (const Case *c, size_t j, size_t d)
{
  if (c->kind == NOTHING)
    return 0;
  if (c->kind == FULL)
    return j / BLOCK % 2 == d % 2 ? 1 : -1;
  return (float) (check_uniform (-2, 2) * channel_size (c->kind, d) + (c->kind == FAR ? 50 : 0));
}

static void
fill (Case *c)
{
  const size_t dim = c->head.head_dim;
  float *q, *k, *v;
  size_t i, d;

  c->args.q_stride = dim + check_below (3) * 5;
  c->args.out_stride = dim + check_below (3) * 7;
  c->head.k_stride = dim + check_below (3) * 11;
  c->head.v_stride = dim + check_below (3) * 3;
  q = check_slot (SLOT_Q, ((c->args.n_queries - 1) * c->args.q_stride + dim) * sizeof (float));
  k = check_slot (SLOT_K, ((c->head.n_keys - 1) * c->head.k_stride + dim) * sizeof (float));
  v = check_slot (SLOT_V, ((c->head.n_keys - 1) * c->head.v_stride + dim) * sizeof (float));

  for (i = 0; i < c->args.n_queries; i++) {
    for (d = 0; d < dim; d++)
      q[i * c->args.q_stride + d] = random_query (c, i, d);
  }
  for (i = 0; i < c->head.n_keys; i++) {
    for (d = 0; d < dim; d++) {
      k[i * c->head.k_stride + d] = random_key (c, i, d);
      v[i * c->head.v_stride + d] = random_value (c, i, d);
    }
  }
  c->args.q = q;
  c->head.k = k;
  c->head.v = v;
  c->args.n_keys = c->head.n_keys / (c->args.n_more + 1);
  c->args.head_dim = dim;
}

static Centre
find_centre (const VlmHead *head)
{
  Centre centre = { { 0 }, { 0 }, { 0 }, 0 };
  size_t j, d;

  for (d = 0; d < head->head_dim; d++) {
    for (j = 0; j < head->n_keys; j++) {
      centre.k_mean[d] += head->k[j * head->k_stride + d] / (double) head->n_keys;
      centre.v_mean[d] += head->v[j * head->v_stride + d] / (double) head->n_keys;
    }
    for (j = 0; j < head->n_keys; j++) {
      double v = head->v[j * head->v_stride + d];

      centre.v_size[d] = fmax (centre.v_size[d], fabs (v - centre.v_mean[d]));
      centre.v_most = fmax (centre.v_most, fabs (v));
    }
  }
  return centre;
}

/* The keys of head number i alone. */
static VlmHead
one_head (const Case *c, size_t i)
{
  VlmHead head = c->head;

  head.n_keys = c->args.n_keys;
  head.k += i * head.n_keys * head.k_stride;
  head.v += i * head.n_keys * head.v_stride;
  return head;
}

static Centres
find_centres (const Case *c)
{
  Centres centres;
  size_t i;

  for (i = 0; i <= c->args.n_more; i++) {
    const VlmHead head = one_head (c, i);

    centres.heads[i] = find_centre (&head);
  }
  centres.all = find_centre (&c->head);
  return centres;
}

/* The score of key j, and by how much it may be wrong in a form. */
static double
score_key (const Case *c, const Centres *centres, VlmHeadForm form, const float *q, size_t j,
    double *error)
{
  const Centre *centre = &centres->heads[j / c->args.n_keys];
  const float *k = c->head.k + j * c->head.k_stride;
  const size_t dim = c->head.head_dim;
  double dot = 0, q_most = 0, k_most = 0, q_size = 0, k_size = 0, size = 0, rounding = 0;
  size_t d;

  for (d = 0; d < dim; d++) {
    double centred = k[d] - centre->k_mean[d];

    dot += q[d] * (double) k[d];
    rounding += fabs (q[d]) * (fabs (k[d]) + fabs (centre->k_mean[d]));
    q_most = fmax (q_most, fabs (q[d]));
    k_most = fmax (k_most, fabs (centred));
    q_size += fabs (q[d]);
    k_size += fabs (centred);
    size += fabs (q[d] * centred);
  }
  if (form == VLM_HEAD_BF16)
    *error = ldexp (size, -7) + ldexp (size, -12);
  else
    *error = (q_most * k_size + k_most * q_size + (double) dim * q_most * k_most / 254) / 254;
  *error = fabs (c->args.scale) * (*error + ldexp (rounding, -20));
  return dot * c->args.scale;
}

/* What is lost of the weights, the total of which is total, when they are rounded. */
static double
rounding_of (const Case *c, const double *p, double total)
{
  const size_t n_keys = c->args.n_keys;
  double lost = 0;
  size_t first, end, j;

  for (first = 0; first < c->head.n_keys; first = end) {
    const size_t left = n_keys - first % n_keys;
    double most = 0;

    end = first + (left < BLOCK ? left : BLOCK);

    for (j = first; j < end; j++)
      most = fmax (most, p[j]);
    lost += ldexp (most, -14) * (double) (end - first);
  }
  return lost / total;
}

/* What weights may be wrong by, relative to all of them; their scores are within most_error. */
static double
bound_weights (const Case *c, VlmHeadForm form, const double *p, double total, double most_error)
{
  if (form == VLM_HEAD_BF16)
    return exp (2 * most_error) * (1 + ldexp (1, -6) + ldexp (1, -12)) - 1;
  return expm1 (2 * most_error) + ldexp ((double) (1 + c->args.n_more), -11)
      + 2 * rounding_of (c, p, total) * exp (2 * most_error);
}

/* The maximum is about the largest score, and the sum of weights is relative to it. */
static void
check_state (
    const VlmHeadAttention *args, size_t i, size_t n_keys, double max, double total, double error)
{
  const double found = args->max[i], rounding = ldexp (fabs (max), -20);

  check_expect (found >= max - log (2) - error - rounding - ldexp (1, -6)
          && found <= max + log ((double) n_keys) + error + rounding + ldexp (1, -6),
      "the maximum of query %zu is %g, the largest score %g", i, found, max);
  check_near (found + log (args->sum[i]), max + log (total), error + rounding + ldexp (1, -6),
      "maximum and sum", i);
}

static void
check_query (const Case *c, const Centres *centres, VlmHeadForm form, size_t i,
    const VlmHeadAttention *args, const char *name)
{
  const float *out = args->out + i * args->out_stride;
  const Centre *all = &centres->all;

  const size_t dim = c->head.head_dim, n = c->head.n_keys;
  double p[MAX_KEYS], max = -INFINITY, total = 0, most_error = 0, weights;
  size_t j, d;

  for (j = 0; j < n; j++) {
    double error;

    p[j] = score_key (c, centres, form, c->args.q + i * c->args.q_stride, j, &error);
    max = fmax (max, p[j]);
    most_error = fmax (most_error, error);
  }
  for (j = 0; j < n; j++)
    total += p[j] = exp (p[j] - max);
  weights = bound_weights (c, form, p, total, most_error);
  if (args->max != NULL)
    check_state (args, i, n, max, total, most_error);

  for (d = 0; d < dim; d++) {
    double sum = 0, step = 0, bound;

    for (j = 0; j < n; j++)
      sum += p[j] * c->head.v[j * c->head.v_stride + d];
    for (j = 0; j <= c->args.n_more; j++)
      step = fmax (step, centres->heads[j].v_size[d]);
    step = form == VLM_HEAD_BF16
        ? ldexp (all->v_size[d], -8) + ldexp (all->v_most * (double) n, -24)
        : step / 4093;
    bound = fmin (weights, 2) * all->v_size[d] + step + ldexp (all->v_most, -20);
    check_near (
        args->sum != NULL ? out[d] / args->sum[i] : out[d], sum / total, bound, name, i * dim + d);
  }
}

static void
want_state (VlmHeadAttention *args, unsigned slot, int wanted)
{
  args->max = wanted ? check_slot (slot, 2 * args->n_queries * sizeof (float)) : NULL;
  args->sum = wanted ? args->max + args->n_queries : NULL;
}

/* Every query alone, and chunks of several, give the same bits as all at once. */
static void
check_splits (const VlmKernels *kernels, const VlmHeadAttention *args)
{
  const size_t row = args->head_dim * sizeof (float);
  size_t first, n;

  for (first = 0; first < args->n_queries; first += n) {
    VlmHeadAttention part = *args;

    n = 1 + (check_below (3) == 0 ? check_below (args->n_queries - first) : 0);
    part.n_queries = n;
    part.q += first * args->q_stride;
    part.out = check_slot (SLOT_AGAIN, (n - 1) * args->out_stride * sizeof (float) + row);
    want_state (&part, SLOT_AGAIN_STATE, args->max != NULL);
    kernels->attend_head (&part);
    check_expect (args->max == NULL
            || (memcmp (part.max, args->max + first, n * sizeof (float)) == 0
                && memcmp (part.sum, args->sum + first, n * sizeof (float)) == 0),
        "maxima or sums of %zu queries from %zu on differ", n, first);
    check_same_queries (
        part.out, args->out, args->out_stride, args->head_dim, args->n_keys, first, n);
    check_expect (check_intact (SLOT_AGAIN), "wrote before query %zu", first);
  }
}

static void
check_bits (const Case *c, const VlmHeadAttention *plain)
{
  const size_t dim = c->head.head_dim;
  size_t i, d;

  for (i = 0; i < c->args.n_queries; i++) {
    const float *a = c->args.out + i * c->args.out_stride, *b = plain->out + i * plain->out_stride;

    check_expect (
        plain->max == NULL || (c->args.max[i] == plain->max[i] && c->args.sum[i] == plain->sum[i]),
        "kind %d dim %zu keys %zu: maximum or sum of query %zu", c->kind, dim, c->head.n_keys, i);
    for (d = 0; d < dim; d++)
      check_expect (memcmp (a + d, b + d, sizeof (float)) == 0,
          "kind %d dim %zu keys %zu: query %zu [%zu] is %.9g, in plain C %.9g", c->kind, dim,
          c->head.n_keys, i, d, a[d], b[d]);
  }
}

/* Packs all heads of a case one after the other. */
static void
pack_heads (
    const Case *c, VlmHeadAttention *args, unsigned slot, HeadBytes head_bytes, PackHead pack_head)
{
  const size_t bytes = head_bytes (c->args.n_keys, c->head.head_dim);
  char *heads = check_slot (slot, (c->args.n_more + 1) * bytes);
  size_t i;

  for (i = 0; i <= c->args.n_more; i++) {
    const VlmHead head = one_head (c, i);

    pack_head (heads + i * bytes, &head);
  }
  args->head = heads;
  args->head_stride = bytes;
}

/* What plain C makes of the case. */
static void
check_plain (const Case *c, const Centres *centres, size_t out_bytes)
{
  VlmHeadAttention plain = c->args;
  size_t i;

  pack_heads (c, &plain, SLOT_PLAIN_HEAD, vlm_scalar_head_bytes, vlm_scalar_pack_head);
  plain.out = check_slot (SLOT_PLAIN, out_bytes);
  want_state (&plain, SLOT_PLAIN_STATE, c->state);
  vlm_scalar_attend_head (&plain);
  check_bits (c, &plain);
  for (i = 0; i < c->args.n_queries; i++)
    check_query (c, centres, VLM_HEAD_INTEGERS, i, &plain, "plain");
}

static void
check_case (const VlmKernels *kernels, Case *c)
{
  Centres centres;
  size_t out_bytes, i;

  fill (c);
  centres = find_centres (c);
  out_bytes = ((c->args.n_queries - 1) * c->args.out_stride + c->head.head_dim) * sizeof (float);

  pack_heads (c, &c->args, SLOT_HEAD, kernels->head_bytes, kernels->pack_head);
  c->args.out = check_slot (SLOT_OUT, out_bytes);
  want_state (&c->args, SLOT_STATE, c->state);
  kernels->attend_head (&c->args);
  check_expect (!c->state || check_intact (SLOT_STATE), "wrote before the maxima");
  check_expect (check_intact (SLOT_HEAD), "wrote before the packed head");
  check_expect (check_intact (SLOT_OUT), "wrote before out");
  for (i = 0; i + 1 < c->args.n_queries && c->args.out_stride > c->head.head_dim; i++) {
    const unsigned char *gap =
        (const void *) (c->args.out + i * c->args.out_stride + c->head.head_dim);

    check_expect (gap[0] == CHECK_PATTERN, "wrote beyond query %zu", i);
  }

  if (kernels->head_form == VLM_HEAD_INTEGERS)
    check_plain (c, &centres, out_bytes);
  for (i = 0; i < c->args.n_queries; i++)
    check_query (c, &centres, kernels->head_form, i, &c->args, "out");
  check_splits (kernels, &c->args);
  c->args.n_queries = 0;
  c->args.out = NULL;
  kernels->attend_head (&c->args);
}

/* out of query i in double precision */
static void
attend_exactly (const Case *c, size_t i, double *out)
{
  const size_t dim = c->head.head_dim, n = c->head.n_keys;
  const float *q = c->args.q + i * c->args.q_stride;
  double total = 0, first = 0;
  size_t j, d;

  memset (out, 0, dim * sizeof *out);
  for (j = 0; j < n; j++) {
    double score = 0, p;

    for (d = 0; d < dim; d++)
      score += q[d] * (double) c->head.k[j * c->head.k_stride + d];
    /* Keys far from zero have scores that are large, but much the same. */
    first = j == 0 ? score : first;
    total += p = exp ((score - first) * c->args.scale);
    for (d = 0; d < dim; d++)
      out[d] += p * c->head.v[j * c->head.v_stride + d];
  }
  for (d = 0; d < dim; d++)
    out[d] /= total;
}

/* Bounds are worst cases; all errors together stay far below them. */
static void
check_whole (const VlmKernels *kernels, Kind kind, float scale)
{
  Case c = { .head = { .head_dim = 64, .n_keys = 640 },
    .args = { .n_queries = 40, .scale = scale },
    .kind = kind };
  double exact[MAX_DIM], error = 0, size = 0;
  Centre centre;
  float *out;
  void *head;
  size_t i, d;

  fill (&c);
  centre = find_centre (&c.head);
  c.args.head = head = check_slot (SLOT_HEAD, kernels->head_bytes (c.head.n_keys, 64));
  kernels->pack_head (head, &c.head);
  c.args.out_stride = 64;
  c.args.out = out = check_slot (SLOT_OUT, c.args.n_queries * 64 * sizeof (float));
  kernels->attend_head (&c.args);
  for (i = 0; i < c.args.n_queries; i++) {
    attend_exactly (&c, i, exact);
    for (d = 0; d < 64; d++) {
      error += (out[i * 64 + d] - exact[d]) * (out[i * 64 + d] - exact[d]);
      size += (exact[d] - centre.v_mean[d]) * (exact[d] - centre.v_mean[d]);
    }
  }
  check_expect (sqrt (error / size) <= 0.02, "kind %d scale %g: all outputs are off by %g", kind,
      scale, sqrt (error / size));
}

/*
 * Weights alone, in bfloat16: queries and keys of numbers that it has, along one d, and values that
 * hand out one weight each.
 */
static void
check_weights (const VlmKernels *kernels)
{
  enum
  {
    N = 64,
    QUERIES = 128
  };
  const double step = 1.0 / 128;
  Case c = { .head = { .head_dim = N, .n_keys = N, .k_stride = N, .v_stride = N },
    .args = { .n_queries = QUERIES, .n_keys = N, .head_dim = N, .q_stride = N, .out_stride = N } };
  float *q = check_slot (SLOT_Q, QUERIES * N * sizeof (float));
  float *k = check_slot (SLOT_K, N * N * sizeof (float));
  float *v = check_slot (SLOT_V, N * N * sizeof (float)), *out;
  double exact[N], total, error = 0;
  size_t i, j;

  memset (q, 0, QUERIES * N * sizeof (float));
  memset (k, 0, N * N * sizeof (float));
  memset (v, 0, N * N * sizeof (float));
  for (i = 0; i < QUERIES; i++)
    q[i * N] = (float) (1 + (double) i * step);
  for (j = 0; j < N; j++) {
    k[j * N] = (float) ((2 * (double) j - (N - 1)) * step);
    v[j * N + j] = 1;
  }
  c.head.k = k;
  c.head.v = v;
  c.args.q = q;
  c.args.scale = (float) log (2);
  c.args.out = out = check_slot (SLOT_OUT, QUERIES * N * sizeof (float));
  pack_heads (&c, &c.args, SLOT_HEAD, kernels->head_bytes, kernels->pack_head);
  kernels->attend_head (&c.args);

  for (i = 0; i < QUERIES; i++) {
    for (j = 0, total = 0; j < N; j++)
      total += exact[j] = exp2 (q[i * N] * (double) k[j * N]);
    for (j = 0; j < N; j++) {
      const double wrong = out[i * N + j] * total / exact[j] - 1;

      check_near (wrong, 0, ldexp (1, -6) + ldexp (1, -12), "weight", i * N + j);
      error += wrong * wrong;
    }
  }
  error = sqrt (error / (QUERIES * N));
  check_expect (error <= ldexp (1, -8) * 0.55, "all weights are off by %g", error);
}

void
check_attend_head (const VlmKernels *kernels)
{
  static const size_t dims[] = { 64, 72, 8, 16, 24, 80, 128, 256 };
  static const size_t keys[] = { 1, 2, 7, 8, 9, 127, 128, 129, 130, 200, 255, 257, 400, 33 };
  static const size_t several[] = { 128, 1, 9, 33, 128, 150 };
  static const float scales[] = { 1, 0.125f, -0.3f, 3, 1e-3f };
  size_t i;

  for (i = 0; i < 112; i++) {
    Case c = { .head = { .head_dim = dims[i % 8], .n_keys = keys[i % 14] } };

    c.kind = (Kind) check_below (N_KINDS);
    c.args.n_queries = 1 + check_below (i % 7 == 0 ? 100 : 20);
    c.args.scale = scales[check_below (5)];
    check_case (kernels, &c);
  }
  for (i = 0; i < 60; i++) {
    Case c = { .kind = (Kind) check_below (N_KINDS), .state = 1 };

    c.head.head_dim = dims[i % 8];
    c.args.n_more = check_below (MAX_HEADS);
    c.head.n_keys = (c.args.n_more + 1) * several[i % 6];
    c.args.n_queries = 1 + check_below (i % 7 == 0 ? 100 : 20);
    c.args.scale = scales[check_below (5)];
    check_case (kernels, &c);
  }
  for (i = 8; i <= 256; i += 8) {
    Case c = { .head = { .head_dim = i, .n_keys = 135 },
      .args = { .n_queries = 17, .scale = 0.5f / sqrtf ((float) i) } };

    check_case (kernels, &c);
  }
  for (i = 0; i < 16; i++) {
    /* Two whole blocks, whose values have a mean of zero. */
    Case c = { .head = { .head_dim = dims[i % 8], .n_keys = 2 * BLOCK },
      .args = { .n_queries = 1 + check_below (20), .scale = scales[check_below (5)] },
      .kind = i < 8 ? LARGEST : FULL };

    check_case (kernels, &c);
  }
  if (kernels->head_form == VLM_HEAD_BF16)
    check_weights (kernels);
  check_whole (kernels, RANDOM, 0.125f);
  check_whole (kernels, RANDOM, 0.5f);
  check_whole (kernels, RANDOM, 1.5f);
  check_whole (kernels, SINK, 0.2f);
  check_whole (kernels, FAR, 0.5f);
}
