/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "check-weights.h"

const VlmIntFormat check_int_formats[CHECK_N_INT_FORMATS] = {
  { 8, VLM_SCALE_ROW, 0, 0 },
  { 8, VLM_SCALE_F16, 0, 32 },
  { 4, VLM_SCALE_F16, 0, 32 },
  { 4, VLM_SCALE_F16, 0, 64 },
  { 4, VLM_SCALE_F16, 0, 128 },
  { 4, VLM_SCALE_F16, 1, 32 },
  { 5, VLM_SCALE_F16, 0, 32 },
  { 5, VLM_SCALE_F16, 1, 32 },
  { 4, VLM_SCALE_CODES, 1, 32 },
  { 5, VLM_SCALE_CODES, 1, 32 },
  { 6, VLM_SCALE_CODES, 0, 16 },
  { 4, VLM_SCALE_F32, 1, 64 },
  { 4, VLM_SCALE_F32, 0, 32 },
  { 8, VLM_SCALE_F32, 0, 64 },
};

size_t
check_pick (const size_t *values, size_t n)
{
  return values[check_below (n)];
}

VlmIntFormat
check_random_format (unsigned bits, VlmIntScale scale)
{
  static const size_t groups[] = { 16, 48, 80, 128, 144, 256, 512 };
  static const size_t code_groups[] = { 16, 32, 64, 128, 256 };
  VlmIntFormat format = { .bits = bits, .scale = scale };

  format.has_min = bits != 8 && scale != VLM_SCALE_ROW ? (int) check_below (2) : 0;
  format.group = scale == VLM_SCALE_CODES ? check_pick (code_groups, 5) : check_pick (groups, 7);
  return format;
}

static int
random_weight (const CheckWeights *w, CheckKind kind)
{
  int n = 1 << w->format.bits, lowest = w->format.has_min ? 0 : -n / 2;

  if (kind == KIND_LOWEST)
    return lowest;
  if (kind == KIND_HIGHEST)
    return lowest + n - 1;
  if (kind == KIND_ENDS)
    return lowest + (check_below (2) != 0 ? n - 1 : 0);
  return lowest + (int) check_below ((size_t) n);
}

/* Subnormals and the largest too, but neither infinity nor NaN. */
static uint16_t
random_half (void)
{
  switch (check_below (8)) {
    case 0:
      return (uint16_t) (check_random () & 0x83ff);
    case 1:
      return (uint16_t) (0x7bff | (check_random () & 0x8000));
    default:
      return (uint16_t) (check_random () & 0xbfff);
  }
}

static int8_t
random_code (CheckKind kind)
{
  if (kind == KIND_LOWEST)
    return -128;
  if (kind == KIND_HIGHEST)
    return 127;
  return (int8_t) check_random ();
}

/* Scales, or minimums, for rows of n_groups that lie ld apart. */
static void *
fill_scales (const CheckWeights *w, CheckKind kind, unsigned slot, size_t n_groups, size_t ld)
{
  size_t n = (w->n - 1) * ld + n_groups, i;
  void *scales;

  switch (w->format.scale) {
    case VLM_SCALE_F16:
      scales = check_slot (slot, n * sizeof (uint16_t));
      for (i = 0; i < n; i++)
        ((uint16_t *) scales)[i] = random_half ();
      break;
    case VLM_SCALE_CODES:
      scales = check_slot (slot, n);
      for (i = 0; i < n; i++)
        ((int8_t *) scales)[i] = random_code (kind);
      break;
    default:
      scales = check_slot (slot, n * sizeof (float));
      for (i = 0; i < n; i++)
        ((float *) scales)[i] = (float) check_uniform (-1, 1);
      break;
  }

  return scales;
}

static uint16_t *
fill_supers (const CheckWeights *w, unsigned slot)
{
  size_t n = (w->n - 1) * w->rows.ldsuper + vlm_n_groups (w->k, VLM_SUPER_GROUP), i;
  uint16_t *supers = check_slot (slot, n * sizeof (uint16_t));

  for (i = 0; i < n; i++)
    supers[i] = random_half ();

  return supers;
}

