/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "slab.h"

#include "alloc.h"

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
  g_slist_free_full (slab->blocks, g_free);
  g_free (slab);
}

static gboolean
add_block (VlmSlab *slab, gsize n_bytes)
{
  gsize size = MAX (n_bytes, BLOCK);
  gpointer block = vlm_alloc_block (size);

  if (block == NULL)
    return FALSE;
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
