/* SPDX-License-Identifier: LGPL-2.1-or-later */

#ifndef VLM_KERNELS_HEAD_AMX_H
#define VLM_KERNELS_HEAD_AMX_H

#include "kernels/kernels.h"

/* Fills the entries of packed heads. */
void vlm_amx_fill_head (VlmKernels *kernels);

#endif
