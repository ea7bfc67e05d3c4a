/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "quant.h"

#include "engine/vlm.h"
#include "half.h"

#include <math.h>
#include <string.h>

#define INT4_GROUP 64

/* What the kernels take: see VlmIntFormat. */
#define MAX_GROUP 65536

/* Adding and subtracting it rounds what is below 2^22 to an integer, ties to even. */
#define ROUNDING 0x1.8p23f

const VlmIntFormat vlm_quant_int8 = { .bits = 8, .scale = VLM_SCALE_ROW };
const VlmIntFormat vlm_quant_int4 = { .bits = 4, .scale = VLM_SCALE_F16, .group = INT4_GROUP };

const gchar *const vlm_int_scale_names[] = { [VLM_SCALE_ROW] = "row",
  [VLM_SCALE_F16] = "f16",
  [VLM_SCALE_F32] = "f32",
  [VLM_SCALE_CODES] = "codes",
  NULL };

gboolean
vlm_int_format_is_valid (const VlmIntFormat *format)
{
  if (format->bits != 4 && format->bits != 5 && format->bits != 6 && format->bits != 8)
    return FALSE;
  if (format->has_min && (format->bits == 8 || format->scale == VLM_SCALE_ROW))
    return FALSE;
  if (format->scale == VLM_SCALE_ROW)
    return TRUE;
  /* So that a super group has whole ones. */
  if (format->scale == VLM_SCALE_CODES)
    return format->group >= VLM_K_STEP && format->group <= VLM_SUPER_GROUP
        && VLM_SUPER_GROUP % format->group == 0;
  return format->group >= VLM_K_STEP && format->group <= MAX_GROUP
      && format->group % VLM_K_STEP == 0;
}

gsize
vlm_int_scale_size (VlmIntScale scale)
{
  return scale == VLM_SCALE_CODES ? 1 : scale == VLM_SCALE_F16 ? 2 : 4;
}

gboolean
vlm_int_format_equal (const VlmIntFormat *a, const VlmIntFormat *b)
{
  return a->bits == b->bits && a->scale == b->scale && !a->has_min == !b->has_min
      && (a->scale == VLM_SCALE_ROW || a->group == b->group);
}

/* [rows][n] elements; NULL when that is more than there is. */
static gpointer
allocate (gsize rows, gsize n, gsize size)
{
  gsize n_bytes;

  if (!g_size_checked_mul (&n_bytes, rows, n) || !g_size_checked_mul (&n_bytes, n_bytes, size))
    return NULL;
  return g_try_malloc (n_bytes);
}

gboolean
vlm_quant_rows_init (
    VlmQuantRows *rows, const VlmIntFormat *format, gsize capacity, gsize cols, GError **error)
{
  gboolean has_super = format->scale == VLM_SCALE_CODES;
  gsize size = vlm_int_scale_size (format->scale);

  memset (rows, 0, sizeof (*rows));
  rows->format = *format;
  rows->capacity = capacity;
  rows->cols = cols;
  rows->n_groups = format->scale == VLM_SCALE_ROW ? 1 : vlm_n_groups (cols, format->group);
  rows->n_supers = has_super ? vlm_n_groups (cols, VLM_SUPER_GROUP) : 0;
  rows->q = allocate (capacity, cols, 1);
  rows->scale = allocate (capacity, rows->n_groups, size);
  if (format->has_min)
    rows->min = allocate (capacity, rows->n_groups, size);
  if (has_super)
    rows->super = allocate (capacity, rows->n_supers, sizeof (guint16));
  if (has_super && format->has_min)
    rows->super_min = allocate (capacity, rows->n_supers, sizeof (guint16));
  if (rows->q && rows->scale && (!format->has_min || rows->min)
      && (!has_super || (rows->super && (!format->has_min || rows->super_min))))
    return TRUE;
  vlm_quant_rows_clear (rows);
  g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
      "no memory for %" G_GSIZE_FORMAT " rows of %" G_GSIZE_FORMAT " integers", capacity, cols);
  return FALSE;
}

void
vlm_quant_rows_clear (VlmQuantRows *rows)
{
  g_free (rows->q);
  g_free (rows->scale);
  g_free (rows->min);
  g_free (rows->super);
  g_free (rows->super_min);
  memset (rows, 0, sizeof (*rows));
}

