/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "check.h"

#define PANEL VLM_KEY_PANEL

enum
{
  SLOT_Q,
  SLOT_K,
  SLOT_V,
  SLOT_OUT,
  SLOT_AGAIN,
  SLOT_MAX,
  SLOT_SUM
};

/* One of two entries with the same arguments. */
typedef struct
{
  void (*attend) (const VlmAttention *args);
  int tiled;
} Entry;

/* Of an output, where magnitude is the largest sum of what a score is made of, and largest of |v|. */
static double
find_bound (const Entry *entry, size_t head_dim, double magnitude, double largest)
{
  const double m = (ldexp (1, -16) + ldexp ((double) head_dim, -22)) * magnitude;

  return largest
      * (entry->tiled ? exp (2 * m) * (1 + ldexp (1, -7)) - 1 + ldexp (1, -8)
                      : ldexp (8 + magnitude, -21));
}

static size_t
keys_of (const VlmAttention *args, size_t query)
{
  size_t n = args->causal ? args->first_keys + query : args->n_keys;

  return n < args->n_keys ? n : args->n_keys;
}

static double
key (const VlmAttention *args, size_t j, size_t d)
{
  return args->k[(j / PANEL * args->head_dim + d) * PANEL + j % PANEL];
}

/* Lanes after the last key are finite and as large as floats get. */
static void
fill (VlmAttention *args, double size)
{
  size_t n_panels = (args->n_keys + PANEL - 1) / PANEL, dim = args->head_dim, i, j;
  float *q, *k, *v;

  args->q_stride = dim + check_below (3) * 5;
  args->v_stride = dim + check_below (3) * 3;
  args->out_stride = dim + check_below (3) * 7;
  q = check_slot (SLOT_Q, ((args->n_queries - 1) * args->q_stride + dim) * sizeof (float));
  k = check_slot (SLOT_K, n_panels * dim * PANEL * sizeof (float));
  v = check_slot (SLOT_V, ((args->n_keys - 1) * args->v_stride + dim) * sizeof (float));

  for (i = 0; i < args->n_queries; i++) {
    for (j = 0; j < dim; j++)
      q[i * args->q_stride + j] = (float) check_uniform (-size, size);
  }
  for (i = 0; i < n_panels * PANEL; i++) {
    for (j = 0; j < dim; j++)
      k[(i / PANEL * dim + j) * PANEL + i % PANEL] =
          i < args->n_keys ? (float) check_uniform (-1, 1) : 3e38f;
  }
  for (i = 0; i < args->n_keys; i++) {
    for (j = 0; j < dim; j++)
      v[i * args->v_stride + j] = (float) check_uniform (-2, 2);
  }
  args->q = q;
  args->k = k;
  args->v = v;
}

/* Brings the largest |scale * q.k| of all to the given size. */
static void
set_spread (VlmAttention *args, double spread)
{
  double most = 0;
  size_t i, j, d;

  for (i = 0; i < args->n_queries; i++) {
    for (j = 0; j < args->n_keys; j++) {
      double dot = 0;

      for (d = 0; d < args->head_dim; d++)
        dot += args->q[i * args->q_stride + d] * key (args, j, d);
      most = fabs (dot) > most ? fabs (dot) : most;
    }
  }
  args->scale = most > 0 ? (float) (spread / most) : 1;
}

static void
check_query (const Entry *entry, const VlmAttention *args, size_t i, const float *out)
{
  double p[512], sums[256] = { 0 }, max = -INFINITY, total = 0, size = 0, largest = 0, bound;
  size_t n = keys_of (args, i), j, d;

  for (j = 0; j < n; j++) {
    double dot = 0, magnitude = 0;

    for (d = 0; d < args->head_dim; d++) {
      double product = args->q[i * args->q_stride + d] * key (args, j, d);

      dot += product;
      magnitude += fabs (product);
    }
    p[j] = dot * args->scale;
    max = p[j] > max ? p[j] : max;
    size = fabs (magnitude * args->scale) > size ? fabs (magnitude * args->scale) : size;
  }
  for (j = 0; j < n; j++) {
    p[j] = exp (p[j] - max);
    total += p[j];
    for (d = 0; d < args->head_dim; d++) {
      double value = args->v[j * args->v_stride + d];

      sums[d] += p[j] * value;
      largest = fabs (value) > largest ? fabs (value) : largest;
    }
  }

  bound = find_bound (entry, args->head_dim, size, largest);
  for (d = 0; d < args->head_dim; d++)
    check_near (
        out[i * args->out_stride + d], sums[d] / total, bound, "out", i * args->head_dim + d);
}

