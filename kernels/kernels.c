/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Fills the table of kernels level by level. */

#include "levels.h"

#include <string.h>

/* Levels without a case have no entries of their own and leave those below them in place. */
static void
fill_level (VlmKernels *kernels, VlmCpuLevel level)
{
  switch (level) {
    case VLM_CPU_SCALAR:
      vlm_kernels_fill_scalar (kernels);
      break;
    case VLM_CPU_ORC:
      vlm_kernels_fill_orc (kernels);
      break;
#ifdef VLM_KERNELS_X86
    case VLM_CPU_AVX2:
      vlm_kernels_fill_avx2 (kernels);
      break;
    case VLM_CPU_AVXVNNI:
      vlm_kernels_fill_avxvnni (kernels);
      break;
    case VLM_CPU_AVX512:
      vlm_kernels_fill_avx512 (kernels);
      break;
    case VLM_CPU_AVX512VNNI:
      vlm_kernels_fill_avx512vnni (kernels);
      break;
#ifdef VLM_KERNELS_AMX
    case VLM_CPU_AMX:
      vlm_kernels_fill_amx (kernels);
      break;
#endif
#endif
#ifdef VLM_KERNELS_AARCH64
    case VLM_CPU_NEON:
      vlm_kernels_fill_neon (kernels);
      break;
    case VLM_CPU_DOTPROD:
      vlm_kernels_fill_dotprod (kernels);
      break;
    case VLM_CPU_I8MM:
      vlm_kernels_fill_i8mm (kernels);
      break;
#endif
    default:
      break;
  }
}

int
vlm_kernels_init (VlmKernels *kernels, VlmCpuLevel level)
{
  int i;

  if (!vlm_cpu_supports (level))
    return -1;

  /* Not every level has every entry. */
  memset (kernels, 0, sizeof *kernels);
  for (i = VLM_CPU_SCALAR; i <= (int) level; i++) {
    /* Every level above overwrites what ORC has, and its compiler need not run. */
    if (!vlm_cpu_supports ((VlmCpuLevel) i) || (i == VLM_CPU_ORC && level > VLM_CPU_ORC))
      continue;
    fill_level (kernels, (VlmCpuLevel) i);
    kernels->name = vlm_cpu_level_name ((VlmCpuLevel) i);
  }

  return 0;
}
