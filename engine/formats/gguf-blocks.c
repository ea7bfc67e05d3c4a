/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "gguf-blocks.h"

#include <string.h>

/* Values of a block of the types whose names end with a digit, and of those that end with K. */
#define SMALL_BLOCK 32
#define LARGE_BLOCK VLM_SUPER_GROUP

#define HALF_EXPONENT 0x7c00u
#define HALF_SIGN 0x8000u

/* Where the parts of one block go. */
typedef struct
{
  gint8 *q;
  guint16 *scale, *min; /* of small blocks */
  gint8 *codes, *min_codes;
  guint16 *super, *super_min; /* of large ones */
} Target;

/* Returns whether all scales of the block are finite. */
typedef gboolean (*Unpack) (const guint8 *block, const Target *to);

/* A half at any address; whether it is finite. */
static inline gboolean
take_half (const guint8 *bytes, guint16 *half)
{
  memcpy (half, bytes, sizeof (*half));
  *half = GUINT16_FROM_LE (*half);
  return (*half & HALF_EXPONENT) != HALF_EXPONENT;
}

/* ---- Small blocks: 32 values with one scale ------------------------------------------------ */

/* 16 bytes: the low halves are the first 16 values, the high ones the others. */
static inline void
take_nibbles (gint8 *q, const guint8 *bytes, gint zero)
{
  guint j;

  for (j = 0; j < 16; j++) {
    q[j] = (gint8) ((bytes[j] & 15) - zero);
    q[j + 16] = (gint8) ((bytes[j] >> 4) - zero);
  }
}

/* The same with a fifth bit for each value, in one word before them. */
static inline void
take_five_bits (gint8 *q, const guint8 *bytes, gint zero)
{
  guint32 high;
  guint j;

  memcpy (&high, bytes, sizeof (high));
  high = GUINT32_FROM_LE (high);
  take_nibbles (q, bytes + 4, zero);
  for (j = 0; j < SMALL_BLOCK; j++)
    q[j] = (gint8) (q[j] + (gint) ((high >> j & 1) << 4));
}

static gboolean
unpack_q8_0 (const guint8 *block, const Target *to)
{
  memcpy (to->q, block + 2, SMALL_BLOCK);
  return take_half (block, to->scale);
}

static gboolean
unpack_q4_0 (const guint8 *block, const Target *to)
{
  take_nibbles (to->q, block + 2, 8);
  return take_half (block, to->scale);
}

static gboolean
unpack_q4_1 (const guint8 *block, const Target *to)
{
  take_nibbles (to->q, block + 4, 0);
  return take_half (block, to->scale) & take_half (block + 2, to->min);
}

static gboolean
unpack_q5_0 (const guint8 *block, const Target *to)
{
  take_five_bits (to->q, block + 2, 16);
  return take_half (block, to->scale);
}

static gboolean
unpack_q5_1 (const guint8 *block, const Target *to)
{
  take_five_bits (to->q, block + 4, 0);
  return take_half (block, to->scale) & take_half (block + 2, to->min);
}

/* ---- Large blocks: 256 values, and one half for the scales of all -------------------------- */

/* Eight scales and eight minimums of six bits each, in 12 bytes. */
static void
take_codes (const guint8 *s, gint8 *codes, gint8 *mins)
{
  guint i;

  for (i = 0; i < 4; i++) {
    codes[i] = (gint8) (s[i] & 63);
    mins[i] = (gint8) (s[i + 4] & 63);
    codes[i + 4] = (gint8) ((s[i + 8] & 15) | (s[i] >> 6) << 4);
    mins[i + 4] = (gint8) (s[i + 8] >> 4 | (s[i + 4] >> 6) << 4);
  }
}

/*
 * The value is d * code * q - dmin * min: the sign goes to the half, which changes no rounding. Of
 * each run of 64 values, the low halves of 32 bytes are the first 32.
 */
static gboolean
unpack_q4_k (const guint8 *block, const Target *to)
{
  const guint8 *bytes = block + 16;
  gboolean finite = take_half (block, to->super) & take_half (block + 2, to->super_min);
  gint8 *q = to->q;
  guint run, l;

  *to->super_min ^= HALF_SIGN;
  take_codes (block + 4, to->codes, to->min_codes);
  for (run = 0; run < 4; run++, q += 64, bytes += 32) {
    for (l = 0; l < 32; l++) {
      q[l] = (gint8) (bytes[l] & 15);
      q[l + 32] = (gint8) (bytes[l] >> 4);
    }
  }
  return finite;
}