/* Every query alone, and chunks of several, give the same bits as all at once. */
static void
check_splits (const Entry *entry, const VlmAttention *args)
{
  size_t row = args->head_dim * sizeof (float), first, n;

  for (first = 0; first < args->n_queries; first += n) {
    VlmAttention part = *args;

    n = 1 + (check_below (3) == 0 ? check_below (args->n_queries - first) : 0);
    part.n_queries = n;
    part.q += first * args->q_stride;
    part.first_keys += first;
    part.out = check_slot (SLOT_AGAIN, (n - 1) * args->out_stride * sizeof (float) + row);
    entry->attend (&part);
    check_same_queries (
        part.out, args->out, args->out_stride, args->head_dim, args->n_keys, first, n);
    check_expect (check_intact (SLOT_AGAIN), "wrote before query %zu", first);
  }
}

static void
check_case (const Entry *entry, VlmAttention *args, double spread)
{
  size_t i;

  fill (args, spread == 0 ? 0 : 1);
  set_spread (args, spread);
  args->out = check_slot (
      SLOT_OUT, ((args->n_queries - 1) * args->out_stride + args->head_dim) * sizeof (float));
  entry->attend (args);
  check_expect (check_intact (SLOT_OUT), "wrote before out");
  for (i = 0; i < args->n_queries; i++)
    check_query (entry, args, i, args->out);
  for (i = 0; i + 1 < args->n_queries && args->out_stride > args->head_dim; i++) {
    const unsigned char *gap = (const void *) (args->out + i * args->out_stride + args->head_dim);

    check_expect (gap[0] == CHECK_PATTERN, "wrote beyond query %zu", i);
  }
  check_splits (entry, args);
}

/* The state after the first n keys, whose maximum need not be quite the largest score. */
static void
leave_keys (const VlmAttention *args, size_t i, size_t n, float *out, float *max, float *sum)
{
  double sums[256] = { 0 }, total = 0;
  double score[512];
  size_t j, d;

  *max = -INFINITY;
  for (j = 0; j < n; j++) {
    score[j] = 0;
    for (d = 0; d < args->head_dim; d++)
      score[j] += args->scale * (double) args->q[i * args->q_stride + d] * key (args, j, d);
    *max = fmaxf (*max, (float) (score[j] + check_uniform (-0.5, 0.5)));
  }
  for (j = 0; j < n; j++) {
    double p = exp (score[j] - *max);

    total += p;
    for (d = 0; d < args->head_dim; d++)
      sums[d] += p * args->v[j * args->v_stride + d];
  }
  for (d = 0; d < args->head_dim; d++)
    out[d] = (float) sums[d];
  *sum = (float) total;
}

/* Keys after others that another entry took. */
static void
check_going_on (const Entry *entry, VlmAttention *args, size_t n_before, double spread)
{
  VlmAttention rest;
  float *out, *max, *sum;
  size_t i;

  fill (args, 1);
  set_spread (args, spread);
  out = check_slot (
      SLOT_OUT, ((args->n_queries - 1) * args->out_stride + args->head_dim) * sizeof (float));
  max = check_slot (SLOT_MAX, args->n_queries * sizeof (float));
  sum = check_slot (SLOT_SUM, args->n_queries * sizeof (float));
  for (i = 0; i < args->n_queries; i++)
    leave_keys (args, i, n_before, out + i * args->out_stride, max + i, sum + i);

  rest = *args;
  rest.out = out;
  rest.max = max;
  rest.sum = sum;
  rest.k += n_before * args->head_dim;
  rest.v += n_before * args->v_stride;
  rest.n_keys -= n_before;
  rest.first_keys -= n_before;
  entry->attend (&rest);
  for (i = 0; i < args->n_queries; i++)
    check_query (entry, args, i, out);
}

