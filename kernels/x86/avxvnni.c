/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "kernels/levels.h"
#include "int-avxvnni.h"
#include "kernels/simd/head.h"
#include "kernels/simd/int-lanes.h"
#include "kernels/simd/integer.h"

/* Built a second time with other flags and another name, see levels.h. */
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
#define FILL vlm_kernels_fill_avxvnni_evex
#else
#define FILL vlm_kernels_fill_avxvnni
#endif

void
FILL (VlmKernels *kernels)
{
  int_fill (kernels);
  head_fill (kernels);
}
