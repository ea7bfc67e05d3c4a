/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cellm.h"

#include <string.h>

const gchar *
vlm_cellm_type_name (VlmCellmType type)
{
  static const gchar *const names[] = { "f16", "f32", "bf16", "i8", "i4", "u32" };

  return names[type];
}

VlmDType
vlm_cellm_type_dtype (VlmCellmType type)
{
  static const VlmDType dtypes[] = { VLM_DTYPE_F16, VLM_DTYPE_F32, VLM_DTYPE_BF16,
    VLM_DTYPE_QUANTISED, VLM_DTYPE_QUANTISED, VLM_DTYPE_QUANTISED };

  return dtypes[type];
}

static void
clear_entry (gpointer data)
{
  VlmCellmEntry *entry = data;

  g_free (entry->name);
}

static void
clear_tensor (gpointer data)
{
  VlmCellmTensor *tensor = data;

  g_free (tensor->info.name);
}

VlmCellm *
vlm_cellm_open (const gchar *path, GError **error)
{
  VlmFile *file = vlm_file_open (path, NULL, error);
  g_autoptr (VlmCellm) cellm = NULL;

  if (!file)
    return NULL;
  cellm = g_new0 (VlmCellm, 1);
  g_atomic_ref_count_init (&cellm->references);
  cellm->file = file;
  cellm->entries = g_array_new (FALSE, FALSE, sizeof (VlmCellmEntry));
  g_array_set_clear_func (cellm->entries, clear_entry);
  cellm->tensors = g_array_new (FALSE, FALSE, sizeof (VlmCellmTensor));
  g_array_set_clear_func (cellm->tensors, clear_tensor);
  return vlm_cellm_read_index (cellm, error) && vlm_cellm_pair (cellm, error)
      ? g_steal_pointer (&cellm)
      : NULL;
}

VlmCellm *
vlm_cellm_ref (VlmCellm *cellm)
{
  g_atomic_ref_count_inc (&cellm->references);
  return cellm;
}

void
vlm_cellm_unref (VlmCellm *cellm)
{
  if (!cellm || !g_atomic_ref_count_dec (&cellm->references))
    return;
  g_array_unref (cellm->tensors);
  g_array_unref (cellm->entries);
  json_decref (cellm->header);
  vlm_file_unref (cellm->file);
  g_free (cellm);
}

const gchar *
vlm_cellm_get_path (const VlmCellm *cellm)
{
  return vlm_file_get_path (cellm->file);
}

VlmJson
vlm_cellm_get_header (const VlmCellm *cellm)
{
  return (VlmJson){ vlm_cellm_get_path (cellm), NULL, cellm->header };
}

const gchar *
vlm_cellm_text_prefix (const VlmCellm *cellm)
{
  return cellm->has_vision ? "model.language_model." : "model.";
}

const VlmCellmTensor *
vlm_cellm_find (const VlmCellm *cellm, const gchar *part, const gchar *name)
{
  gsize length = strlen (part);
  guint i;

  for (i = 0; i < cellm->tensors->len; i++) {
    const VlmCellmTensor *tensor = &g_array_index (cellm->tensors, VlmCellmTensor, i);

    if (!strncmp (tensor->info.name, part, length) && !strcmp (tensor->info.name + length, name))
      return tensor;
  }
  return NULL;
}
