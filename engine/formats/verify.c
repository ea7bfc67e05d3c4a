/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Looks at every byte of a model and says what is wrong with it. */

#include "engine/vlm.h"
#include "floats.h"
#include "inventory.h"
#include "published.h"

/* Values looked at at a time. */
#define BLOCK_VALUES (1u << 20)

typedef struct
{
  VlmTensorSource *source;
  VlmFindingFunc finding;
  VlmProgressFunc progress;
  gpointer user_data;
  GCancellable *cancellable;
  guint64 n_done, n_total; /* values */
} Verification;

/* What was found in one tensor; only the first place is told. */
typedef struct
{
  const VlmTensorInfo *info;
  gchar *first; /* "NaN at [3, 4]", NULL while all is well */
  guint64 n_more;
} Faults;

static void G_GNUC_PRINTF (3, 4)
    report (const Verification *verification, VlmFindingKind kind, const gchar *format, ...)
{
  va_list arguments;
  g_autofree gchar *text = NULL;

  va_start (arguments, format);
  text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  verification->finding (kind, text, verification->user_data);
}

/*
 * An error that tells something about the model becomes a finding, and the search goes on; TRUE
 * then. One of the search itself stays in fault.
 */
static gboolean
absorb (const Verification *verification, GError **fault)
{
  if (!g_error_matches (*fault, VLM_ERROR, VLM_ERROR_FORMAT)
      && !g_error_matches (*fault, VLM_ERROR, VLM_ERROR_UNSUPPORTED))
    return FALSE;
  report (verification, VLM_FINDING_PROBLEM, "%s", (*fault)->message);
  g_clear_error (fault);
  return TRUE;
}

static gboolean
count_values (Verification *verification, guint64 n, GError **error)
{
  verification->n_done += n;
  if (verification->progress)
    verification->progress (
        (gdouble) verification->n_done / MAX (verification->n_total, 1), verification->user_data);
  return !g_cancellable_set_error_if_cancelled (verification->cancellable, error);
}

static void
report_faults (const Verification *verification, Faults *faults)
{
  g_autofree gchar *more = NULL;

  if (!faults->first)
    return;
  if (faults->n_more)
    more = g_strdup_printf (" and %" G_GUINT64_FORMAT " more", faults->n_more);
  report (verification, VLM_FINDING_PROBLEM, "%s: tensor %s has %s%s",
      vlm_tensor_source_get_path (verification->source, faults->info), faults->info->name,
      faults->first, more ? more : "");
  g_clear_pointer (&faults->first, g_free);
}

/* n values, the first of which is number first of the tensor. */
static void
scan_floats (Faults *faults, gconstpointer raw, gsize n, guint64 first)
{
  VlmDType dtype = faults->info->dtype;
  guint64 n_special = vlm_floats_count_special (dtype, raw, n);
  g_autofree gchar *position = NULL;
  gsize i;

  if (n_special && !faults->first) {
    i = vlm_floats_find_special (dtype, raw, n);
    position = vlm_floats_position (faults->info, first + i);
    faults->first = g_strdup_printf ("%s at %s", vlm_floats_special_name (dtype, raw, i), position);
    n_special--;
  }
  faults->n_more += n_special;
}

static gboolean
verify_floats (Verification *verification, Faults *faults, GError **error)
{
  const VlmTensorInfo *info = faults->info;
  gsize size = vlm_dtype_size (info->dtype);
  guint64 n_values = vlm_tensor_count_values (info), first = 0;
  g_autofree guint8 *raw = g_malloc (MIN (n_values, BLOCK_VALUES) * size);

  while (first < n_values) {
    gsize n = MIN (BLOCK_VALUES, n_values - first);

    if (!vlm_tensor_source_read (verification->source, info, first * size, raw, n * size,
            verification->cancellable, error))
      return FALSE;
    scan_floats (faults, raw, n, first);
    first += n;
    if (!count_values (verification, n, error))
      return FALSE;
  }
  return TRUE;
}

/* Integers and scales are judged by who reads them. */
static gboolean
verify_rows (
    Verification *verification, const VlmTensorInfo *info, VlmQuantRows *rows, GError **error)
{
  guint64 first = 0, n_rows = info->shape[0];

  while (first < n_rows) {
    gsize n = MIN (rows->capacity, n_rows - first);

    if (!vlm_tensor_source_read_rows (
            verification->source, info, first, n, rows, verification->cancellable, error))
      return FALSE;
    first += n;
    if (!count_values (verification, n * rows->cols, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
verify_integers (Verification *verification, const VlmTensorInfo *info, GError **error)
{
  gsize capacity = CLAMP (BLOCK_VALUES / info->shape[1], 1, info->shape[0]);
  VlmQuantRows rows;
  gboolean done;

  if (!vlm_quant_rows_init (&rows, &info->format, capacity, info->shape[1], error))
    return FALSE;
  done = verify_rows (verification, info, &rows, error);
  vlm_quant_rows_clear (&rows);
  return done;
}

static gboolean
verify_tensor (Verification *verification, const VlmTensorInfo *info, GError **error)
{
  Faults faults = { info, NULL, 0 };
  GError *fault = NULL;
  gboolean done;

  if (vlm_tensor_count_values (info) == 0)
    return TRUE;
  done = info->dtype == VLM_DTYPE_QUANTISED ? verify_integers (verification, info, &fault)
                                            : verify_floats (verification, &faults, &fault);
  report_faults (verification, &faults);
  if (done || absorb (verification, &fault))
    return TRUE;
  g_propagate_error (error, fault);
  return FALSE;
}

/* All of them, those that the loader leaves out too. */
static gboolean
verify_tensors (Verification *verification, GError **error)
{
  guint i, n = vlm_tensor_source_get_count (verification->source);

  for (i = 0; i < n; i++)
    verification->n_total +=
        vlm_tensor_count_values (vlm_tensor_source_get_nth (verification->source, i));
  for (i = 0; i < n; i++) {
    if (!verify_tensor (verification, vlm_tensor_source_get_nth (verification->source, i), error))
      return FALSE;
  }
  return TRUE;
}

static void
report_published (const Verification *verification, const VlmInventory *inventory)
{
  const VlmConfig *config = &inventory->checkpoint->config;
  const VlmPublished *published = vlm_published_find (config);
  g_autoptr (GPtrArray) deviations = NULL;
  guint i;

  if (!published)
    return;
  deviations =
      vlm_published_compare (published, config, inventory->n_items, inventory->n_parameters);
  for (i = 0; i < deviations->len; i++)
    report (verification, VLM_FINDING_NOTE, "%s: %s", inventory->checkpoint->path,
        (const gchar *) g_ptr_array_index (deviations, i));
}

gboolean
vlm_model_verify (const gchar *path, const gchar *mmproj, VlmFindingFunc finding,
    VlmProgressFunc progress, gpointer user_data, GCancellable *cancellable, GError **error)
{
  Verification verification = {
    .finding = finding, .progress = progress, .user_data = user_data, .cancellable = cancellable
  };
  g_autoptr (VlmInventory) inventory = NULL;
  GError *fault = NULL;

  /* This looks at all that is not weights. */
  inventory = vlm_inventory_new (path, mmproj, cancellable, &fault);
  if (!inventory) {
    if (absorb (&verification, &fault))
      return TRUE;
    g_propagate_error (error, fault);
    return FALSE;
  }
  report_published (&verification, inventory);
  verification.source = inventory->checkpoint->tensors;
  return verify_tensors (&verification, error);
}
