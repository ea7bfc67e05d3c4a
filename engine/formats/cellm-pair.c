/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* From the entries of a .cellm file to the tensors of a network: which scales belong to which
 * matrix, and what a Hugging Face directory calls it. */

#include "cellm.h"

#include "engine/vlm.h"

#include <stdlib.h>
#include <string.h>

#define QSCALE ".qscale"
#define SCALES ".scales"
#define BIASES ".biases"
#define WEIGHT ".weight"

/* Values in a word of VLM_CELLM_U32. */
#define WORD_VALUES 8

/* What a group of values may be. */
#define GROUP_STEP 16
#define MAX_GROUP 65536

/* The beginnings of names in this file; NULL where there is no such part. */
typedef struct
{
  gchar *text, *vision, *projector;
} Prefixes;

typedef struct
{
  VlmCellm *cellm;
  GPtrArray *by_name; /* of const VlmCellmEntry */
  Prefixes prefixes;
} Pairing;

/* ---- Names -------------------------------------------------------------------------------- */

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  const VlmCellmEntry *x = *(const VlmCellmEntry *const *) a;
  const VlmCellmEntry *y = *(const VlmCellmEntry *const *) b;

  return strcmp (x->name, y->name);
}

static const VlmCellmEntry *
find_entry (const Pairing *pairing, const gchar *name)
{
  const VlmCellmEntry wanted = { .name = (gchar *) name };
  const VlmCellmEntry *key = &wanted;
  const VlmCellmEntry *const *found = bsearch (
      &key, pairing->by_name->pdata, pairing->by_name->len, sizeof (gpointer), compare_names);

  return found ? *found : NULL;
}

/* What stands in front of the first name with this end, which is a whole part of the name. */
static gchar *
find_prefix (const Pairing *pairing, const gchar *end)
{
  guint i;

  for (i = 0; i < pairing->by_name->len; i++) {
    const gchar *name = ((const VlmCellmEntry *) pairing->by_name->pdata[i])->name;
    gsize length = strlen (name) - (g_str_has_suffix (name, end) ? strlen (end) : 0);

    if (name[length] && (length == 0 || name[length - 1] == '.'))
      return g_strndup (name, length);
  }
  return NULL;
}

/* The name with another prefix, if it has prefix and one of heads behind it; else NULL. */
static gchar *
exchange (const gchar *name, const gchar *prefix, const gchar *const *heads, const gchar *other)
{
  guint i;

  if (!prefix || !g_str_has_prefix (name, prefix))
    return NULL;
  name += strlen (prefix);
  for (i = 0; heads[i]; i++) {
    if (g_str_has_prefix (name, heads[i]))
      return g_strconcat (other, name, NULL);
  }
  return NULL;
}

/* Writers shorten, lengthen or keep the prefixes, and their header does not always say how. */
static gchar *
translate_name (const Pairing *pairing, const gchar *name)
{
  static const gchar *const text[] = { "embed_tokens.", "embedding_norm.", "layers.", NULL };
  static const gchar *const vision[] = { "embeddings.", "encoder.", "post_layernorm.", "head.",
    NULL };
  static const gchar *const projector[] = { "layer_norm.", "linear_1.", "linear_2.", NULL };
  const Prefixes *prefixes = &pairing->prefixes;
  gchar *found = exchange (name, prefixes->vision, vision, VLM_CELLM_VISION_PREFIX);

  if (!found)
    found = exchange (name, prefixes->projector, projector, VLM_CELLM_PROJECTOR_PREFIX);
  if (!found)
    found = exchange (name, prefixes->text, text, vlm_cellm_text_prefix (pairing->cellm));
  if (!found)
    found = g_strdup (g_str_has_suffix (name, ".lm_head.weight") ? "lm_head.weight" : name);
  return found;
}

/* ---- Scales ------------------------------------------------------------------------------- */

/* name without the end it has, and with another. */
static gchar *
change_end (const gchar *name, const gchar *end, const gchar *other)
{
  g_autofree gchar *base = g_strndup (name, strlen (name) - strlen (end));

  return g_strconcat (base, other, NULL);
}

