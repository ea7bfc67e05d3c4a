/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The integer entries. The reference reads the values that were packed, not the panel, and must be
 * met to the last bit by every level.
 */

#include "check.h"

enum
{
  SLOT_X,
  SLOT_W,
  SLOT_BIAS,
  SLOT_Y,
  SLOT_AGAIN,
  SLOT_SCALE,
  SLOT_SUM,
  SLOT_WEIGHTS,
  SLOT_W_SCALES
};

typedef enum
{
  KIND_PLAIN,
  KIND_EXTREME, /* weights all the lowest, activations all +-127 */
  KIND_HIGHEST,
  KIND_ZEROS, /* some groups of zeros */
  N_KINDS
} Kind;

typedef struct
{
  const VlmKernels *kernels;
  VlmIntFormat format;
  Kind kind;
  VlmActivations x;
  size_t m, n, ldw, ldy;
  int8_t *w;    /* [n][ldw] */
  void *scales; /* as vlm_int_pack takes them */
  void *panel;
  float *bias;
} Product;

typedef void (*Matmul) (float *y, size_t ldy, const VlmActivations *x, size_t m, const void *w,
    size_t n, const float *bias);

static Matmul
entry (const VlmKernels *kernels, VlmIntFormat format)
{
  switch (format) {
    case VLM_INT_I8:
      return kernels->matmul_i8;
    case VLM_INT_I8_GROUPS:
      return kernels->matmul_i8_groups;
    default:
      return kernels->matmul_i4_groups;
  }
}

static int
random_weight (const Product *p)
{
  int bits = p->format == VLM_INT_I4_GROUPS ? 4 : 8, lowest = -(1 << (bits - 1));

  if (p->kind == KIND_EXTREME)
    return lowest;
  if (p->kind == KIND_HIGHEST)
    return -lowest - 1;
  return lowest + (int) check_below (1u << bits);
}

static void
fill_row (Product *p, size_t i, int8_t *q, float *scale, int32_t *sum)
{
  int sign = check_below (2) != 0 ? 1 : -1;
  size_t l, g;

  for (l = 0; l < vlm_padded_k (p->x.k); l++) {
    int zero = l >= p->x.k || (p->kind == KIND_ZEROS && (i + l / p->x.group) % 3 == 0);
    int value = (int) check_below (255) - 127;

    if (p->kind == KIND_EXTREME || p->kind == KIND_HIGHEST)
      value = 127 * sign;
    q[l] = zero ? 0 : (int8_t) value;
  }
  for (g = 0; g < vlm_n_groups (p->x.k, p->x.group); g++) {
    scale[g] = (float) check_uniform (0, 1);
    sum[g] = 0;
    for (l = g * p->x.group; l < (g + 1) * p->x.group && l < p->x.k; l++)
      sum[g] += q[l];
    if (p->kind == KIND_ZEROS && sum[g] == 0)
      scale[g] = 0;
  }
}

static void
fill_activations (Product *p)
{
  size_t n_groups = vlm_n_groups (p->x.k, p->x.group), padded = vlm_padded_k (p->x.k), i;
  size_t rows = p->m > 0 ? p->m - 1 : 0, any = p->m > 0;
  int8_t *q;
  float *scale;
  int32_t *sum;

  p->x.ldq = padded + check_below (4);
  p->x.ldg = n_groups + check_below (4);
  p->x.q = q = check_slot (SLOT_X, rows * p->x.ldq + any * padded);
  p->x.scale = scale = check_slot (SLOT_SCALE, (rows * p->x.ldg + any * n_groups) * sizeof (float));
  p->x.sum = sum = check_slot (SLOT_SUM, (rows * p->x.ldg + any * n_groups) * sizeof (int32_t));
  for (i = 0; i < p->m; i++)
    fill_row (p, i, q + i * p->x.ldq, scale + i * p->x.ldg, sum + i * p->x.ldg);
}

