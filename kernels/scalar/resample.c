/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sums are unsigned so that they wrap, as they do in vector registers, whatever the weights. */

#include "scalar.h"

static inline uint8_t
descale (uint32_t sum, unsigned bits)
{
  int32_t value = (int32_t) (sum + (1u << (bits - 1))) >> bits;

  return value < 0 ? 0 : value > 255 ? 255 : (uint8_t) value;
}

void
vlm_scalar_resample_row (uint8_t *dst, const uint8_t *src, size_t n_pixels, const int32_t *start,
    const int32_t *count, const int16_t *weights, size_t max_taps, unsigned bits)
{
  size_t i;
  int32_t t, c;

  for (i = 0; i < n_pixels; i++) {
    const uint8_t *pixel = src + (size_t) start[i] * 3;
    const int16_t *w = weights + i * max_taps;

    for (c = 0; c < 3; c++) {
      uint32_t sum = 0;

      for (t = 0; t < count[i]; t++)
        sum += (uint32_t) (pixel[t * 3 + c] * w[t]);
      dst[i * 3 + c] = descale (sum, bits);
    }
  }
}

void
vlm_scalar_resample_column (uint8_t *dst, const uint8_t *src, size_t stride, size_t n,
    const int16_t *weights, size_t n_taps, unsigned bits)
{
  size_t i, t;

  for (i = 0; i < n; i++) {
    uint32_t sum = 0;

    for (t = 0; t < n_taps; t++)
      sum += (uint32_t) (src[t * stride + i] * weights[t]);
    dst[i] = descale (sum, bits);
  }
}
