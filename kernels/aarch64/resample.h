/* SPDX-License-Identifier: LGPL-2.1-or-later */

#ifndef VLM_KERNELS_AARCH64_RESAMPLE_H
#define VLM_KERNELS_AARCH64_RESAMPLE_H

#include "kernels/kernels.h"

void vlm_neon_resample_row (uint8_t *dst, const uint8_t *src, size_t n_pixels, const int32_t *start,
    const int32_t *count, const int16_t *weights, size_t max_taps, unsigned bits);
void vlm_neon_resample_column (uint8_t *dst, const uint8_t *src, size_t stride, size_t n,
    const int16_t *weights, size_t n_taps, unsigned bits);

#endif