void
check_fill_weights (CheckWeights *w, CheckKind kind, size_t k, size_t n)
{
  const int is_row = w->format.scale == VLM_SCALE_ROW;
  size_t n_groups = is_row ? 1 : vlm_n_groups (k, w->format.group), i;
  int8_t *q;

  w->k = k;
  w->n = n;
  w->rows = (VlmIntRows){ .ldq = k + check_below (4) };
  w->rows.lds = is_row ? 1 : n_groups + check_below (4);
  w->rows.ldsuper = vlm_n_groups (k, VLM_SUPER_GROUP) + check_below (4);
  q = check_slot (SLOT_Q, (n - 1) * w->rows.ldq + k);
  for (i = 0; i < (n - 1) * w->rows.ldq + k; i++)
    q[i] = (int8_t) random_weight (w, kind);
  w->rows.q = q;
  w->rows.scale = fill_scales (w, kind, SLOT_SCALES, n_groups, w->rows.lds);
  if (w->format.has_min)
    w->rows.min = fill_scales (w, kind, SLOT_MINS, n_groups, w->rows.lds);
  if (w->format.scale != VLM_SCALE_CODES)
    return;
  w->rows.super = fill_supers (w, SLOT_SUPERS);
  if (w->format.has_min)
    w->rows.super_min = fill_supers (w, SLOT_SUPER_MINS);
}

/* The rows from number j on. */
static VlmIntRows
rows_from (const CheckWeights *w, size_t j)
{
  static const size_t sizes[] = { sizeof (float), sizeof (uint16_t), sizeof (float), 1 };
  const size_t bytes = j * w->rows.lds * sizes[w->format.scale];
  VlmIntRows rows = w->rows;

  rows.q += j * rows.ldq;
  rows.scale = (const uint8_t *) rows.scale + bytes;
  if (rows.min != NULL)
    rows.min = (const uint8_t *) rows.min + bytes;
  if (rows.super != NULL)
    rows.super += j * rows.ldsuper;
  if (rows.super_min != NULL)
    rows.super_min += j * rows.ldsuper;
  return rows;
}

void
check_pack_weights (CheckWeights *w, const VlmKernels *kernels)
{
  const size_t bytes = vlm_int_panel_bytes (kernels, &w->format, w->k), panel = kernels->int_panel;
  const size_t n_more = (w->n - 1) / panel;
  size_t i;

  w->panel_bytes = bytes + (n_more > 0 ? 32 * check_below (3) : 0);
  w->panel = check_slot (SLOT_PANEL, n_more * w->panel_bytes + bytes);
  for (i = 0; i <= n_more; i++) {
    const VlmIntRows rows = rows_from (w, i * panel);

    vlm_int_pack (kernels, &w->format, w->panel + i * w->panel_bytes, &rows, w->k,
        i < n_more ? panel : w->n - i * panel);
  }
  check_expect (check_intact (SLOT_PANEL), "packing wrote before the panel");
}

static float
factor_of (const CheckWeights *w, const void *scales, const uint16_t *supers, size_t j, size_t g)
{
  size_t i = j * w->rows.lds + g;

  switch (w->format.scale) {
    case VLM_SCALE_ROW:
      return ((const float *) scales)[j];
    case VLM_SCALE_F16:
      return (float) check_half_value (((const uint16_t *) scales)[i]);
    case VLM_SCALE_F32:
      return ((const float *) scales)[i];
    default:
      return (float) (((const int8_t *) scales)[i]
          * check_half_value (supers[j * w->rows.ldsuper + g * w->format.group / VLM_SUPER_GROUP]));
  }
}

float
check_weight_scale (const CheckWeights *w, size_t j, size_t g)
{
  return factor_of (w, w->rows.scale, w->rows.super, j, g);
}

float
check_weight_min (const CheckWeights *w, size_t j, size_t g)
{
  return w->format.has_min ? factor_of (w, w->rows.min, w->rows.super_min, j, g) : 0;
}
