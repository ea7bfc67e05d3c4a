/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* From tensors in files to packed panels, some megabytes of rows at a time. */

#include <string.h>

#include "decoder.h"
#include "engine/formats/floats.h"
#include "engine/runtime/alloc.h"
#include "matrix-private.h"

/* Values of the rows that pass through memory at once: enough for every thread to pack panels. */
#define STAGE_VALUES (4 * 1024 * 1024)

/* Values that one job brings from what the file has to what is packed. */
#define SLICE_VALUES (64 * 1024)

/* Rows of a part on their way: those from first on, from the beginning of a panel. */
typedef struct
{
  VlmMatrixPart *part;
  gsize cols;
  const VlmMatrixLoader *loader;
  gsize capacity; /* whole panels */
  gsize first, n;

  /* What is packed, one of the two: [capacity][cols] */
  VlmQuantRows rows;
  guint8 *floats; /* of the part's type */

  /* What was read, where that is something else: integers, or floats as the file has them. */
  VlmQuantRows given;
  gpointer raw;
  gfloat *wide;

  /* Of a conversion by the team: rows at .. at + count - 1 of the stage are those of info from row
   * on. */
  const VlmTensorInfo *info;
  gsize at, count, slice_rows;
  guint64 row;
  GError **faults; /* one a slice */
} Stage;

static gboolean
run (const Stage *stage, gsize n_jobs, VlmJobFunc func, gpointer user_data, GError **error)
{
  VlmTeam *team = stage->loader->team;
  gboolean done;

  if (!vlm_team_begin_turn (team))
    return vlm_set_cancelled (error);
  done = vlm_team_run (team, n_jobs, func, user_data);
  vlm_team_end_turn (team);
  return done || vlm_set_cancelled (error);
}

/* ---- Memory ------------------------------------------------------------------------------- */

static gboolean
stage_init (Stage *stage, const VlmTensorInfo *info, GError **error)
{
  const VlmMatrixPart *part = stage->part;
  gsize panels =
      CLAMP (STAGE_VALUES / stage->cols / part->panel, 1, vlm_matrix_part_get_n_panels (part));

  stage->capacity = panels * part->panel;
  stage->slice_rows = MAX (1, SLICE_VALUES / stage->cols);
  stage->faults = g_new0 (GError *, stage->capacity / stage->slice_rows + 1);
  if (part->dtype == VLM_DTYPE_QUANTISED)
    return vlm_quant_rows_init (&stage->rows, &part->format, stage->capacity, stage->cols, error);
  stage->floats =
      vlm_alloc (stage->capacity * stage->cols, vlm_dtype_size (part->dtype), info->name, error);
  return stage->floats != NULL;
}

/* Makes room for what a tensor is before it is as it is packed. */
static gboolean
prepare (Stage *stage, const VlmTensorInfo *info, GError **error)
{
  gboolean is_int = stage->part->dtype == VLM_DTYPE_QUANTISED;
  gsize n_values = stage->capacity * stage->cols;

  if (info->dtype == VLM_DTYPE_QUANTISED) {
    vlm_quant_rows_clear (&stage->given);
    return is_int
        || vlm_quant_rows_init (&stage->given, &info->format, stage->capacity, stage->cols, error);
  }
  if (!is_int || stage->raw != NULL)
    return TRUE;
  stage->raw = vlm_alloc (n_values, sizeof (gfloat), info->name, error);
  stage->wide =
      stage->raw != NULL ? vlm_alloc (n_values, sizeof (gfloat), info->name, error) : NULL;
  return stage->wide != NULL;
}

static void
stage_clear (Stage *stage)
{
  vlm_quant_rows_clear (&stage->rows);
  vlm_quant_rows_clear (&stage->given);
  g_free (stage->floats);
  g_free (stage->raw);
  g_free (stage->wide);
  g_free (stage->faults);
}

/* ---- From what was read to what is packed -------------------------------------------------- */

/* Integers to f32. */
static void
dequantise_slice (Stage *stage, gsize first, gsize n)
{
  VlmIntRows view = vlm_quant_rows_view (&stage->given, 0);
  gfloat *out = (gfloat *) stage->floats + stage->at * stage->cols;
  gsize i;

  for (i = first; i < first + n; i++)
    vlm_int_dequantise_row (&stage->given.format, out + i * stage->cols, &view, i, stage->cols);
}

/* Floats of any type to integers. */
static gboolean
round_slice (Stage *stage, gsize first, gsize n, GError **error)
{
  const VlmTensorInfo *info = stage->info;
  VlmQuantRows out = vlm_quant_rows_skip (&stage->rows, stage->at + first);
  gfloat *wide = stage->wide + first * stage->cols;
  const guint8 *raw = stage->raw;

  raw += first * stage->cols * vlm_dtype_size (info->dtype);
  vlm_floats_widen (stage->loader->kernels, info->dtype, raw, wide, n * stage->cols);
  if (vlm_quant_round (&out, wide, n, stage->cols, error))
    return TRUE;
  g_prefix_error (
      error, "Tensor %s, rows from %" G_GUINT64_FORMAT " on: ", info->name, stage->row + first);
  return FALSE;
}

static void
convert_job (gsize job, guint thread, gpointer user_data)
{
  Stage *stage = user_data;
  gsize first = job * stage->slice_rows, n = MIN (stage->slice_rows, stage->count - first);

  if (stage->part->dtype == VLM_DTYPE_QUANTISED)
    round_slice (stage, first, n, &stage->faults[job]);
  else
    dequantise_slice (stage, first, n);
}

/* What was read becomes rows at .. at + count - 1. The fault that counts is that of the first slice
 * which has one, whichever thread was first. */
