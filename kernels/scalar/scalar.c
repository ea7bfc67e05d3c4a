/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "kernels/levels.h"
#include "scalar.h"

void
vlm_kernels_fill_scalar (VlmKernels *kernels)
{
  kernels->panel = VLM_SCALAR_PANEL;
  kernels->matmul_f32 = vlm_scalar_matmul_f32;
  kernels->matmul_f16 = vlm_scalar_matmul_f16;
  kernels->matmul_bf16 = vlm_scalar_matmul_bf16;
  kernels->quantise_i8 = vlm_scalar_quantise_i8;
  kernels->int_panel = VLM_SCALAR_INT_PANEL;
  kernels->int_inner = 0;
  kernels->int_flip = 0;
  kernels->matmul_int = vlm_scalar_matmul_int;
  kernels->attention = vlm_scalar_attention;
  kernels->rms_norm = vlm_scalar_rms_norm;
  kernels->layer_norm = vlm_scalar_layer_norm;
  kernels->gelu_tanh = vlm_scalar_gelu_tanh;
  kernels->gelu_erf = vlm_scalar_gelu_erf;
  kernels->silu_mul = vlm_scalar_silu_mul;
  kernels->add = vlm_scalar_add;
  kernels->mul = vlm_scalar_mul;
  kernels->rope = vlm_scalar_rope;
  kernels->short_conv = vlm_scalar_short_conv;
  kernels->f16_to_f32 = vlm_scalar_f16_to_f32;
  kernels->bf16_to_f32 = vlm_scalar_bf16_to_f32;
  kernels->resample_row = vlm_scalar_resample_row;
  kernels->resample_column = vlm_scalar_resample_column;
}
