/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Packs integer weights into panels and reads them back; panel.h describes the panels. Values move
 * four at a time, as one word.
 */

#include "panel.h"
#include "scalar/half.h"

#include <string.h>

/* As many values of every row are packed before the next, so that what they are written to stays in
 * a first-level cache. */
#define PIECE 128

/* The values of a run. */
typedef struct
{
  size_t panel, inner, len;
  unsigned bits;
  uint32_t flip; /* of a word of values */
} Run;

static size_t
min_size (size_t a, size_t b)
{
  return a < b ? a : b;
}

static Run
run_of (const VlmKernels *kernels, const VlmIntFormat *format, size_t len)
{
  uint32_t flip = format->bits == 8 ? kernels->int_flip : (uint32_t) panel_bias (format);

  return (Run){ kernels->int_panel,
    kernels->int_inner != 0 ? kernels->int_inner : len / (format->bits == 8 ? 1 : 2), len,
    format->bits, flip * 0x01010101u };
}

/* Bits first .. first + count - 1 of each byte of a word. */
static uint32_t
bits_of (uint32_t word, unsigned first, unsigned count)
{
  return word >> first & ((1u << count) - 1) * 0x01010101u;
}

/* Values l .. l + 3 of n; those beyond are zero. */
static inline uint32_t
load_word (const int8_t *q, size_t l, size_t n)
{
  uint32_t word = 0;

  if (l + 4 <= n)
    memcpy (&word, q + l, 4);
  else if (l < n)
    memcpy (&word, q + l, n - l);

  return word;
}

/* Values from .. to of row j; both are multiples of 16. */
static void
pack_bytes (
    const Run *run, uint8_t *out, const int8_t *q, size_t n, size_t j, size_t from, size_t to)
{
  size_t block = from / run->inner, l = from, in_block = from % run->inner;

  while (l < to) {
    uint32_t word = load_word (q, l, n) ^ run->flip;

    memcpy (out + (block * run->panel + j) * run->inner + in_block, &word, 4);
    l += 4;
    in_block += 4;
    if (in_block == run->inner) {
      in_block = 0;
      block++;
    }
  }
}

/* The low four bits; bytes from / 2 .. to / 2 of the row. */
static void
pack_nibbles (
    const Run *run, uint8_t *out, const int8_t *q, size_t n, size_t j, size_t from, size_t to)
{
  const uint32_t flip = bits_of (run->flip, 0, 4);
  size_t block = from / 2 / run->inner, in_block = from / 2 % run->inner, i;

  for (i = from / 2; i < to / 2; i += 4) {
    size_t l = 2 * block * run->inner + in_block;
    uint32_t low = bits_of (load_word (q, l, n), 0, 4) ^ flip;
    uint32_t high = bits_of (load_word (q, l + run->inner, n), 0, 4) ^ flip;
    uint32_t word = low | high << 4;

    memcpy (out + (block * run->panel + j) * run->inner + in_block, &word, 4);
    in_block += 4;
    if (in_block == run->inner) {
      in_block = 0;
      block++;
    }
  }
}

static void
pack_high (
    const Run *run, uint8_t *out, const int8_t *q, size_t n, size_t j, size_t from, size_t to)
{
  const unsigned count = run->bits - 4;
  const size_t unit = panel_unit (run->bits);
  size_t at, i;

  for (at = from; at < to; at += unit) {
    uint32_t word = 0;

    for (i = 0; i < unit / 4; i++) {
      uint32_t values = load_word (q, at + 4 * i, n) ^ run->flip;

      word |= bits_of (values, 4, count) << (count * i);
    }
    memcpy (out + (at / unit * run->panel + j) * 4, &word, 4);
  }
}