/* The same with a fifth bit: bit i of 32 bytes is that of the i-th 32 values. */
static gboolean
unpack_q5_k (const guint8 *block, const Target *to)
{
  const guint8 *high = block + 16, *bytes = high + 32;
  gboolean finite = take_half (block, to->super) & take_half (block + 2, to->super_min);
  gint8 *q = to->q;
  guint run, l;

  *to->super_min ^= HALF_SIGN;
  take_codes (block + 4, to->codes, to->min_codes);
  for (run = 0; run < 4; run++, q += 64, bytes += 32) {
    for (l = 0; l < 32; l++) {
      q[l] = (gint8) ((bytes[l] & 15) | (high[l] >> 2 * run & 1) << 4);
      q[l + 32] = (gint8) (bytes[l] >> 4 | (high[l] >> (2 * run + 1) & 1) << 4);
    }
  }
  return finite;
}

/* Two runs of 128 values; four bits of each in 64 bytes, two more in 32. */
static gboolean
unpack_q6_k (const guint8 *block, const Target *to)
{
  const guint8 *low = block, *high = block + 128;
  gint8 *q = to->q;
  guint run, l;

  for (run = 0; run < 2; run++, q += 128, low += 64, high += 32) {
    for (l = 0; l < 32; l++) {
      q[l] = (gint8) (((low[l] & 15) | (high[l] & 3) << 4) - 32);
      q[l + 32] = (gint8) (((low[l + 32] & 15) | (high[l] >> 2 & 3) << 4) - 32);
      q[l + 64] = (gint8) ((low[l] >> 4 | (high[l] >> 4 & 3) << 4) - 32);
      q[l + 96] = (gint8) ((low[l + 32] >> 4 | high[l] >> 6 << 4) - 32);
    }
  }
  memcpy (to->codes, block + 192, LARGE_BLOCK / 16);
  return take_half (block + 208, to->super);
}

/* ---- All ----------------------------------------------------------------------------------- */

static const struct
{
  guint type, n_bytes;
  VlmIntFormat format;
  Unpack unpack;
} types[] = {
  { 8, 34, { 8, VLM_SCALE_F16, FALSE, SMALL_BLOCK }, unpack_q8_0 },
  { 2, 18, { 4, VLM_SCALE_F16, FALSE, SMALL_BLOCK }, unpack_q4_0 },
  { 3, 20, { 4, VLM_SCALE_F16, TRUE, SMALL_BLOCK }, unpack_q4_1 },
  { 6, 22, { 5, VLM_SCALE_F16, FALSE, SMALL_BLOCK }, unpack_q5_0 },
  { 7, 24, { 5, VLM_SCALE_F16, TRUE, SMALL_BLOCK }, unpack_q5_1 },
  { 12, 144, { 4, VLM_SCALE_CODES, TRUE, LARGE_BLOCK / 8 }, unpack_q4_k },
  { 13, 176, { 5, VLM_SCALE_CODES, TRUE, LARGE_BLOCK / 8 }, unpack_q5_k },
  { 14, 210, { 6, VLM_SCALE_CODES, FALSE, LARGE_BLOCK / 16 }, unpack_q6_k },
};

/* The place of a type in the table; its length when it is not there. */
static guint
find_type (guint type)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (types) && types[i].type != type; i++)
    continue;
  return i;
}

gboolean
vlm_gguf_blocks_get_format (guint type, VlmIntFormat *format)
{
  guint i = find_type (type);

  if (i == G_N_ELEMENTS (types))
    return FALSE;
  *format = types[i].format;
  return TRUE;
}

gsize
vlm_gguf_blocks_unpack (guint type, const guint8 *blocks, gsize n_rows, const VlmQuantRows *rows)
{
  guint i = find_type (type);
  gboolean large = rows->format.scale == VLM_SCALE_CODES;
  gsize size = large ? LARGE_BLOCK : SMALL_BLOCK, n = n_rows * (rows->cols / size);
  gsize codes = size / rows->format.group, b;

  g_return_val_if_fail (i < G_N_ELEMENTS (types) && rows->cols % size == 0, 0);
  g_return_val_if_fail (vlm_int_format_equal (&rows->format, &types[i].format), 0);
  for (b = 0; b < n; b++) {
    Target to = { .q = rows->q + b * size };

    if (large) {
      to.codes = (gint8 *) rows->scale + b * codes;
      to.super = rows->super + b;
      to.min_codes = rows->min ? (gint8 *) rows->min + b * codes : NULL;
      to.super_min = rows->super_min ? rows->super_min + b : NULL;
    } else {
      to.scale = (guint16 *) rows->scale + b;
      to.min = rows->min ? (guint16 *) rows->min + b : NULL;
    }
    if (!types[i].unpack (blocks + b * types[i].n_bytes, &to))
      break;
  }
  return b;
}
