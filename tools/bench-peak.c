/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bench-peak.h"

#include "kernels/simd/compiler.h"
#ifdef VLM_KERNELS_AMX
#include "kernels/x86/amx-tiles.h"
#endif

/* Chains enough to hide the latency of every unit; the asm keeps them in registers and unmerged. */
#define TWELVE(operation)                                                                          \
  operation (0) operation (1) operation (2) operation (3) operation (4) operation (5)              \
      operation (6) operation (7) operation (8) operation (9) operation (10) operation (11)

/* Sums begin at zero: some processors are slow at whatever a register may hold as a float. */
#define DEFINE_RUN(name, features, clear, operation, products)                                     \
  __attribute__ ((target (features))) static double name (size_t rounds)                           \
  {                                                                                                \
    size_t i;                                                                                      \
                                                                                                   \
    TWELVE (clear)                                                                                 \
    for (i = 0; i < rounds; i++) {                                                                 \
      TWELVE (operation)                                                                           \
    }                                                                                              \
                                                                                                   \
    return 12.0 * 2 * products * (double) rounds;                                                  \
  }

#if defined(__x86_64__)

/* Clears what is multiplied too, once for each sum. */
#define CLEAR_512(i)                                                                               \
  __asm__ volatile("vpxord %%zmm30, %%zmm30, %%zmm30\n\t"                                          \
                   "vpxord %%zmm31, %%zmm31, %%zmm31\n\t"                                          \
                   "vpxord %%zmm" #i ", %%zmm" #i ", %%zmm" #i ::                                  \
                       : "xmm" #i, "xmm30", "xmm31");
#define CLEAR_256(i)                                                                               \
  __asm__ volatile("vpxor %%ymm14, %%ymm14, %%ymm14\n\t"                                           \
                   "vpxor %%ymm15, %%ymm15, %%ymm15\n\t"                                           \
                   "vpxor %%ymm" #i ", %%ymm" #i ", %%ymm" #i ::                                   \
                       : "xmm" #i, "xmm14", "xmm15");
#define CLEAR_128(i) __asm__ volatile("pxor %%xmm" #i ", %%xmm" #i ::: "xmm" #i);

#define FMA_512(i) __asm__ volatile("vfmadd231ps %%zmm31, %%zmm30, %%zmm" #i ::: "xmm" #i);
#define FMA_256(i) __asm__ volatile("vfmadd231ps %%ymm15, %%ymm14, %%ymm" #i ::: "xmm" #i);

#define DOT_512(i) __asm__ volatile("vpdpbusd %%zmm31, %%zmm30, %%zmm" #i ::: "xmm" #i);
#define DOT_256(i) __asm__ volatile("%{evex%} vpdpbusd %%ymm15, %%ymm14, %%ymm" #i ::: "xmm" #i);
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
/* What every processor of the family has multiplies words. */
#define PAIRS_128(i)                                                                               \
  __asm__ volatile("movdqa %%xmm14, %%xmm13\n\t"                                                   \
                   "pmaddwd %%xmm15, %%xmm13\n\t"                                                  \
                   "paddd %%xmm13, %%xmm" #i ::                                                    \
                       : "xmm13", "xmm" #i);

DEFINE_RUN (run_floats_512, "avx512f", CLEAR_512, FMA_512, 16)
DEFINE_RUN (run_floats_256, "avx2,fma", CLEAR_256, FMA_256, 8)
DEFINE_RUN (run_dot_512, "avx512f,avx512vnni", CLEAR_512, DOT_512, 64)
DEFINE_RUN (run_dot_256, "avx512f,avx512vl,avx512vnni", CLEAR_256, DOT_256, 32)
DEFINE_RUN (run_dot_vex, "avx2", CLEAR_256, DOT_VEX, 32)
DEFINE_RUN (run_pairs_512, "avx512f,avx512bw", CLEAR_512, PAIRS_512, 64)
DEFINE_RUN (run_pairs_256, "avx2", CLEAR_256, PAIRS_256, 32)
DEFINE_RUN (run_pairs_128, "sse2", CLEAR_128, PAIRS_128, 8)

#ifdef VLM_KERNELS_AMX
/* Sums in four tiles: one product takes 16 cycles. Factors are zeros: others use more power, for
 * which some processors lower their clock. */
__attribute__ ((target ("amx-tile,amx-bf16"))) static double
run_tiles (size_t rounds)
{
  size_t i;

  amx_configure ();
  for (i = 0; i < rounds; i++) {
    AMX_MULTIPLY (0, 6, 7);
    AMX_MULTIPLY (1, 6, 7);
    AMX_MULTIPLY (2, 6, 7);
    AMX_MULTIPLY (3, 6, 7);
  }
  AMX_RELEASE ();

  return 4.0 * AMX_ROWS * AMX_COLUMNS * AMX_ROW_BYTES * (double) rounds;
}
#endif

#elif defined(__aarch64__)

#if defined(__clang__)
#define BASELINE "neon"
#define EXTENDED(extension) extension
#else
#define BASELINE "+simd"
#define EXTENDED(extension) "arch=armv8.2-a+" extension
#endif

#define CLEAR(i)                                                                                   \
  __asm__ volatile("movi v30.16b, #0\n\t"                                                          \
                   "movi v31.16b, #0\n\t"                                                          \
                   "movi v" #i ".16b, #0" ::                                                       \
                       : "v" #i, "v30", "v31");
#define FMA(i) __asm__ volatile("fmla v" #i ".4s, v30.4s, v31.4s" ::: "v" #i);
#define DOT(i) __asm__ volatile("sdot v" #i ".4s, v30.16b, v31.16b" ::: "v" #i);
#define SQUARE(i) __asm__ volatile("smmla v" #i ".4s, v30.16b, v31.16b" ::: "v" #i);
/* Without a dot product: products of bytes, added up in words and then in pairs. */
#define PAIRS(i)                                                                                   \
  __asm__ volatile("smull v20.8h, v30.8b, v31.8b\n\t"                                              \
                   "smlal2 v20.8h, v30.16b, v31.16b\n\t"                                           \
                   "sadalp v" #i ".4s, v20.8h" ::                                                  \
                       : "v20", "v" #i);

DEFINE_RUN (run_floats, BASELINE, CLEAR, FMA, 4)
DEFINE_RUN (run_pairs, BASELINE, CLEAR, PAIRS, 16)
DEFINE_RUN (run_dot, EXTENDED ("dotprod"), CLEAR, DOT, 16)
DEFINE_RUN (run_square, EXTENDED ("i8mm"), CLEAR, SQUARE, 32)

#endif

/* What plain C for any processor can be compiled to: vectors of four, two instructions. */
typedef float Four __attribute__ ((vector_size (16)));

static double
run_plain (size_t rounds)
{
  Four sum[8] = { { 0 } }, factor = { 1, 1, 1, 1 };
  size_t i;
  int j;

  for (i = 0; i < rounds; i++) {
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

  return factor[0] >= 0 ? 8.0 * 8 * (double) rounds : 0;
}

BenchPeak
bench_peak_floats (VlmCpuLevel level)
{
#if defined(__x86_64__)
  if (level >= VLM_CPU_AVX512)
    return run_floats_512;
  if (level >= VLM_CPU_AVX2)
    return run_floats_256;
#elif defined(__aarch64__)
  if (level >= VLM_CPU_NEON)
    return run_floats;
#endif

  return run_plain;
}

BenchPeak
bench_peak_integers (VlmCpuLevel level)
{
  switch (level) {
#if defined(__x86_64__)
    case VLM_CPU_AMX:
    case VLM_CPU_AVX512VNNI:
      return run_dot_512;
    case VLM_CPU_AVX512:
      return run_pairs_512;
    case VLM_CPU_AVXVNNI:
      return vlm_cpu_supports (VLM_CPU_AVXVNNI) ? run_dot_vex : run_dot_256;
    case VLM_CPU_AVX2:
      return run_pairs_256;
    default:
      return run_pairs_128;
#elif defined(__aarch64__)
    case VLM_CPU_I8MM:
      return run_square;
    case VLM_CPU_DOTPROD:
      return run_dot;
    default:
      return run_pairs;
#else
    default:
      return run_plain;
#endif
  }
}

BenchPeak
bench_peak_batches (VlmCpuLevel level)
{
#ifdef VLM_KERNELS_AMX
  if (level == VLM_CPU_AMX)
    return run_tiles;
#endif

  return bench_peak_integers (level);
}
