/* SPDX-License-Identifier: LGPL-2.1-or-later */

#ifndef VLM_KERNELS_AVX512VNNI_H
#define VLM_KERNELS_AVX512VNNI_H

#include "kernels/kernels.h"

/* matmul_int of the level, for the one above it, whose panels are the same. */
void vlm_avx512vnni_matmul_int (float *y, size_t ldy, const VlmActivations *x, size_t m,
    const VlmIntFormat *format, const void *w, size_t n, const float *bias);

#endif
