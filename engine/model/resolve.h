/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the tensors of a checkpoint decide, and where they must agree with its configuration. */

#ifndef VLM_RESOLVE_H
#define VLM_RESOLVE_H

#include "engine/formats/checkpoint.h"

typedef struct
{
  const gchar *text;   /* prefix of the language model's tensors */
  const gchar *vision; /* prefix of the tower's: with the vision_model level or without */
  const VlmTensorInfo *repeated_head; /* a copy of the embedding in a tied model, or NULL */
} VlmTensorNames;

/*
 * Settles prefixes, feed-forward rows, projector norm and head, and updates checkpoint->config.
 * Only a head that should not be there is read, to compare it.
 * VLM_ERROR_FORMAT naming key and tensor when they contradict each other; errors of reading.
 */
gboolean vlm_resolve_tensors (
    VlmCheckpoint *checkpoint, VlmTensorNames *names, GCancellable *cancellable, GError **error);

#endif
