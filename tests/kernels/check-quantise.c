/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Quantising of activations: the reference is the definition in kernels.h. */

#include "check.h"

enum
{
  SLOT_X,
  SLOT_Q,
  SLOT_SCALE,
  SLOT_SUM
};

static float
random_activation (int kind)
{
  switch (kind) {
    case 0:
      return (float) check_uniform (-3, 3);
    case 1: /* whole and half steps of a group whose largest is 127 */
      return (float) ((int) check_below (509) - 254) / 2;
    case 2:
      return (float) check_uniform (-1, 1) * 1e-40f;
    case 3:
      return check_below (40) == 0 ? 0 : check_below (2) != 0 ? 1e30f : -1e30f;
    case 4:
      return check_below (20) == 0 ? NAN : check_below (20) == 0 ? INFINITY : 1;
    default:
      return 0;
  }
}

/* Ties go to even with the division and the product rounded as floats. */
static int
expected_q (float x, float inverse)
{
  float value = x * inverse;

  if (isnan (value) || value < -127)
    return -127;

  return (int) rint (value > 127 ? 127.0 : (double) value);
}

static void
check_group (const float *x, size_t n, const int8_t *q, float scale, int32_t sum)
{
  float amax = 0, inverse;
  int32_t total = 0;
  size_t l;

  for (l = 0; l < n; l++)
    amax = !isnan (x[l]) && fabsf (x[l]) > amax ? fabsf (x[l]) : amax;
  if (amax < 0x1p-100f)
    amax = 0;
  inverse = amax > 0 ? 127 / amax : 0;

  for (l = 0; l < n; l++) {
    int expected = expected_q (x[l], inverse);

    check_expect (q[l] == expected, "q [%zu] of %.9g (largest %.9g): found %d, expected %d", l,
        x[l], amax, q[l], expected);
    total += q[l];
  }
  check_expect (scale == amax / 127, "scale %.9g, expected %.9g", scale, amax / 127);
  check_expect (sum == total, "sum %d, expected %d", sum, total);
}

void
check_quantise_i8 (const VlmKernels *kernels)
{
  static const size_t groups[] = { 16, 32, 64, 256 };
  size_t n, i, kind, group;

  for (n = 0; n < 400; n += n < 100 ? 1 : 13) {
    for (kind = 0; kind < 6; kind++) {
      float *x = check_slot (SLOT_X, n * sizeof (float)), *scale;
      int32_t *sum;
      int8_t *q = check_slot (SLOT_Q, vlm_padded_k (n));

      group = groups[check_below (4)];
      scale = check_slot (SLOT_SCALE, vlm_n_groups (n, group) * sizeof (float));
      sum = check_slot (SLOT_SUM, vlm_n_groups (n, group) * sizeof (int32_t));
      for (i = 0; i < n; i++)
        x[i] = random_activation ((int) kind);
      if (kind == 1 && n > 0)
        x[check_below (n < group ? n : group)] = 127;
      kernels->quantise_i8 (q, scale, sum, x, n, group);
      for (i = 0; i < n; i += group)
        check_group (x + i, n - i < group ? n - i : group, q + i, scale[i / group], sum[i / group]);
      for (i = n; i < vlm_padded_k (n); i++)
        check_expect (q[i] == 0, "q [%zu] beyond %zu is %d", i, n, q[i]);
      check_expect (check_intact (SLOT_Q) && check_intact (SLOT_SCALE) && check_intact (SLOT_SUM),
          "n %zu: wrote before an array", n);
    }
  }
}
