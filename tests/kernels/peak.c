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

#define DOT_512(i) __asm__ volatile("vpdpbusd %%zmm31, %%zmm30, %%zmm" #i ::: "xmm" #i);
/* As EVEX: the register decides. */
#define DOT_256(i) __asm__ volatile("vpdpbusd %%ymm31, %%ymm30, %%ymm" #i ::: "xmm" #i);
#define DOT_VEX(i) __asm__ volatile("%{vex%} vpdpbusd %%ymm15, %%ymm14, %%ymm" #i ::: "xmm" #i);

/* Without a dot product: products of bytes in pairs, pairs of those, and the sum. */
#define PAIRS_512(i)                                                                               \
  __asm__ volatile("vpmaddubsw %%zmm31, %%zmm30, %%zmm20\n\t"                                      \
                   "vpmaddwd %%zmm31, %%zmm20, %%zmm20\n\t"                                        \
                   "vpaddd %%zmm20, %%zmm" #i ", %%zmm" #i ::                                      \
                       : "xmm20", "xmm" #i);
#define PAIRS_256(i)                                                                               \
  __asm__ volatile("vpmaddubsw %%ymm15, %%ymm14, %%ymm13\n\t"                                      \
                   "vpmaddwd %%ymm15, %%ymm13, %%ymm13\n\t"                                        \
                   "vpaddd %%ymm13, %%ymm" #i ", %%ymm" #i ::                                      \
                       : "xmm13", "xmm" #i);

#define DEFINE_RUN(name, features, operation, products)                                            \
  __attribute__ ((target (features))) static double name (void)                                    \
  {                                                                                                \
    int i;                                                                                         \
                                                                                                   \
    for (i = 0; i < ROUNDS; i++) {                                                                 \
      TEN (operation)                                                                              \
    }                                                                                              \
                                                                                                   \
    return 10.0 * 2 * products * ROUNDS;                                                           \
  }

DEFINE_RUN (run_dot_512, "avx512f,avx512vnni", DOT_512, 64)
DEFINE_RUN (run_dot_256, "avx512f,avx512vl,avx512vnni", DOT_256, 32)
DEFINE_RUN (run_dot_vex, "avx2", DOT_VEX, 32)
DEFINE_RUN (run_pairs_512, "avx512f,avx512bw", PAIRS_512, 64)
DEFINE_RUN (run_pairs_256, "avx2", PAIRS_256, 32)

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

static double
run_integers (VlmCpuLevel level)
{
#if defined(__x86_64__)
  switch (level) {
    case VLM_CPU_AVX512VNNI:
      return run_dot_512 ();
    case VLM_CPU_AVX512:
      return run_pairs_512 ();
    case VLM_CPU_AVXVNNI:
      return vlm_cpu_supports (VLM_CPU_AVXVNNI) ? run_dot_vex () : run_dot_256 ();
    case VLM_CPU_AVX2:
      return run_pairs_256 ();
    default:
      return run_plain ();
  }
#else
  return run_plain ();
#endif
}

double
check_int_peak (VlmCpuLevel level)
{
  double best = 0;
  int run;

  for (run = 0; run < 3; run++) {
    double start = check_seconds (), work = run_integers (level);
    double rate = work * 1e-9 / (check_seconds () - start);

    best = rate > best ? rate : best;
  }

  return best;
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
