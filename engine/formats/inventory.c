/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "inventory.h"

#include "engine/model/bindings.h"

const gchar *
vlm_part_name (VlmPart part)
{
  static const gchar *const names[] = { "text", "vision", "projector" };

  return names[part];
}

static gboolean
lies_in (gconstpointer target, gconstpointer start, gsize size)
{
  return (guintptr) target >= (guintptr) start && (guintptr) target - (guintptr) start < size;
}

/* Where the loader would put it tells what it is. */
static VlmPart
find_part (gconstpointer target, const VlmWeights *weights, const VlmConfig *config)
{
  if (!config->has_vision)
    return VLM_PART_TEXT;
  if (lies_in (target, &weights->projector_norm, sizeof (weights->projector_norm))
      || lies_in (target, &weights->projector1, sizeof (weights->projector1))
      || lies_in (target, &weights->projector2, sizeof (weights->projector2)))
    return VLM_PART_PROJECTOR;
  if (lies_in (target, &weights->patch, sizeof (weights->patch))
      || lies_in (target, &weights->positions, sizeof (weights->positions))
      || lies_in (target, &weights->post_norm, sizeof (weights->post_norm))
      || lies_in (target, weights->vision_layers,
          config->vision.n_layers * sizeof (*weights->vision_layers)))
    return VLM_PART_VISION;
  return VLM_PART_TEXT;
}

static void
add_items (VlmInventory *inventory, const GArray *bindings, const VlmWeights *weights)
{
  guint i, j, n = 0;

  for (i = 0; i < bindings->len; i++)
    n += g_array_index (bindings, VlmBinding, i).n_parts;
  inventory->items = g_new (VlmInventoryItem, n);
  for (i = 0; i < bindings->len; i++) {
    const VlmBinding *binding = &g_array_index (bindings, VlmBinding, i);

    for (j = 0; j < binding->n_parts; j++) {
      VlmInventoryItem *item = &inventory->items[inventory->n_items++];

      item->info = binding->parts[j];
      item->part = find_part (binding->target, weights, &inventory->checkpoint->config);
      item->matrix = binding->kind == VLM_BIND_MATRIX && !binding->keep_floats;
      inventory->n_parameters += vlm_tensor_count_values (item->info);
    }
  }
}

VlmInventory *
vlm_inventory_new (
    const gchar *path, const gchar *mmproj, GCancellable *cancellable, GError **error)
{
  g_autoptr (VlmInventory) inventory = g_new0 (VlmInventory, 1);
  g_autoptr (GArray) bindings = NULL;
  g_autofree VlmDecoderLayer *layers = NULL;
  g_autofree VlmVisionLayer *vision_layers = NULL;
  VlmWeights weights = { 0 };
  VlmChatTokens tokens;

  inventory->checkpoint = vlm_checkpoint_open (path, mmproj, error);
  if (!inventory->checkpoint || !vlm_checkpoint_find_chat (inventory->checkpoint, &tokens, error))
    return NULL;
  weights.layers = layers = g_new0 (VlmDecoderLayer, inventory->checkpoint->config.text.n_layers);
  if (inventory->checkpoint->config.has_vision)
    weights.vision_layers = vision_layers =
        g_new0 (VlmVisionLayer, inventory->checkpoint->config.vision.n_layers);
  bindings = vlm_bindings_new (inventory->checkpoint, &weights, cancellable, error);
  if (!bindings)
    return NULL;
  add_items (inventory, bindings, &weights);
  return g_steal_pointer (&inventory);
}

void
vlm_inventory_free (VlmInventory *inventory)
{
  if (!inventory)
    return;
  vlm_checkpoint_free (inventory->checkpoint);
  g_free (inventory->items);
  g_free (inventory);
}
