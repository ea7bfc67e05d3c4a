/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "kernels/levels.h"
#include "int-i8mm.h"
#include "kernels/simd/integer.h"

void
vlm_kernels_fill_i8mm (VlmKernels *kernels)
{
  int_fill (kernels);
}
