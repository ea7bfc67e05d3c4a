/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What stands beside every measurement: where it was made. */

#ifndef TOOLS_BENCH_MACHINE_H
#define TOOLS_BENCH_MACHINE_H

#include <glib.h>
#include <jansson.h>

#include "bench-peak.h"

/* Processor, CPUs, load, best level of instructions, compiler. (transfer full) */
json_t *bench_machine (void);

/* The same as a line. */
void bench_print_machine (const json_t *machine, guint threads);

/* Bytes a second that n_threads read of a large block when they do nothing else. */
typedef struct _BenchMemory BenchMemory;

/* Bails out where there is not enough memory. */
BenchMemory *bench_memory_new (guint n_threads);
void bench_memory_free (BenchMemory *memory);
gdouble bench_memory_read_rate (BenchMemory *memory);

/* Operations a second of n_threads that only run peak. */
gdouble bench_peak_rate (BenchPeak peak, guint n_threads);

#endif
