/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How fast threads of this machine read memory when they do nothing else. */

#include "bench-kernels.h"
#include "bench-machine.h"

#include <stdlib.h>

#define SHARE ((gsize) 128 << 20) /* of one thread: more than any cache */
#define STREAMS 4                 /* one alone does not keep enough reads under way */
#define AHEAD 128                 /* lines between a prefetch and its use */

typedef guint64 Line __attribute__ ((vector_size (64), aligned (64)));

struct _BenchMemory
{
  guint n_threads;
  guint8 *block;
};

typedef struct
{
  const Line *lines;
  guint64 sum;
} Share;

BenchMemory *
bench_memory_new (guint n_threads)
{
  BenchMemory *memory = g_new0 (BenchMemory, 1);
  gsize i, size = n_threads * SHARE;

  memory->n_threads = n_threads;
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
  g_free (memory);
}

static gpointer
read_share (gpointer data)
{
  Share *share = data;
  const gsize n = SHARE / sizeof (Line) / STREAMS;
  Line sum[STREAMS] = { { 0 } };
  gsize i, j;

  for (i = 0; i < n; i++) {
    for (j = 0; j < STREAMS; j++) {
      __builtin_prefetch (share->lines + j * n + i + AHEAD);
      sum[j] ^= share->lines[j * n + i];
    }
  }
  for (j = 1; j < STREAMS; j++)
    sum[0] ^= sum[j];
  share->sum = sum[0][0] ^ sum[0][1];
  return NULL;
}

gdouble
bench_memory_read_rate (BenchMemory *memory)
{
  g_autofree GThread **threads = g_new0 (GThread *, memory->n_threads);
  g_autofree Share *shares = g_new0 (Share, memory->n_threads);
  gint64 since = g_get_monotonic_time (), took;
  guint i;

  for (i = 0; i < memory->n_threads; i++) {
    shares[i].lines = (const Line *) (memory->block + i * SHARE);
    if (i > 0)
      threads[i] = g_thread_new ("read", read_share, &shares[i]);
  }
  read_share (&shares[0]);
  for (i = 1; i < memory->n_threads; i++)
    g_thread_join (threads[i]);
  took = MAX (g_get_monotonic_time () - since, 1);
  return (gdouble) (memory->n_threads * SHARE) * G_USEC_PER_SEC / (gdouble) took;
}
