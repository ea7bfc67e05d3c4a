/* SPDX-License-Identifier: LGPL-2.1-or-later */

#ifndef VLM_KERNELS_TILED_AMX_H
#define VLM_KERNELS_TILED_AMX_H

#include "kernels/kernels.h"

/* Fills the entries of products in bfloat16. */
void vlm_amx_fill_tiled (VlmKernels *kernels);

#endif
