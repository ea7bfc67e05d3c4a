/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Widening of the two 16-bit float formats. Both are exact. */

#ifndef VLM_KERNELS_HALF_H
#define VLM_KERNELS_HALF_H

#include <stdint.h>
#include <string.h>

static inline float
float_from_bits (uint32_t bits)
{
  float value;

  memcpy (&value, &bits, sizeof value);
  return value;
}

static inline float
bf16_value (uint16_t bits)
{
  return float_from_bits ((uint32_t) bits << 16);
}

/* All ones where the condition holds. */
static inline uint32_t
mask_if (int condition)
{
  return 0u - (uint32_t) (condition != 0);
}

/*
 * Signalling NaNs become quiet ones, as in the conversion instructions of processors. Without
 * branches, so that a compiler can do several at once.
 */
static inline float
f16_value (uint16_t bits)
{
  uint32_t sign = (uint32_t) (bits & 0x8000) << 16;
  uint32_t magnitude = bits & 0x7fff;
  uint32_t subnormal = mask_if (magnitude < 0x0400);
  uint32_t normal = (magnitude << 13) + (112u << 23);
  /* 0.5 + magnitude 2^-24, whose fraction is the subnormal's value */
  float shifted = float_from_bits (0x3f000000 + magnitude) - 0.5f;
  uint32_t small;

  memcpy (&small, &shifted, sizeof small);
  normal += mask_if (magnitude >= 0x7c00) & (112u << 23);
  normal |= mask_if (magnitude > 0x7c00) & 0x400000;
  return float_from_bits (sign | (small & subnormal) | (normal & ~subnormal));
}

#endif
