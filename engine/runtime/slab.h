/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Memory for the weights of one model: handed out from large blocks that ask for large pages, and
 * given back all at once. A decode step reads every weight once; with 4 KiB pages it also waits for
 * the page table.
 */

#ifndef VLM_SLAB_H
#define VLM_SLAB_H

#include <gio/gio.h>

typedef struct _VlmSlab VlmSlab;

VlmSlab *vlm_slab_new (void);
void vlm_slab_free (VlmSlab *slab);

/* n_bytes, 64-byte aligned, contents undefined; lives as long as the slab. NULL when there is no
 * memory. One thread at a time. */
gpointer vlm_slab_take (VlmSlab *slab, gsize n_bytes);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmSlab, vlm_slab_free)

#endif
