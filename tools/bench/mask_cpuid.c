/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Hides instructions of the processor from a program: a library for LD_PRELOAD, x86-64 Linux only.
 * MASK_CPUID names the level that stays (avx2, avxvnni, avx512, avx512vnni).
 *
 * Programs ask the processor with CPUID, which no system call filter can see; but Linux can make the
 * instruction fault, for each thread and those that it starts. The handler then answers in its place.
 * Not all processors can do that. With MASK_CPUID_IN_COPIES set, only those programs and libraries are
 * answered that have UD1 where they had CPUID (peers_cpuid.py makes such copies): an instruction that
 * always faults, but which compilers do not use, unlike UD2, for what must never be reached.
 * What has been asked before main () and its libraries, by the C library's loader, is not hidden.
 */

#define _GNU_SOURCE

#include <asm/prctl.h>
#include <cpuid.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define BIT(n) (1u << (n))

/* Bits of leaf 7: of AVX-512 those of F, CD, BW, DQ and VL and those of all else. */
#define AVX512_EBX (BIT (16) | BIT (17) | BIT (28) | BIT (30) | BIT (31))
#define AVX512_MORE_EBX (BIT (21) | BIT (26) | BIT (27))
#define AVX512_MORE_ECX (BIT (1) | BIT (6) | BIT (11) | BIT (12) | BIT (14))
#define AVX512_MORE_EDX (BIT (2) | BIT (3) | BIT (8) | BIT (23))
#define AMX_EDX (BIT (22) | BIT (24) | BIT (25))
/* Of its subleaf 1. */
#define AVX512_MORE_EAX_1 BIT (5)
#define AMX_EAX_1 BIT (21)
#define AVXVNNI_EAX_1 (BIT (4) | BIT (23))
#define AVXVNNI_EDX_1 (BIT (4) | BIT (5) | BIT (10))
#define AMX_EDX_1 BIT (8)
#define AVX10_EDX_1 BIT (19)

/* What a level does not have. */
typedef struct
{
  const char *name;
  unsigned ebx, ecx, edx, eax_1, edx_1;
} Level;

static const Level levels[] = {
  { "avx2", AVX512_EBX | AVX512_MORE_EBX, AVX512_MORE_ECX, AVX512_MORE_EDX | AMX_EDX,
      AVX512_MORE_EAX_1 | AMX_EAX_1 | AVXVNNI_EAX_1, AVXVNNI_EDX_1 | AMX_EDX_1 | AVX10_EDX_1 },
  { "avxvnni", AVX512_EBX | AVX512_MORE_EBX, AVX512_MORE_ECX, AVX512_MORE_EDX | AMX_EDX,
      AVX512_MORE_EAX_1 | AMX_EAX_1, AMX_EDX_1 | AVX10_EDX_1 },
  { "avx512", AVX512_MORE_EBX, AVX512_MORE_ECX, AVX512_MORE_EDX | AMX_EDX,
      AVX512_MORE_EAX_1 | AMX_EAX_1 | AVXVNNI_EAX_1, AVXVNNI_EDX_1 | AMX_EDX_1 | AVX10_EDX_1 },
  { "avx512vnni", 0, 0, AMX_EDX, AMX_EAX_1, AMX_EDX_1 | AVX10_EDX_1 },
};

static const Level *level;
static int in_copies;

/* Whether CPUID faults, also here. */
static int
set_faulting (int faulting)
{
  return in_copies ? 0 : (int) syscall (SYS_arch_prctl, ARCH_SET_CPUID, !faulting);
}

static void
answer (greg_t *registers)
{
  const unsigned leaf = (unsigned) registers[REG_RAX], subleaf = (unsigned) registers[REG_RCX];
  unsigned eax, ebx, ecx, edx;

  set_faulting (0);
  __cpuid_count (leaf, subleaf, eax, ebx, ecx, edx);
  set_faulting (1);
  if (leaf == 7 && subleaf == 0) {
    ebx &= ~level->ebx;
    ecx &= ~level->ecx;
    edx &= ~level->edx;
  } else if (leaf == 7 && subleaf == 1) {
    eax &= ~level->eax_1;
    edx &= ~level->edx_1;
  }
  registers[REG_RAX] = eax;
  registers[REG_RBX] = ebx;
  registers[REG_RCX] = ecx;
  registers[REG_RDX] = edx;
}

/* Only where the instruction itself is what faulted can its bytes be read. */
static int
is_question (const siginfo_t *info, const void *instruction)
{
  static const unsigned char cpuid[2] = { 0x0f, 0xa2 }, ud1[2] = { 0x0f, 0xb9 };

  if (in_copies)
    return info->si_signo == SIGILL && memcmp (instruction, ud1, 2) == 0;

  return info->si_code == SI_KERNEL && memcmp (instruction, cpuid, 2) == 0;
}

/* Anything else faults again, and then as it would have without this library. */
static void
on_fault (int number, siginfo_t *info, void *context)
{
  greg_t *registers = ((ucontext_t *) context)->uc_mcontext.gregs;

  if (is_question (info, (const void *) registers[REG_RIP])) {
    answer (registers);
    registers[REG_RIP] += 2;
  } else {
    signal (number, SIG_DFL);
  }
}

static void
fail (const char *what)
{
  fprintf (stderr, "mask_cpuid: %s\n", what);
  _exit (127);
}

__attribute__ ((constructor)) static void
begin (void)
{
  const struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
  const char *name = getenv ("MASK_CPUID");
  size_t i;

  for (i = 0; name != NULL && i < sizeof levels / sizeof levels[0]; i++) {
    if (strcmp (name, levels[i].name) == 0)
      level = &levels[i];
  }
  if (level == NULL)
    fail ("MASK_CPUID names no level");
  in_copies = getenv ("MASK_CPUID_IN_COPIES") != NULL;
  if (sigaction (in_copies ? SIGILL : SIGSEGV, &action, NULL) != 0 || set_faulting (1) != 0)
    fail ("this processor or system cannot hide instructions (cpuid_fault in /proc/cpuinfo)");
}
