/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The tensors of a model with what each is for, decided as the loader decides it. */

#ifndef VLM_INVENTORY_H
#define VLM_INVENTORY_H

#include "checkpoint.h"

typedef enum
{
  VLM_PART_TEXT,
  VLM_PART_VISION,
  VLM_PART_PROJECTOR,
  VLM_N_PARTS
} VlmPart;

typedef struct
{
  const VlmTensorInfo *info; /* of the checkpoint */
  VlmPart part;
  /* The weight of a projection, embedding and head among them: what may be stored as integers.
   * Patch and position embedding are no such matrices. */
  gboolean matrix;
} VlmInventoryItem;

typedef struct
{
  VlmCheckpoint *checkpoint;
  /* In the order in which the loader reads them; without tensors that the model does not use and
   * without a head that repeats the embedding. */
  VlmInventoryItem *items;
  guint n_items;
  guint64 n_parameters;
} VlmInventory;

/* Errors: those of vlm_model_load (). (transfer full) */
VlmInventory *vlm_inventory_new (
    const gchar *path, const gchar *mmproj, GCancellable *cancellable, GError **error);
void vlm_inventory_free (VlmInventory *inventory);

/* "text", "vision", "projector" */
const gchar *vlm_part_name (VlmPart part);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmInventory, vlm_inventory_free)

#endif
