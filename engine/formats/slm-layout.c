/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Where the tensors of a .slm file lie, and what they are called. */

#include "slm-manifest.h"

#include "engine/vlm.h"
#include "hf.h"
#include "slm.h"

#include <string.h>

/* Of all payloads together, so that sums of few of them stay far from overflow. */
#define MAX_BYTES (G_GUINT64_CONSTANT (1) << 62)

const gchar *const vlm_slm_file_names[] = { VLM_HF_CONFIG, VLM_HF_TOKENIZER,
  VLM_HF_TOKENIZER_CONFIG, VLM_HF_CHAT_TEMPLATE, VLM_HF_PROCESSOR, VLM_HF_PREPROCESSOR,
  VLM_HF_GENERATION, NULL };

gboolean
vlm_slm_is_file_name (const gchar *name)
{
  return g_strv_contains (vlm_slm_file_names, name);
}

const gchar *
vlm_slm_entry_file (const VlmSlmEntry *entry)
{
  return g_str_has_prefix (entry->name, VLM_SLM_FILES) ? entry->name + strlen (VLM_SLM_FILES)
                                                       : NULL;
}

gboolean
vlm_slm_is_weight_name (const gchar *name)
{
  gsize length = strlen (name), i;

  if (length < 1 || length > VLM_SLM_MAX_NAME || g_str_has_prefix (name, VLM_SLM_FILES)
      || g_str_has_prefix (name, VLM_SLM_PADDING) || !strcmp (name, "__metadata__"))
    return FALSE;
  for (i = 0; i < length; i++) {
    if (!g_ascii_isgraph (name[i]) || strchr ("\"\\", name[i]))
      return FALSE;
  }
  return TRUE;
}

const VlmIntFormat *
vlm_slm_scheme_format (VlmSlmScheme scheme)
{
  return scheme == VLM_SLM_INT8_ROW ? &vlm_quant_int8 : &vlm_quant_int4;
}

gboolean
vlm_slm_entry_measure (VlmSlmEntry *entry)
{
  guint i;

  entry->n_bytes = vlm_safetensors_type_size (entry->type);
  for (i = 0; i < entry->rank; i++) {
    if (entry->shape[i] == 0
        || !g_uint64_checked_mul (&entry->n_bytes, entry->n_bytes, entry->shape[i])
        || entry->n_bytes > MAX_BYTES)
      return FALSE;
  }
  return TRUE;
}

gboolean
vlm_slm_entry_init_matrix (
    VlmSlmEntry *entry, VlmSlmEntry *scale, VlmSlmScheme scheme, guint64 rows, guint64 columns)
{
  gboolean int4 = scheme == VLM_SLM_INT4_GROUP_64;

  if (rows > G_MAXINT32 || columns > G_MAXINT32)
    return FALSE;
  *entry = (VlmSlmEntry){
    .name = entry->name,
    .type = int4 ? VLM_SAFETENSORS_U8 : VLM_SAFETENSORS_I8,
    .rank = 2,
    .shape = { rows, int4 ? (columns + 1) / 2 : columns },
    .scheme = scheme,
    .columns = columns,
  };
  *scale = (VlmSlmEntry){
    .type = VLM_SAFETENSORS_F16,
    .rank = int4 ? 2 : 1,
    .shape = { rows, int4 ? vlm_n_groups (columns, vlm_quant_int4.group) : 0 },
  };
  return vlm_slm_entry_measure (entry) && vlm_slm_entry_measure (scale);
}

static void
append_padding (GArray *all, guint *n_paddings, guint64 *offset)
{
  guint64 n = -*offset % VLM_SLM_ALIGNMENT;
  VlmSafetensorsEntry padding = {
    .type = VLM_SAFETENSORS_U8, .rank = 1, .shape = { n }, .offset = *offset, .n_bytes = n
  };

  if (n == 0)
    return;
  padding.name = g_strdup_printf (VLM_SLM_PADDING "%u", (*n_paddings)++);
  g_array_append_val (all, padding);
  *offset += n;
}

static void
append_entry (GArray *all, const VlmSlmEntry *entry)
{
  VlmSafetensorsEntry stored = { .name = g_strdup (entry->name),
    .type = entry->type,
    .rank = entry->rank,
    .offset = entry->offset,
    .n_bytes = entry->n_bytes };

  memcpy (stored.shape, entry->shape, sizeof (stored.shape));
  g_array_append_val (all, stored);
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const gchar *const *) a, *(const gchar *const *) b);
}

static gboolean
check_names (const GArray *all, const gchar *path, GError **error)
{
  g_autoptr (GPtrArray) names = g_ptr_array_sized_new (all->len);
  guint i;

  for (i = 0; i < all->len; i++)
    g_ptr_array_add (names, g_array_index (all, VlmSafetensorsEntry, i).name);
  g_ptr_array_sort (names, compare_names);
  for (i = 1; i < names->len; i++) {
    if (strcmp (names->pdata[i - 1], names->pdata[i]))
      continue;
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT, "%s: tensor %s is there twice", path,
        (const gchar *) names->pdata[i]);
    return FALSE;
  }
  return TRUE;
}

GArray *
vlm_slm_lay_out (VlmSlmManifest *manifest, const gchar *path, GError **error)
{
  g_autoptr (GArray) all = vlm_safetensors_entries_new ();
  guint64 offset = 0;
  guint n_paddings = 0, i;

  for (i = 0; i < manifest->entries->len; i++) {
    VlmSlmEntry *entry = vlm_slm_manifest_nth (manifest, i);

    append_padding (all, &n_paddings, &offset);
    entry->offset = offset;
    append_entry (all, entry);
    offset += entry->n_bytes;
    if (offset > MAX_BYTES) {
      g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
          "%s: its tensors up to %s have more than 2^62 bytes", path, entry->name);
      return NULL;
    }
  }
  return check_names (all, path, error) ? g_steal_pointer (&all) : NULL;
}
