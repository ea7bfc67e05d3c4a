/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Rows of integer weights on their way between files and packed matrices. */

#ifndef VLM_QUANT_H
#define VLM_QUANT_H

#include <gio/gio.h>

#include "kernels/kernels.h"

/* Arrays for some rows of integer weights, one value a byte; see VlmIntRows for their meaning. */
typedef struct
{
  VlmIntFormat format;
  gsize capacity, cols;     /* rows there is room for, values a row */
  gsize n_groups, n_supers; /* scales a row; halves a row (VLM_SCALE_CODES, else 0) */
  gint8 *q;                 /* [capacity][cols] */
  gpointer scale, min;      /* [capacity][n_groups] of 4, 2 or 1 bytes; min NULL without minimums */
  guint16 *super, *super_min;
} VlmQuantRows;

/* FALSE with VLM_ERROR_MEMORY. cols >= 1, capacity >= 1. */
gboolean vlm_quant_rows_init (
    VlmQuantRows *rows, const VlmIntFormat *format, gsize capacity, gsize cols, GError **error);
void vlm_quant_rows_clear (VlmQuantRows *rows);

/* The rows from first on, in the same arrays: not to be cleared. */
VlmQuantRows vlm_quant_rows_skip (const VlmQuantRows *rows, gsize first);

/* The arrays from row first on, as the kernels take them. */
VlmIntRows vlm_quant_rows_view (const VlmQuantRows *rows, gsize first);

/* Bytes of one scale of the format: 4, 2 or 1. */
gsize vlm_int_scale_size (VlmIntScale scale);

/* Whether it is a format that VlmIntFormat allows. */
gboolean vlm_int_format_is_valid (const VlmIntFormat *format);

/* "row", "f16", "f32", "codes": in the order of VlmIntScale, ends with NULL. */
extern const gchar *const vlm_int_scale_names[];

/* Whether both store the same numbers in the same way. */
gboolean vlm_int_format_equal (const VlmIntFormat *a, const VlmIntFormat *b);

/* The two ways in which this program itself makes integers of floats. */
extern const VlmIntFormat vlm_quant_int8; /* 8 bits, one scale a row */
extern const VlmIntFormat vlm_quant_int4; /* 4 bits, a half for each 64 values */

/*
 * Rounds n_rows rows x [n_rows][cols] into rows 0 .. n_rows - 1 of out, whose format is one of the
 * two above:
 *   scale = half (amax / 127) a row, or half (amax / 7) a group of 64; amax / d in f32
 *   q     = clamp (rint (x / scale), -127 .. 127, or -7 .. 7), ties to even; 0 where scale is 0
 * so that the arithmetic is done with the scale that is stored. The f32 scales of int8 rows hold
 * the rounded half.
 * FALSE with VLM_ERROR_FORMAT for a NaN, an infinity, or a scale beyond the halves; the message
 * names row, column and value, and the caller puts the tensor's name before it.
 */
gboolean vlm_quant_round (
    VlmQuantRows *out, const gfloat *x, gsize n_rows, gsize cols, GError **error);

#endif
