/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Products of matrices. Batches are held against the level's multiplying instructions on registers
 * alone; single rows and a few, as in decoding, against a plain read of the same weights.
 */

#include "bench-kernels.h"

#include "bench-peak.h"
#include "kernels/simd/compiler.h"

#include <stdlib.h>
#include <string.h>

/* As many activations at a time as stay in a second-level cache. */
#define BLOCK_BYTES ((gsize) 384 << 10)

/* The weights of decoding are larger than a thread's share of any cache. */
#define STREAM_BYTES ((gsize) 80 << 20)
#define MAX_STREAM_BYTES ((gsize) 1 << 30)
#define QUICK_STREAM_BYTES ((gsize) 12 << 20)

#define PEAK_ROUNDS 20000

typedef enum
{
  TYPE_F32,
  TYPE_F16,
  TYPE_BF16,
  TYPE_INT,
  TYPE_TILED
} Type;

static const gchar *const float_kernels[] = { "matmul_f32", "matmul_f16", "matmul_bf16" };

static const struct
{
  VlmIntFormat format;
  const gchar *name;
  gsize group; /* of the activations */
} int_formats[] = {
  { { 8, VLM_SCALE_ROW, 0, 0 }, "8 bits, row (x 768)", 768 },
  { { 8, VLM_SCALE_ROW, 0, 0 }, "8 bits, row (x 256)", 256 },
  { { 8, VLM_SCALE_ROW, 0, 0 }, "8 bits, row (x 128)", 128 },
  { { 8, VLM_SCALE_F16, 0, 32 }, "8 bits, f16/32", 32 },
  { { 4, VLM_SCALE_F16, 0, 64 }, "4 bits, f16/64", 64 },
  { { 4, VLM_SCALE_F16, 0, 32 }, "4 bits, f16/32", 32 },
  { { 5, VLM_SCALE_F16, 0, 32 }, "5 bits, f16/32", 32 },
  { { 4, VLM_SCALE_F32, 1, 64 }, "4 bits, f32+min/64", 64 },
  { { 4, VLM_SCALE_CODES, 1, 32 }, "4 bits, codes+min/32", 32 },
  { { 5, VLM_SCALE_CODES, 1, 32 }, "5 bits, codes+min/32", 32 },
  { { 6, VLM_SCALE_CODES, 0, 16 }, "6 bits, codes/16", 16 },
};

typedef guint64 Line __attribute__ ((vector_size (64), aligned (64)));
typedef guint64 (*Reader) (const Line *line, gsize quarter);

/* One product, cut among threads by panels. */
typedef struct
{
  const BenchLevel *level;
  guint threads;
  Type type;
  const VlmIntFormat *format; /* TYPE_INT and TYPE_TILED */
  BenchPeak peak;
  Reader reader;
  gsize m, k, n;
  gsize panel, panel_bytes;
  const gfloat *x; /* [m][k] */
  VlmActivations q;
  VlmTiledRows tiled;
  guint8 *w;
  gfloat *y; /* [m][n] */
} Product;

static void
multiply_floats (const Product *p, gsize i, gsize rows, gsize j)
{
  const VlmKernels *kernels = &p->level->kernels;
  const void *w = p->w + j * p->panel_bytes;
  gfloat *y = p->y + i * p->n + j * p->panel;
  const gfloat *x = p->x + i * p->k;

  if (p->type == TYPE_F32)
    kernels->matmul_f32 (y, p->n, x, p->k, rows, w, p->k, p->panel, NULL);
  else if (p->type == TYPE_F16)
    kernels->matmul_f16 (y, p->n, x, p->k, rows, w, p->k, p->panel, NULL);
  else
    kernels->matmul_bf16 (y, p->n, x, p->k, rows, w, p->k, p->panel, NULL);
}

static void
multiply_integers (const Product *p, gsize i, gsize rows, gsize j)
{
  VlmActivations x = p->q;

  x.q += i * x.ldq;
  x.scale += i * x.ldg;
  x.sum += i * x.ldg;
  p->level->kernels.matmul_int (p->y + i * p->n + j * p->panel, p->n, &x, rows, p->format,
      p->w + j * p->panel_bytes, p->panel, NULL);
}

/* The first panel of a thread; that of the one behind the last is their number. */
static gsize
first_panel (const Product *p, guint thread)
{
  return p->n / p->panel * thread / p->threads;
}