static void
fill (Product *p)
{
  size_t n_groups = vlm_n_groups (p->x.k, p->x.group), i, j;
  size_t n_scales = p->format == VLM_INT_I8 ? p->n : p->n * n_groups;
  size_t bytes = vlm_int_panel_bytes (p->kernels, p->format, p->x.k, p->x.group);

  fill_activations (p);
  p->ldy = p->n + check_below (4);
  p->ldw = p->x.k + check_below (4);
  p->w = check_slot (SLOT_WEIGHTS, p->n > 0 ? (p->n - 1) * p->ldw + p->x.k : 0);
  for (j = 0; j < p->n; j++) {
    for (i = 0; i < p->x.k; i++)
      p->w[j * p->ldw + i] = (int8_t) random_weight (p);
  }
  p->scales = check_slot (
      SLOT_W_SCALES, n_scales * (p->format == VLM_INT_I8 ? sizeof (float) : sizeof (uint16_t)));
  for (i = 0; i < n_scales; i++) {
    if (p->format == VLM_INT_I8)
      ((float *) p->scales)[i] = (float) check_uniform (-1, 1);
    else /* subnormals too, but neither infinity nor NaN */
      ((uint16_t *) p->scales)[i] =
          (uint16_t) (check_random () & (check_below (4) ? 0xbfff : 0x83ff));
  }
  p->bias = check_below (2) != 0 ? check_slot (SLOT_BIAS, p->n * sizeof (float)) : NULL;
  for (j = 0; p->bias != NULL && j < p->n; j++)
    p->bias[j] = (float) check_uniform (-1000, 1000);

  p->panel = check_slot (SLOT_W, bytes);
  vlm_int_pack (
      p->kernels, p->format, p->panel, p->w, p->ldw, p->scales, n_groups, p->x.k, p->n, p->x.group);
  check_expect (check_intact (SLOT_W), "packing wrote before the panel");
}

static float
weight_scale (const Product *p, size_t j, size_t g)
{
  if (p->format == VLM_INT_I8)
    return ((const float *) p->scales)[j];

  return (float) check_half_value (
      ((const uint16_t *) p->scales)[j * vlm_n_groups (p->x.k, p->x.group) + g]);
}

static float
reference (const Product *p, size_t i, size_t j)
{
  float sum = 0;
  size_t g, l;

  for (g = 0; g < vlm_n_groups (p->x.k, p->x.group); g++) {
    float factor = p->x.scale[i * p->x.ldg + g];
    int64_t dot = 0;

    for (l = g * p->x.group; l < (g + 1) * p->x.group && l < p->x.k; l++)
      dot += p->x.q[i * p->x.ldq + l] * p->w[j * p->ldw + l];
    if (p->format != VLM_INT_I8)
      factor *= weight_scale (p, j, g);
    sum = fmaf ((float) dot, factor, sum);
  }
  if (p->format == VLM_INT_I8) {
    float scale = weight_scale (p, j, 0);

    return p->bias != NULL ? fmaf (sum, scale, p->bias[j]) : sum * scale;
  }

  return p->bias != NULL ? sum + p->bias[j] : sum;
}

static void
run (const Product *p, float *y, size_t first, size_t m, size_t n)
{
  VlmActivations x = p->x;

  x.q += first * x.ldq;
  x.scale += first * x.ldg;
  x.sum += first * x.ldg;
  entry (p->kernels, p->format) (y, p->ldy, &x, m, p->panel, n, p->bias);
}

static void
check_values (const Product *p, const float *y)
{
  static const unsigned char pattern[4] = { CHECK_PATTERN, CHECK_PATTERN, CHECK_PATTERN,
    CHECK_PATTERN };
  size_t i, j;

  for (i = 0; i < p->m; i++) {
    for (j = 0; j < p->n; j++) {
      float expected = reference (p, i, j);

      check_expect (memcmp (&expected, y + i * p->ldy + j, sizeof expected) == 0,
          "m %zu k %zu n %zu group %zu kind %d: y [%zu][%zu] is %.9g, expected %.9g", p->m, p->x.k,
          p->n, p->x.group, p->kind, i, j, y[i * p->ldy + j], expected);
    }
    for (; i + 1 < p->m && j < p->ldy; j++)
      check_expect (memcmp (y + i * p->ldy + j, pattern, 4) == 0, "wrote beyond row %zu", i);
  }
}