static gboolean
convert_rows (Stage *stage, GError **error)
{
  gsize n_slices = (stage->count + stage->slice_rows - 1) / stage->slice_rows, i;
  GError *stopped = NULL, *fault = NULL;

  run (stage, n_slices, convert_job, stage, &stopped);
  for (i = 0; i < n_slices; i++) {
    if (fault == NULL)
      fault = g_steal_pointer (&stage->faults[i]);
    g_clear_error (&stage->faults[i]);
  }
  if (fault != NULL)
    g_clear_error (&stopped);
  else
    fault = stopped;
  if (fault == NULL)
    return TRUE;
  g_propagate_error (error, fault);
  return FALSE;
}

/* ---- Reading ------------------------------------------------------------------------------ */

/* Reads n rows of a tensor of floats as they are. */
static gboolean
read_raw (const VlmMatrixLoader *loader, const VlmTensorInfo *info, guint64 row, gsize n,
    gpointer raw, GError **error)
{
  gsize row_bytes = info->shape[1] * vlm_dtype_size (info->dtype);

  return vlm_tensor_source_read (
      loader->source, info, row * row_bytes, raw, n * row_bytes, loader->cancellable, error);
}

static gboolean
read_integers (const VlmMatrixLoader *loader, const VlmTensorInfo *info, guint64 row, gsize n,
    VlmQuantRows *rows, GError **error)
{
  return vlm_tensor_source_read_rows (
      loader->source, info, row, n, rows, loader->cancellable, error);
}

/* Reads n more rows of a tensor into the stage. */
static gboolean
fill_stage (Stage *stage, const VlmTensorInfo *info, guint64 row, gsize n, GError **error)
{
  const VlmMatrixLoader *loader = stage->loader;
  gboolean from_int = info->dtype == VLM_DTYPE_QUANTISED;
  gboolean to_int = stage->part->dtype == VLM_DTYPE_QUANTISED;
  VlmQuantRows tail;

  stage->info = info;
  stage->row = row;
  stage->at = stage->n;
  stage->count = n;
  stage->n += n;
  if (from_int && to_int) {
    tail = vlm_quant_rows_skip (&stage->rows, stage->at);
    return read_integers (loader, info, row, n, &tail, error);
  }
  if (!from_int && !to_int)
    return read_raw (loader, info, row, n,
        stage->floats + stage->at * stage->cols * vlm_dtype_size (info->dtype), error);
  return (from_int ? read_integers (loader, info, row, n, &stage->given, error)
                   : read_raw (loader, info, row, n, stage->raw, error))
      && convert_rows (stage, error);
}

/* ---- Packing ------------------------------------------------------------------------------ */

/* Rows of floats [n][cols] of size bytes to columns of a panel; those beyond n become zero. */
static void
pack_floats (const VlmMatrixPart *part, gsize cols, guint8 *panel, const guint8 *rows, gsize n)
{
  gsize width = part->panel, r, c;

  if (n < width)
    memset (panel, 0, part->panel_bytes);
  for (r = 0; r < n; r++) {
    if (part->dtype == VLM_DTYPE_F32) {
      const guint32 *src = (const guint32 *) rows + r * cols;
      guint32 *dst = (guint32 *) panel + r;

      for (c = 0; c < cols; c++)
        dst[c * width] = src[c];
    } else {
      const guint16 *src = (const guint16 *) rows + r * cols;
      guint16 *dst = (guint16 *) panel + r;

      for (c = 0; c < cols; c++)
        dst[c * width] = src[c];
    }
  }
}

static void
pack_job (gsize job, guint thread, gpointer user_data)
{
  const Stage *stage = user_data;
  const VlmMatrixPart *part = stage->part;
  gsize row = job * part->panel, n = MIN (part->panel, stage->n - row);
  guint8 *panel = part->data + (stage->first + row) / part->panel * part->panel_bytes;
  VlmIntRows rows;

  if (part->dtype == VLM_DTYPE_QUANTISED) {
    rows = vlm_quant_rows_view (&stage->rows, row);
    vlm_int_pack (stage->loader->kernels, &part->format, panel, &rows, stage->cols, n);
  } else {
    pack_floats (part, stage->cols, panel,
        stage->floats + row * stage->cols * vlm_dtype_size (part->dtype), n);
  }
}

/* Packs what the stage holds, and empties it. */
static gboolean
pack_stage (Stage *stage, GError **error)
{
  gsize n_jobs = (stage->n + stage->part->panel - 1) / stage->part->panel;

  if (!run (stage, n_jobs, pack_job, stage, error))
    return FALSE;
  stage->first += stage->n;
  stage->n = 0;
  return TRUE;
}

static gboolean
stage_tensor (Stage *stage, const VlmTensorInfo *info, GError **error)
{
  guint64 row;
  gsize n;

  if (!prepare (stage, info, error))
    return FALSE;
  for (row = 0; row < info->shape[0]; row += n) {
    n = MIN (stage->capacity - stage->n, info->shape[0] - row);
    if (!fill_stage (stage, info, row, n, error)
        || (stage->n == stage->capacity && !pack_stage (stage, error)))
      return FALSE;
  }
  return TRUE;
}

gboolean
vlm_matrix_part_load (VlmMatrixPart *part, guint cols, const VlmMatrixLoader *loader,
    const VlmTensorInfo *const *infos, guint n_infos, GError **error)
{
  Stage stage = { .part = part, .cols = cols, .loader = loader };
  gboolean ok = stage_init (&stage, infos[0], error);
  guint i;

  for (i = 0; ok && i < n_infos; i++)
    ok = stage_tensor (&stage, infos[i], error);
  ok = ok && (stage.n == 0 || pack_stage (&stage, error));
  stage_clear (&stage);
  return ok;
}
