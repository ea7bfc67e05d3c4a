/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The tile registers of AMX: eight of 16 rows of 64 bytes, and the instruction that adds to one the
 * product of two others.
 *
 * Not the intrinsics: those of gcc 12 tell the compiler neither that a configuration is read as a
 * whole nor that a load reads memory, so that stores before them get lost. Numbers of tiles are
 * part of the instruction, therefore all of this is macros.
 */

#ifndef VLM_KERNELS_AMX_TILES_H
#define VLM_KERNELS_AMX_TILES_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/simd/compiler.h"

#define AMX_ROWS 16
#define AMX_COLUMNS 16
#define AMX_ROW_BYTES 64
#define AMX_TILE_BYTES (AMX_ROWS * AMX_ROW_BYTES)

/* As the processor reads it. */
typedef struct
{
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} AmxConfig;

#define AMX_CONFIGURE(config) __asm__ volatile("ldtilecfg %0" : : "m"(*(config)) : "memory")

/* All tiles are as large as can be. Clears them. */
vlm_always_inline void
amx_configure (void)
{
  AmxConfig config = { .palette = 1 };
  int tile;

  for (tile = 0; tile < 8; tile++) {
    config.row_bytes[tile] = AMX_ROW_BYTES;
    config.rows[tile] = AMX_ROWS;
  }
  AMX_CONFIGURE (&config);
}

/* Clears all tiles; the thread has no state in them any more. */
#define AMX_RELEASE() __asm__ volatile("tilerelease" : : : "memory")

/* 16 rows, stride bytes apart, offset bytes behind a pointer. Offsets are constants: pointers of
 * their own would come from the stack. */
#define AMX_LOAD(tile, from, offset, stride)                                                       \
  __asm__ volatile("tileloadd %c2(%0,%1,1), %%tmm" #tile                                           \
                   :                                                                               \
                   : "r"(from), "r"((size_t) (stride)), "i"(offset)                                \
                   : "memory")

/* The same, and what is loaded stays out of the first-level cache if it is not in there. */
#define AMX_LOAD_ONCE(tile, from, offset, stride)                                                  \
  __asm__ volatile("tileloaddt1 %c2(%0,%1,1), %%tmm" #tile                                         \
                   :                                                                               \
                   : "r"(from), "r"((size_t) (stride)), "i"(offset)                                \
                   : "memory")

#define AMX_STORE(tile, to, offset, stride)                                                        \
  __asm__ volatile("tilestored %%tmm" #tile ", %c2(%0,%1,1)"                                       \
                   :                                                                               \
                   : "r"(to), "r"((size_t) (stride)), "i"(offset)                                  \
                   : "memory")

/*
 * Factors are bfloat16, sums floats:
 *   sums[r][c] += sum_l a[r][l] b[l / 2][2 c + l % 2],   l < 32
 * Subnormal numbers count as zero, what goes in and what comes out.
 */
#define AMX_MULTIPLY(sums, a, b)                                                                   \
  __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sums : :)

#endif