/* Rows one by one and fewer columns give the same bits. */
static void
check_splits (const Product *p, const float *y)
{
  size_t i, n = 1 + check_below (p->n);

  for (i = 0; i < p->m; i++) {
    size_t columns = i % 2 == 0 ? p->n : n;
    float *again = check_slot (SLOT_AGAIN, columns * sizeof (float));

    run (p, again, i, 1, columns);
    check_expect (memcmp (again, y + i * p->ldy, columns * sizeof (float)) == 0,
        "m %zu k %zu n %zu: row %zu alone differs", p->m, p->x.k, p->n, i);
    check_expect (check_intact (SLOT_AGAIN), "wrote before row %zu", i);
  }
}

static void
check_unpacked (const Product *p)
{
  size_t j = check_below (p->n), l;
  float *row = check_slot (SLOT_AGAIN, p->x.k * sizeof (float));

  vlm_int_unpack_row (p->kernels, p->format, row, p->panel, j, p->x.k, p->x.group);
  check_expect (check_intact (SLOT_AGAIN), "unpacking wrote before the row");
  for (l = 0; l < p->x.k; l++) {
    float expected = (float) p->w[j * p->ldw + l] * weight_scale (p, j, l / p->x.group);

    check_expect (
        row[l] == expected, "unpacked [%zu][%zu] is %.9g, expected %.9g", j, l, row[l], expected);
  }
}

static void
check_product (Product *p)
{
  float *y;

  fill (p);
  y = check_slot (SLOT_Y, (p->m > 0 ? (p->m - 1) * p->ldy + p->n : 0) * sizeof (float));
  run (p, y, 0, p->m, p->n);
  check_expect (check_intact (SLOT_Y), "m %zu k %zu n %zu: wrote before y", p->m, p->x.k, p->n);
  check_values (p, y);
  check_splits (p, y);
  check_unpacked (p);
}

static void
check_format (const VlmKernels *kernels, VlmIntFormat format)
{
  static const size_t depths[] = { 0, 1, 15, 16, 17, 31, 33, 64, 100, 128, 255, 300, 513 };
  static const size_t groups[] = { 16, 32, 64, 128, 256, 1024 };
  Product p = { .kernels = kernels, .format = format };

  for (p.m = 0; p.m <= 15; p.m++) {
    for (p.kind = KIND_PLAIN; p.kind < N_KINDS; p.kind++) {
      p.x.group = groups[check_below (sizeof groups / sizeof groups[0])];
      p.x.k = depths[(p.m + p.kind) % (sizeof depths / sizeof depths[0])];
      p.n = kernels->int_panel;
      check_product (&p);
      p.x.group = groups[check_below (sizeof groups / sizeof groups[0])];
      p.x.k = depths[check_below (sizeof depths / sizeof depths[0])];
      p.n = 1 + check_below (kernels->int_panel);
      check_product (&p);
    }
  }
  entry (kernels, format) (NULL, 0, &p.x, 0, p.panel, 0, NULL);
}

/* Sums beyond 2^24 are rounded, and the bias of unsigned weights comes near the end of int32. */
static void
check_long_row (const VlmKernels *kernels, VlmIntFormat format)
{
  Product p = { .kernels = kernels, .format = format, .m = 2, .n = 3 };

  p.x.k = p.x.group = 16384;
  for (p.kind = KIND_PLAIN; p.kind < N_KINDS; p.kind++)
    check_product (&p);
}

void
check_matmul_i8 (const VlmKernels *kernels)
{
  check_format (kernels, VLM_INT_I8);
  check_long_row (kernels, VLM_INT_I8);
}

void
check_matmul_i8_groups (const VlmKernels *kernels)
{
  check_format (kernels, VLM_INT_I8_GROUPS);
  check_long_row (kernels, VLM_INT_I8_GROUPS);
}

void
check_matmul_i4_groups (const VlmKernels *kernels)
{
  check_format (kernels, VLM_INT_I4_GROUPS);
  check_long_row (kernels, VLM_INT_I4_GROUPS);
}

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
      int8_t *q = check_slot (SLOT_Y, vlm_padded_k (n));

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
      check_expect (check_intact (SLOT_Y) && check_intact (SLOT_SCALE) && check_intact (SLOT_SUM),
          "n %zu: wrote before an array", n);
    }
  }
}
