/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "convert-block.h"

#include "engine/vlm.h"
#include "floats.h"
#include "half.h"

/* Values in a block, and in a slice of it that one job takes: small enough for a core's cache. */
#define BLOCK_VALUES (2u << 20)
#define SLICE_VALUES (64u << 10)

struct _VlmConvertBlock
{
  VlmTensorSource *source;
  const VlmTensorInfo *info;
  const VlmKernels *kernels;
  const VlmIntFormat *format; /* to be stored; NULL: halves */
  guint64 n_rows;             /* of the tensor */
  gsize cols, capacity, slice_rows;

  /* What is read: floats of the source's type, or integers of the source's format. */
  gpointer raw;
  VlmQuantRows given;
  /* Between the two, NULL where nothing is rounded. */
  gfloat *values;
  /* What is stored. */
  guint16 *halves;
  VlmQuantRows rounded;

  /* Of the run. */
  guint64 first;
  gsize n;
  GError **faults; /* one a slice */
};

static gboolean
is_quantised (const VlmConvertBlock *block)
{
  return block->info->dtype == VLM_DTYPE_QUANTISED;
}

/* Whether rows go from file to file as they are. */
static gboolean
is_copy (const VlmConvertBlock *block)
{
  return is_quantised (block) && block->format
      && vlm_int_format_equal (block->format, &block->info->format);
}

static gpointer
allocate (const VlmConvertBlock *block, gsize value_size, GError **error)
{
  gpointer memory = g_try_malloc_n (block->capacity * block->cols, value_size);

  if (!memory)
    g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
        "no memory for %" G_GSIZE_FORMAT " rows of tensor %s", block->capacity, block->info->name);
  return memory;
}

static gboolean
allocate_all (VlmConvertBlock *block, GError **error)
{
  if (is_quantised (block)) {
    if (!vlm_quant_rows_init (
            &block->given, &block->info->format, block->capacity, block->cols, error))
      return FALSE;
  } else {
    block->raw = allocate (block, vlm_dtype_size (block->info->dtype), error);
    if (!block->raw)
      return FALSE;
  }
  if (is_copy (block))
    return TRUE;
  block->values = allocate (block, sizeof (gfloat), error);
  if (!block->values)
    return FALSE;
  if (block->format)
    return vlm_quant_rows_init (
        &block->rounded, block->format, block->capacity, block->cols, error);
  block->halves = allocate (block, sizeof (guint16), error);
  return block->halves != NULL;
}

VlmConvertBlock *
vlm_convert_block_new (VlmTensorSource *source, const VlmTensorInfo *info,
    const VlmIntFormat *format, const VlmKernels *kernels, GError **error)
{
  g_autoptr (VlmConvertBlock) block = g_new0 (VlmConvertBlock, 1);

  block->source = source;
  block->info = info;
  block->kernels = kernels;
  block->format = format;
  block->n_rows = info->rank > 0 ? info->shape[0] : 1;
  block->cols = vlm_tensor_count_values (info) / block->n_rows;
  block->capacity = CLAMP (BLOCK_VALUES / block->cols, 1, block->n_rows);
  block->slice_rows = MAX (1, SLICE_VALUES / block->cols);
  if (!allocate_all (block, error))
    return NULL;
  block->faults = g_new0 (GError *, block->capacity / block->slice_rows + 1);
  return g_steal_pointer (&block);
}

void
vlm_convert_block_free (VlmConvertBlock *block)
{
  if (!block)
    return;
  vlm_quant_rows_clear (&block->given);
  vlm_quant_rows_clear (&block->rounded);
  g_free (block->raw);
  g_free (block->values);
  g_free (block->halves);
  g_free (block->faults);
  g_free (block);
}

guint64
vlm_convert_block_get_n_rows (const VlmConvertBlock *block)
{
  return block->n_rows;
}

gsize
vlm_convert_block_get_capacity (const VlmConvertBlock *block)
{
  return block->capacity;
}

static gboolean
fail (const VlmConvertBlock *block, gsize index, const gchar *found, const gchar *expected,
    GError **error)
{
  g_autofree gchar *position =
      vlm_floats_position (block->info, block->first * block->cols + index);

  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT, "%s: tensor %s has %s at %s, expected %s",
      vlm_tensor_source_get_path (block->source, block->info), block->info->name, found, position,
      expected);
  return FALSE;
}

