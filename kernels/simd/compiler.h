/* SPDX-License-Identifier: LGPL-2.1-or-later */

#ifndef VLM_KERNELS_SIMD_COMPILER_H
#define VLM_KERNELS_SIMD_COMPILER_H

#define vlm_always_inline static inline __attribute__ ((always_inline))

/* For what is inlined hundreds of times: with a sanitizer's checks in it, gcc takes minutes. */
#ifdef __SANITIZE_ADDRESS__
#define vlm_inline_unless_checked static __attribute__ ((noinline))
#else
#define vlm_inline_unless_checked vlm_always_inline
#endif

/* A tile of sums only stays in registers when every loop over it is unrolled completely; gcc and
 * clang do not know each other's spelling. No loop so marked has more than 16 rounds. */
#if defined(__clang__)
#define VLM_UNROLL _Pragma ("clang loop unroll(full)")
#else
#define VLM_UNROLL _Pragma ("GCC unroll 16")
#endif

/* Loads stay on their side of this, or compilers collect so many that sums leave the registers. */
#define VLM_KEEP_ORDER() __asm__ volatile("" ::: "memory")

/*
 * One token's weights come from memory. They are called into the second-level cache, this far ahead:
 * it has room for several times as many lines on their way as the first, which gets them soon enough.
 */
#define VLM_STREAM_BYTES 8192
#define VLM_STREAM(address) __builtin_prefetch ((address), 0, 2)

#endif
