/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* From anything that can be loaded to one .slm file. */

#include "convert-block.h"
#include "engine/model/level.h"
#include "engine/vlm.h"
#include "hf.h"
#include "inventory.h"
#include "model-files.h"

#include <glib/gstdio.h>

typedef struct
{
  VlmInventory *inventory;
  const VlmConvertOptions *options;
  VlmWeightType text_type, vision_type; /* never AUTO */
  VlmKernels kernels;
  VlmTeam *team;
  VlmSlmWriter *writer;
  VlmProgressFunc progress;
  gpointer user_data;
  GCancellable *cancellable;
  guint64 n_done; /* values */
} Conversion;

static const gchar *const type_names[] = { [VLM_WEIGHT_F16] = "f16",
  [VLM_WEIGHT_INT8] = "int8",
  [VLM_WEIGHT_INT4] = "int4",
  [VLM_WEIGHT_KEEP] = "keep" };

static gboolean
check_options (const VlmConvertOptions *options, GError **error)
{
  if (options->vision_type == VLM_WEIGHT_INT4) {
    g_set_error_literal (error, VLM_ERROR, VLM_ERROR_SETTINGS,
        "the type of the vision weights is int4, expected f16, int8 or keep: floats of tower and "
        "projector are never rounded below 8 bits, for their outliers do not survive it, and what "
        "they lose no later layer brings back");
    return FALSE;
  }
  return TRUE;
}

static gboolean
has_integers (const VlmInventory *inventory)
{
  guint i;

  for (i = 0; i < inventory->n_items; i++) {
    if (inventory->items[i].info->dtype == VLM_DTYPE_QUANTISED)
      return TRUE;
  }
  return FALSE;
}

/* Settles what the options leave open. */
static gboolean
choose_types (Conversion *conversion, GError **error)
{
  conversion->text_type = conversion->options->text_type;
  conversion->vision_type = conversion->options->vision_type;
  if (conversion->text_type == VLM_WEIGHT_AUTO) {
    if (!has_integers (conversion->inventory)) {
      g_set_error (error, VLM_ERROR, VLM_ERROR_SETTINGS,
          "%s: has floats only, so a type of the text weights is needed: f16, int8 or int4",
          conversion->inventory->checkpoint->path);
      return FALSE;
    }
    conversion->text_type = VLM_WEIGHT_KEEP;
  }
  if (conversion->vision_type == VLM_WEIGHT_AUTO)
    conversion->vision_type =
        conversion->text_type == VLM_WEIGHT_F16 || conversion->text_type == VLM_WEIGHT_KEEP
        ? conversion->text_type
        : VLM_WEIGHT_INT8;
  return TRUE;
}

/* What was asked for the part that the tensor belongs to. */
static VlmWeightType
find_type (const Conversion *conversion, const VlmInventoryItem *item)
{
  return item->part == VLM_PART_TEXT ? conversion->text_type : conversion->vision_type;
}

/* The integers that the tensor will be stored as; NULL: halves. */
static const VlmIntFormat *
choose_format (const Conversion *conversion, const VlmInventoryItem *item)
{
  VlmWeightType type = find_type (conversion, item);

  if (type == VLM_WEIGHT_KEEP)
    return item->info->dtype == VLM_DTYPE_QUANTISED ? &item->info->format : NULL;
  if (!item->matrix || type == VLM_WEIGHT_F16)
    return NULL;
  return type == VLM_WEIGHT_INT8 ? &vlm_quant_int8 : &vlm_quant_int4;
}

/*
 * Announces a tensor. Integers that are copied get one of the two schemes of rounded floats only if
 * they are known to be such; the scheme of all integers takes everything.
 */
static gboolean
add_tensor (const Conversion *conversion, const VlmInventoryItem *item, GError **error)
{
  const VlmIntFormat *format = choose_format (conversion, item);
  const VlmTensorInfo *info = item->info;
  gboolean copied =
      format && info->dtype == VLM_DTYPE_QUANTISED && vlm_int_format_equal (format, &info->format);
  VlmSlmType type = VLM_SLM_F16;

  if (format && vlm_int_format_equal (format, &vlm_quant_int8))
    type = VLM_SLM_INT8;
  else if (format && vlm_int_format_equal (format, &vlm_quant_int4))
    type = VLM_SLM_INT4;
  if (copied && (type == VLM_SLM_F16 || !info->symmetric))
    return vlm_slm_writer_add_integers (conversion->writer, info->name, format, info->shape, error);
  return vlm_slm_writer_add_tensor (
      conversion->writer, info->name, type, info->shape, info->rank, error);
}

/* Whether the file is one of the model, under whatever name. */
static gboolean
is_part_of (const GStatBuf *file, const VlmModelFiles *files)
{
  g_autoptr (GPtrArray) paths = vlm_model_files_list_paths (files);
  GStatBuf status;
  guint i;

  for (i = 0; i < paths->len; i++) {
    if (g_stat (paths->pdata[i], &status) == 0 && status.st_dev == file->st_dev
        && status.st_ino == file->st_ino)
      return TRUE;
  }
  return FALSE;
}

