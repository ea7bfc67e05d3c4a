/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "kernels/levels.h"
#include "resample.h"
#include "int-avx2.h"
#include "kernels/simd/activations.h"
#include "kernels/simd/attention.h"
#include "kernels/simd/elementwise.h"
#include "kernels/simd/head.h"
#include "kernels/simd/int-lanes.h"
#include "kernels/simd/integer.h"
#include "kernels/simd/matmul.h"
#include "kernels/simd/norms.h"
#include "kernels/simd/quantise.h"

void
vlm_kernels_fill_avx2 (VlmKernels *kernels)
{
  kernels->panel = MATMUL_PANEL;
  kernels->matmul_f32 = simd_matmul_f32;
  kernels->matmul_f16 = simd_matmul_f16;
  kernels->matmul_bf16 = simd_matmul_bf16;
  kernels->quantise_i8 = simd_quantise_i8;
  int_fill (kernels);
  kernels->attention = simd_attention;
  head_fill (kernels);
  kernels->rms_norm = simd_rms_norm;
  kernels->layer_norm = simd_layer_norm;
  kernels->gelu_tanh = simd_gelu_tanh;
  kernels->gelu_erf = simd_gelu_erf;
  kernels->silu_mul = simd_silu_mul;
  kernels->add = simd_add;
  kernels->mul = simd_mul;
  kernels->rope = simd_rope;
  kernels->short_conv = simd_short_conv;
  kernels->f16_to_f32 = simd_f16_to_f32;
  kernels->bf16_to_f32 = simd_bf16_to_f32;
  kernels->resample_row = vlm_avx2_resample_row;
  kernels->resample_column = vlm_avx2_resample_column;
}
