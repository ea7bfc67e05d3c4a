/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A plugin for QEMU that counts the instructions of an aarch64 program by kind and by stage. A stage
 * begins when the program reaches an address that was given for it, and lasts until another does.
 *
 *   qemu-aarch64 -plugin stages.so,out=FILE,stage=NAME:ADDRESS,stage=... PROGRAM
 *
 * Several addresses may begin the same stage. What runs before the first is of the stage "start".
 * FILE gets a line for each stage: its name and the numbers of the kinds, in the order of kind_names,
 * between tabs.
 */

#include "plugin-api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STAGES 16

typedef enum
{
  KIND_PRODUCT, /* sums of products of integers: SDOT, UDOT, SMMLA and the like */
  KIND_FMA,     /* fused multiplication and addition of floats */
  KIND_VECTOR,  /* all else on vectors and floats */
  KIND_LOAD,
  KIND_STORE,
  KIND_OTHER,
  N_KINDS
} Kind;

static const char *const kind_names[N_KINDS] = { "products", "fma", "vector", "loads", "stores",
  "other" };

/* Instructions that are translated together run together, from the first to the last. */
typedef struct Block
{
  struct Block *next;
  uint64_t runs[MAX_STAGES];
  uint32_t n[N_KINDS];
  int begins; /* the stage that its address begins, or -1 */
} Block;

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_API_VERSION;

static struct
{
  char name[32];
} stages[MAX_STAGES] = { { "start" } };
static struct
{
  uint64_t address;
  int stage;
} marks[MAX_STAGES];
static int n_stages = 1, n_marks, stage;
static const char *out;
static Block *blocks;

/* Encodings as in Arm's manual of the architecture, "A64 instruction set encoding". */
static int
is_product (uint32_t insn)
{
  return (insn & 0x9f20fc00) == 0x0e009400 /* SDOT, UDOT */
      || (insn & 0xbfe0fc00) == 0x0e809c00 /* USDOT */
      || (insn & 0x9f00f400) == 0x0f00e000 /* SDOT, UDOT by element */
      || (insn & 0xbf00f400) == 0x0f00f000 /* SUDOT, USDOT by element */
      || (insn & 0x9f20f400) == 0x0e00a400 /* SMMLA, UMMLA, USMMLA */
      || (insn & 0x9f20fc00) == 0x0e208000 /* SMLAL, UMLAL */
      || (insn & 0x9f20fc00) == 0x0e20c000 /* SMULL, UMULL */;
}

static int
is_fma (uint32_t insn)
{
  return (insn & 0xbf20fc00) == 0x0e20cc00 /* FMLA, FMLS */
      || (insn & 0xbf80b400) == 0x0f801000 /* FMLA, FMLS by element */
      || (insn & 0xff000000) == 0x1f000000 /* FMADD and the like, of one float */;
}

/* A load or a store; prefetches are neither. */
static Kind
memory_kind (uint32_t insn)
{
  unsigned opc = insn >> 22 & 3;

  if ((insn & 0x3b000000) == 0x18000000) /* relative to the instruction */
    return insn >> 30 == 3 && !(insn >> 26 & 1) ? KIND_OTHER : KIND_LOAD;
  if ((insn & 0x38000000) == 0x38000000 && !(insn >> 26 & 1)) { /* a general register */
    if (insn >> 30 == 3 && opc == 2)
      return KIND_OTHER;
    return opc == 0 ? KIND_STORE : KIND_LOAD;
  }
  return opc & 1 ? KIND_LOAD : KIND_STORE;
}

static Kind
kind_of (uint32_t insn)
{
  if ((insn & 0x0a000000) == 0x08000000)
    return memory_kind (insn);
  if ((insn & 0x0e000000) != 0x0e000000)
    return KIND_OTHER;
  if (is_product (insn))
    return KIND_PRODUCT;
  return is_fma (insn) ? KIND_FMA : KIND_VECTOR;
}