/* Rows of n values, of which the first may be beyond the end; rows beyond n_rows are zeros. */
static void
pack_run (const Run *run, uint8_t *out, const int8_t *q, size_t ldq, size_t n, size_t n_rows)
{
  uint8_t *high = out + panel_low_bytes (run->bits, run->panel, run->len);
  size_t from, j;

  for (from = 0; from < run->len; from += PIECE) {
    size_t to = min_size (from + PIECE, run->len);

    for (j = 0; j < run->panel; j++) {
      const int8_t *row = q + (j < n_rows ? j : 0) * ldq;
      size_t n_values = j < n_rows ? n : 0;

      if (run->bits == 8)
        pack_bytes (run, out, row, n_values, j, from, to);
      else
        pack_nibbles (run, out, row, n_values, j, from, to);
      if (run->bits == 5 || run->bits == 6)
        pack_high (run, high, row, n_values, j, from, to);
    }
  }
}

/* Column g of an array [n][ld] of elements of that size, and zeros up to the panel's width. */
static uint8_t *
pack_column (
    uint8_t *out, const void *array, size_t ld, size_t g, size_t n, size_t panel, size_t size)
{
  const uint8_t *from = (const uint8_t *) array + g * size;
  size_t j;

  for (j = 0; j < n; j++) {
    if (size == 1)
      out[j] = from[j * ld];
    else if (size == 2)
      memcpy (out + 2 * j, from + 2 * j * ld, 2);
    else
      memcpy (out + 4 * j, from + 4 * j * ld, 4);
  }
  memset (out + n * size, 0, (panel - n) * size);
  return out + panel * size;
}

void
vlm_int_pack (const VlmKernels *kernels, const VlmIntFormat *format, void *panel,
    const VlmIntRows *rows, size_t k, size_t n)
{
  const int is_row = format->scale == VLM_SCALE_ROW;
  const size_t padded = vlm_padded_k (k), width = kernels->int_panel;
  const size_t run_len = is_row ? padded : format->group, size = panel_scale_size (format);
  uint8_t *out = panel;
  size_t at, g;

  if (is_row)
    out = pack_column (out, rows->scale, 1, 0, n, width, size);
  for (at = 0, g = 0; at < padded; at += run_len, g++) {
    Run run = run_of (kernels, format, min_size (run_len, padded - at));

    if (format->scale == VLM_SCALE_CODES && at % VLM_SUPER_GROUP == 0) {
      size_t s = at / VLM_SUPER_GROUP;

      out = pack_column (out, rows->super, rows->ldsuper, s, n, width, sizeof (uint16_t));
      if (format->has_min)
        out = pack_column (out, rows->super_min, rows->ldsuper, s, n, width, sizeof (uint16_t));
    }
    if (!is_row)
      out = pack_column (out, rows->scale, rows->lds, g, n, width, size);
    if (format->has_min)
      out = pack_column (out, rows->min, rows->lds, g, n, width, size);
    pack_run (&run, out, rows->q + at, rows->ldq, min_size (k - at, run.len), n);
    out += panel_value_bytes (run.bits, width, run.len);
  }
}

size_t
vlm_int_panel_bytes (const VlmKernels *kernels, const VlmIntFormat *format, size_t k)
{
  const size_t padded = vlm_padded_k (k), panel = kernels->int_panel;
  size_t full, rest, bytes;

  if (format->scale == VLM_SCALE_ROW)
    return panel_scale_bytes (format, panel) + panel_value_bytes (format->bits, panel, padded);

  full = padded / format->group;
  rest = padded % format->group;
  bytes = full * panel_value_bytes (format->bits, panel, format->group)
      + panel_value_bytes (format->bits, panel, rest)
      + vlm_n_groups (padded, format->group) * panel_scale_bytes (format, panel);
  if (format->scale == VLM_SCALE_CODES)
    bytes += vlm_n_groups (padded, VLM_SUPER_GROUP) * panel_super_bytes (format, panel);

  return bytes;
}

/* The scale, or minimum, number i of an array; super is for codes. */
static float
scale_value (const VlmIntFormat *format, const void *array, size_t i, float super)
{
  switch (format->scale) {
    case VLM_SCALE_F16:
      return f16_value (((const uint16_t *) array)[i]);
    case VLM_SCALE_CODES:
      return (float) ((const int8_t *) array)[i] * super;
    default:
      return ((const float *) array)[i];
  }
}

