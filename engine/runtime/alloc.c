/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "alloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/vlm.h"

#define LARGE_PAGE ((gsize) 2 << 20)

/* From Linux 6.1 on; headers may be older, and older systems refuse it. */
#if defined(__linux__) && !defined(MADV_COLLAPSE)
#define MADV_COLLAPSE 25
#endif

gpointer
vlm_alloc_block (gsize n_bytes)
{
  /* The last large page is one when at least half of it is used. */
  gsize n_large = n_bytes / LARGE_PAGE + (n_bytes % LARGE_PAGE >= LARGE_PAGE / 2);
  gpointer block;

  if (n_bytes > G_MAXSIZE / 2)
    return NULL;
  if (n_large == 0)
    return g_try_malloc (MAX (n_bytes, 1)); /* GLib gives NULL for nothing */
  if (posix_memalign (&block, LARGE_PAGE, MAX (n_bytes, n_large * LARGE_PAGE)) != 0)
    return NULL;
#ifdef MADV_HUGEPAGE
  /* A hint: without large pages everything works, only slower. */
  (void) madvise (block, n_large * LARGE_PAGE, MADV_HUGEPAGE);
#ifdef MADV_COLLAPSE
  /* What comes from the heap may have small pages already. */
  (void) madvise (block, n_large * LARGE_PAGE, MADV_COLLAPSE);
#endif
#endif
  return block;
}

static gpointer
check (gpointer memory, gsize n, gsize size, const gchar *what, GError **error)
{
  if (memory == NULL)
    g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
        "No memory for %s: %" G_GSIZE_FORMAT " times %" G_GSIZE_FORMAT " bytes", what, n, size);
  return memory;
}

gpointer
vlm_alloc (gsize n, gsize size, const gchar *what, GError **error)
{
  gsize n_bytes;
  gboolean fits = g_size_checked_mul (&n_bytes, n, size);

  return check (fits ? vlm_alloc_block (n_bytes) : NULL, n, size, what, error);
}

gpointer
vlm_alloc0 (gsize n, gsize size, const gchar *what, GError **error)
{
  gpointer memory = vlm_alloc (n, size, what, error);

  return memory != NULL ? memset (memory, 0, n * size) : NULL;
}
