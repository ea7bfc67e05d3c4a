/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Rows of integers of 4, 5, 6 or 8 bits as .slm files hold them: value i is bits i * bits on of the
 * row, counted from the lowest bit of its first byte, above what it is by a bias of half its range,
 * or by 0 where the row has minimums. Values of 8 bits are bytes with a sign.
 */

#ifndef VLM_SLM_PACK_H
#define VLM_SLM_PACK_H

#include <glib.h>

#include "kernels/kernels.h"

/* What an odd row of int4-group-64 has in the half byte that is left over: an integer of 0. */
#define VLM_SLM_INT4_SPARE 8

/* Bytes of a row of n values. */
static inline guint64
vlm_slm_packed_size (guint bits, guint64 n)
{
  return (n * bits + 7) / 8;
}

/* Bits that a row of n values leaves over in its last byte. */
static inline guint
vlm_slm_spare_bits (guint bits, guint64 n)
{
  return (guint) (vlm_slm_packed_size (bits, n) * 8 - n * bits);
}

/* A row of n values. spare is what the bits that are left over hold. */
void vlm_slm_pack_row (
    const VlmIntFormat *format, guint8 *out, const gint8 *q, gsize n, guint8 spare);
void vlm_slm_unpack_row (const VlmIntFormat *format, gint8 *q, const guint8 *bytes, gsize n);

#endif
