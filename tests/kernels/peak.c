/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a product of matrices is held against, with the code of vlm-bench. */

#include "check.h"

#include "tools/bench-peak.h"

#define ROUNDS 200000

static double
best_rate (BenchPeak peak)
{
  double best = 0;
  int run;

  for (run = 0; run < 3; run++) {
    double start = check_seconds (), work = peak (ROUNDS);
    double rate = work * 1e-9 / (check_seconds () - start);

    best = rate > best ? rate : best;
  }

  return best;
}

double
check_int_peak (VlmCpuLevel level)
{
  return best_rate (bench_peak_integers (level));
}

double
check_peak (VlmCpuLevel level)
{
  return best_rate (bench_peak_floats (level));
}
