/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* checkkern --bench [LEVEL [THREADS]]: every figure is the best of several runs. Only integer
 * products know more threads than one. */

#include "check.h"

#include "kernels/levels.h"

/* A vision layer, a prompt, and the one token of a decode step. */
static const struct
{
  size_t m, k, n;
} shapes[] = { { 1024, 768, 768 }, { 1024, 3072, 768 }, { 16, 1024, 1024 }, { 1, 1024, 16384 } };

#define X_BLOCK_BYTES (384 * 1024)

typedef struct
{
  float *x, *y;
  void *w;
} Arena;

static void *
allocate (size_t bytes)
{
  unsigned char *memory = aligned_alloc (64, (bytes + 63) / 64 * 64);
  size_t i;

  if (memory == NULL)
    exit (1);
  /* 0x00 0x3c is 1.0 as a half, and a small float. */
  for (i = 0; i < bytes; i++)
    memory[i] = i % 2 == 0 ? 0 : 0x3c;

  return memory;
}

static void
multiply_panel (const VlmKernels *kernels, int type, float *y, size_t ldy, const float *x, size_t m,
    const void *w, size_t k, size_t n)
{
  if (type == 0)
    kernels->matmul_f32 (y, ldy, x, k, m, w, k, n, NULL);
  else if (type == 1)
    kernels->matmul_f16 (y, ldy, x, k, m, w, k, n, NULL);
  else
    kernels->matmul_bf16 (y, ldy, x, k, m, w, k, n, NULL);
}

/* As many rows at a time as stay in a second-level cache, times every panel. */
static void
multiply (const VlmKernels *kernels, const Arena *arena, int type, size_t m, size_t k, size_t n)
{
  size_t panel = kernels->panel, element = type == 0 ? sizeof (float) : sizeof (uint16_t);
  size_t block = X_BLOCK_BYTES / (k * sizeof (float)) / 12 * 12, i, j;

  for (i = 0; i < m; i += block) {
    for (j = 0; j < n; j += panel)
      multiply_panel (kernels, type, arena->y + i * n + j, n, arena->x + i * k,
          m - i < block ? m - i : block, (const char *) arena->w + j * k * element, k,
          n - j < panel ? n - j : panel);
  }
}

static void
bench_matmul (const VlmKernels *kernels, const Arena *arena, VlmCpuLevel level)
{
  static const char *const types[] = { "f32", "f16", "bf16" };
  size_t i;
  int type, run;

  for (i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    size_t m = shapes[i].m, k = shapes[i].k, n = shapes[i].n;

    for (type = 0; type < 3; type++) {
      double best = 0, share = 0, began = check_seconds ();

      for (run = 0; run < 7 && check_seconds () - began < 0.5; run++) {
        double peak = check_peak (level), start = check_seconds (), rate;

        multiply (kernels, arena, type, m, k, n);
        rate = 2e-9 * (double) (m * k * n) / (check_seconds () - start);
        best = rate > best ? rate : best;
        share = rate / peak > share ? rate / peak : share;
      }
      printf ("%-8s matmul_%-4s %5zu x %5zu x %5zu %8.2f GFLOP/s %4.0f %% of peak %6.1f GB/s\n",
          kernels->name, types[type], m, k, n, best, share * 100,
          best / 2 / (double) m * (type == 0 ? 4 : 2));
    }
  }
}

static void
bench_attention (const VlmKernels *kernels, const Arena *arena, size_t n, size_t dim)
{
  VlmAttention args = { .out = arena->y,
    .out_stride = dim,
    .q = arena->x,
    .q_stride = dim,
    .n_queries = n,
    .k = arena->x + n * dim,
    .v = arena->x + 2 * n * dim,
    .v_stride = dim,
    .n_keys = n,
    .head_dim = dim,
    .scale = 0.125f };
  double best = 1e9;
  int run;

  for (run = 0; run < 5; run++) {
    double start = check_seconds ();

    kernels->attention (&args);
    best = check_seconds () - start < best ? check_seconds () - start : best;
  }
  printf ("%-8s attention %zu queries and keys of %zu %8.3f ms %8.2f GFLOP/s\n", kernels->name, n,
      dim, best * 1e3, 4e-9 * (double) (n * n * dim) / best);
}

