/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The entries that are no product with weights. Every thread has its own numbers to work on. */

#include "bench-kernels.h"

#include "bench-peak.h"

#include <stdlib.h>
#include <string.h>

/* Values a row, in groups of those, and rows of a picture. */
#define ROW 3072
#define GROUP 64
#define COLUMN_BYTES 1536
#define MAX_TAPS 9

#define PEAK_ROUNDS 20000

typedef struct
{
  gfloat x[ROW], y[ROW], w[ROW];
  int8_t q[ROW];
  gfloat scale[ROW / GROUP];
  int32_t sum[ROW / GROUP];
  guint8 pixels[MAX_TAPS * COLUMN_BYTES], row[COLUMN_BYTES];
  int16_t weights[MAX_TAPS];
} Numbers;

typedef struct
{
  const BenchLevel *level;
  BenchPeak peak;
  Numbers *numbers; /* [threads] */
  /* Attention: [threads][n][dim] each */
  gfloat *q, *k, *v, *out;
  gsize n, dim;
} Functions;

/* Each does one call and returns the values that it has made. */
static gdouble
quantise_work (guint thread, gpointer user_data)
{
  const Functions *f = user_data;
  Numbers *own = &f->numbers[thread];

  f->level->kernels.quantise_i8 (own->q, own->scale, own->sum, own->x, ROW, GROUP);
  return ROW;
}

static gdouble
rms_norm_work (guint thread, gpointer user_data)
{
  const Functions *f = user_data;
  Numbers *own = &f->numbers[thread];

  f->level->kernels.rms_norm (own->y, own->x, own->w, ROW, 1e-5f);
  return ROW;
}

static gdouble
layer_norm_work (guint thread, gpointer user_data)
{
  const Functions *f = user_data;
  Numbers *own = &f->numbers[thread];

  f->level->kernels.layer_norm (own->y, own->x, own->w, own->w, ROW, 1e-6f);
  return ROW;
}

/* In place: the values would not stay what they are. */
static gdouble
gelu_tanh_work (guint thread, gpointer user_data)
{
  const Functions *f = user_data;
  Numbers *own = &f->numbers[thread];

  memcpy (own->y, own->x, sizeof own->y);
  f->level->kernels.gelu_tanh (own->y, ROW);
  return ROW;
}

static gdouble
silu_mul_work (guint thread, gpointer user_data)
{
  const Functions *f = user_data;
  Numbers *own = &f->numbers[thread];

  f->level->kernels.silu_mul (own->y, own->x, own->w, ROW);
  return ROW;
}

static gdouble
resample_column_work (guint thread, gpointer user_data)
{
  const Functions *f = user_data;
  Numbers *own = &f->numbers[thread];

  f->level->kernels.resample_column (
      own->row, own->pixels, COLUMN_BYTES, COLUMN_BYTES, own->weights, MAX_TAPS, 14);
  return COLUMN_BYTES;
}

/* Returns operations, a product and its addition being two. */
static gdouble
attention_work (guint thread, gpointer user_data)
{
  const Functions *f = user_data;
  const gsize at = thread * f->n * f->dim;
  const VlmAttention args = { .out = f->out + at,
    .out_stride = f->dim,
    .q = f->q + at,
    .q_stride = f->dim,
    .n_queries = f->n,
    .k = f->k + at,
    .v = f->v + at,
    .v_stride = f->dim,
    .n_keys = f->n,
    .head_dim = f->dim,
    .scale = 0.125f };

  f->level->kernels.attention (&args);
  return 4.0 * (gdouble) (f->n * f->n * f->dim);
}

static gdouble
peak_work (guint thread, gpointer user_data)
{
  const Functions *f = user_data;

  return f->peak (PEAK_ROUNDS);
}

static gfloat *
make_values (gsize n)
{
  gfloat *x = bench_allocate (n * sizeof (gfloat));
  gsize i;

  for (i = 0; i < n; i++)
    x[i] = 0.1f * (gfloat) (i % 31) - 1.5f;

  return x;
}

static void
bench_attention (const Bench *bench, Functions *f, gsize dim)
{
  BenchResult result = { f->level->kernels.name, "attention", "", "", "GFLOPS", 0, 0, 0 };
  BenchCase c = { attention_work, peak_work, f, 0, 0, 0 };
  gsize n;

  f->n = bench->quick || f->level->level <= VLM_CPU_ORC ? 128 : 1024;
  f->dim = dim;
  n = bench->threads * f->n * dim;
  f->q = make_values (n);
  f->k = make_values (n);
  f->v = make_values (n);
  f->out = make_values (n);
  bench_measure (bench, &c);
  g_snprintf (result.shape, sizeof result.shape, "%" G_GSIZE_FORMAT "x%" G_GSIZE_FORMAT, f->n, dim);
  result.rate = c.rate * 1e-9;
  result.limit = c.limit_rate * 1e-9;
  result.share = c.share;
  bench->report (&result, bench->user_data);

  free (f->q);
  free (f->k);
  free (f->v);
  free (f->out);
}

static Numbers *
make_numbers (guint threads)
{
  Numbers *numbers = bench_allocate (threads * sizeof (Numbers));
  guint t;
  gsize i;

  for (t = 0; t < threads; t++) {
    Numbers *own = &numbers[t];

    memset (own, 0, sizeof *own);
    for (i = 0; i < ROW; i++) {
      own->x[i] = 0.1f * (gfloat) (i % 31) - 1.5f;
      own->w[i] = 0.05f * (gfloat) (i % 29);
    }
    for (i = 0; i < sizeof own->pixels; i++)
      own->pixels[i] = (guint8) (i * 37);
    for (i = 0; i < MAX_TAPS; i++)
      own->weights[i] = (int16_t) (i % 4 == 3 ? -500 : 2400);
  }

  return numbers;
}

void
bench_functions (const Bench *bench, const BenchLevel *level, const BenchEntries *entries)
{
  const struct
  {
    gboolean wanted;
    const gchar *name, *format, *shape;
    BenchWork work;
  } list[] = {
    { entries->quantise, "quantise_i8", "groups of 64", "3072", quantise_work },
    { entries->rms_norm, "rms_norm", "", "3072", rms_norm_work },
    { entries->layer_norm, "layer_norm", "", "3072", layer_norm_work },
    { entries->gelu_tanh, "gelu_tanh", "", "3072", gelu_tanh_work },
    { entries->silu_mul, "silu_mul", "", "3072", silu_mul_work },
    { entries->resample_column, "resample_column", "9 taps", "1536", resample_column_work },
  };
  Functions f = { .level = level,
    .peak = bench_peak_floats (level->level),
    .numbers = make_numbers (bench->threads) };
  guint i;

  if (entries->attention) {
    bench_attention (bench, &f, 64);
    if (!bench->quick)
      bench_attention (bench, &f, 72);
  }
  for (i = 0; i < G_N_ELEMENTS (list); i++) {
    BenchResult result = { level->kernels.name, list[i].name, list[i].format, "", "Gval/s", 0, 0,
      0 };
    BenchCase c = { list[i].work, NULL, &f, 0, 0, 0 };

    if (!list[i].wanted)
      continue;
    g_strlcpy (result.shape, list[i].shape, sizeof result.shape);
    bench_measure (bench, &c);
    result.rate = c.rate * 1e-9;
    bench->report (&result, bench->user_data);
  }
  free (f.numbers);
}
