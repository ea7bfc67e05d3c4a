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

/* What many rows are multiplied with by integer weights: tiles of bfloat16, or integers. */
BenchPeak bench_peak_batches (VlmCpuLevel level);

#endif
