/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The rate of multiply-adds on registers alone: what a product of matrices is held against. */

#ifndef TOOLS_BENCH_PEAK_H
#define TOOLS_BENCH_PEAK_H

#include "kernels/kernels.h"

/* Multiplies rounds times a dozen or so; returns how many operations that were, a product and its
 * addition being two. */
typedef double (*BenchPeak) (size_t rounds);

/* What runs the multiplying instructions of a level. Asking takes time: processors are slow to tell
 * what they can do. */
BenchPeak bench_peak_floats (VlmCpuLevel level);
BenchPeak bench_peak_integers (VlmCpuLevel level);

/* The same of bfloat16 in tiles; of floats on levels without. */
BenchPeak bench_peak_tiled (VlmCpuLevel level);

#endif
