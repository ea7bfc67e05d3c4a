/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Pieces of a panel made ready for a block of rows: values a byte each, scales as floats. A piece
 * is some whole groups of activations, or a part of one that is longer than pieces.
 */

#ifndef VLM_KERNELS_SIMD_INT_PIECES_H
#define VLM_KERNELS_SIMD_INT_PIECES_H

#include "int-reader.h"
#include "int-tiles.h"

/* Rows that share a piece of the panel. */
#ifndef INT_BLOCK_ROWS
#define INT_BLOCK_ROWS 72
#endif

/* Makes len values ready: whole groups, or a part of one. */
static void
int_next_piece (IntPiece *piece, IntReader *reader, size_t len)
{
  const size_t end = reader->at + len;
  uint8_t *wide = reader->room->w;
  size_t g = 0;

  piece->len = len;
  piece->w = NULL;
  while (reader->at < end) {
    size_t run_end, n;
    const uint8_t *w;

    if (reader->at == reader->run_at + reader->run_len)
      int_enter_run (reader, g++);
    run_end = reader->run_at + reader->run_len;
    n = (run_end < end ? run_end : end) - reader->at;
    w = int_widen_values (reader, wide, n);
    piece->w = piece->w != NULL ? piece->w : w;
    wide += n * INT_PANEL;
  }
}

/* The most values of a piece. Those that stay where they are in the panel have one stride, which the
 * halves before a super group would break. */
static size_t
int_piece_values (const VlmIntFormat *format)
{
  int has_halves = format->bits == 8 && format->scale == VLM_SCALE_CODES;

  return has_halves && INT_PIECE > VLM_SUPER_GROUP ? VLM_SUPER_GROUP : INT_PIECE;
}

/* What is the same for all pieces of the panel. */
static IntPiece
int_piece_of (const IntRoom *room, const VlmIntFormat *format, size_t group)
{
  const int is_row = format->scale == VLM_SCALE_ROW, is_part = group > INT_PIECE;
  size_t stride = group * INT_PANEL;

  if (format->bits == 8 && !is_row)
    stride += panel_scale_bytes (format, INT_PANEL);
  return (IntPiece){ .group = is_part ? INT_PIECE : group,
    .stride = stride,
    .is_part = is_part,
    .bias = is_part ? 0 : int_bias (format),
    .scales = room->scales[0],
    .lds = is_row ? 0 : INT_PANEL,
    .mins = format->has_min ? room->mins[0] : NULL };
}

#endif
