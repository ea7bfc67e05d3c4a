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

/* Signalling NaNs become quiet ones, as in the conversion instructions of processors. */
static inline float
f16_value (uint16_t bits)
{
  uint32_t sign = (uint32_t) (bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 31;
  uint32_t fraction = bits & 1023;
  float subnormal = (float) (int32_t) fraction * 0x1p-24f;

  if (exponent == 0)
    return sign != 0 ? -subnormal : subnormal;
  if (exponent == 31)
    return float_from_bits (sign | 0x7f800000 | (fraction << 13) | (fraction != 0 ? 0x400000 : 0));

  return float_from_bits (sign | ((exponent + 112) << 23) | (fraction << 13));
}

#endif