/* A value that a query does not see must not reach it, even if it is no number. */
static void
check_unseen (const VlmKernels *kernels)
{
  VlmAttention args = {
    .n_queries = 9, .n_keys = 70, .first_keys = 60, .causal = 1, .head_dim = 24
  };
  size_t i, j, d;

  fill (&args, 1);
  args.scale = 1;
  for (j = 62; j < args.n_keys; j++) {
    for (d = 0; d < args.head_dim; d++)
      ((float *) args.v)[j * args.v_stride + d] = NAN;
  }
  args.out = check_slot (
      SLOT_OUT, ((args.n_queries - 1) * args.out_stride + args.head_dim) * sizeof (float));
  kernels->attention (&args);
  for (i = 0; i < args.n_queries; i++) {
    for (d = 0; d < args.head_dim; d++)
      check_expect (!isnan (args.out[i * args.out_stride + d]) == (keys_of (&args, i) <= 62),
          "query %zu sees a key beyond its %zu", i, keys_of (&args, i));
  }
}

static const double spreads[] = { 1, 10, 80, 0 };

/* The first query sees all keys but those of later queries, or any number of them. */
static void
check_any_first (const Entry *entry, VlmAttention *args)
{
  if (check_below (2) != 0 && args->n_keys > args->n_queries)
    args->first_keys = args->n_keys - args->n_queries + 1;
  else
    args->first_keys = 1 + check_below (args->n_keys);
  check_case (entry, args, spreads[check_below (4)]);
}

void
check_attention (const VlmKernels *kernels)
{
  static const size_t dims[] = { 64, 72, 8, 16, 24, 80, 128, 256 };
  static const size_t keys[] = { 1, 2, 15, 16, 17, 63, 64, 65, 127, 130, 200, 33 };
  const Entry entry = { kernels->attention, 0 };
  size_t i;

  for (i = 0; i < 96; i++) {
    VlmAttention args = { .head_dim = dims[i % 8], .n_keys = keys[i % 12] };

    args.n_queries = 1 + (i < 40 ? i % 20 : check_below (20));
    args.causal = (int) check_below (2);
    check_any_first (&entry, &args);
  }
  /* Whatever a checkpoint may ask for, with keys in a whole block of lanes and in a part of one. */
  for (i = 8; i <= 256; i += 8) {
    VlmAttention args = {
      .head_dim = i, .n_queries = 5, .n_keys = 37, .first_keys = 33, .causal = 1
    };

    check_case (&entry, &args, 10);
  }
  for (i = 0; i < 40; i++) {
    VlmAttention args = { .head_dim = dims[i % 8], .n_queries = 1 + i % 13, .n_keys = 300 };

    args.causal = i % 3 > 0;
    args.first_keys = args.n_keys - args.n_queries + 1;
    check_going_on (&entry, &args, 16 * (1 + check_below (17)), spreads[i % 3]);
  }
  check_unseen (kernels);

  kernels->attention (&(VlmAttention){ .n_keys = 1, .head_dim = 8, .first_keys = 1 });
}

void
check_attention_tiled (const VlmKernels *kernels)
{
  static const size_t dims[] = { 64, 72, 8, 16, 24, 80, 128, 256 };
  static const size_t keys[] = { 1, 2, 16, 17, 31, 32, 33, 63, 65, 96, 127, 128 };
  const Entry entry = { kernels->attention_tiled, 1 };
  size_t i;

  for (i = 0; i < 96; i++) {
    VlmAttention args = { .head_dim = dims[i % 8], .n_keys = keys[i % 12] };

    args.n_queries = 1 + check_below (i < 48 ? 32 : 100);
    args.causal = i % 4 > 0;
    check_any_first (&entry, &args);
  }
  for (i = 8; i <= 256; i += 8) {
    VlmAttention args = {
      .head_dim = i, .n_queries = 33, .n_keys = 70, .first_keys = 38, .causal = 1
    };

    check_case (&entry, &args, 10);
  }
  for (i = 0; i < 40; i++) {
    VlmAttention args = { .head_dim = dims[i % 8], .n_queries = 1 + check_below (33) };
    const size_t n_before = 16 * (1 + check_below (17));

    args.causal = i % 3 > 0;
    args.n_keys = n_before + args.n_queries + check_below (VLM_TILED_KEYS + 1 - args.n_queries);
    args.first_keys = args.n_keys - args.n_queries + 1;
    check_going_on (&entry, &args, n_before, spreads[i % 3]);
  }

  kernels->attention_tiled (&(VlmAttention){ .n_keys = 1, .head_dim = 8, .first_keys = 1 });
}
