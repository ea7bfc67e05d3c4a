/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "check.h"

enum
{
  SLOT_DST,
  SLOT_SRC,
  SLOT_START,
  SLOT_COUNT,
  SLOT_WEIGHTS
};

/* The sum wraps at 32 bits, as it does in registers. */
static uint8_t
expected_byte (int64_t sum, unsigned bits)
{
  int32_t wrapped = (int32_t) (uint32_t) (uint64_t) (sum + ((int64_t) 1 << (bits - 1)));
  int64_t value =
      wrapped < 0 ? -((-(int64_t) wrapped + ((int64_t) 1 << bits) - 1) >> bits) : wrapped >> bits;

  return value < 0 ? 0 : value > 255 ? 255 : (uint8_t) value;
}

/* Mostly weights like those of a filter, whose sum is about 2^bits; else anything. */
static int16_t
random_weight (size_t n_taps, unsigned bits, int wild)
{
  double mean = ldexp (1, (int) bits) / (double) (n_taps > 0 ? n_taps : 1);
  double value = check_uniform (-0.6, 2.6) * mean;

  if (wild)
    return (int16_t) (uint16_t) check_random ();

  return (int16_t) (value > 32767 ? 32767 : value < -32768 ? -32768 : value);
}

static uint8_t *
random_bytes (unsigned slot, size_t n, size_t kind)
{
  uint8_t *bytes = check_slot (slot, n);
  size_t i;

  for (i = 0; i < n; i++)
    bytes[i] = kind == 0 ? 255 : kind == 1 ? 0 : (uint8_t) check_random ();

  return bytes;
}

static void
check_row (
    const VlmKernels *kernels, size_t n, size_t width, size_t max_taps, unsigned bits, size_t kind)
{
  uint8_t *dst = check_slot (SLOT_DST, n * 3), *src = random_bytes (SLOT_SRC, width * 3, kind);
  int32_t *start = check_slot (SLOT_START, n * sizeof (int32_t));
  int32_t *count = check_slot (SLOT_COUNT, n * sizeof (int32_t));
  int16_t *weights = check_slot (SLOT_WEIGHTS, n * max_taps * sizeof (int16_t));
  size_t i, c;
  int32_t t;

  for (i = 0; i < n; i++) {
    size_t most = max_taps < width ? max_taps : width;

    count[i] = (int32_t) (most - check_below (check_below (2) != 0 ? 1 : most + 1));
    /* Often the last pixels of the row: there is nothing behind them. */
    start[i] = (int32_t) (width - (size_t) count[i]);
    if (check_below (2) != 0)
      start[i] = (int32_t) check_below ((size_t) start[i] + 1);
    for (t = 0; t < (int32_t) max_taps; t++)
      weights[i * max_taps + (size_t) t] = random_weight ((size_t) count[i], bits, kind == 3);
  }

  kernels->resample_row (dst, src, n, start, count, weights, max_taps, bits);
  check_expect (check_intact (SLOT_DST), "wrote before the row");
  for (i = 0; i < n; i++) {
    for (c = 0; c < 3; c++) {
      int64_t sum = 0;

      for (t = 0; t < count[i]; t++)
        sum += src[(start[i] + t) * 3 + (int32_t) c] * weights[i * max_taps + (size_t) t];
      check_expect (dst[i * 3 + c] == expected_byte (sum, bits),
          "pixel %zu of %zu, channel %zu, %d taps: found %d, expected %d", i, n, c, count[i],
          dst[i * 3 + c], expected_byte (sum, bits));
    }
  }
}

void
check_resample_row (const VlmKernels *kernels)
{
  size_t round;

  for (round = 0; round < 400; round++) {
    size_t max_taps = 1 + round % 37, width = 1 + check_below (80);

    check_row (kernels, check_below (9) == 0 ? 0 : check_below (40), width, max_taps,
        (unsigned) (6 + check_below (10)), check_below (6));
  }
}

static void
check_column (const VlmKernels *kernels, size_t n, size_t n_taps, unsigned bits, size_t kind)
{
  size_t stride = n + check_below (9), i, t;
  uint8_t *dst = check_slot (SLOT_DST, n);
  uint8_t *src = random_bytes (SLOT_SRC, n_taps > 0 ? (n_taps - 1) * stride + n : 0, kind);
  int16_t *weights = check_slot (SLOT_WEIGHTS, n_taps * sizeof (int16_t));

  for (t = 0; t < n_taps; t++)
    weights[t] = random_weight (n_taps, bits, kind == 3);

  kernels->resample_column (dst, src, stride, n, weights, n_taps, bits);
  check_expect (check_intact (SLOT_DST), "wrote before the row");
  for (i = 0; i < n; i++) {
    int64_t sum = 0;

    for (t = 0; t < n_taps; t++)
      sum += src[t * stride + i] * weights[t];
    check_expect (dst[i] == expected_byte (sum, bits),
        "byte %zu of %zu, %zu taps: found %d, expected %d", i, n, n_taps, dst[i],
        expected_byte (sum, bits));
  }
}

void
check_resample_column (const VlmKernels *kernels)
{
  size_t round;

  for (round = 0; round < 400; round++)
    check_column (kernels, round % 200 + (round % 25 == 0 ? 900 : 0), check_below (20),
        (unsigned) (6 + check_below (10)), check_below (6));
}
