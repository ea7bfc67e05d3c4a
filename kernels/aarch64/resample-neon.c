/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sums are 32-bit and exact in any order. */

#include "resample.h"
#include "kernels/scalar/scalar.h"

#include <arm_neon.h>

static inline int16x8_t
widen (uint8x8_t bytes)
{
  return vreinterpretq_s16_u16 (vmovl_u8 (bytes));
}

static inline int32x4_t
add_products (int32x4_t sum, uint8x8_t bytes, int16x8_t weights)
{
  int16x8_t wide = widen (bytes);

  sum = vmlal_s16 (sum, vget_low_s16 (wide), vget_low_s16 (weights));
  return vmlal_high_s16 (sum, wide, weights);
}

static inline uint8_t
descale (uint32_t sum, unsigned bits)
{
  int32_t value = (int32_t) (sum + (1u << (bits - 1))) >> bits;

  return value < 0 ? 0 : value > 255 ? 255 : (uint8_t) value;
}

/* One output pixel of at least eight taps. */
static inline void
sum_pixel (uint8_t *dst, const uint8_t *pixel, const int16_t *w, int32_t count, unsigned bits)
{
  static const int16_t lane[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
  int32x4_t r = vdupq_n_s32 (0), g = r, b = r;
  int32_t t;

  for (t = 0; t < count; t += 8) {
    /* The last eight taps may overlap those before: weights of taps already added become zero. */
    int32_t at = t + 8 <= count ? t : count - 8;
    uint16x8_t keep = vcgeq_s16 (vld1q_s16 (lane), vdupq_n_s16 ((int16_t) (t - at)));
    int16x8_t weights = vandq_s16 (vld1q_s16 (w + at), vreinterpretq_s16_u16 (keep));
    uint8x8x3_t rgb = vld3_u8 (pixel + at * 3);

    r = add_products (r, rgb.val[0], weights);
    g = add_products (g, rgb.val[1], weights);
    b = add_products (b, rgb.val[2], weights);
  }

  dst[0] = descale ((uint32_t) vaddvq_s32 (r), bits);
  dst[1] = descale ((uint32_t) vaddvq_s32 (g), bits);
  dst[2] = descale ((uint32_t) vaddvq_s32 (b), bits);
}

void
vlm_neon_resample_row (uint8_t *dst, const uint8_t *src, size_t n_pixels, const int32_t *start,
    const int32_t *count, const int16_t *weights, size_t max_taps, unsigned bits)
{
  size_t i;

  for (i = 0; i < n_pixels; i++) {
    const int16_t *w = weights + i * max_taps;

    if (count[i] < 8)
      vlm_scalar_resample_row (dst + i * 3, src, 1, start + i, count + i, w, max_taps, bits);
    else
      sum_pixel (dst + i * 3, src + (size_t) start[i] * 3, w, count[i], bits);
  }
}

static inline int16x8_t
descale_eight (int32x4_t low, int32x4_t high, unsigned bits)
{
  int32x4_t half = vdupq_n_s32 ((int32_t) (1u << (bits - 1)));
  int32x4_t right = vdupq_n_s32 (-(int32_t) bits);

  low = vshlq_s32 (vaddq_s32 (low, half), right);
  high = vshlq_s32 (vaddq_s32 (high, half), right);
  return vqmovn_high_s32 (vqmovn_s32 (low), high);
}

static inline uint8x16_t
sum_columns (
    const uint8_t *src, size_t stride, const int16_t *weights, size_t n_taps, unsigned bits)
{
  int32x4_t sum0 = vdupq_n_s32 (0), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  size_t t;

  for (t = 0; t < n_taps; t++) {
    uint8x16_t bytes = vld1q_u8 (src + t * stride);
    int16x8_t low = widen (vget_low_u8 (bytes)), high = widen (vget_high_u8 (bytes));

    sum0 = vmlal_n_s16 (sum0, vget_low_s16 (low), weights[t]);
    sum1 = vmlal_n_s16 (sum1, vget_high_s16 (low), weights[t]);
    sum2 = vmlal_n_s16 (sum2, vget_low_s16 (high), weights[t]);
    sum3 = vmlal_n_s16 (sum3, vget_high_s16 (high), weights[t]);
  }

  return vqmovun_high_s16 (
      vqmovun_s16 (descale_eight (sum0, sum1, bits)), descale_eight (sum2, sum3, bits));
}

void
vlm_neon_resample_column (uint8_t *dst, const uint8_t *src, size_t stride, size_t n,
    const int16_t *weights, size_t n_taps, unsigned bits)
{
  size_t i;

  for (i = 0; i + 16 <= n; i += 16)
    vst1q_u8 (dst + i, sum_columns (src + i, stride, weights, n_taps, bits));
  vlm_scalar_resample_column (dst + i, src + i, stride, n - i, weights, n_taps, bits);
}
