/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * checkkern [SEED]: holds every entry of every level that this processor can run against a
 * reference that shares no code with it. The seed also comes from the environment variable
 * CHECKKERN_SEED; without either it is a fixed one. checkkern --bench [LEVEL [THREADS]] times the
 * levels instead.
 */

#include "check.h"

#include "kernels/levels.h"

#include <fenv.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define FRONT_GUARD 64
#define MAX_COMPLAINTS 5

static uint64_t state;
static unsigned char *slots[CHECK_SLOTS];
static unsigned char *begins[CHECK_SLOTS];
static unsigned n_tests, n_failed, n_complaints;

void
check_seed (uint64_t seed)
{
  state = seed;
}

/* SplitMix64 */
uint32_t
check_random (void)
{
  uint64_t z = (state += UINT64_C (0x9e3779b97f4a7c15));

  z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
  return (uint32_t) ((z ^ (z >> 31)) >> 32);
}

size_t
check_below (size_t n)
{
  return check_random () % n;
}

double
check_uniform (double low, double high)
{
  return low + (high - low) * (check_random () / 4294967296.0);
}

void *
check_slot (unsigned slot, size_t bytes)
{
  size_t page = (size_t) sysconf (_SC_PAGESIZE);

  if (bytes + FRONT_GUARD > CHECK_SLOT_BYTES) {
    printf ("Bail out! a slot of %zu bytes is too small\n", bytes);
    exit (1);
  }
  if (slots[slot] == NULL) {
    void *map = mmap (
        NULL, CHECK_SLOT_BYTES + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (map == MAP_FAILED || mprotect ((char *) map + CHECK_SLOT_BYTES, page, PROT_NONE) != 0) {
      printf ("Bail out! no guarded memory\n");
      exit (1);
    }
    slots[slot] = map;
  }

  begins[slot] = slots[slot] + CHECK_SLOT_BYTES - bytes;
  memset (begins[slot] - FRONT_GUARD, CHECK_PATTERN, bytes + FRONT_GUARD);
  return begins[slot];
}

int
check_intact (unsigned slot)
{
  size_t i;

  for (i = 1; i <= FRONT_GUARD; i++) {
    if (begins[slot][-(ptrdiff_t) i] != CHECK_PATTERN)
      return 0;
  }

  return 1;
}

void
check_expect (int ok, const char *format, ...)
{
  va_list args;

  if (ok)
    return;
  if (n_complaints++ < MAX_COMPLAINTS) {
    printf ("# ");
    va_start (args, format);
    vprintf (format, args);
    va_end (args);
    printf ("\n");
  }
}

void
check_near (double found, double expected, double bound, const char *what, size_t i)
{
  int ok = isnan (expected) ? isnan (found) : fabs (found - expected) <= bound;

  check_expect (ok, "%s [%zu]: found %.9g, expected %.9g +- %.3g", what, i, found, expected, bound);
}

void
check_same_queries (const float *part, const float *whole, size_t stride, size_t head_dim,
    size_t n_keys, size_t first, size_t n)
{
  size_t i;

  for (i = 0; i < n; i++)
    check_expect (
        memcmp (part + i * stride, whole + (first + i) * stride, head_dim * sizeof (*part)) == 0,
        "dim %zu keys %zu: query %zu differs in a call for %zu queries", head_dim, n_keys,
        first + i, n);
}

double
check_seconds (void)
{
  struct timespec now;

  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &now);
  return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

static void
verdict (const char *level, const char *name)
{
  n_tests++;
  n_failed += n_complaints > 0;
  printf ("%s %u - %s %s\n", n_complaints > 0 ? "not ok" : "ok", n_tests, level, name);
  fflush (stdout);
  n_complaints = 0;
}

#define ENTRY(name)                                                                                \
  {                                                                                                \
#name, offsetof(VlmKernels, name), check_##name                                                \
  }

/* One more test of an entry. */
#define ENTRY_TOO(name, test)                                                                      \
  {                                                                                                \
#name "_" #test, offsetof(VlmKernels, name), check_##name##_##test                             \
  }

static const struct
{
  const char *name;
  size_t offset;
  CheckTest test;
} entries[] = {
  ENTRY (matmul_f32),
  ENTRY (matmul_f16),
  ENTRY (matmul_bf16),
  ENTRY (quantise_i8),
  ENTRY (matmul_int),
  ENTRY_TOO (matmul_int, any),
  ENTRY_TOO (matmul_int, long),
  ENTRY_TOO (matmul_int, tall),
  ENTRY (tile_row),
  ENTRY (matmul_tiled),
  ENTRY_TOO (matmul_tiled, any),
  ENTRY_TOO (matmul_tiled, long),
  ENTRY (attention),
  ENTRY (attention_tiled),
  ENTRY (attend_head),
  ENTRY (rms_norm),
  ENTRY (layer_norm),
  ENTRY (gelu_tanh),
  ENTRY (gelu_erf),
  ENTRY (silu_mul),
  ENTRY (add),
  ENTRY (mul),
  ENTRY (rope),
  ENTRY (short_conv),
  ENTRY (f16_to_f32),
  ENTRY (bf16_to_f32),
  ENTRY (resample_row),
  ENTRY (resample_column),
};

static void
check_levels (void)
{
  VlmKernels kernels;
  int i;

  for (i = 0; i < VLM_CPU_N_LEVELS; i++) {
    const char *name = vlm_cpu_level_name ((VlmCpuLevel) i);
    int supported = vlm_cpu_supports ((VlmCpuLevel) i);

    check_expect (name != NULL && vlm_cpu_level_from_name (name) == i, "level %d", i);
    memset (&kernels, 0x55, sizeof kernels);
    check_expect (vlm_kernels_init (&kernels, (VlmCpuLevel) i) == (supported ? 0 : -1),
        "%s: supported is %d, but the table says otherwise", name, supported);
    if (supported) {
      check_expect (kernels.name != NULL && strcmp (kernels.name, name) == 0,
          "the table of %s is named %s", name, kernels.name);
      check_expect (kernels.panel % 16 == 0 && kernels.panel > 0 && kernels.panel <= VLM_MAX_PANEL,
          "%s: panel %zu", name, kernels.panel);
      check_expect ((kernels.head_form != VLM_HEAD_NONE)
              == (i >= (int) VLM_CPU_AVX2 && i != (int) VLM_CPU_NEON),
          "%s: packed heads are of form %d", name, (int) kernels.head_form);
      check_expect ((kernels.tiled_bytes != NULL) == (i == (int) VLM_CPU_AMX)
              && (kernels.tile_row != NULL) == (i == (int) VLM_CPU_AMX)
              && (kernels.matmul_tiled != NULL) == (i == (int) VLM_CPU_AMX)
              && (kernels.attention_tiled != NULL) == (i == (int) VLM_CPU_AMX),
          "%s: entries in tiles", name);
      check_expect (kernels.int_panel > 0 && kernels.int_panel <= VLM_MAX_INT_PANEL,
          "%s: integer panel %zu", name, kernels.int_panel);
    }
    printf ("# %s: %s\n", name, supported ? "tested" : "not supported here");
  }

  check_expect (vlm_cpu_level_name (VLM_CPU_N_LEVELS) == NULL, "a name beyond the last level");
  check_expect (vlm_cpu_level_from_name ("avx3") == -1, "a level that does not exist");
  check_expect (vlm_cpu_supports (VLM_CPU_SCALAR), "plain C is not supported");
  check_expect (vlm_cpu_supports (vlm_cpu_best_level ()), "the best level is not supported");
  check_expect (vlm_kernels_init (&kernels, VLM_CPU_N_LEVELS) == -1, "a table beyond the levels");
  verdict ("all", "levels");
}

/* The entries of a table that are not those of the level below. */
static void
check_entries (const VlmKernels *kernels, const VlmKernels *below, uint64_t seed)
{
  size_t i;

  for (i = 0; i < sizeof entries / sizeof entries[0]; i++) {
    size_t offset = entries[i].offset;

    if (memcmp ((const char *) kernels + offset, (const char *) below + offset, sizeof (CheckTest))
        == 0)
      continue;
    check_seed (seed + i);
    /* What ORC compiles leaves the processor without subnormals. */
    fesetenv (FE_DFL_ENV);
    entries[i].test (kernels);
    verdict (kernels->name, entries[i].name);
  }
}

static void
check_level (VlmCpuLevel level, VlmKernels *below, uint64_t seed)
{
  VlmKernels kernels;

  memset (&kernels, 0, sizeof kernels);
  if (vlm_kernels_init (&kernels, level) != 0)
    return;

  check_entries (&kernels, below, seed);
  *below = kernels;
}

#ifdef CHECK_AVXVNNI_EVEX
/* The source of the avxvnni level, for processors that have its instruction in another form. */
static void
check_evex (uint64_t seed)
{
  VlmKernels kernels, below;

  if (!vlm_cpu_supports (VLM_CPU_AVX512VNNI) || vlm_kernels_init (&below, VLM_CPU_AVX2) != 0) {
    printf ("# avxvnni as EVEX: not supported here\n");
    return;
  }
  kernels = below;
  vlm_kernels_fill_avxvnni_evex (&kernels);
  kernels.name = "avxvnni-evex";
  check_entries (&kernels, &below, seed);
}
#endif

int
main (int argc, char **argv)
{
  const char *text = getenv ("CHECKKERN_SEED");
  VlmKernels below;
  uint64_t seed;
  int i;

  if (argc > 1 && strcmp (argv[1], "--bench") == 0) {
    check_bench (argc > 2 ? argv[2] : NULL, argc > 3 ? strtoul (argv[3], NULL, 10) : 1);
    return 0;
  }
  if (argc > 1)
    text = argv[1];

  seed = text != NULL ? strtoull (text, NULL, 0) : 1;
  printf ("# seed %llu\n", (unsigned long long) seed);
  check_levels ();

  memset (&below, 0, sizeof below);
  for (i = 0; i < VLM_CPU_N_LEVELS; i++)
    check_level ((VlmCpuLevel) i, &below, seed);
#ifdef CHECK_AVXVNNI_EVEX
  check_evex (seed);
#endif

  printf ("1..%u\n", n_tests);
  return n_failed > 0;
}
