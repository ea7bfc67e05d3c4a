/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The rate of multiply-adds on registers alone: what a product of matrices is held against. */

#include "check.h"

#include "kernels/simd/compiler.h"

#define ROUNDS 200000

#if defined(__x86_64__)
#include <immintrin.h>

/* Chains enough to hide the latency of every unit; the asm keeps them in registers and unmerged. */
#define TEN(operation)                                                                             \
  operation (0) operation (1) operation (2) operation (3) operation (4) operation (5)              \
      operation (6) operation (7) operation (8) operation (9)

#define FMA_512(i) __asm__ volatile("vfmadd231ps %%zmm31, %%zmm30, %%zmm" #i ::: "xmm" #i);
#define FMA_256(i) __asm__ volatile("vfmadd231ps %%ymm15, %%ymm14, %%ymm" #i ::: "xmm" #i);

__attribute__ ((target ("avx512f"))) static double
run_512 (void)
{
  int i;

  __asm__ volatile("vpxord %%zmm30, %%zmm30, %%zmm30\n\tvpxord %%zmm31, %%zmm31, %%zmm31" ::
                       : "xmm30", "xmm31");
  for (i = 0; i < ROUNDS; i++) {
    TEN (FMA_512)
  }

  return 10.0 * 32 * ROUNDS;
}

__attribute__ ((target ("avx2,fma"))) static double
run_256 (void)
{
  int i;

  __asm__ volatile("vxorps %%ymm14, %%ymm14, %%ymm14\n\tvxorps %%ymm15, %%ymm15, %%ymm15" ::
                       : "xmm14", "xmm15");
  for (i = 0; i < ROUNDS; i++) {
    TEN (FMA_256)
  }

  return 10.0 * 16 * ROUNDS;
}
#endif

/* What plain C for any processor can be compiled to: vectors of four, two instructions. */
typedef float Four __attribute__ ((vector_size (16)));

static double
run_plain (void)
{
  Four sum[8] = { { 0 } }, factor = { 1, 1, 1, 1 };
  int i, j;

  for (i = 0; i < ROUNDS; i++) {
    VLM_UNROLL
    for (j = 0; j < 8; j++) {
      Four product = factor * factor;

#if defined(__x86_64__)
      __asm__ volatile("" : "+x"(product), "+x"(factor));
#elif defined(__aarch64__)
      __asm__ volatile("" : "+w"(product), "+w"(factor));
#endif
      sum[j] += product;
    }
  }
  factor = sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];

  return factor[0] > 0 ? 8.0 * 8 * ROUNDS : 0;
}

double
check_peak (VlmCpuLevel level)
{
  double best = 0;
  int run;

  for (run = 0; run < 3; run++) {
    double start = check_seconds (), work, rate;

#if defined(__x86_64__)
    if (level >= VLM_CPU_AVX512)
      work = run_512 ();
    else if (level >= VLM_CPU_AVX2)
      work = run_256 ();
    else
#endif
      work = run_plain ();
    rate = work * 1e-9 / (check_seconds () - start);
    best = rate > best ? rate : best;
  }

  return best;
}
