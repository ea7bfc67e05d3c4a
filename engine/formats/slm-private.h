/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the readers of a .slm file's settings and weights share. */

#ifndef VLM_SLM_PRIVATE_H
#define VLM_SLM_PRIVATE_H

#include "file.h"
#include "slm-manifest.h"
#include "slm.h"

struct _VlmSlm
{
  gatomicrefcount references;
  VlmFile *file;
  VlmSlmManifest manifest;
  guint64 data_start;
};

/*
 * Reads bytes offset .. offset + n - 1 of an entry's payload and takes them into hash. In pieces
 * that are still in the cache when they are hashed.
 */
gboolean vlm_slm_read_hashed (const VlmSlm *slm, const VlmSlmEntry *entry, XXH3_state_t *hash,
    guint64 offset, gpointer buffer, gsize n, GCancellable *cancellable, GError **error);

/* FALSE with VLM_ERROR_FORMAT unless what hash has seen is the payload of entry. */
gboolean vlm_slm_check_hash (
    const VlmSlm *slm, const VlmSlmEntry *entry, const XXH3_state_t *hash, GError **error);

/* A new state, at its beginning. NULL with VLM_ERROR_MEMORY. */
XXH3_state_t *vlm_slm_hash_new (const VlmSlm *slm, GError **error);

static inline void
vlm_slm_hash_free (XXH3_state_t *hash)
{
  XXH3_freeState (hash);
}

typedef XXH3_state_t VlmSlmHash;
G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmSlmHash, vlm_slm_hash_free)

#endif