/* Ends of the names of what belongs to a matrix of integers, and how that one's name ends. */
static const struct
{
  const gchar *end, *owner;
} companions[] = { { QSCALE, "" }, { SCALES, WEIGHT }, { BIASES, WEIGHT } };

/* Whether the entry belongs to a matrix of integers; FALSE with an error when that is not there. */
static gboolean
check_companion (
    const Pairing *pairing, const VlmCellmEntry *entry, gboolean *companion, GError **error)
{
  const VlmCellmEntry *matrix;
  g_autofree gchar *owner = NULL;
  gboolean is_word;
  guint i = 0;

  while (i < G_N_ELEMENTS (companions) && !g_str_has_suffix (entry->name, companions[i].end))
    i++;
  *companion = i < G_N_ELEMENTS (companions);
  if (!*companion)
    return TRUE;
  owner = change_end (entry->name, companions[i].end, companions[i].owner);
  is_word = *companions[i].owner != '\0';
  matrix = find_entry (pairing, owner);
  if (matrix
      && (is_word ? matrix->type == VLM_CELLM_U32
                  : matrix->type == VLM_CELLM_I8 || matrix->type == VLM_CELLM_I4))
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: tensor %s is there, but tensor %s is %s%s, expected %s",
      vlm_cellm_get_path (pairing->cellm), entry->name, owner, matrix ? "of " : "missing",
      matrix ? vlm_cellm_type_name (matrix->type) : "", is_word ? "u32" : "i8 or i4");
  return FALSE;
}

/* The tensor that has the scales or minimums of matrix: of one of two types, its rows first. */
static const VlmCellmEntry *
find_scale (const Pairing *pairing, const VlmCellmEntry *matrix, const gchar *name,
    gboolean may_be_f32, GError **error)
{
  const VlmCellmEntry *scale = find_entry (pairing, name);
  const gchar *path = vlm_cellm_get_path (pairing->cellm);
  g_autofree gchar *shape = NULL;

  if (!scale) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: tensor %s holds integers of %s, but tensor %s is missing", path, matrix->name,
        vlm_cellm_type_name (matrix->type), name);
    return NULL;
  }
  if (scale->type != VLM_CELLM_F16 && !(may_be_f32 && scale->type == VLM_CELLM_F32)) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
        "%s: tensor %s has dtype %s, expected f16%s for scales", path, name,
        vlm_cellm_type_name (scale->type), may_be_f32 ? " or f32" : "");
    return NULL;
  }
  if (scale->rank <= 2 && scale->shape[0] == matrix->shape[0])
    return scale;
  shape = vlm_tensor_shape_to_string (scale->shape, scale->rank);
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: tensor %s has shape %s, expected [%" G_GUINT64_FORMAT "] or [%" G_GUINT64_FORMAT
      ", groups]: one or more scales for each row of tensor %s",
      path, name, shape, matrix->shape[0], matrix->shape[0], matrix->name);
  return NULL;
}

static guint64
count_groups (const VlmCellmEntry *scale)
{
  return scale->rank == 2 ? scale->shape[1] : 1;
}

/* Whether a row of cols values in groups of this many has n of them. */
static gboolean
fits (guint64 cols, guint64 group, guint64 n)
{
  return cols / group + (cols % group ? 1 : 0) == n;
}

/* The group that divides a row into n equal ones and can be computed with; else 0. */
static guint64
divide_evenly (guint64 cols, guint64 n)
{
  guint64 group = cols % n ? 0 : cols / n;

  return group % GROUP_STEP || group > MAX_GROUP ? 0 : group;
}

/*
 * Groups are 64 or 128 values, or else equal parts of a row. No file says which: where both fit,
 * any choice could be the wrong one.
 */
