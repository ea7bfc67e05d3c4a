/* SPDX-License-Identifier: LGPL-2.1-or-later */

#ifndef VLM_KERNELS_SIMD_INT_VALUES_H
#define VLM_KERNELS_SIMD_INT_VALUES_H

#include <stddef.h>
#include <stdint.h>

/* Values of k of a panel that are made ready at once: with the sums of INT_BLOCK_ROWS rows they
 * fill three quarters of a first-level cache. */
#ifndef INT_PIECE
#define INT_PIECE 128
#endif

/* Tiles that are narrower than the panel pass over it as much faster. */
#ifndef INT_STREAM_BYTES
#define INT_STREAM_BYTES ((size_t) VLM_STREAM_BYTES * (INT_PANEL / INT_COLUMNS))
#endif

/* Whether tiles that take a panel as it is call for what follows; processors may do that by themselves. */
#ifndef INT_CALLS_AHEAD
#define INT_CALLS_AHEAD() 1
#endif

/* Whether tiles of many rows call for the panel that is next. */
#ifndef INT_CALLS_NEXT
#define INT_CALLS_NEXT() 0
#endif

/* The columns that a tile of so many rows takes at a time, INT_COLUMNS at most. */
#ifndef INT_TILE_COLUMNS
#define INT_TILE_COLUMNS(rows) INT_COLUMNS
#endif
#define INT_TILE_VECTORS(rows) (INT_TILE_COLUMNS (rows) / VF_LANES)

/* What a tile multiplies with. */
typedef enum
{
  INT_BYTES,       /* 8 bits, as they are in a panel */
  INT_SPLIT_BYTES, /* the same, with activations that are split */
  INT_NIBBLES,     /* 4 bits, as they are in a panel */
  INT_SMALL,       /* a byte for each of at most 5 bits */
  INT_SIX          /* a byte for each of 6 bits */
} IntValues;

/* Values of a run below 8 bits, from number at on. */
typedef struct
{
  const uint8_t *low, *high; /* of the whole run, see panel.h */
  size_t at;                 /* a multiple of VLM_K_STEP */
} IntSmallValues;

#endif
