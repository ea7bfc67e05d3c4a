/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Integer products beside two limits measured just before each run, by as many threads: the
 * multiplying instructions of the level on registers alone for batches, and a plain read of the
 * same memory for few rows. Rates are those of the threads together; figures are medians.
 */

#include "check.h"

#include "kernels/simd/compiler.h"

#include <pthread.h>
#include <sys/mman.h>

#define RUNS 9
#define MAX_THREADS 8
#define X_BLOCK_BYTES (384 * 1024)

/* Panels of a decode step together are larger than any cache. */
#define STREAM_BYTES ((size_t) 160 << 20)

#define MAX_K 3072

typedef struct
{
  const VlmKernels *kernels;
  VlmCpuLevel level;
  size_t n_threads;
  int8_t *q;
  float *x_scale, *y;
  int32_t *x_sum;
  uint8_t *w;
  int8_t *plain; /* [VLM_MAX_INT_PANEL][MAX_K] weights to pack */
  void *scales;  /* of any kind, for as many */
} Arena;

typedef struct
{
  VlmIntFormat format;
  const char *name;
  size_t group; /* of the activations */
} Case;

typedef struct
{
  const Arena *arena;
  const Case *item;
  size_t m, k, n, thread;
} Work;

typedef double (*Job) (const Work *work);

static const Case cases[] = {
  { { 8, VLM_SCALE_ROW, 0, 0 }, "int8 row", 768 },
  { { 8, VLM_SCALE_ROW, 0, 0 }, "int8 row", 256 },
  { { 8, VLM_SCALE_ROW, 0, 0 }, "int8 row", 128 },
  { { 8, VLM_SCALE_F16, 0, 32 }, "Q8_0", 32 },
  { { 4, VLM_SCALE_F16, 0, 64 }, "int4", 64 },
  { { 4, VLM_SCALE_F16, 0, 32 }, "Q4_0", 32 },
  { { 4, VLM_SCALE_F16, 1, 32 }, "Q4_1", 32 },
  { { 5, VLM_SCALE_F16, 0, 32 }, "Q5_0", 32 },
  { { 4, VLM_SCALE_F32, 1, 64 }, "affine", 64 },
  { { 4, VLM_SCALE_CODES, 1, 32 }, "Q4_K", 32 },
  { { 5, VLM_SCALE_CODES, 1, 32 }, "Q5_K", 32 },
  { { 6, VLM_SCALE_CODES, 0, 16 }, "Q6_K", 16 },
};

#define N_CASES (sizeof cases / sizeof cases[0])

/* As many rows at a time as stay in a second-level cache, times every panel of this thread; the
 * seconds that it takes. */
static double
multiply (const Work *work)
{
  const Arena *arena = work->arena;
  const size_t panel = arena->kernels->int_panel, group = work->item->group;
  const size_t bytes = vlm_int_panel_bytes (arena->kernels, &work->item->format, work->k);
  const size_t n_groups = vlm_n_groups (work->k, group), block = X_BLOCK_BYTES / work->k / 12 * 12;
  double start = check_seconds ();
  size_t i, j;

  for (i = 0; i < work->m; i += block) {
    VlmActivations x = { arena->q + i * work->k, work->k, arena->x_scale + i * n_groups,
      arena->x_sum + i * n_groups, n_groups, work->k, group };
    size_t rows = work->m - i < block ? work->m - i : block;

    for (j = work->thread * panel; j < work->n; j += panel * arena->n_threads)
      arena->kernels->matmul_int (arena->y + i * work->n + j, work->n, &x, rows,
          &work->item->format, arena->w + j / panel * bytes,
          work->n - j < panel ? work->n - j : panel, NULL);
  }

  return check_seconds () - start;
}

/* The share of all work that one thread does. */
static double
share (const Work *work)
{
  size_t panel = work->arena->kernels->int_panel, panels = (work->n + panel - 1) / panel;
  size_t n_threads = work->arena->n_threads;
  size_t mine = (panels + n_threads - 1 - work->thread) / n_threads;

  return (double) mine / (double) panels;
}

static double
gops (const Work *work)
{
  return 2e-9 * (double) (work->m * work->k * work->n) * share (work) / multiply (work);
}