static gboolean
choose_group (const Pairing *pairing, const VlmCellmEntry *matrix, guint64 cols, guint64 n,
    gsize *group, GError **error)
{
  guint64 even = divide_evenly (cols, n);
  guint64 usual = fits (cols, 64, n) ? 64 : fits (cols, 128, n) ? 128 : 0;
  const gchar *path = vlm_cellm_get_path (pairing->cellm);

  *group = usual ? usual : even;
  if (*group && (!even || even == *group))
    return TRUE;
  if (*group)
    g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
        "%s: tensor %s has %" G_GUINT64_FORMAT " scales for each row of %" G_GUINT64_FORMAT
        " values: that may be groups of %" G_GUINT64_FORMAT " or of %" G_GUINT64_FORMAT,
        path, matrix->name, n, cols, usual, even);
  else
    g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
        "%s: tensor %s has %" G_GUINT64_FORMAT " scales for each row of %" G_GUINT64_FORMAT
        " values, expected groups of 64, of 128 or of another multiple of %d up to %d",
        path, matrix->name, n, cols, GROUP_STEP, MAX_GROUP);
  return FALSE;
}

static gboolean
pair_i8 (const Pairing *pairing, VlmCellmTensor *tensor, GError **error)
{
  g_autofree gchar *name = g_strconcat (tensor->data->name, QSCALE, NULL);

  tensor->scale = find_scale (pairing, tensor->data, name, FALSE, error);
  if (!tensor->scale)
    return FALSE;
  tensor->info.format = (VlmIntFormat){ .bits = 8, .scale = VLM_SCALE_ROW };
  if (count_groups (tensor->scale) == 1)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: tensor %s has %" G_GUINT64_FORMAT " scales for each row of tensor %s, expected 1",
      vlm_cellm_get_path (pairing->cellm), name, count_groups (tensor->scale), tensor->data->name);
  return FALSE;
}

static gboolean
pair_i4 (const Pairing *pairing, VlmCellmTensor *tensor, GError **error)
{
  g_autofree gchar *name = g_strconcat (tensor->data->name, QSCALE, NULL);
  VlmIntFormat *format = &tensor->info.format;
  guint64 n;

  tensor->scale = find_scale (pairing, tensor->data, name, FALSE, error);
  if (!tensor->scale)
    return FALSE;
  n = count_groups (tensor->scale);
  *format = (VlmIntFormat){ .bits = 4, .scale = n == 1 ? VLM_SCALE_ROW : VLM_SCALE_F16 };
  return n == 1
      || choose_group (pairing, tensor->data, tensor->data->shape[1], n, &format->group, error);
}

/* Scales and biases are alike, and divide rows evenly. */
static gboolean
pair_u32 (const Pairing *pairing, VlmCellmTensor *tensor, GError **error)
{
  const VlmCellmEntry *data = tensor->data;
  g_autofree gchar *scales = NULL, *biases = NULL;
  guint64 cols = data->shape[1] * WORD_VALUES, n;

  if (!g_str_has_suffix (data->name, WEIGHT)) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
        "%s: tensor %s of u32 is no weight, expected a name that ends with " WEIGHT,
        vlm_cellm_get_path (pairing->cellm), data->name);
    return FALSE;
  }
  scales = change_end (data->name, WEIGHT, SCALES);
  biases = change_end (data->name, WEIGHT, BIASES);
  tensor->scale = find_scale (pairing, data, scales, TRUE, error);
  tensor->min = tensor->scale ? find_scale (pairing, data, biases, TRUE, error) : NULL;
  if (!tensor->min)
    return FALSE;
  n = count_groups (tensor->scale);
  if (tensor->min->type != tensor->scale->type || count_groups (tensor->min) != n
      || !divide_evenly (cols, n)) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: tensor %s has %" G_GUINT64_FORMAT " scales of %s and %" G_GUINT64_FORMAT
        " biases of %s for each row of %" G_GUINT64_FORMAT
        " values, expected as many of both, one for each multiple of %d values",
        vlm_cellm_get_path (pairing->cellm), data->name, n,
        vlm_cellm_type_name (tensor->scale->type), count_groups (tensor->min),
        vlm_cellm_type_name (tensor->min->type), cols, GROUP_STEP);
    return FALSE;
  }
  tensor->info.shape[1] = cols;
  tensor->info.format = (VlmIntFormat){ .bits = 4,
    .scale = tensor->scale->type == VLM_CELLM_F16 ? VLM_SCALE_F16 : VLM_SCALE_F32,
    .has_min = TRUE,
    .group = cols / n };
  return TRUE;
}