/* Brings rows first .. first + n - 1 of the block to f32. */
static gboolean
widen_rows (VlmConvertBlock *block, gsize first, gsize n, GError **error)
{
  VlmDType dtype = block->info->dtype;
  gsize start = first * block->cols, count = n * block->cols, special, i;
  gfloat *values = block->values + start;
  const guint8 *raw;

  if (is_quantised (block)) {
    VlmIntRows view = vlm_quant_rows_view (&block->given, first);

    for (i = 0; i < n; i++)
      vlm_int_dequantise_row (
          &block->given.format, values + i * block->cols, &view, i, block->cols);
    return TRUE;
  }
  raw = (const guint8 *) block->raw + start * vlm_dtype_size (dtype);
  special = vlm_floats_find_special (dtype, raw, count);
  if (special < count)
    return fail (block, start + special, vlm_floats_special_name (dtype, raw, special),
        "a finite number", error);
  vlm_floats_widen (block->kernels, dtype, raw, values, count);
  return TRUE;
}

static gboolean
narrow_rows (VlmConvertBlock *block, gsize first, gsize n, GError **error)
{
  gsize start = first * block->cols, count = n * block->cols;
  const gfloat *values = block->values + start;
  gsize bad = vlm_halves_from_floats (block->halves + start, values, count);
  gchar found[G_ASCII_DTOSTR_BUF_SIZE];

  if (bad == count)
    return TRUE;
  g_ascii_formatd (found, sizeof (found), "%.9g", values[bad]);
  return fail (block, start + bad, found, "at most 65504, the largest number of F16", error);
}

static gboolean
quantise_rows (VlmConvertBlock *block, gsize first, gsize n, GError **error)
{
  VlmQuantRows slice = vlm_quant_rows_skip (&block->rounded, first);

  if (vlm_quant_round (&slice, block->values + first * block->cols, n, block->cols, error))
    return TRUE;
  g_prefix_error (error, "%s: tensor %s, counted from row %" G_GUINT64_FORMAT ": ",
      vlm_tensor_source_get_path (block->source, block->info), block->info->name,
      block->first + first);
  return FALSE;
}

static void
round_slice (gsize job, guint thread, gpointer user_data)
{
  VlmConvertBlock *block = user_data;
  gsize first = job * block->slice_rows, n = MIN (block->slice_rows, block->n - first);
  GError **fault = &block->faults[job];

  if (widen_rows (block, first, n, fault)) {
    if (block->format)
      quantise_rows (block, first, n, fault);
    else
      narrow_rows (block, first, n, fault);
  }
}

/* The fault of the first slice that has one, whichever thread was first. */
static gboolean
collect_faults (VlmConvertBlock *block, gsize n_slices, GError **error)
{
  gboolean sound = TRUE;
  gsize i;

  for (i = 0; i < n_slices; i++) {
    if (block->faults[i] && sound) {
      sound = FALSE;
      g_propagate_error (error, g_steal_pointer (&block->faults[i]));
    }
    g_clear_error (&block->faults[i]);
  }
  return sound;
}

static gboolean
round_rows (VlmConvertBlock *block, VlmTeam *team, GCancellable *cancellable, GError **error)
{
  gsize n_slices = (block->n + block->slice_rows - 1) / block->slice_rows;
  gboolean done = vlm_team_begin_turn (team);

  if (done) {
    done = vlm_team_run (team, n_slices, round_slice, block);
    vlm_team_end_turn (team);
  }
  if (!collect_faults (block, n_slices, error))
    return FALSE;
  if (!done)
    g_cancellable_set_error_if_cancelled (cancellable, error);
  return done;
}

static gboolean
read_rows (VlmConvertBlock *block, GCancellable *cancellable, GError **error)
{
  gsize row_bytes = block->cols * vlm_dtype_size (block->info->dtype);

  if (is_quantised (block))
    return vlm_tensor_source_read_rows (
        block->source, block->info, block->first, block->n, &block->given, cancellable, error);
  return vlm_tensor_source_read (block->source, block->info, block->first * row_bytes, block->raw,
      block->n * row_bytes, cancellable, error);
}

gboolean
vlm_convert_block_run (VlmConvertBlock *block, guint64 first, gsize n_rows, VlmTeam *team,
    VlmSlmWriter *writer, GCancellable *cancellable, GError **error)
{
  g_return_val_if_fail (n_rows <= block->capacity && first <= block->n_rows - n_rows, FALSE);
  block->first = first;
  block->n = n_rows;
  if (!read_rows (block, cancellable, error))
    return FALSE;
  if (is_copy (block))
    return vlm_slm_writer_put_quantised (writer, &block->given, 0, n_rows, error);
  if (!round_rows (block, team, cancellable, error))
    return FALSE;
  return block->format ? vlm_slm_writer_put_quantised (writer, &block->rounded, 0, n_rows, error)
                       : vlm_slm_writer_put_halves (writer, block->halves, n_rows, error);
}
