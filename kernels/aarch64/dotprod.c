/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "kernels/levels.h"
#include "int-dotprod.h"
#include "kernels/simd/head.h"
#include "kernels/simd/int-lanes.h"
#include "kernels/simd/integer.h"

void
vlm_kernels_fill_dotprod (VlmKernels *kernels)
{
  int_fill (kernels);
  head_fill (kernels);
}
