/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "half.h"

#include <string.h>

#define F32_INFINITY 0x7f800000u
#define F32_HALF 0x3f000000u         /* 0.5, whose last bit stands for 2^-24 */
#define F32_LEAST_NORMAL 0x38800000u /* 2^-14 */
#define F32_BEYOND 0x477ff000u       /* 65520, half way between 65504 and 2^16 */
#define BIAS_STEP (112u << 23)       /* between the exponents of f32 and half */

#define F16_INFINITY 0x7c00u
#define F16_NAN 0x7e00u

static inline guint32
float_bits (gfloat value)
{
  guint32 bits;

  memcpy (&bits, &value, sizeof (bits));
  return bits;
}

static inline gfloat
bits_float (guint32 bits)
{
  gfloat value;

  memcpy (&value, &bits, sizeof (value));
  return value;
}

/* Selections instead of branches, so that a compiler can do several at once. */
static inline guint16
round_to_half (gfloat value)
{
  guint32 bits = float_bits (value);
  guint32 magnitude = bits & 0x7fffffff;
  guint32 normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - BIAS_STEP) >> 13;
  /* The sum has the step of the subnormal halves: the addition does the rounding. */
  guint32 subnormal = float_bits (bits_float (magnitude) + 0.5f) - F32_HALF;
  guint32 half = magnitude < F32_LEAST_NORMAL ? subnormal : normal;

  half = magnitude >= F32_BEYOND ? F16_INFINITY : half;
  half = magnitude > F32_INFINITY ? F16_NAN : half;
  return (guint16) (half | (bits >> 16 & 0x8000));
}

guint16
vlm_half_from_float (gfloat value)
{
  return round_to_half (value);
}

gfloat
vlm_half_to_float (guint16 half)
{
  guint32 sign = (guint32) (half & 0x8000) << 16;
  guint32 magnitude = half & 0x7fff;

  if (magnitude >= F16_INFINITY)
    return bits_float (sign | F32_INFINITY | (magnitude & 0x3ff) << 13);
  if (magnitude < 0x400)
    return bits_float (sign | float_bits (magnitude * 0x1p-24f));
  return bits_float (sign | ((magnitude << 13) + BIAS_STEP));
}

gsize
vlm_halves_from_floats (guint16 *halves, const gfloat *values, gsize n)
{
  guint32 largest = 0;
  gsize i;

  for (i = 0; i < n; i++) {
    guint16 half = round_to_half (values[i]);

    halves[i] = half;
    largest = MAX (largest, half & 0x7fffu);
  }
  if (largest < F16_INFINITY)
    return n;
  for (i = 0; (halves[i] & 0x7fff) < F16_INFINITY; i++)
    continue;
  return i;
}
