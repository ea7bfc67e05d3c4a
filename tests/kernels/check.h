/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the parts of checkkern share: random numbers, guarded memory, and verdicts. */

#ifndef CHECK_H
#define CHECK_H

#include "kernels/kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Random numbers repeat with the seed. */
void check_seed (uint64_t seed);
uint32_t check_random (void);

/* 0 .. n - 1 */
size_t check_below (size_t n);
double check_uniform (double low, double high);

/*
 * A piece of memory that ends at a page which cannot be touched and begins after bytes that
 * check_intact () verifies. There are CHECK_SLOTS of them; asking for a slot again reuses it. The
 * bytes are filled with a pattern that is a huge float. Alignment follows from the size: that of
 * the element only.
 */
#define CHECK_SLOTS 13
#define CHECK_SLOT_BYTES (5u << 20)
#define CHECK_PATTERN 0x7e
void *check_slot (unsigned slot, size_t bytes);

/* Whether the bytes before what check_slot () returned last are as they were. */
int check_intact (unsigned slot);

/* Records a failure of the running test unless ok; says why, the first few times. */
void check_expect (int ok, const char *format, ...) __attribute__ ((format (printf, 2, 3)));

/* |found - expected| <= bound, and both NaN or neither; what and i tell where. */
void check_near (double found, double expected, double bound, const char *what, size_t i);

/*
 * Of n queries from number first on: what a call for them alone gave, part, has the bits of what one for all
 * gave, whole, both [..][stride], with head_dim values a row.
 */
void check_same_queries (const float *part, const float *whole, size_t stride, size_t head_dim,
    size_t n_keys, size_t first, size_t n);

typedef void (*CheckTest) (const VlmKernels *kernels);

/* Each walks shapes and inputs of one entry. */
void check_matmul_f32 (const VlmKernels *kernels);
void check_matmul_f16 (const VlmKernels *kernels);
void check_matmul_bf16 (const VlmKernels *kernels);
void check_quantise_i8 (const VlmKernels *kernels);
void check_matmul_int (const VlmKernels *kernels);
void check_matmul_int_any (const VlmKernels *kernels);
void check_matmul_int_long (const VlmKernels *kernels);
void check_matmul_int_tall (const VlmKernels *kernels);
void check_matmul_tiled (const VlmKernels *kernels);
void check_matmul_tiled_any (const VlmKernels *kernels);
void check_matmul_tiled_long (const VlmKernels *kernels);
void check_tile_row (const VlmKernels *kernels);
void check_attention (const VlmKernels *kernels);
void check_attention_tiled (const VlmKernels *kernels);
void check_attend_head (const VlmKernels *kernels);
void check_rms_norm (const VlmKernels *kernels);
void check_layer_norm (const VlmKernels *kernels);
void check_gelu_tanh (const VlmKernels *kernels);
void check_gelu_erf (const VlmKernels *kernels);
void check_silu_mul (const VlmKernels *kernels);
void check_add (const VlmKernels *kernels);
void check_mul (const VlmKernels *kernels);
void check_rope (const VlmKernels *kernels);
void check_short_conv (const VlmKernels *kernels);
void check_f16_to_f32 (const VlmKernels *kernels);
void check_bf16_to_f32 (const VlmKernels *kernels);
void check_resample_row (const VlmKernels *kernels);
void check_resample_column (const VlmKernels *kernels);

/* The value of an IEEE half, computed without its conversion's code. */
double check_half_value (uint16_t bits);

/* Prints timings of every supported level, or of the one with that name; n_threads >= 1. */
void check_bench (const char *only, size_t n_threads);

/* GFLOP/s that one thread of the level reaches on registers alone. */
double check_peak (VlmCpuLevel level);

/* Timings of the integer products of a level. */
void check_bench_integer (const VlmKernels *kernels, VlmCpuLevel level, size_t n_threads);

/* GOPS of the level's multiplying instructions, a product and its addition being two. */
double check_int_peak (VlmCpuLevel level);

/* CPU time of this thread, in seconds: what other processes take does not count. */
double check_seconds (void);

#endif