/* Values l .. l + 3 of row j, as they were before packing. */
static void
unpack_word (const Run *run, int8_t *q, const uint8_t *in, size_t l, size_t j)
{
  const uint8_t *high = in + panel_low_bytes (run->bits, run->panel, run->len);
  size_t piece = l / run->inner, block = run->bits == 8 ? piece : piece / 2, i;
  uint32_t word;
  int bias = (int) (run->flip & 255);

  memcpy (&word, in + (block * run->panel + j) * run->inner + l % run->inner, 4);
  if (run->bits == 8) {
    word ^= run->flip;
    memcpy (q, &word, 4);
    return;
  }

  word = bits_of (word, piece % 2 * 4, 4);
  if (run->bits > 4) {
    const size_t unit = panel_unit (run->bits);
    const unsigned count = run->bits - 4;
    uint32_t more;

    memcpy (&more, high + (l / unit * run->panel + j) * 4, 4);
    word |= bits_of (more, count * (unsigned) (l % unit / 4), count) << 4;
  }
  for (i = 0; i < 4; i++)
    q[i] = (int8_t) ((int) (word >> 8 * i & 255) - bias);
}

void
vlm_int_unpack_row (const VlmKernels *kernels, const VlmIntFormat *format, float *y,
    const void *panel, size_t j, size_t k)
{
  const int is_row = format->scale == VLM_SCALE_ROW;
  const size_t padded = vlm_padded_k (k), width = kernels->int_panel;
  const size_t run_len = is_row ? padded : format->group;
  const uint8_t *in = panel;
  float super = 0, super_min = 0;
  size_t at, l, i;

  for (at = 0; at < k; at += run_len) {
    Run run = run_of (kernels, format, min_size (run_len, padded - at));
    float scale, min = 0;

    if (format->scale == VLM_SCALE_CODES && at % VLM_SUPER_GROUP == 0) {
      super = f16_value (((const uint16_t *) in)[j]);
      if (format->has_min)
        super_min = f16_value (((const uint16_t *) in)[width + j]);
      in += panel_super_bytes (format, width);
    }
    scale = scale_value (format, in, j, super);
    if (format->has_min)
      min = scale_value (format, in, width + j, super_min);
    in += panel_scale_bytes (format, width);
    for (l = 0; l < run.len; l += 4) {
      int8_t q[4];

      unpack_word (&run, q, in, l, j);
      for (i = 0; i < min_size (4, at + l < k ? k - at - l : 0); i++) {
        float value = (float) q[i] * scale;

        y[at + l + i] = format->has_min ? value + min : value;
      }
    }
    in += panel_value_bytes (run.bits, width, run.len);
  }
}

void
vlm_int_dequantise_row (
    const VlmIntFormat *format, float *y, const VlmIntRows *rows, size_t i, size_t k)
{
  const size_t group = format->scale == VLM_SCALE_ROW ? k : format->group;
  const size_t first = format->scale == VLM_SCALE_ROW ? i : i * rows->lds;
  const int8_t *q = rows->q + i * rows->ldq;
  float super = 0, super_min = 0;
  size_t at, l;

  for (at = 0; at < k; at += group) {
    size_t g = first + at / group, s = i * rows->ldsuper + at / VLM_SUPER_GROUP;
    float scale, min = 0;

    if (format->scale == VLM_SCALE_CODES) {
      super = f16_value (rows->super[s]);
      super_min = format->has_min ? f16_value (rows->super_min[s]) : 0;
    }
    scale = scale_value (format, rows->scale, g, super);
    if (format->has_min)
      min = scale_value (format, rows->min, g, super_min);
    for (l = at; l < k && l < at + group; l++) {
      float value = (float) q[l] * scale;

      y[l] = format->has_min ? value + min : value;
    }
  }
}
