/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads a panel of any format: values become a byte each, scales become floats. */

#ifndef VLM_KERNELS_SIMD_INT_READER_H
#define VLM_KERNELS_SIMD_INT_READER_H

#include "kernels/panel.h"

#include "int-rows.h"
#include "int-values.h"

/* The room that a piece may take. */
typedef struct
{
  uint8_t w[INT_PIECE * INT_PANEL];
  IntRow scales[INT_PIECE / VLM_K_STEP];
  IntRow mins[INT_PIECE / VLM_K_STEP];
  IntRow super_scales, super_mins;
} __attribute__ ((aligned (64))) IntRoom;

/* A reader of the panel, at value number at of the rows. */
typedef struct
{
  const VlmIntFormat *format;
  IntRoom *room;
  const uint8_t *next; /* what follows the run */
  const uint8_t *run;  /* its values */
  size_t run_at, run_len, at, k;
  int is_streamed;
} IntReader;

static void
int_load_scales (float *scales, const VlmIntFormat *format, const uint8_t *w, const float *super)
{
  size_t v;

  for (v = 0; v < INT_PANEL; v += VF_LANES) {
    vf x;

    if (format->scale == VLM_SCALE_F16)
      x = vf_load_f16 ((const uint16_t *) w + v);
    else if (format->scale == VLM_SCALE_F32)
      x = vf_load ((const float *) w + v);
    else
      x = vf_mul (vf_load_i8 ((const int8_t *) w + v), vf_load (super + v));
    vf_store (scales + v, x);
  }
}

static void
int_load_supers (IntReader *reader)
{
  const uint16_t *halves = (const uint16_t *) reader->next;
  size_t v;

  for (v = 0; v < INT_PANEL; v += VF_LANES) {
    vf_store (reader->room->super_scales + v, vf_load_f16 (halves + v));
    if (reader->format->has_min)
      vf_store (reader->room->super_mins + v, vf_load_f16 (halves + INT_PANEL + v));
  }
  reader->next += panel_super_bytes (reader->format, INT_PANEL);
}

/* Enters the run that starts here; its scales become number g of the piece. */
static void
int_enter_run (IntReader *reader, size_t g)
{
  const VlmIntFormat *format = reader->format;
  const size_t size = INT_PANEL * panel_scale_size (format), left = reader->k - reader->at;
  IntRoom *room = reader->room;
  const uint8_t *start = reader->next;
  size_t bytes, i;

  if (format->scale == VLM_SCALE_CODES && reader->at % VLM_SUPER_GROUP == 0)
    int_load_supers (reader);
  int_load_scales (room->scales[g], format, reader->next, room->super_scales);
  if (format->has_min)
    int_load_scales (room->mins[g], format, reader->next + size, room->super_mins);
  reader->run = reader->next + panel_scale_bytes (format, INT_PANEL);
  reader->run_at = reader->at;
  reader->run_len = left < format->group ? left : format->group;
  bytes = panel_value_bytes (format->bits, INT_PANEL, reader->run_len);
  reader->next = reader->run + bytes;
  bytes = (size_t) (reader->next - start);
  for (i = 0; reader->is_streamed && reader->run_len <= INT_PIECE && i < bytes; i += 64)
    __builtin_prefetch (start + INT_PREFETCH_BYTES + i);
}

/* Values of the run from here on, in bytes; where they are. */
static const uint8_t *
int_widen_values (IntReader *reader, uint8_t *wide, size_t len)
{
  const unsigned bits = reader->format->bits;
  const size_t at = reader->at - reader->run_at;
  IntSmallValues from = { reader->run,
    reader->run + panel_low_bytes (bits, INT_PANEL, reader->run_len), at };

  reader->at += len;
  switch (bits) {
    case 4:
      int_widen_bits (wide, &from, len, 4);
      return wide;
    case 5:
      int_widen_bits (wide, &from, len, 5);
      return wide;
    case 6:
      int_widen_bits (wide, &from, len, 6);
      return wide;
    default:
      return reader->run + at * INT_PANEL;
  }
}

static IntReader
int_start_panel (
    IntRoom *room, const VlmIntFormat *format, const void *w, size_t k, int is_streamed)
{
  IntReader reader = { .format = format,
    .room = room,
    .next = w,
    .run = w,
    .k = vlm_padded_k (k),
    .is_streamed = is_streamed };
  size_t v;

  /* Scales of rows come in at the end; until then they are one. */
  if (format->scale == VLM_SCALE_ROW) {
    reader.run += panel_scale_bytes (format, INT_PANEL);
    reader.run_len = reader.k;
    for (v = 0; v < INT_PANEL; v += VF_LANES)
      vf_store (room->scales[0] + v, vf_set1 (1));
  }

  return reader;
}

/* What was added to the values of pieces. */
static int32_t
int_bias (const VlmIntFormat *format)
{
  return format->bits == 8 ? INT_BIAS : panel_bias (format);
}

#endif
