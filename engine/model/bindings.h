/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which tensor of a checkpoint goes where in VlmWeights, decided before any of them is read. */

#ifndef VLM_BINDINGS_H
#define VLM_BINDINGS_H

#include "weights.h"

typedef enum
{
  VLM_BIND_MATRIX, /* target: VlmMatrix ** */
  VLM_BIND_VECTOR, /* target: gfloat **, the parts one after the other */
  VLM_BIND_TAPS    /* target: gfloat **, one part, turned from [n][1][taps] */
} VlmBindingKind;

typedef struct
{
  VlmBindingKind kind;
  gpointer target;      /* within the VlmWeights */
  gboolean keep_floats; /* a product of floats, always: the patch embedding */
  const VlmTensorInfo *parts[VLM_MAX_PARTS];
  guint n_parts;
} VlmBinding;

/*
 * Binds every tensor that checkpoint's config asks for; weights has its arrays of layers already.
 * What only tensors can tell (feed-forward rows, tied head, projector norm, prefix of the tower) is
 * settled first, and the config updated. Tensors of the tower's pooling head, which the model does
 * not use, and an lm_head that repeats the embedding of a tied model are left out.
 * VLM_ERROR_FORMAT naming tensor, found and expected shape; VLM_ERROR_UNSUPPORTED for integers where
 * only floats can be. Array of VlmBinding (transfer full)
 */
GArray *vlm_bindings_new (
    VlmCheckpoint *checkpoint, VlmWeights *weights, GCancellable *cancellable, GError **error);

#endif
