/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a model is, as JSON. docs/formats.md lists the keys. */

#include "engine/vlm.h"
#include "file.h"
#include "hf.h"
#include "inventory.h"
#include "model-files.h"
#include "published.h"

#include <math.h>

/* Settings come from f32 and are meant to be read. */
#define REAL_DIGITS 7

/* Tensors that are stored in one way, summed up. */
typedef struct
{
  VlmPart part;
  gboolean matrix;
  VlmDType dtype;
  VlmIntFormat format;
  guint n_tensors;
  guint64 n_parameters, n_bytes;
} Group;

static json_t *
make_text (const VlmTextConfig *text)
{
  json_t *kinds = json_array ();
  guint i;

  for (i = 0; i < text->n_layers; i++)
    json_array_append_new (kinds, json_string (vlm_layer_kind_names[text->layers[i]]));
  return json_pack ("{s:i, s:i, s:o, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:i, s:f, s:f, s:b}",
      "hidden_size", text->hidden_size, "n_layers", text->n_layers, "layer_types", kinds, "ff_size",
      text->ff_size, "n_heads", text->n_heads, "n_kv_heads", text->n_kv_heads, "head_dim",
      text->head_dim, "vocab_size", text->vocab_size, "conv_taps", text->conv_taps, "conv_bias",
      text->conv_bias, "max_context", text->max_context, "rope_theta", text->rope_theta, "norm_eps",
      (double) text->norm_eps, "tied_head", text->tied_head);
}

static json_t *
make_vision (const VlmVisionConfig *vision)
{
  return json_pack ("{s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "hidden_size", vision->hidden_size,
      "n_layers", vision->n_layers, "ff_size", vision->ff_size, "n_heads", vision->n_heads,
      "head_dim", vision->head_dim, "patch_size", vision->patch_size, "n_positions",
      vision->n_positions);
}

static json_t *
make_projector (const VlmProjectorConfig *projector)
{
  return json_pack ("{s:i, s:b, s:b, s:i}", "hidden_size", projector->hidden_size, "layer_norm",
      projector->layer_norm, "bias", projector->bias, "downsample_factor",
      projector->downsample_factor);
}

static json_t *
make_image (const VlmProcessor *processor)
{
  return json_pack ("{s:i, s:i, s:i, s:i, s:i, s:b, s:b, s:s}", "min_image_tokens",
      processor->min_image_tokens, "max_image_tokens", processor->max_image_tokens, "tile_size",
      processor->tile_size, "min_tiles", processor->min_tiles, "max_tiles", processor->max_tiles,
      "splitting", processor->do_image_splitting, "thumbnail", processor->use_thumbnail, "filter",
      processor->filter == VLM_FILTER_BICUBIC ? "bicubic" : "bilinear");
}

/* What the files leave open is null. */
static json_t *
number_or_null (gdouble value)
{
  return isnan (value) ? json_null () : json_real (value);
}

static json_t *
id_or_null (gint id)
{
  return id < 0 ? json_null () : json_integer (id);
}

static json_t *
make_generation (const VlmGeneration *generation)
{
  json_t *eos = json_array ();
  guint i;

  for (i = 0; i < generation->n_eos; i++)
    json_array_append_new (eos, json_integer (generation->eos_ids[i]));
  return json_pack ("{s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "bos_id",
      id_or_null (generation->bos_id), "eos_ids", eos, "pad_id", id_or_null (generation->pad_id),
      "do_sample", generation->do_sample, "temperature", number_or_null (generation->temperature),
      "top_k", id_or_null (generation->top_k), "top_p", number_or_null (generation->top_p), "min_p",
      number_or_null (generation->min_p), "repetition_penalty",
      number_or_null (generation->repetition_penalty));
}

static json_t *
make_published (const VlmInventory *inventory)
{
  const VlmConfig *config = &inventory->checkpoint->config;
  const VlmPublished *published = vlm_published_find (config);
  g_autoptr (GPtrArray) deviations = NULL;
  json_t *list;
  guint i;

  if (!published)
    return json_null ();
  deviations =
      vlm_published_compare (published, config, inventory->n_items, inventory->n_parameters);
  list = json_array ();
  for (i = 0; i < deviations->len; i++)
    json_array_append_new (list, json_string (g_ptr_array_index (deviations, i)));
  return json_pack ("{s:s, s:s?, s:b, s:o}", "name", vlm_published_get_name (published), "same_as",
      vlm_published_get_twin (published), "verified", vlm_published_is_verified (published),
      "deviations", list);
}