/* Threads run at the same time; a stage is that of the whole program. */
static void
run (unsigned cpu, void *user_data)
{
  Block *block = user_data;

  if (block->begins >= 0)
    __atomic_store_n (&stage, block->begins, __ATOMIC_RELAXED);
  __atomic_fetch_add (
      &block->runs[__atomic_load_n (&stage, __ATOMIC_RELAXED)], 1, __ATOMIC_RELAXED);
  (void) cpu;
}

/* Blocks that are thrown away and translated anew have run all the same. */
static void
translated (PluginId id, struct qemu_plugin_tb *tb)
{
  Block *block = calloc (1, sizeof (*block));
  size_t n = qemu_plugin_tb_n_insns (tb), i;

  if (block == NULL)
    abort ();
  for (i = 0; i < n; i++) {
    uint32_t insn;

    memcpy (&insn, qemu_plugin_insn_data (qemu_plugin_tb_get_insn (tb, i)), sizeof (insn));
    block->n[kind_of (insn)]++;
  }
  block->begins = -1;
  for (i = 0; i < (size_t) n_marks; i++) {
    if (marks[i].address == qemu_plugin_tb_vaddr (tb))
      block->begins = marks[i].stage;
  }
  do
    block->next = __atomic_load_n (&blocks, __ATOMIC_RELAXED);
  while (!__sync_bool_compare_and_swap (&blocks, block->next, block));
  qemu_plugin_register_vcpu_tb_exec_cb (tb, run, PLUGIN_NO_REGISTERS, block);
  (void) id;
}

static void
end (PluginId id, void *user_data)
{
  FILE *file = fopen (out, "w");
  int s, k;

  if (file == NULL) {
    perror (out);
    return;
  }
  fputs ("stage", file);
  for (k = 0; k < N_KINDS; k++)
    fprintf (file, "\t%s", kind_names[k]);
  for (s = 0; s < n_stages; s++) {
    fprintf (file, "\n%s", stages[s].name);
    for (k = 0; k < N_KINDS; k++) {
      const Block *block;
      uint64_t sum = 0;

      for (block = blocks; block != NULL; block = block->next)
        sum += block->runs[s] * block->n[k];
      fprintf (file, "\t%llu", (unsigned long long) sum);
    }
  }
  fputc ('\n', file);
  fclose (file);
  (void) id, (void) user_data;
}

/* NAME:ADDRESS */
static int
add_mark (const char *text)
{
  const char *colon = strchr (text, ':');
  size_t len = colon != NULL ? (size_t) (colon - text) : 0;
  int s = 0;

  if (len == 0 || len >= sizeof (stages[0].name) || n_marks == MAX_STAGES)
    return 0;
  while (s < n_stages && (strncmp (stages[s].name, text, len) != 0 || stages[s].name[len] != 0))
    s++;
  if (s == MAX_STAGES)
    return 0;
  if (s == n_stages) {
    memcpy (stages[s].name, text, len);
    n_stages++;
  }
  marks[n_marks].address = strtoull (colon + 1, NULL, 0);
  marks[n_marks].stage = s;
  n_marks++;
  return 1;
}

PLUGIN_EXPORT int qemu_plugin_install (
    PluginId id, const struct qemu_info_t *info, int argc, char **argv);

PLUGIN_EXPORT int
qemu_plugin_install (PluginId id, const struct qemu_info_t *info, int argc, char **argv)
{
  int i;

  for (i = 0; i < argc; i++) {
    if (strncmp (argv[i], "out=", 4) == 0) {
      out = argv[i] + 4;
    } else if (strncmp (argv[i], "stage=", 6) != 0 || !add_mark (argv[i] + 6)) {
      fprintf (stderr, "stages: not understood: %s\n", argv[i]);
      return -1;
    }
  }
  if (out == NULL) {
    fprintf (stderr, "stages: no out=FILE\n");
    return -1;
  }
  qemu_plugin_register_vcpu_tb_trans_cb (id, translated);
  qemu_plugin_register_atexit_cb (id, end, NULL);
  (void) info;
  return 0;
}
