/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Where the tensors of a .slm file lie, and what they are called. */

#include "slm-manifest.h"

#include "engine/vlm.h"
#include "hf.h"
#include "slm-pack.h"
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

const gchar *
vlm_slm_field_suffix (VlmSlmField field)
{
  static const gchar *const suffixes[] = { [VLM_SLM_VALUES] = "",
    [VLM_SLM_SCALE] = ".scale",
    [VLM_SLM_MIN] = ".min",
    [VLM_SLM_SUPER_SCALE] = ".super_scale",
    [VLM_SLM_SUPER_MIN] = ".super_min" };

  return suffixes[field];
}

gpointer
vlm_slm_field_values (const VlmQuantRows *rows, VlmSlmField field)
{
  switch (field) {
    case VLM_SLM_VALUES:
      return rows->q;
    case VLM_SLM_SCALE:
      return rows->scale;
    case VLM_SLM_MIN:
      return rows->min;
    case VLM_SLM_SUPER_SCALE:
      return rows->super;
    default:
      return rows->super_min;
  }
}

static gboolean
has_field (const VlmIntFormat *format, VlmSlmField field)
{
  gboolean has_codes = format->scale == VLM_SCALE_CODES;

  switch (field) {
    case VLM_SLM_MIN:
      return format->has_min;
    case VLM_SLM_SUPER_SCALE:
      return has_codes;
    case VLM_SLM_SUPER_MIN:
      return has_codes && format->has_min;
    default:
      return TRUE;
  }
}

guint
vlm_slm_entry_count_fields (const VlmSlmEntry *entry)
{
  guint field, n = 0;

  if (entry->scheme == VLM_SLM_PLAIN)
    return 1;
  for (field = 0; field < VLM_SLM_N_FIELDS; field++)
    n += has_field (&entry->format, field);
  return n;
}

/* The type of scales and minimums. */
static VlmSafetensorsType
scale_type (VlmSlmScheme scheme, VlmIntScale scale)
{
  if (scheme != VLM_SLM_SCHEME_INTEGERS || scale == VLM_SCALE_F16)
    return VLM_SAFETENSORS_F16;
  return scale == VLM_SCALE_CODES ? VLM_SAFETENSORS_I8 : VLM_SAFETENSORS_F32;
}

/* Type and shape of one field. */
static void
init_field (VlmSlmEntry *entry, VlmSlmField field, VlmSlmScheme scheme, const VlmIntFormat *format,
    guint64 rows, guint64 columns)
{
  gboolean per_row = format->scale == VLM_SCALE_ROW;

  *entry = (VlmSlmEntry){ .rank = 2, .shape = { rows }, .field = field };
  if (field == VLM_SLM_VALUES) {
    entry->type = format->bits == 8 ? VLM_SAFETENSORS_I8 : VLM_SAFETENSORS_U8;
    entry->shape[1] = vlm_slm_packed_size (format->bits, columns);
    entry->scheme = scheme;
    entry->format = *format;
    entry->columns = columns;
  } else if (field == VLM_SLM_SUPER_SCALE || field == VLM_SLM_SUPER_MIN) {
    entry->type = VLM_SAFETENSORS_F16;
    entry->shape[1] = vlm_n_groups (columns, VLM_SUPER_GROUP);
  } else {
    entry->type = scale_type (scheme, format->scale);
    entry->rank = per_row ? 1 : 2;
    entry->shape[1] = per_row ? 0 : vlm_n_groups (columns, format->group);
  }
}

guint
vlm_slm_entry_init_matrix (VlmSlmEntry entries[VLM_SLM_N_FIELDS], VlmSlmScheme scheme,
    const VlmIntFormat *format, guint64 rows, guint64 columns)
{
  guint field, n = 0;

  if (scheme == VLM_SLM_INT8_ROW)
    format = &vlm_quant_int8;
  else if (scheme == VLM_SLM_INT4_GROUP_64)
    format = &vlm_quant_int4;
  if (rows > G_MAXINT32 || columns > G_MAXINT32)
    return 0;
  for (field = 0; field < VLM_SLM_N_FIELDS; field++) {
    if (!has_field (format, field))
      continue;
    init_field (&entries[n], field, scheme, format, rows, columns);
    if (!vlm_slm_entry_measure (&entries[n++]))
      return 0;
  }
  return n;
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
