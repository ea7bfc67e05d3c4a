/* SPDX-License-Identifier: LGPL-2.1-or-later */

#ifndef VLM_KERNELS_ATTENTION_AMX_H
#define VLM_KERNELS_ATTENTION_AMX_H

#include "kernels/kernels.h"

/* Fills the entry attention_tiled. */
void vlm_amx_fill_attention (VlmKernels *kernels);

#endif
