/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Private to kernels/: each level overwrites the entries that it has a better version of. */

#ifndef VLM_KERNELS_LEVELS_H
#define VLM_KERNELS_LEVELS_H

#include "kernels.h"

/* Fills every entry. */
void vlm_kernels_fill_scalar (VlmKernels *kernels);

/* Compiles ORC's programs, once. */
void vlm_kernels_fill_orc (VlmKernels *kernels);

/* Present in the build only where VLM_KERNELS_X86 is defined. */
void vlm_kernels_fill_avx2 (VlmKernels *kernels);
void vlm_kernels_fill_avxvnni (VlmKernels *kernels);
void vlm_kernels_fill_avx512 (VlmKernels *kernels);
void vlm_kernels_fill_avx512vnni (VlmKernels *kernels);

/* Where VLM_KERNELS_AMX is defined: the compiler knows the instructions. */
void vlm_kernels_fill_amx (VlmKernels *kernels);

/* The source of avxvnni for processors with AVX-512 VNNI and VL, in a library of its own that only
 * tests link. */
void vlm_kernels_fill_avxvnni_evex (VlmKernels *kernels);

/* Present in the build only where VLM_KERNELS_AARCH64 is defined. */
void vlm_kernels_fill_neon (VlmKernels *kernels);
void vlm_kernels_fill_dotprod (VlmKernels *kernels);
void vlm_kernels_fill_i8mm (VlmKernels *kernels);

#endif
