/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How fast threads of this machine read memory when they do nothing else. */

#include "bench-kernels.h"
#include "bench-machine.h"
#include "bench-threads.h"

#include <stdlib.h>

#define SHARE ((gsize) 128 << 20) /* of one thread: more than any cache */
#define STREAMS 4                 /* one alone does not keep enough reads under way */
/* Lines between a prefetch and its use: those of all streams fit a first-level cache. */
#define AHEAD 64
#define PASSES 3 /* the best of them is taken: the first may find the memory asleep */

typedef guint64 Line __attribute__ ((vector_size (64), aligned (64)));

struct _BenchMemory
{
  guint n_threads;
  guint8 *block;
  guint64 *sums; /* of what each thread read, so that it has to */
};

BenchMemory *
bench_memory_new (guint n_threads)
{
  BenchMemory *memory = g_new0 (BenchMemory, 1);
  gsize i, size = n_threads * SHARE;

  memory->n_threads = n_threads;
  memory->sums = g_new0 (guint64, n_threads);
  memory->block = bench_allocate (size);
  for (i = 0; i < size; i++)
    memory->block[i] = (guint8) i;
  return memory;
}

void
bench_memory_free (BenchMemory *memory)
{
  if (memory == NULL)
    return;
  free (memory->block);
  g_free (memory->sums);
  g_free (memory);
}

static void
read_share (guint thread, gpointer user_data)
{
  BenchMemory *memory = user_data;
  const Line *lines = (const Line *) (memory->block + thread * SHARE);
  const gsize n = SHARE / sizeof (Line) / STREAMS;
  Line sum[STREAMS] = { { 0 } };
  gsize i, j;

  for (i = 0; i < n; i++) {
    for (j = 0; j < STREAMS; j++) {
      __builtin_prefetch (lines + j * n + i + AHEAD);
      sum[j] ^= lines[j * n + i];
    }
  }
  for (j = 1; j < STREAMS; j++)
    sum[0] ^= sum[j];
  memory->sums[thread] = sum[0][0] ^ sum[0][1];
}

gdouble
bench_memory_read_rate (BenchMemory *memory)
{
  gdouble least = bench_run_threads (memory->n_threads, read_share, memory);
  guint i;

  for (i = 1; i < PASSES; i++)
    least = MIN (least, bench_run_threads (memory->n_threads, read_share, memory));
  return (gdouble) (memory->n_threads * SHARE) / least;
}
