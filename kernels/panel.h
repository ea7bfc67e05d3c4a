/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Private to kernels/: how a panel of integer weights lies in memory. Each level sets three numbers
 * of it, pack.c fills it, and the products read it.
 *
 * A panel is a sequence of runs of int_panel rows. A run is the whole row with VLM_SCALE_ROW, and
 * one group otherwise. Scales stand before their run, then minimums if there are any, [int_panel]
 * each as they are in files, so that a panel is read from its first byte to its last. The halves of
 * VLM_SCALE_CODES stand before the first of the runs that share them, the scales' before the
 * minimums'.
 *
 * The values of a run of len:
 *  - 8 bits: [len / inner][int_panel][inner] bytes: inner consecutive values of a row side by side,
 *    as many as one instruction adds up (4, or 8). int_flip is exclusive-ored to them: 0x80 makes
 *    them unsigned for instructions that want that, with a bias of 128 that the sums of activations
 *    take out again.
 *  - 4 bits: values are unsigned, with a bias where there is no minimum. Two share a byte in
 *    [len / (2 inner)][int_panel][inner] bytes: low nibbles hold one piece of inner values, high
 *    nibbles the next. Both halves of a loaded register so meet activations in their natural order.
 *  - 5 and 6 bits: the low four like that, then the high one or two of all values of the run. Four
 *    bytes of a row hold those of a unit of 32 or 16 values, bit by bit for values 0 .. 3 of the
 *    unit, then for 4 .. 7, and so on: [units][int_panel][4]. The last unit may be half empty.
 *
 * Plain C has an inner of 0, which means all bytes of a row in the run: they are contiguous.
 */

#ifndef VLM_KERNELS_PANEL_H
#define VLM_KERNELS_PANEL_H

#include "kernels.h"

/* What is added to values below 8 bits. */
static inline int32_t
panel_bias (const VlmIntFormat *format)
{
  return format->bits == 8 || format->has_min ? 0 : 1 << (format->bits - 1);
}

/* Bytes of one scale. */
static inline size_t
panel_scale_size (const VlmIntFormat *format)
{
  switch (format->scale) {
    case VLM_SCALE_F16:
      return sizeof (uint16_t);
    case VLM_SCALE_CODES:
      return sizeof (int8_t);
    default:
      return sizeof (float);
  }
}

/* Bytes of the scales and minimums of one run. */
static inline size_t
panel_scale_bytes (const VlmIntFormat *format, size_t panel)
{
  return panel * panel_scale_size (format) * (format->has_min ? 2 : 1);
}

/* Bytes of the halves of one super group. */
static inline size_t
panel_super_bytes (const VlmIntFormat *format, size_t panel)
{
  return panel * sizeof (uint16_t) * (format->has_min ? 2 : 1);
}

/* Values whose high bits share four bytes. */
static inline size_t
panel_unit (unsigned bits)
{
  return bits == 5 ? 32 : 16;
}

/* Bytes of the values of a run but for the high bits. */
static inline size_t
panel_low_bytes (unsigned bits, size_t panel, size_t len)
{
  return panel * (bits == 8 ? len : len / 2);
}

static inline size_t
panel_value_bytes (unsigned bits, size_t panel, size_t len)
{
  size_t units = bits == 5 || bits == 6 ? vlm_n_groups (len, panel_unit (bits)) : 0;

  return panel_low_bytes (bits, panel, len) + panel * 4 * units;
}

#endif