VlmQuantRows
vlm_quant_rows_skip (const VlmQuantRows *rows, gsize first)
{
  VlmQuantRows rest = *rows;
  gsize scales = first * rows->n_groups * vlm_int_scale_size (rows->format.scale);
  gsize supers = first * rows->n_supers;

  rest.capacity -= first;
  rest.q += first * rows->cols;
  rest.scale = (guint8 *) rows->scale + scales;
  rest.min = rows->min ? (guint8 *) rows->min + scales : NULL;
  rest.super = rows->super ? rows->super + supers : NULL;
  rest.super_min = rows->super_min ? rows->super_min + supers : NULL;
  return rest;
}

VlmIntRows
vlm_quant_rows_view (const VlmQuantRows *rows, gsize first)
{
  VlmQuantRows rest = vlm_quant_rows_skip (rows, first);

  return (VlmIntRows){
    .q = rest.q,
    .ldq = rest.cols,
    .scale = rest.scale,
    .min = rest.min,
    .lds = rest.n_groups,
    .super = rest.super,
    .super_min = rest.super_min,
    .ldsuper = rest.n_supers,
  };
}

/* The largest magnitude as bits: those of floats without their sign are in the order of values. */
static guint32
largest_magnitude (const gfloat *x, gsize n)
{
  guint32 largest = 0;
  gsize i;

  for (i = 0; i < n; i++) {
    guint32 bits;

    memcpy (&bits, &x[i], sizeof (bits));
    largest = MAX (largest, bits & 0x7fffffff);
  }
  return largest;
}

static void
round_values (gint8 *q, const gfloat *x, gsize n, gfloat scale, gfloat limit)
{
  gsize i;

  if (scale == 0) {
    memset (q, 0, n);
    return;
  }
  for (i = 0; i < n; i++) {
    gfloat value = x[i] / scale;

    value = value > limit ? limit : value;
    value = value < -limit ? -limit : value;
    q[i] = (gint8) (gint32) ((value + ROUNDING) - ROUNDING);
  }
}

/* The first value of a row that is not finite. */
static gboolean
fail_value (const gfloat *x, gsize row, gsize first, GError **error)
{
  gsize i = first;

  while (isfinite (x[i]))
    i++;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "the value in row %" G_GSIZE_FORMAT ", column %" G_GSIZE_FORMAT
      " is %g, expected a finite number",
      row, i, x[i]);
  return FALSE;
}

static gboolean
fail_scale (gfloat largest, gfloat limit, gsize row, gsize first, GError **error)
{
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "the largest value in row %" G_GSIZE_FORMAT " from column %" G_GSIZE_FORMAT
      " on is %g, expected at most %g: its scale must be a half",
      row, first, largest, 65504.0 * limit);
  return FALSE;
}

/* Columns first .. first + n - 1 of row x, which share a scale; the scale goes to half. */
static gboolean
round_group (gint8 *q, guint16 *half, const gfloat *x, gsize row, gsize first, gsize n,
    gfloat limit, GError **error)
{
  guint32 bits = largest_magnitude (x + first, n);
  gfloat largest;

  memcpy (&largest, &bits, sizeof (largest));
  if (!isfinite (largest))
    return fail_value (x, row, first, error);
  *half = vlm_half_from_float (largest / limit);
  if (!isfinite (vlm_half_to_float (*half)))
    return fail_scale (largest, limit, row, first, error);
  round_values (q + first, x + first, n, vlm_half_to_float (*half), limit);
  return TRUE;
}

gboolean
vlm_quant_round (VlmQuantRows *out, const gfloat *x, gsize n_rows, gsize cols, GError **error)
{
  gboolean per_row = out->format.scale == VLM_SCALE_ROW;
  gsize group = per_row ? cols : out->format.group;
  gfloat limit = per_row ? 127 : 7;
  gsize row, g;

  g_return_val_if_fail (out->cols == cols && n_rows <= out->capacity, FALSE);
  for (row = 0; row < n_rows; row++) {
    for (g = 0; g < out->n_groups; g++) {
      gsize first = g * group, at = row * out->n_groups + g;
      guint16 half;

      if (!round_group (out->q + row * cols, &half, x + row * cols, row, first,
              MIN (group, cols - first), limit, error))
        return FALSE;
      if (per_row)
        ((gfloat *) out->scale)[at] = vlm_half_to_float (half);
      else
        ((guint16 *) out->scale)[at] = half;
    }
  }
  return TRUE;
}