static Group *
find_group (GArray *groups, const VlmInventoryItem *item)
{
  const VlmTensorInfo *info = item->info;
  Group fresh = { item->part, item->matrix, info->dtype, info->format, 0, 0, 0 };
  guint i;

  for (i = 0; i < groups->len; i++) {
    Group *group = &g_array_index (groups, Group, i);

    if (group->part == item->part && group->matrix == item->matrix && group->dtype == info->dtype
        && (info->dtype != VLM_DTYPE_QUANTISED
            || vlm_int_format_equal (&group->format, &info->format)))
      return group;
  }
  g_array_append_val (groups, fresh);
  return &g_array_index (groups, Group, groups->len - 1);
}

static json_t *
make_group (const Group *group)
{
  gboolean quantised = group->dtype == VLM_DTYPE_QUANTISED;
  gboolean grouped = quantised && group->format.scale != VLM_SCALE_ROW;
  g_autofree gchar *type = quantised ? g_strdup_printf ("int%u", group->format.bits)
                                     : g_ascii_strdown (vlm_dtype_name (group->dtype), -1);

  return json_pack ("{s:s, s:b, s:s, s:o, s:s?, s:b, s:i, s:I, s:I}", "part",
      vlm_part_name (group->part), "matrices", group->matrix, "type", type, "group",
      grouped ? json_integer (group->format.group) : json_null (), "scale",
      quantised ? vlm_int_scale_names[group->format.scale] : NULL, "minimum",
      quantised && group->format.has_min, "n_tensors", group->n_tensors, "n_parameters",
      (json_int_t) group->n_parameters, "bytes", (json_int_t) group->n_bytes);
}

static json_t *
make_weights (const VlmInventory *inventory)
{
  g_autoptr (GArray) groups = g_array_new (FALSE, FALSE, sizeof (Group));
  json_t *list = json_array ();
  guint i;

  for (i = 0; i < inventory->n_items; i++) {
    const VlmInventoryItem *item = &inventory->items[i];
    Group *group = find_group (groups, item);

    group->n_tensors++;
    group->n_parameters += vlm_tensor_count_values (item->info);
    group->n_bytes += item->info->n_bytes;
  }
  for (i = 0; i < groups->len; i++)
    json_array_append_new (list, make_group (&g_array_index (groups, Group, i)));
  return list;
}

/* Bytes of all the files that are read. */
static guint64
sum_files (const VlmCheckpoint *checkpoint)
{
  g_autoptr (GPtrArray) paths = vlm_model_files_list_paths (checkpoint->files);
  guint64 sum = 0;
  guint i;

  for (i = 0; i < paths->len; i++) {
    g_autoptr (VlmFile) file = vlm_file_open (paths->pdata[i], NULL, NULL);

    sum += file ? vlm_file_get_size (file) : 0;
  }
  return sum;
}

static json_t *
make_all (const VlmInventory *inventory)
{
  const VlmCheckpoint *checkpoint = inventory->checkpoint;
  const VlmConfig *config = &checkpoint->config;
  guint version = vlm_model_files_get_version (checkpoint->files);
  g_autofree gchar *path = g_filename_display_name (checkpoint->path);

  return json_pack ("{s:s, s:s, s:o, s:s, s:o, s:I, s:i, s:I, s:o, s:o, s:o, s:o, s:o, s:{s:i}, "
                    "s:o}",
      "path", path, "format", vlm_model_files_get_format (checkpoint->files), "version",
      version ? json_integer (version) : json_null (), "family",
      vlm_family_names[config->has_vision], "published", make_published (inventory), "n_parameters",
      (json_int_t) inventory->n_parameters, "n_tensors", inventory->n_items, "bytes",
      (json_int_t) sum_files (checkpoint), "weights", make_weights (inventory), "text",
      make_text (&config->text), "vision",
      config->has_vision ? make_vision (&config->vision) : json_null (), "projector",
      config->has_vision ? make_projector (&config->projector) : json_null (), "image",
      config->has_vision ? make_image (&checkpoint->processor) : json_null (), "tokenizer", "n_ids",
      vlm_tokenizer_get_size (checkpoint->tokenizer), "generation",
      make_generation (&checkpoint->generation));
}

gchar *
vlm_model_describe (const gchar *path, const gchar *mmproj, GError **error)
{
  g_autoptr (VlmInventory) inventory = vlm_inventory_new (path, mmproj, NULL, error);
  g_autoptr (VlmJsonDocument) root = NULL;
  char *text;
  gchar *copy;

  if (!inventory)
    return NULL;
  root = make_all (inventory);
  text = json_dumps (root, JSON_INDENT (2) | JSON_REAL_PRECISION (REAL_DIGITS));
  /* jansson's memory is not GLib's. */
  copy = g_strdup (text);
  free (text);
  return copy;
}
