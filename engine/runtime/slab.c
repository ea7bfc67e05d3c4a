/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "slab.h"

#include <stdlib.h>
#include <sys/mman.h>

#define LARGE_PAGE ((gsize) 2 << 20)
#define ALIGNMENT 64

/* What is never touched of a block costs no memory, but its last large page does. */
#define BLOCK ((gsize) 64 << 20)

struct _VlmSlab
{
  GSList *blocks;
  guint8 *next;
  gsize left; /* bytes from next on */
};

VlmSlab *
vlm_slab_new (void)
{
  return g_new0 (VlmSlab, 1);
}

void
vlm_slab_free (VlmSlab *slab)
{
  if (slab == NULL)
    return;
  g_slist_free_full (slab->blocks, free);
  g_free (slab);
}

static gboolean
add_block (VlmSlab *slab, gsize n_bytes)
{
  gsize size = MAX (n_bytes, BLOCK);
  gpointer block;

  if (size > G_MAXSIZE / 2 || posix_memalign (&block, LARGE_PAGE, size) != 0)
    return FALSE;
#ifdef MADV_HUGEPAGE
  /* A hint: without large pages everything works, only slower. */
  (void) madvise (block, size, MADV_HUGEPAGE);
#endif
  slab->blocks = g_slist_prepend (slab->blocks, block);
  slab->next = block;
  slab->left = size;
  return TRUE;
}

gpointer
vlm_slab_take (VlmSlab *slab, gsize n_bytes)
{
  gpointer taken;

  if (n_bytes > G_MAXSIZE / 2)
    return NULL;
  n_bytes = (n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (n_bytes > slab->left && !add_block (slab, n_bytes))
    return NULL;
  taken = slab->next;
  slab->next += n_bytes;
  slab->left -= n_bytes;
  return taken;
}