static double
panel_rate (const Work *work)
{
  size_t panel = work->arena->kernels->int_panel;
  double bytes = (double) (work->n / panel
      * vlm_int_panel_bytes (work->arena->kernels, &work->item->format, work->k));

  return bytes * 1e-9 * share (work) / multiply (work);
}

static double
peak (const Work *work)
{
  return check_int_peak (work->arena->level);
}

typedef uint64_t Line __attribute__ ((vector_size (64), aligned (64)));

/* GB/s of a read that does nothing else, from four places at once: one thread reads no faster. */
static double
read_rate (const Work *work)
{
  const size_t lines = STREAM_BYTES / work->arena->n_threads / sizeof (Line), quarter = lines / 4;
  const Line *line = (const Line *) work->arena->w + work->thread * lines;
  Line sum[4] = { { 0 } };
  double start = check_seconds ();
  volatile uint64_t sink;
  size_t i, j;

  for (i = 0; i < quarter; i++) {
    VLM_UNROLL
    for (j = 0; j < 4; j++) {
      __builtin_prefetch (line + j * quarter + i + 128);
      sum[j] ^= line[j * quarter + i];
    }
  }
  sum[0] ^= sum[1] ^ sum[2] ^ sum[3];
  sink = sum[0][0];
  (void) sink;
  return (double) (quarter * 4 * sizeof (Line)) * 1e-9 / (check_seconds () - start);
}

typedef struct
{
  Work work;
  Job job;
  pthread_barrier_t *barrier;
  double rate;
} Thread;

static void *
run_thread (void *data)
{
  Thread *thread = data;

  pthread_barrier_wait (thread->barrier);
  thread->rate = thread->job (&thread->work);
  return NULL;
}

/* What all threads reach together. */
static double
measure (Job job, const Work *work)
{
  const size_t n_threads = work->arena->n_threads;
  pthread_t ids[MAX_THREADS];
  Thread threads[MAX_THREADS];
  pthread_barrier_t barrier;
  double rate = 0;
  size_t i;

  pthread_barrier_init (&barrier, NULL, (unsigned) n_threads);
  for (i = 0; i < n_threads; i++) {
    threads[i] = (Thread){ *work, job, &barrier, 0 };
    threads[i].work.thread = i;
    if (pthread_create (&ids[i], NULL, run_thread, &threads[i]) != 0)
      exit (1);
  }
  for (i = 0; i < n_threads; i++) {
    pthread_join (ids[i], NULL);
    rate += threads[i].rate;
  }
  pthread_barrier_destroy (&barrier);

  return rate;
}

static int
compare (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;

  return x < y ? -1 : x > y;
}

static double
median (double *values)
{
  qsort (values, RUNS, sizeof *values, compare);
  return values[RUNS / 2];
}

static void
report (const Work *work, Job job, Job limit, const char *unit, const char *limit_name)
{
  double rates[RUNS], shares[RUNS];
  int run;

  for (run = 0; run < RUNS; run++) {
    double most = measure (limit, work);

    rates[run] = measure (job, work);
    shares[run] = rates[run] / most;
  }
  printf ("%-12s %-8s %4zu %5zu x %5zu x %6zu %8.1f %s %4.0f %% of %s\n",
      work->arena->kernels->name, work->item->name, work->item->group, work->m, work->k, work->n,
      median (rates), unit, median (shares) * 100, limit_name);
}

/* Packs one panel and copies it to all others; GB/s of unpacked values. */
static double
fill_panels (const Arena *arena, const VlmIntFormat *format, size_t k, size_t n)
{
  const VlmKernels *kernels = arena->kernels;
  const size_t bytes = vlm_int_panel_bytes (kernels, format, k), panel = kernels->int_panel;
  const size_t lds = format->scale == VLM_SCALE_ROW ? 1 : vlm_n_groups (k, format->group);
  const VlmIntRows rows = { arena->plain, MAX_K, arena->scales, arena->scales, lds, arena->scales,
    arena->scales, vlm_n_groups (k, VLM_SUPER_GROUP) };
  double best = 1e9;
  size_t i;
  int run;

  for (i = 0; i < panel * MAX_K; i++) {
    int value = (int) (i * 7 % 61) % (1 << format->bits);

    arena->plain[i] = (int8_t) (value - (format->has_min ? 0 : 1 << (format->bits - 1)));
  }
  for (run = 0; run < 5; run++) {
    double start = check_seconds ();

    vlm_int_pack (kernels, format, arena->w, &rows, k, panel);
    best = fmin (best, check_seconds () - start);
  }
  for (i = 1; i < (n + panel - 1) / panel; i++)
    memcpy (arena->w + i * bytes, arena->w, bytes);

  return (double) (panel * k) * 1e-9 / best;
}