/* A row of 1920 pixels to 512, and a column to match. */
static void
bench_resample (const VlmKernels *kernels, const Arena *arena)
{
  int32_t start[512], count[512];
  int16_t weights[512 * 16];
  double row = 1e9, column = 1e9;
  size_t i;
  int run;

  for (i = 0; i < 512; i++) {
    start[i] = (int32_t) (i * 15 / 4 > 1900 ? 1900 : i * 15 / 4);
    count[i] = 15;
  }
  for (i = 0; i < 512 * 16; i++)
    weights[i] = 1000;

  for (run = 0; run < 50; run++) {
    double begin = check_seconds ();

    kernels->resample_row (
        (uint8_t *) arena->y, (const uint8_t *) arena->x, 512, start, count, weights, 16, 14);
    row = check_seconds () - begin < row ? check_seconds () - begin : row;
    begin = check_seconds ();
    kernels->resample_column (
        (uint8_t *) arena->y, (const uint8_t *) arena->x, 1536, 1536, weights, 9, 14);
    column = check_seconds () - begin < column ? check_seconds () - begin : column;
  }
  printf ("%-8s resample 1920 -> 512, 15 taps %8.1f us a row; 9 taps %8.1f us a column of rows\n",
      kernels->name, row * 1e6, column * 1e6);
}

static void
bench_functions (const VlmKernels *kernels, const Arena *arena)
{
  double gelu_tanh = 1e9, gelu_erf = 1e9, norm = 1e9;
  const size_t n = 4096;
  int run;

  for (run = 0; run < 50; run++) {
    double start = check_seconds ();

    kernels->gelu_tanh (arena->x, n);
    gelu_tanh = check_seconds () - start < gelu_tanh ? check_seconds () - start : gelu_tanh;
    start = check_seconds ();
    kernels->gelu_erf (arena->x, n);
    gelu_erf = check_seconds () - start < gelu_erf ? check_seconds () - start : gelu_erf;
    start = check_seconds ();
    kernels->layer_norm (arena->y, arena->x, arena->x, arena->x, n, 1e-6f);
    norm = check_seconds () - start < norm ? check_seconds () - start : norm;
  }
  printf ("%-8s ns a value: gelu_tanh %.2f, gelu_erf %.2f, layer_norm %.2f\n", kernels->name,
      gelu_tanh * 1e9 / (double) n, gelu_erf * 1e9 / (double) n, norm * 1e9 / (double) n);
}

static void
bench_floats (const VlmKernels *kernels, VlmCpuLevel level)
{
  Arena arena = { .x = allocate (16u << 20), .y = allocate (16u << 20), .w = allocate (64u << 20) };

  printf ("%-8s peak on registers %.1f GFLOP/s\n", kernels->name, check_peak (level));
  bench_matmul (kernels, &arena, level);
  bench_attention (kernels, &arena, 1024, 64);
  bench_attention (kernels, &arena, 1024, 72);
  bench_resample (kernels, &arena);
  bench_functions (kernels, &arena);
  fflush (stdout);

  free (arena.x);
  free (arena.y);
  free (arena.w);
}

#ifdef CHECK_AVXVNNI_EVEX
static void
bench_evex (const char *only, size_t n_threads)
{
  VlmKernels kernels;

  if (!vlm_cpu_supports (VLM_CPU_AVX512VNNI) || vlm_kernels_init (&kernels, VLM_CPU_AVX2) != 0
      || (only != NULL && strcmp (only, "avxvnni-evex") != 0))
    return;
  vlm_kernels_fill_avxvnni_evex (&kernels);
  kernels.name = "avxvnni-evex";
  check_bench_integer (&kernels, VLM_CPU_AVXVNNI, n_threads);
}
#endif

/* Float entries of the levels that have some, integer entries of all. */
void
check_bench (const char *only, size_t n_threads)
{
  int i;

  for (i = 0; i < VLM_CPU_N_LEVELS; i++) {
    int floats =
        i == VLM_CPU_SCALAR || i == VLM_CPU_AVX2 || i == VLM_CPU_AVX512 || i == VLM_CPU_NEON;
    VlmKernels kernels;

    if (i == VLM_CPU_ORC || vlm_kernels_init (&kernels, (VlmCpuLevel) i) != 0
        || (only != NULL && strcmp (only, kernels.name) != 0))
      continue;
    if (floats && n_threads == 1)
      bench_floats (&kernels, (VlmCpuLevel) i);
    check_bench_integer (&kernels, (VlmCpuLevel) i, n_threads);
  }
#ifdef CHECK_AVXVNNI_EVEX
  bench_evex (only, n_threads);
#endif
}