/* Operations of a thread, a product and its addition being two. */
static gdouble
operations_of (const Product *p, guint thread)
{
  gsize panels = first_panel (p, thread + 1) - first_panel (p, thread);

  return 2.0 * (gdouble) p->m * (gdouble) p->k * (gdouble) (panels * p->panel);
}

/* Does a thread's share, and returns its operations. */
static gdouble
batch_work (guint thread, gpointer user_data)
{
  const Product *p = user_data;
  gsize block = BLOCK_BYTES / (p->type == TYPE_INT ? p->k : p->k * sizeof (gfloat)) / 12 * 12;
  gsize first = first_panel (p, thread), end = first_panel (p, thread + 1), i, j;

  for (i = 0; i < p->m; i += block) {
    for (j = first; j < end; j++) {
      gsize rows = MIN (block, p->m - i);

      if (p->type == TYPE_INT)
        multiply_integers (p, i, rows, j);
      else
        multiply_floats (p, i, rows, j);
    }
  }

  return operations_of (p, thread);
}

/* All rows at once, with as many panels as a call takes. */
static gdouble
tiled_work (guint thread, gpointer user_data)
{
  const Product *p = user_data;
  gsize end = first_panel (p, thread + 1), j;

  for (j = first_panel (p, thread); j < end; j += VLM_TILED_PANELS)
    p->level->kernels.matmul_tiled (p->y + j * p->panel, p->n, &p->tiled, 0, p->m, p->format,
        p->w + j * p->panel_bytes, p->panel_bytes, MIN (VLM_TILED_PANELS, end - j) * p->panel,
        NULL);

  return operations_of (p, thread);
}

static gdouble
peak_work (guint thread, gpointer user_data)
{
  const Product *p = user_data;

  return p->peak (PEAK_ROUNDS);
}

/* The same, but returns the bytes of weights that went past. */
static gdouble
stream_work (guint thread, gpointer user_data)
{
  const Product *p = user_data;

  batch_work (thread, user_data);
  return (gdouble) ((first_panel (p, thread + 1) - first_panel (p, thread)) * p->panel_bytes);
}

/* Zen 4 reads faster by itself, see INT_CALLS_AHEAD in the kernels. */
vlm_always_inline gboolean
calls_ahead (void)
{
#if defined(__x86_64__)
  return !__builtin_cpu_is ("amd");
#else
  return TRUE;
#endif
}

/* Reads from four places at once: a thread reads no faster. */
vlm_always_inline guint64
read_lines (const Line *line, gsize quarter)
{
  const gboolean ahead = calls_ahead ();
  Line sum[4] = { { 0 } };
  gsize i;
  guint j;

  for (i = 0; i < quarter; i++) {
    VLM_UNROLL
    for (j = 0; j < 4; j++) {
      if (ahead)
        __builtin_prefetch (line + j * quarter + i + 64);
      sum[j] ^= line[j * quarter + i];
    }
  }
  sum[0] ^= sum[1] ^ sum[2] ^ sum[3];

  return sum[0][0];
}

static guint64
read_plain (const Line *line, gsize quarter)
{
  return read_lines (line, quarter);
}

#if defined(__x86_64__)
__attribute__ ((target ("avx2"))) static guint64
read_avx2 (const Line *line, gsize quarter)
{
  return read_lines (line, quarter);
}

__attribute__ ((target ("avx512f"))) static guint64
read_avx512 (const Line *line, gsize quarter)
{
  return read_lines (line, quarter);
}
#endif

/* With the widest registers, whatever the level: memory is the same for all. */
static Reader
choose_reader (void)
{
#if defined(__x86_64__)
  if (vlm_cpu_supports (VLM_CPU_AVX512))
    return read_avx512;
  if (vlm_cpu_supports (VLM_CPU_AVX2))
    return read_avx2;
#endif

  return read_plain;
}

/* Reads a thread's share of the weights and does nothing else. */
static gdouble
read_work (guint thread, gpointer user_data)
{
  const Product *p = user_data;
  gsize first = first_panel (p, thread) * p->panel_bytes / sizeof (Line);
  gsize end = first_panel (p, thread + 1) * p->panel_bytes / sizeof (Line);
  gsize quarter = (end - first) / 4;
  volatile guint64 sink = p->reader ((const Line *) p->w + first, quarter);

  (void) sink;

  return (gdouble) (4 * quarter * sizeof (Line));
}

