/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Integer products beside two limits measured just before each run: the multiplying instructions
 * of the level on registers alone for batches, and a plain read of the same memory for one row.
 * Figures are medians.
 */

#include "check.h"

#include "kernels/simd/compiler.h"

#include <sys/mman.h>

#define RUNS 7
#define X_BLOCK_BYTES (384 * 1024)

/* Panels of a decode step together are larger than any cache. */
#define STREAM_BYTES ((size_t) 160 << 20)

typedef struct
{
  int8_t *q;
  float *scale, *y;
  int32_t *sum;
  uint8_t *w;
} Arena;

static const struct
{
  VlmIntFormat format;
  const char *name;
  size_t group;
} formats[] = {
  { VLM_INT_I8, "i8 row", 768 },
  { VLM_INT_I8, "i8 row", 256 },
  { VLM_INT_I8, "i8 row", 128 },
  { VLM_INT_I8_GROUPS, "i8 groups", 32 },
  { VLM_INT_I4_GROUPS, "i4 groups", 64 },
  { VLM_INT_I4_GROUPS, "i4 groups", 32 },
};

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
multiply_panel (const VlmKernels *kernels, VlmIntFormat format, float *y, size_t ldy,
    const VlmActivations *x, size_t m, const void *w, size_t n)
{
  if (format == VLM_INT_I8)
    kernels->matmul_i8 (y, ldy, x, m, w, n, NULL);
  else if (format == VLM_INT_I8_GROUPS)
    kernels->matmul_i8_groups (y, ldy, x, m, w, n, NULL);
  else
    kernels->matmul_i4_groups (y, ldy, x, m, w, n, NULL);
}

/* As many rows at a time as stay in a second-level cache, times every panel. */
static void
multiply (const VlmKernels *kernels, VlmIntFormat format, const Arena *arena, size_t m, size_t k,
    size_t n, size_t group)
{
  size_t panel = kernels->int_panel, n_groups = vlm_n_groups (k, group), i, j;
  size_t bytes = vlm_int_panel_bytes (kernels, format, k, group);
  size_t block = X_BLOCK_BYTES / k / 12 * 12;

  for (i = 0; i < m; i += block) {
    VlmActivations x = { arena->q + i * k, k, arena->scale + i * n_groups,
      arena->sum + i * n_groups, n_groups, k, group };

    for (j = 0; j < n; j += panel)
      multiply_panel (kernels, format, arena->y + i * n + j, n, &x, m - i < block ? m - i : block,
          arena->w + j / panel * bytes, n - j < panel ? n - j : panel);
  }
}

static void
bench_batch (
    const VlmKernels *kernels, const Arena *arena, VlmCpuLevel level, size_t i, size_t k, size_t n)
{
  const size_t m = level == VLM_CPU_SCALAR ? 32 : 1024;
  double rates[RUNS], shares[RUNS];
  int run;

  for (run = 0; run < RUNS; run++) {
    double peak = check_int_peak (level), start = check_seconds ();

    multiply (kernels, formats[i].format, arena, m, k, n, formats[i].group);
    rates[run] = 2e-9 * (double) (m * k * n) / (check_seconds () - start);
    shares[run] = rates[run] / peak;
  }
  printf ("%-12s %-9s %4zu %5zu x %5zu x %5zu %8.1f GOPS %4.0f %% of peak\n", kernels->name,
      formats[i].name, formats[i].group, m, k, n, median (rates), median (shares) * 100);
}

typedef uint64_t Line __attribute__ ((vector_size (64), aligned (64)));

/* GB/s of a read that does nothing else, from four places at once: one thread reads no faster. */
static double
read_rate (const Arena *arena, size_t bytes)
{
  const size_t quarter = bytes / 4 / sizeof (Line);
  const Line *line = (const Line *) arena->w;
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
  return (double) bytes * 1e-9 / (check_seconds () - start);
}

static void
bench_stream (const VlmKernels *kernels, const Arena *arena, size_t i, size_t m)
{
  const size_t k = 1024, panel = kernels->int_panel;
  size_t panel_bytes = vlm_int_panel_bytes (kernels, formats[i].format, k, formats[i].group);
  size_t n = STREAM_BYTES / panel_bytes * panel;
  double rates[RUNS], shares[RUNS];
  int run;

  for (run = 0; run < RUNS; run++) {
    double limit = read_rate (arena, STREAM_BYTES), start = check_seconds ();

    multiply (kernels, formats[i].format, arena, m, k, n, formats[i].group);
    rates[run] = (double) (n / panel * panel_bytes) * 1e-9 / (check_seconds () - start);
    shares[run] = rates[run] / limit;
  }
  printf ("%-12s %-9s %4zu %5zu x %5zu x %5zu %8.1f GB/s %4.0f %% of a read\n", kernels->name,
      formats[i].name, formats[i].group, m, k, n, median (rates), median (shares) * 100);
}

static void
bench_quantise (const VlmKernels *kernels, const Arena *arena)
{
  const size_t n = 3072;
  double best = 1e9;
  int run;

  for (run = 0; run < 50; run++) {
    double start = check_seconds ();

    kernels->quantise_i8 (arena->q, arena->scale, arena->sum, arena->y, n, 64);
    best = check_seconds () - start < best ? check_seconds () - start : best;
  }
  printf ("%-12s quantise_i8 %.3f ns a value\n", kernels->name, best * 1e9 / (double) n);
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
check_bench_integer (const VlmKernels *kernels, VlmCpuLevel level)
{
  Arena arena = { .q = allocate (8u << 20),
    .scale = allocate (8u << 20),
    .y = allocate (16u << 20),
    .sum = allocate (8u << 20),
    .w = allocate (STREAM_BYTES) };
  size_t i;

  /* Denormal floats would be timed instead. */
  for (i = 0; i < (8u << 20) / sizeof (float); i++)
    arena.scale[i] = 0.01f;
  printf ("%-12s peak on registers %.1f GOPS\n", kernels->name, check_int_peak (level));
  for (i = 0; i < sizeof formats / sizeof formats[0]; i++) {
    bench_batch (kernels, &arena, level, i, 768, 3072);
    bench_batch (kernels, &arena, level, i, 3072, 768);
  }
  for (i = 1; level != VLM_CPU_SCALAR && i < sizeof formats / sizeof formats[0]; i++) {
    bench_stream (kernels, &arena, i, 1);
    bench_stream (kernels, &arena, i, 8);
  }
  bench_quantise (kernels, &arena);
  fflush (stdout);

  free (arena.q);
  free (arena.scale);
  free (arena.y);
  free (arena.sum);
  free (arena.w);
}