static void
bench_case (const Arena *arena, const Case *item)
{
  const size_t batch = arena->level == VLM_CPU_SCALAR ? 32 : 1024, k = 1024;
  const size_t bytes = vlm_int_panel_bytes (arena->kernels, &item->format, k);
  Work work = { arena, item, batch, 768, 3072, 0 };
  double pack;

  fill_panels (arena, &item->format, work.k, work.n);
  report (&work, gops, peak, "GOPS", "peak");
  work.k = 3072;
  work.n = 768;
  fill_panels (arena, &item->format, work.k, work.n);
  report (&work, gops, peak, "GOPS", "peak");
  if (arena->level == VLM_CPU_SCALAR || item->group > 256)
    return;

  work.k = k;
  work.n = STREAM_BYTES / bytes * arena->kernels->int_panel;
  pack = fill_panels (arena, &item->format, work.k, work.n);
  work.m = 1;
  report (&work, panel_rate, read_rate, "GB/s", "a read");
  work.m = 8;
  report (&work, panel_rate, read_rate, "GB/s", "a read");
  printf ("%-12s %-8s packing %.2f GB/s of values\n", arena->kernels->name, item->name, pack);
}

static void
bench_quantise (const Arena *arena)
{
  const size_t n = 3072;
  double best = 1e9;
  int run;

  for (run = 0; run < 50; run++) {
    double start = check_seconds ();

    arena->kernels->quantise_i8 (arena->q, arena->x_scale, arena->x_sum, arena->y, n, 64);
    best = fmin (best, check_seconds () - start);
  }
  printf ("%-12s quantise_i8 %.3f ns a value\n", arena->kernels->name, best * 1e9 / (double) n);
}

/* In large pages where the system has them, as the weights of a model should be. */
static void *
allocate (size_t bytes)
{
  int8_t *memory = aligned_alloc ((size_t) 2 << 20, bytes);
  size_t i;

  if (memory == NULL)
    exit (1);
#ifdef MADV_HUGEPAGE
  (void) madvise (memory, bytes, MADV_HUGEPAGE);
#endif
  for (i = 0; i < bytes; i++)
    memory[i] = (int8_t) (i % 119 - 59);

  return memory;
}

void
check_bench_integer (const VlmKernels *kernels, VlmCpuLevel level, size_t n_threads)
{
  Arena arena = { .kernels = kernels,
    .level = level,
    .n_threads = n_threads < MAX_THREADS ? n_threads : MAX_THREADS,
    .q = allocate (8u << 20),
    .x_scale = allocate (8u << 20),
    .y = allocate (16u << 20),
    .x_sum = allocate (8u << 20),
    .w = allocate (STREAM_BYTES),
    .plain = allocate (2u << 20),
    .scales = allocate (2u << 20) };
  const Work work = { .arena = &arena };
  size_t i;

  /* Denormal floats would be timed instead. As halves these are small and about one. */
  for (i = 0; i < (8u << 20) / sizeof (float); i++)
    arena.x_scale[i] = 0.01f;
  for (i = 0; i < (2u << 20) / sizeof (uint32_t); i++)
    ((uint32_t *) arena.scales)[i] = 0x3c003c00;
  printf ("%-12s peak on registers %.1f GOPS, %zu threads\n", kernels->name, measure (peak, &work),
      arena.n_threads);
  for (i = 0; i < N_CASES; i++)
    bench_case (&arena, &cases[i]);
  bench_quantise (&arena);
  fflush (stdout);

  free (arena.q);
  free (arena.x_scale);
  free (arena.y);
  free (arena.x_sum);
  free (arena.w);
  free (arena.plain);
  free (arena.scales);
}