/* ---- Tensors ------------------------------------------------------------------------------ */

/* Taps of a convolution may stand with their channels last: the same numbers in the same order. */
static void
turn_taps (VlmTensorInfo *info)
{
  if (info->rank != 3 || info->shape[2] != 1 || !g_str_has_suffix (info->name, "conv.conv.weight"))
    return;
  info->shape[2] = info->shape[1];
  info->shape[1] = 1;
}

static gboolean
add_tensor (const Pairing *pairing, const VlmCellmEntry *entry, GError **error)
{
  VlmCellmTensor tensor = { .data = entry };
  gboolean good;

  tensor.info.name = translate_name (pairing, entry->name);
  tensor.info.dtype = vlm_cellm_type_dtype (entry->type);
  tensor.info.rank = entry->rank;
  memcpy (tensor.info.shape, entry->shape, sizeof (entry->shape));
  turn_taps (&tensor.info);
  good = entry->type == VLM_CELLM_I8 ? pair_i8 (pairing, &tensor, error)
      : entry->type == VLM_CELLM_I4  ? pair_i4 (pairing, &tensor, error)
      : entry->type == VLM_CELLM_U32 ? pair_u32 (pairing, &tensor, error)
                                     : TRUE;
  tensor.info.offset = entry->offset;
  tensor.info.n_bytes = entry->n_bytes;
  if (good && tensor.scale)
    tensor.info.n_bytes += tensor.scale->n_bytes + (tensor.min ? tensor.min->n_bytes : 0);
  g_array_append_val (pairing->cellm->tensors, tensor);
  return good;
}

static gboolean
add_tensors (const Pairing *pairing, GError **error)
{
  const GArray *entries = pairing->cellm->entries;
  gboolean companion;
  guint i;

  for (i = 0; i < entries->len; i++) {
    const VlmCellmEntry *entry = &g_array_index (entries, VlmCellmEntry, i);

    if (!check_companion (pairing, entry, &companion, error)
        || (!companion && !add_tensor (pairing, entry, error)))
      return FALSE;
  }
  return TRUE;
}

/* The tower, or a header that speaks of one. */
static gboolean
find_vision (const Pairing *pairing, gboolean *has_vision, GError **error)
{
  VlmJson header = vlm_cellm_get_header (pairing->cellm), vision;

  if (!vlm_json_get_object (&header, "source_vision_config", &vision, error))
    return FALSE;
  *has_vision = pairing->prefixes.vision != NULL || json_object_size (vision.object) > 0;
  return TRUE;
}

gboolean
vlm_cellm_pair (VlmCellm *cellm, GError **error)
{
  g_autoptr (GPtrArray) by_name = g_ptr_array_sized_new (cellm->entries->len);
  Pairing pairing = { .cellm = cellm, .by_name = by_name };
  Prefixes *prefixes = &pairing.prefixes;
  gboolean done;
  guint i;

  for (i = 0; i < cellm->entries->len; i++)
    g_ptr_array_add (by_name, &g_array_index (cellm->entries, VlmCellmEntry, i));
  g_ptr_array_sort (by_name, compare_names);
  prefixes->text = find_prefix (&pairing, "embed_tokens.weight");
  prefixes->vision = find_prefix (&pairing, "embeddings.patch_embedding.weight");
  prefixes->projector = find_prefix (&pairing, "linear_1.weight");
  done = find_vision (&pairing, &cellm->has_vision, error) && add_tensors (&pairing, error);
  g_free (prefixes->text);
  g_free (prefixes->vision);
  g_free (prefixes->projector);
  return done;
}
