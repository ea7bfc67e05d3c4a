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

/*
 * Signalling NaNs become quiet ones, as in the conversion instructions of processors. Without
 * branches, so that a compiler can do several at once.
 */
static inline float
f16_value (uint16_t bits)
{
  uint32_t sign = (uint32_t) (bits & 0x8000) << 16;
  uint32_t magnitude = bits & 0x7fff;
  uint32_t normal = (magnitude << 13) + (112u << 23);
  uint32_t special = ((magnitude << 13) | 0x7f800000) | (magnitude > 0x7c00 ? 0x400000 : 0);
  float subnormal = (float) (int32_t) magnitude * 0x1p-24f;
  uint32_t small;

  memcpy (&small, &subnormal, sizeof small);
  small = magnitude < 0x0400 ? small : normal;
  return float_from_bits (sign | (magnitude < 0x7c00 ? small : special));
}

#endif
