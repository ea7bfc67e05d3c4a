/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The plain C entries; the meaning of each stands beside its pointer in kernels.h. */

#ifndef VLM_KERNELS_SCALAR_H
#define VLM_KERNELS_SCALAR_H

#include "kernels/kernels.h"

#define VLM_SCALAR_PANEL 16
#define VLM_SCALAR_INT_PANEL 16

void vlm_scalar_matmul_f32 (float *y, size_t ldy, const float *x, size_t ldx, size_t m,
    const float *w, size_t k, size_t n, const float *bias);
void vlm_scalar_matmul_f16 (float *y, size_t ldy, const float *x, size_t ldx, size_t m,
    const uint16_t *w, size_t k, size_t n, const float *bias);
void vlm_scalar_matmul_bf16 (float *y, size_t ldy, const float *x, size_t ldx, size_t m,
    const uint16_t *w, size_t k, size_t n, const float *bias);
void vlm_scalar_quantise_i8 (
    int8_t *q, float *scale, int32_t *sum, const float *x, size_t n, size_t group);
void vlm_scalar_matmul_int (float *y, size_t ldy, const VlmActivations *x, size_t m,
    const VlmIntFormat *format, const void *w, size_t n, const float *bias);
void vlm_scalar_attention (const VlmAttention *args);
size_t vlm_scalar_head_bytes (size_t n_keys, size_t head_dim);
void vlm_scalar_pack_head (void *packed, const VlmHead *head);
void vlm_scalar_attend_head (const VlmHeadAttention *args);
void vlm_scalar_rms_norm (float *y, const float *x, const float *w, size_t n, float eps);
void vlm_scalar_layer_norm (
    float *y, const float *x, const float *w, const float *b, size_t n, float eps);
void vlm_scalar_gelu_tanh (float *x, size_t n);
void vlm_scalar_gelu_erf (float *x, size_t n);
void vlm_scalar_silu_mul (float *y, const float *gate, const float *up, size_t n);
void vlm_scalar_add (float *y, const float *x, size_t n);
void vlm_scalar_mul (float *y, const float *a, const float *b, size_t n);
void vlm_scalar_rope (float *x, const float *cos, const float *sin, size_t half);
void vlm_scalar_short_conv (
    float *y, const float *gate, const float *const *u, const float *taps, size_t n_taps, size_t n);
void vlm_scalar_f16_to_f32 (float *y, const uint16_t *x, size_t n);
void vlm_scalar_bf16_to_f32 (float *y, const uint16_t *x, size_t n);
void vlm_scalar_resample_row (uint8_t *dst, const uint8_t *src, size_t n_pixels,
    const int32_t *start, const int32_t *count, const int16_t *weights, size_t max_taps,
    unsigned bits);
void vlm_scalar_resample_column (uint8_t *dst, const uint8_t *src, size_t stride, size_t n,
    const int16_t *weights, size_t n_taps, unsigned bits);

#endif