static void
fill_integers (Product *p, gsize group)
{
  gsize padded = vlm_padded_k (p->k), n_groups = vlm_n_groups (p->k, group), i;
  int8_t *q = bench_allocate (p->m * padded);
  gfloat *scale = bench_allocate (p->m * n_groups * sizeof (gfloat));
  int32_t *sum = bench_allocate (p->m * n_groups * sizeof (int32_t));

  for (i = 0; i < p->m; i++)
    p->level->kernels.quantise_i8 (
        q + i * padded, scale + i * n_groups, sum + i * n_groups, p->x + i * p->k, p->k, group);
  p->q = (VlmActivations){ q, padded, scale, sum, n_groups, p->k, group };
}

static void
fill_tiles (Product *p)
{
  const VlmKernels *kernels = &p->level->kernels;
  gsize i;

  p->tiled = (VlmTiledRows){ bench_allocate (kernels->tiled_bytes (p->m, p->k)), p->m, p->k };
  for (i = 0; i < p->m; i++)
    kernels->tile_row (&p->tiled, i, 0, p->x + i * p->k, p->k);
}

static void
fill_activations (Product *p, gsize group)
{
  gfloat *x = bench_allocate (p->m * p->k * sizeof (gfloat));
  gsize i;

  for (i = 0; i < p->m * p->k; i++)
    x[i] = 0.1f * (gfloat) (i % 31) - 1.5f;
  p->x = x;
  if (p->type == TYPE_INT)
    fill_integers (p, group);
  else if (p->type == TYPE_TILED)
    fill_tiles (p);
}

/* A panel of ordinary numbers: what they are does not matter, but subnormals would be slow. */
static void
fill_int_panel (const Product *p, gpointer panel)
{
  const gsize n_groups = vlm_n_groups (p->k, VLM_K_STEP), n = p->panel * n_groups;
  int8_t *q = g_malloc (p->panel * p->k), *codes = g_malloc (n);
  guint16 *halves = g_new (guint16, n);
  gfloat *floats = g_new (gfloat, n);
  gconstpointer scale = floats;
  VlmIntRows rows;
  gsize i;

  for (i = 0; i < p->panel * p->k; i++)
    q[i] = (int8_t) (p->format->has_min ? i * 7 % 13 : i * 7 % 15 - 7);
  for (i = 0; i < n; i++) {
    codes[i] = (int8_t) (1 + i % 63);
    halves[i] = 0x2400; /* 2^-6 */
    floats[i] = 0x1p-6f;
  }
  if (p->format->scale == VLM_SCALE_F16)
    scale = halves;
  else if (p->format->scale == VLM_SCALE_CODES)
    scale = codes;
  rows = (VlmIntRows){ q, p->k, scale, p->format->has_min ? scale : NULL, n_groups, halves, halves,
    n_groups };
  vlm_int_pack (&p->level->kernels, p->format, panel, &rows, p->k, p->panel);

  g_free (q);
  g_free (codes);
  g_free (halves);
  g_free (floats);
}

static void
fill_float_panel (const Product *p, gpointer panel)
{
  gfloat *floats = panel;
  guint16 *halves = panel;
  gsize i;

  for (i = 0; i < p->panel * p->k; i++) {
    if (p->type == TYPE_F32)
      floats[i] = 0.01f * (gfloat) (i % 7);
    else
      halves[i] = (guint16) (0x3c00 + i % 7);
  }
}

/* Every panel is a copy of the first. */
static void
fill_weights (Product *p)
{
  gsize i;

  p->w = bench_allocate (p->n / p->panel * p->panel_bytes);
  if (p->format != NULL)
    fill_int_panel (p, p->w);
  else
    fill_float_panel (p, p->w);
  for (i = 1; i < p->n / p->panel; i++)
    memcpy (p->w + i * p->panel_bytes, p->w, p->panel_bytes);
}

