/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which levels there are to be measured, and what each of them has that those below it have not. */

#include "bench-kernels.h"

#include "kernels/levels.h"

BenchLevel *
bench_levels (guint *n_levels)
{
  BenchLevel *levels = g_new0 (BenchLevel, VLM_CPU_N_LEVELS + 1);
  guint n = 0, i;

  for (i = 0; i < VLM_CPU_N_LEVELS; i++) {
    if (vlm_kernels_init (&levels[n].kernels, (VlmCpuLevel) i) != 0)
      continue;
    levels[n++].level = (VlmCpuLevel) i;
  }
#ifdef BENCH_AVXVNNI_EVEX
  /* The source of avxvnni in the form that processors with AVX-512 VNNI have of its instruction. */
  if (vlm_cpu_supports (VLM_CPU_AVX512VNNI)
      && vlm_kernels_init (&levels[n].kernels, VLM_CPU_AVX2) == 0) {
    vlm_kernels_fill_avxvnni_evex (&levels[n].kernels);
    levels[n].kernels.name = "avxvnni-evex";
    levels[n++].level = VLM_CPU_AVXVNNI;
  }
#endif

  *n_levels = n;
  return levels;
}

BenchEntries
bench_entries (const Bench *bench, const BenchLevel *levels, guint i)
{
  const VlmKernels *own = &levels[i].kernels;
  BenchEntries e = { { TRUE, TRUE, TRUE }, TRUE, own->matmul_tiled != NULL, TRUE, TRUE, TRUE, TRUE,
    TRUE, TRUE, TRUE };
  guint j;

  for (j = 0; bench->level == NULL && j < i; j++) {
    const VlmKernels *other = &levels[j].kernels;

    e.floats[0] &= own->matmul_f32 != other->matmul_f32;
    e.floats[1] &= own->matmul_f16 != other->matmul_f16;
    e.floats[2] &= own->matmul_bf16 != other->matmul_bf16;
    e.integers &= own->matmul_int != other->matmul_int;
    e.tiled &= own->matmul_tiled != other->matmul_tiled;
    e.attention &= own->attention != other->attention;
    e.quantise &= own->quantise_i8 != other->quantise_i8;
    e.rms_norm &= own->rms_norm != other->rms_norm;
    e.layer_norm &= own->layer_norm != other->layer_norm;
    e.gelu_tanh &= own->gelu_tanh != other->gelu_tanh;
    e.silu_mul &= own->silu_mul != other->silu_mul;
    e.resample_column &= own->resample_column != other->resample_column;
  }

  return e;
}