/* Only a regular file that is no part of the source may be replaced. */
static gboolean
check_destination (const VlmModelFiles *source, const gchar *destination, GError **error)
{
  GStatBuf status;

  if (g_stat (destination, &status))
    return TRUE;
  if (!S_ISREG (status.st_mode)) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_SETTINGS, "%s: is %s, expected a file or nothing",
        destination, S_ISDIR (status.st_mode) ? "a directory" : "no regular file");
    return FALSE;
  }
  if (is_part_of (&status, source)) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_SETTINGS,
        "%s: is a part of the model at %s, which it would replace", destination,
        vlm_model_files_get_path (source));
    return FALSE;
  }
  return TRUE;
}

/* The settings files go over as they are. */
static gboolean
add_files (VlmSlmWriter *writer, const VlmModelFiles *files, GError **error)
{
  guint i;

  for (i = 0; vlm_slm_file_names[i]; i++) {
    const gchar *name = vlm_slm_file_names[i];
    gboolean large = g_str_equal (name, VLM_HF_TOKENIZER);
    g_autoptr (GBytes) bytes = NULL;

    if (!vlm_model_files_has (files, name))
      continue;
    bytes = vlm_model_files_read (
        files, name, large ? VLM_HF_MAX_TOKENIZER : VLM_HF_MAX_SETTINGS, error);
    if (!bytes)
      return FALSE;
    /* An empty file says as much as none. */
    if (g_bytes_get_size (bytes) > 0 && !vlm_slm_writer_add_file (writer, name, bytes, error))
      return FALSE;
  }
  return TRUE;
}

/* Integers that are not of the wanted kind would lose a second time. */
static gboolean
check_rounding (const Conversion *conversion, const VlmInventoryItem *item, GError **error)
{
  const VlmTensorInfo *info = item->info;
  const VlmIntFormat *format = choose_format (conversion, item);

  if (info->dtype != VLM_DTYPE_QUANTISED || conversion->options->requantise
      || (format && vlm_int_format_equal (format, &info->format)))
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
      "%s: tensor %s holds integers of %u bits: as %s it would be quantised a second time; convert "
      "the original, keep it as it is with keep, or allow it with requantise",
      conversion->inventory->checkpoint->path, info->name, info->format.bits,
      format ? type_names[find_type (conversion, item)] : "f16");
  return FALSE;
}

static gboolean
add_tensors (Conversion *conversion, GError **error)
{
  guint i;

  for (i = 0; i < conversion->inventory->n_items; i++) {
    const VlmInventoryItem *item = &conversion->inventory->items[i];

    if (!check_rounding (conversion, item, error) || !add_tensor (conversion, item, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
write_tensor (Conversion *conversion, const VlmInventoryItem *item, GError **error)
{
  g_autoptr (VlmConvertBlock) block =
      vlm_convert_block_new (conversion->inventory->checkpoint->tensors, item->info,
          choose_format (conversion, item), &conversion->kernels, error);
  guint64 n_values = vlm_tensor_count_values (item->info), row, n_rows;

  if (!block)
    return FALSE;
  n_rows = vlm_convert_block_get_n_rows (block);
  for (row = 0; row < n_rows;) {
    gsize n = MIN (vlm_convert_block_get_capacity (block), n_rows - row);

    if (g_cancellable_set_error_if_cancelled (conversion->cancellable, error)
        || !vlm_convert_block_run (
            block, row, n, conversion->team, conversion->writer, conversion->cancellable, error))
      return FALSE;
    row += n;
    conversion->n_done += n_values / n_rows * n;
    if (conversion->progress)
      conversion->progress ((gdouble) conversion->n_done / conversion->inventory->n_parameters,
          conversion->user_data);
  }
  return TRUE;
}

static gboolean
write_tensors (Conversion *conversion, GError **error)
{
  guint i;

  for (i = 0; i < conversion->inventory->n_items; i++) {
    if (!write_tensor (conversion, &conversion->inventory->items[i], error))
      return FALSE;
  }
  /* A source is believed as a whole, what the model has no use for included. Then it is the last
   * chance: finish cannot be stopped half way. */
  return vlm_tensor_source_verify_rest (
             conversion->inventory->checkpoint->tensors, conversion->cancellable, error)
      && !g_cancellable_set_error_if_cancelled (conversion->cancellable, error);
}

gboolean
vlm_model_convert (const gchar *source, const gchar *destination, const VlmConvertOptions *options,
    VlmProgressFunc progress, gpointer user_data, GCancellable *cancellable, GError **error)
{
  Conversion conversion = {
    .options = options, .progress = progress, .user_data = user_data, .cancellable = cancellable
  };
  g_autoptr (VlmInventory) inventory = NULL;
  g_autoptr (VlmSlmWriter) writer = NULL;
  VlmCpuLevel level;
  gboolean written;

  if (!check_options (options, error) || !vlm_cpu_level_choose (&level, error))
    return FALSE;
  vlm_kernels_init (&conversion.kernels, level);
  conversion.inventory = inventory =
      vlm_inventory_new (source, options->mmproj, cancellable, error);
  if (!inventory || !choose_types (&conversion, error)
      || !check_destination (inventory->checkpoint->files, destination, error))
    return FALSE;
  conversion.writer = writer =
      vlm_slm_writer_new (destination, &inventory->checkpoint->config, error);
  if (!writer || !add_files (writer, inventory->checkpoint->files, error)
      || !add_tensors (&conversion, error) || !vlm_slm_writer_begin (writer, error))
    return FALSE;

  conversion.team = vlm_team_new (options->n_threads, cancellable);
  written = write_tensors (&conversion, error);
  vlm_team_free (conversion.team);
  return written && vlm_slm_writer_finish (writer, error);
}