/* Measures and reports one product; n is taken to whole panels. group: of the activations. */
static void
measure_product (const Bench *bench, Product *p, gsize group, BenchResult *result)
{
  gboolean streams = p->m <= 8;
  BenchWork batch = p->type == TYPE_TILED ? tiled_work : batch_work;
  BenchCase c = { streams ? stream_work : batch, streams ? read_work : peak_work, p, 0, 0, 0 };

  fill_activations (p, group);
  fill_weights (p);
  p->y = bench_allocate (p->m * p->n * sizeof (gfloat));
  memset (p->y, 0, p->m * p->n * sizeof (gfloat));
  bench_measure (bench, &c);

  g_snprintf (result->shape, sizeof result->shape,
      "%" G_GSIZE_FORMAT "x%" G_GSIZE_FORMAT "x%" G_GSIZE_FORMAT, p->m, p->k, p->n);
  result->unit = streams ? "GB/s" : p->type == TYPE_INT ? "GOPS" : "GFLOPS";
  result->rate = c.rate * 1e-9;
  result->limit = c.limit_rate * 1e-9;
  result->share = c.share;
  bench->report (result, bench->user_data);

  free ((gpointer) p->x);
  free ((gpointer) p->q.q);
  free ((gpointer) p->q.scale);
  free ((gpointer) p->q.sum);
  free (p->tiled.data);
  free (p->w);
  free (p->y);
}

/* A batch of m rows, and with n == 0 as many columns as stream from memory. */
static void
bench_product (
    const Bench *bench, const BenchLevel *level, gint type, guint format, gsize m, gsize k, gsize n)
{
  const VlmKernels *kernels = &level->kernels;
  Product p = { .level = level,
    .threads = bench->threads,
    .type = (Type) type,
    .m = m,
    .k = k,
    .reader = choose_reader () };
  BenchResult result = { .level = kernels->name };
  gsize group = 0, stream = bench->quick ? QUICK_STREAM_BYTES : STREAM_BYTES;

  if (p.type >= TYPE_INT) {
    p.format = &int_formats[format].format;
    p.peak =
        type == TYPE_INT ? bench_peak_integers (level->level) : bench_peak_batches (level->level);
    p.panel = kernels->int_panel;
    p.panel_bytes = vlm_int_panel_bytes (kernels, p.format, k);
    group = int_formats[format].group;
    result.kernel = type == TYPE_INT ? "matmul_int" : "matmul_tiled";
    result.format = int_formats[format].name;
    if (type == TYPE_TILED && p.format->scale == VLM_SCALE_ROW)
      result.format = "8 bits, row";
  } else {
    p.peak = bench_peak_floats (level->level);
    p.panel = kernels->panel;
    p.panel_bytes = k * p.panel * (p.type == TYPE_F32 ? sizeof (gfloat) : sizeof (guint16));
    result.kernel = float_kernels[type];
    result.format = "";
  }

  /* Plain C is limited by its arithmetic, not by memory. */
  if (level->level <= VLM_CPU_ORC)
    stream /= 16;
  stream = MIN (stream * bench->threads, MAX_STREAM_BYTES);
  if (n == 0)
    n = MAX (stream / p.panel_bytes, bench->threads) * p.panel;
  p.n = n / p.panel * p.panel;
  measure_product (bench, &p, group, &result);
}

/* A layer of the vision tower there and back, and a few tokens of a text model. */
static void
bench_shapes (const Bench *bench, const BenchLevel *level, gint type, guint format)
{
  gboolean slow = level->level <= VLM_CPU_ORC;
  gsize m = bench->quick ? 12 : slow ? 48 : 1024;

  bench_product (bench, level, type, format, m, 768, bench->quick ? 768 : 3072);
  if (!bench->quick)
    bench_product (bench, level, type, format, m, 3072, 768);
  bench_product (bench, level, type, format, 1, 1024, 0);
  if (!bench->quick && !slow)
    bench_product (bench, level, type, format, 8, 1024, 0);
}

/* The tokens of an image in a text model, and rows of the tower beside them; groups of activations,
 * which some formats differ in only, make no difference. */
static void
bench_tiled (const Bench *bench, const BenchLevel *level)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (int_formats); i++) {
    if (i == 0 || int_formats[i].format.scale != VLM_SCALE_ROW)
      bench_product (bench, level, TYPE_TILED, i, bench->quick ? VLM_TILED_ROWS : 288, 1024,
          bench->quick ? 1024 : 3072);
  }
}

void
bench_products (const Bench *bench, const BenchLevel *level, const BenchEntries *entries)
{
  gint type;
  guint i;

  for (type = TYPE_F32; type < TYPE_INT; type++) {
    if (entries->floats[type])
      bench_shapes (bench, level, type, 0);
  }
  for (i = 0; entries->integers && i < G_N_ELEMENTS (int_formats); i++)
    bench_shapes (bench, level, TYPE_INT, i);
  if (entries->tiled)
    bench_tiled (bench, level);
}
