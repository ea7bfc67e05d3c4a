/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "slm-pack.h"

#include <string.h>

/* Values that fill whole bytes, whatever their bits. */
#define UNIT 8

static gint
bias_of (const VlmIntFormat *format)
{
  return format->has_min ? 0 : 1 << (format->bits - 1);
}

/* Values of a unit as one number, the first in its lowest bits. */
static inline guint64
join (const gint8 *q, gsize n, guint bits, gint bias)
{
  guint64 word = 0;
  gsize i;

  for (i = 0; i < n; i++)
    word |= (guint64) (q[i] + bias) << (i * bits);
  return word;
}

static inline void
split (gint8 *q, gsize n, guint64 word, guint bits, gint bias)
{
  guint64 mask = (1u << bits) - 1;
  gsize i;

  for (i = 0; i < n; i++)
    q[i] = (gint8) ((gint) (word >> (i * bits) & mask) - bias);
}

void
vlm_slm_pack_row (const VlmIntFormat *format, guint8 *out, const gint8 *q, gsize n, guint8 spare)
{
  guint bits = format->bits;
  gint bias = bias_of (format);
  gsize i;
  guint64 word;

  if (bits == 8) {
    memcpy (out, q, n);
    return;
  }
  for (i = 0; i + UNIT <= n; i += UNIT, out += bits) {
    word = GUINT64_TO_LE (join (q + i, UNIT, bits, bias));
    memcpy (out, &word, bits);
  }
  if (i < n) {
    word = join (q + i, n - i, bits, bias) | (guint64) spare << ((n - i) * bits);
    word = GUINT64_TO_LE (word);
    memcpy (out, &word, vlm_slm_packed_size (bits, n - i));
  }
}

/* Two values a byte, in a loop that compilers make vectors of. */
static void
unpack_nibbles (gint8 *q, const guint8 *bytes, gsize n, gint bias)
{
  gsize i;

  for (i = 0; i < n / 2; i++) {
    q[2 * i] = (gint8) ((bytes[i] & 15) - bias);
    q[2 * i + 1] = (gint8) ((bytes[i] >> 4) - bias);
  }
  if (n % 2)
    q[n - 1] = (gint8) ((bytes[n / 2] & 15) - bias);
}

static inline __attribute__ ((always_inline)) void
unpack_units (gint8 *q, const guint8 *bytes, gsize n, guint bits, gint bias)
{
  gsize i;
  guint64 word = 0;

  for (i = 0; i + UNIT <= n; i += UNIT, bytes += bits) {
    memcpy (&word, bytes, bits);
    split (q + i, UNIT, GUINT64_FROM_LE (word), bits, bias);
  }
  memcpy (&word, bytes, vlm_slm_packed_size (bits, n - i));
  split (q + i, n - i, GUINT64_FROM_LE (word), bits, bias);
}

void
vlm_slm_unpack_row (const VlmIntFormat *format, gint8 *q, const guint8 *bytes, gsize n)
{
  gint bias = bias_of (format);

  switch (format->bits) {
    case 4:
      unpack_nibbles (q, bytes, n, bias);
      break;
    case 5:
      unpack_units (q, bytes, n, 5, bias);
      break;
    case 6:
      unpack_units (q, bytes, n, 6, bias);
      break;
    default:
      memcpy (q, bytes, n);
  }
}
