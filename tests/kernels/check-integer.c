/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Products with integer weights. The reference reads the rows that were packed, not the panel, and
 * must be met to the last bit by every level; a second one in double precision, made of the values
 * that weights and activations stand for, holds the first.
 */

#include "check-weights.h"

enum
{
  SLOT_X,
  SLOT_BIAS,
  SLOT_Y,
  SLOT_AGAIN,
  SLOT_EXPECTED,
  SLOT_X_SCALE,
  SLOT_X_SUM
};

typedef struct
{
  const VlmKernels *kernels;
  CheckWeights w;
  CheckKind kind;
  VlmActivations x;
  size_t m, n, ldy;
  float *bias;
} Product;

/* One row of activations. */
static void
fill_row (Product *p, size_t i, int8_t *q, float *scale, int32_t *sum)
{
  int sign = check_below (2) != 0 ? 1 : -1;
  size_t l, g;

  for (l = 0; l < vlm_padded_k (p->x.k); l++) {
    int zero = l >= p->x.k || (p->kind == KIND_ZEROS && (i + l / p->x.group) % 3 == 0);
    int value = (int) check_below (255) - 127;

    if (p->kind == KIND_LOWEST || p->kind == KIND_HIGHEST)
      value = 127 * sign;
    if (p->kind == KIND_ENDS)
      value = check_below (2) != 0 ? 127 : -127;
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
  p->x.scale = scale =
      check_slot (SLOT_X_SCALE, (rows * p->x.ldg + any * n_groups) * sizeof (float));
  p->x.sum = sum = check_slot (SLOT_X_SUM, (rows * p->x.ldg + any * n_groups) * sizeof (int32_t));
  for (i = 0; i < p->m; i++)
    fill_row (p, i, q + i * p->x.ldq, scale + i * p->x.ldg, sum + i * p->x.ldg);
}

static void
fill (Product *p)
{
  size_t j;

  fill_activations (p);
  check_fill_weights (&p->w, p->kind, p->x.k, p->n);
  p->ldy = p->n + check_below (4);
  p->bias = check_below (2) != 0 ? check_slot (SLOT_BIAS, p->n * sizeof (float)) : NULL;
  for (j = 0; p->bias != NULL && j < p->n; j++)
    p->bias[j] = (float) check_uniform (-1000, 1000);

  check_pack_weights (&p->w, p->kernels);
}

/* Adds group g to the two sums; magnitude is the sum of what is added, all positive. */
static void
add_group (
    const Product *p, size_t i, size_t j, size_t g, float *sum, double *exact, double *magnitude)
{
  const int is_row = p->w.format.scale == VLM_SCALE_ROW;
  const float x_scale = p->x.scale[i * p->x.ldg + g], w_scale = check_weight_scale (&p->w, j, g);
  const float min = check_weight_min (&p->w, j, g);
  int64_t dot = 0;
  size_t l;

  for (l = g * p->x.group; l < (g + 1) * p->x.group && l < p->x.k; l++) {
    int x = p->x.q[i * p->x.ldq + l], q = p->w.rows.q[j * p->w.rows.ldq + l];

    dot += x * q;
    *exact += (double) x_scale * x * ((double) w_scale * q + min);
    *magnitude += fabs ((double) x_scale * x) * (fabs ((double) w_scale * q) + fabs (min));
  }
  *sum = fmaf ((float) dot, is_row ? x_scale : x_scale * w_scale, *sum);
  if (p->w.format.has_min)
    *sum = fmaf (x_scale * (float) p->x.sum[i * p->x.ldg + g], min, *sum);
}

static float
reference (const Product *p, size_t i, size_t j)
{
  const size_t n_groups = vlm_n_groups (p->x.k, p->x.group);
  double exact = 0, magnitude = 0;
  float sum = 0;
  size_t g;

  for (g = 0; g < n_groups; g++)
    add_group (p, i, j, g, &sum, &exact, &magnitude);
  if (p->w.format.scale == VLM_SCALE_ROW) {
    float scale = check_weight_scale (&p->w, j, 0);

    sum = p->bias != NULL ? fmaf (sum, scale, p->bias[j]) : sum * scale;
  } else if (p->bias != NULL) {
    sum += p->bias[j];
  }
  if (p->bias != NULL) {
    exact += p->bias[j];
    magnitude += fabs (p->bias[j]);
  }
  check_near (
      sum, exact, 0x1p-23 * (double) (2 * n_groups + 3) * magnitude + 0x1p-120, "the reference", j);

  return sum;
}

static void
run (const Product *p, float *y, size_t first, size_t m, size_t n)
{
  VlmActivations x = p->x;

  x.q += first * x.ldq;
  x.scale += first * x.ldg;
  x.sum += first * x.ldg;
  p->kernels->matmul_int (y, p->ldy, &x, m, &p->w.format, p->w.panel, n, p->bias);
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
          "%u bits, scale %d%s: m %zu k %zu n %zu group %zu kind %d: y [%zu][%zu] is %.9g, "
          "expected %.9g",
          p->w.format.bits, p->w.format.scale, p->w.format.has_min ? ", minimum" : "", p->m, p->x.k,
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
  size_t i, n = 1 + check_below (p->n), step = p->m > 16 ? 7 : 1;

  for (i = 0; i < p->m; i += step) {
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
  float *plain = check_slot (SLOT_EXPECTED, p->x.k * sizeof (float));

  vlm_int_unpack_row (p->kernels, &p->w.format, row, p->w.panel, j, p->x.k);
  vlm_int_dequantise_row (&p->w.format, plain, &p->w.rows, j, p->x.k);
  check_expect (
      check_intact (SLOT_AGAIN) && check_intact (SLOT_EXPECTED), "unpacking wrote before the row");
  check_expect (memcmp (row, plain, p->x.k * sizeof (float)) == 0,
      "%u bits, scale %d: row %zu of a panel differs from the one that was packed",
      p->w.format.bits, p->w.format.scale, j);
  for (l = 0; l < p->x.k; l++) {
    float expected =
        (float) p->w.rows.q[j * p->w.rows.ldq + l] * check_weight_scale (&p->w, j, l / p->x.group);

    expected =
        p->w.format.has_min ? expected + check_weight_min (&p->w, j, l / p->x.group) : expected;
    check_expect (row[l] == expected,
        "%u bits, scale %d: unpacked [%zu][%zu] is %.9g, expected %.9g", p->w.format.bits,
        p->w.format.scale, j, l, row[l], expected);
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

/* Activations of rows may have any group, others that of the weights. */
static size_t
activation_group (const VlmIntFormat *format)
{
  static const size_t groups[] = { 16, 32, 48, 64, 128, 256, 1024 };

  return format->scale == VLM_SCALE_ROW ? check_pick (groups, 7) : format->group;
}

static void
check_format (const VlmKernels *kernels, const VlmIntFormat *format)
{
  static const size_t depths[] = { 0, 1, 15, 16, 17, 31, 33, 64, 100, 128, 255, 300, 513 };
  const size_t n_depths = sizeof depths / sizeof depths[0];
  Product p = { .kernels = kernels, .w.format = *format };

  for (p.m = 0; p.m <= 15; p.m++) {
    p.kind = (CheckKind) (p.m % N_KINDS);
    p.x.group = activation_group (format);
    p.x.k = depths[p.m % n_depths];
    p.n = kernels->int_panel;
    check_product (&p);
    p.kind = (CheckKind) check_below (N_KINDS);
    p.x.group = activation_group (format);
    p.x.k = check_pick (depths, n_depths);
    p.n = 1 + check_below (kernels->int_panel);
    check_product (&p);
  }
  p.m = 60 + check_below (100);
  p.x.k = 272 + check_below (40);
  p.n = 3;
  check_product (&p);
  kernels->matmul_int (NULL, 0, &p.x, 0, format, p.w.panel, 0, NULL);
}

/* What a panel takes of memory: values, scales, and nothing else. */
static void
check_panel_bytes (const VlmKernels *kernels, const VlmIntFormat *format)
{
  static const size_t sizes[] = { 32, 16, 32, 8 };
  const size_t k = 1024;
  size_t n_scales = format->scale == VLM_SCALE_ROW ? 1 : k / format->group, row_bits;

  row_bits = k * format->bits + n_scales * sizes[format->scale] * (format->has_min ? 2 : 1);
  if (format->scale == VLM_SCALE_CODES)
    row_bits += k / VLM_SUPER_GROUP * 16 * (format->has_min ? 2 : 1);
  check_expect (vlm_int_panel_bytes (kernels, format, k) == row_bits / 8 * kernels->int_panel,
      "%u bits, scale %d: a panel has %zu bytes", format->bits, format->scale,
      vlm_int_panel_bytes (kernels, format, k));
}

void
check_matmul_int (const VlmKernels *kernels)
{
  size_t i;

  for (i = 0; i < CHECK_N_INT_FORMATS; i++) {
    check_panel_bytes (kernels, &check_int_formats[i]);
    check_format (kernels, &check_int_formats[i]);
  }
}

/* Descriptors that no file has. */
void
check_matmul_int_any (const VlmKernels *kernels)
{
  static const unsigned bits[] = { 4, 5, 6, 8 };
  static const size_t depths[] = { 16, 40, 130, 272, 500, 800 };
  Product p = { .kernels = kernels };
  size_t i;

  for (i = 0; i < 60; i++) {
    p.w.format = check_random_format (bits[i % 4], (VlmIntScale) (i / 4 % 4));
    p.kind = (CheckKind) check_below (N_KINDS);
    p.x.group = activation_group (&p.w.format);
    p.m = i % 3 == 0 ? 1 : 1 + check_below (30);
    p.x.k = check_pick (depths, 6);
    p.n = 1 + check_below (kernels->int_panel);
    check_product (&p);
  }
}

/* Rows enough for tiles of 16 and for several blocks of them, at every edge: one row more or less, a
 * part of a step, of a group, of a piece. */
void
check_matmul_int_tall (const VlmKernels *kernels)
{
  static const size_t rows[] = { 16, 17, 31, 32, 33, 47, 48, 63, 80, 97, 289, 300 };
  static const size_t depths[] = { 1, 16, 48, 64, 80, 127, 128, 208, 256, 272, 320, 513, 784, 1040,
    2064 };
  const size_t n_rows = sizeof rows / sizeof rows[0], n_depths = sizeof depths / sizeof depths[0];
  Product p = { .kernels = kernels };
  size_t i;

  for (i = 0; i < 12 * CHECK_N_INT_FORMATS; i++) {
    p.w.format = check_int_formats[i % CHECK_N_INT_FORMATS];
    p.kind = (CheckKind) (i / CHECK_N_INT_FORMATS % N_KINDS);
    p.x.group = activation_group (&p.w.format);
    p.m = rows[i / CHECK_N_INT_FORMATS % n_rows];
    p.x.k = check_pick (depths, n_depths);
    p.n = p.m < 64 && i % 2 == 0 ? kernels->int_panel : 1 + check_below (kernels->int_panel / 2);
    check_product (&p);
  }
}

/* Sums beyond 2^24 are rounded, and the bias of unsigned weights comes near the end of int32. */
void
check_matmul_int_long (const VlmKernels *kernels)
{
  static const VlmIntFormat longest[] = {
    { 8, VLM_SCALE_ROW, 0, 0 },
    { 8, VLM_SCALE_F16, 0, 65536 },
    { 4, VLM_SCALE_F16, 0, 65536 },
    { 6, VLM_SCALE_F32, 1, 65536 },
    { 5, VLM_SCALE_ROW, 0, 0 },
  };
  Product p = { .kernels = kernels, .n = 2 };
  size_t i;

  for (i = 0; i < sizeof longest / sizeof longest[0]; i++) {
    p.w.format = longest[i];
    p.x.k = p.x.group = 65536;
    p.m = i == 2 ? 14 : 1;
    for (p.kind = KIND_PLAIN; p.kind <= KIND_HIGHEST; p.kind++)
      check_product (&p);
  }
}
