/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which instruction-set levels this processor, its operating system and this build can run. */

#define _GNU_SOURCE
#include "kernels.h"

#include <string.h>

#ifdef VLM_KERNELS_X86
#include <cpuid.h>
#endif

#if defined(VLM_KERNELS_AMX) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#if defined(VLM_KERNELS_AARCH64) && defined(__linux__)
#include <sys/auxv.h>
/* Bits of the kernel's ABI; older C libraries have no names for the newer ones. */
#define HWCAP_BIT_ASIMDDP (1ul << 20)
#define HWCAP2_BIT_I8MM (1ul << 13)
#endif

static const char *const level_names[VLM_CPU_N_LEVELS] = {
  [VLM_CPU_SCALAR] = "scalar",
  [VLM_CPU_ORC] = "orc",
  [VLM_CPU_AVX2] = "avx2",
  [VLM_CPU_AVXVNNI] = "avxvnni",
  [VLM_CPU_AVX512] = "avx512",
  [VLM_CPU_AVX512VNNI] = "avx512vnni",
  [VLM_CPU_AMX] = "amx",
  [VLM_CPU_NEON] = "neon",
  [VLM_CPU_DOTPROD] = "dotprod",
  [VLM_CPU_I8MM] = "i8mm",
};

const char *
vlm_cpu_level_name (VlmCpuLevel level)
{
  if ((unsigned) level >= VLM_CPU_N_LEVELS)
    return NULL;

  return level_names[level];
}

int
vlm_cpu_level_from_name (const char *name)
{
  int i;

  for (i = 0; i < VLM_CPU_N_LEVELS; i++) {
    if (strcmp (name, level_names[i]) == 0)
      return i;
  }

  return -1;
}

#ifdef VLM_KERNELS_X86

/* The compiler's builtin also asks the operating system (XGETBV), but clang 14 has no name for
 * F16C and AVX-VNNI. Both use the registers of AVX2, so their CPUID bits are enough beside it. */
static int
has_avx2 (void)
{
  unsigned eax, ebx, ecx, edx;

  if (!__builtin_cpu_supports ("avx2") || !__builtin_cpu_supports ("fma"))
    return 0;

  return __get_cpuid (1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C) != 0;
}

static int
has_avxvnni (void)
{
  unsigned eax, ebx, ecx, edx;

  return has_avx2 () && __get_cpuid_count (7, 1, &eax, &ebx, &ecx, &edx) && (eax & (1u << 4)) != 0;
}

static int
has_avx512 (void)
{
  return has_avx2 () && __builtin_cpu_supports ("avx512f") && __builtin_cpu_supports ("avx512bw")
      && __builtin_cpu_supports ("avx512dq") && __builtin_cpu_supports ("avx512vl");
}

static int
has_avx512vnni (void)
{
  return has_avx512 () && __builtin_cpu_supports ("avx512vnni");
}

#if defined(VLM_KERNELS_AMX) && defined(__linux__)

#define TILE_DATA 18 /* the state of tiles, among those that the kernel saves */
#define ARCH_REQ_XCOMP_PERM 0x1023

/* Linux wants to be asked before a process may use tiles. It answers for all of its threads. */
static int
ask_for_tiles (void)
{
  return syscall (SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
}

/* What the processor has, and the system keeps when it switches between threads. */
static int
has_tiles (void)
{
  /* Tiles, and their products of bfloat16. */
  const unsigned wanted = 1u << 22 | 1u << 24;
  const unsigned saved = 1u << TILE_DATA | 1u << (TILE_DATA - 1);
  unsigned eax, ebx, ecx, edx, low, high;

  if (!has_avx512vnni () || !__builtin_cpu_supports ("avx512bf16")
      || !__builtin_cpu_supports ("avx512vbmi") || !__get_cpuid_count (7, 0, &eax, &ebx, &ecx, &edx)
      || (edx & wanted) != wanted)
    return 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));

  return (low & saved) == saved;
}

/* Threads that get here together may all ask. */
static int
has_amx (void)
{
  enum
  {
    UNKNOWN,
    YES,
    NO
  };
  static int answer = UNKNOWN;
  int known = __atomic_load_n (&answer, __ATOMIC_RELAXED);

  if (known == UNKNOWN) {
    known = has_tiles () && ask_for_tiles () ? YES : NO;
    __atomic_store_n (&answer, known, __ATOMIC_RELAXED);
  }

  return known == YES;
}

#else

static int
has_amx (void)
{
  return 0;
}

#endif

static int
supports_family_level (VlmCpuLevel level)
{
  switch (level) {
    case VLM_CPU_AVX2:
      return has_avx2 ();
    case VLM_CPU_AVXVNNI:
      return has_avxvnni ();
    case VLM_CPU_AVX512:
      return has_avx512 ();
    case VLM_CPU_AVX512VNNI:
      return has_avx512vnni ();
    case VLM_CPU_AMX:
      return has_amx ();
    default:
      return 0;
  }
}

#elif defined(VLM_KERNELS_AARCH64)

static int
supports_family_level (VlmCpuLevel level)
{
  switch (level) {
    case VLM_CPU_NEON:
      return 1;
#ifdef __linux__
    case VLM_CPU_DOTPROD:
      return (getauxval (AT_HWCAP) & HWCAP_BIT_ASIMDDP) != 0;
    case VLM_CPU_I8MM:
      return (getauxval (AT_HWCAP) & HWCAP_BIT_ASIMDDP) != 0
          && (getauxval (AT_HWCAP2) & HWCAP2_BIT_I8MM) != 0;
#endif
    default:
      return 0;
  }
}

#else

static int
supports_family_level (VlmCpuLevel level)
{
  return 0;
}

#endif

int
vlm_cpu_supports (VlmCpuLevel level)
{
  if ((unsigned) level >= VLM_CPU_N_LEVELS)
    return 0;
  if (level == VLM_CPU_SCALAR || level == VLM_CPU_ORC)
    return 1;

  return supports_family_level (level);
}

VlmCpuLevel
vlm_cpu_best_level (void)
{
  int i;

  for (i = VLM_CPU_N_LEVELS - 1; i > VLM_CPU_SCALAR; i--) {
    if (vlm_cpu_supports ((VlmCpuLevel) i))
      break;
  }

  return (VlmCpuLevel) i;
}
