/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "check.h"

typedef enum
{
  WEIGHTS_F32,
  WEIGHTS_F16,
  WEIGHTS_BF16
} Weights;

typedef enum
{
  KIND_PLAIN,
  KIND_LARGE,
  KIND_TINY,
  KIND_SPARSE,
  N_KINDS
} Kind;

enum
{
  SLOT_X,
  SLOT_W,
  SLOT_BIAS,
  SLOT_Y,
  SLOT_AGAIN
};

typedef struct
{
  const VlmKernels *kernels;
  Weights type;
  Kind kind;
  size_t m, k, n, ldx, ldy;
  float *x, *bias;
  void *w;
} Product;

double
check_half_value (uint16_t bits)
{
  int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double value;

  if (exponent == 31)
    value = fraction != 0 ? NAN : INFINITY;
  else if (exponent == 0)
    value = ldexp (fraction, -24);
  else
    value = ldexp (1024 + fraction, exponent - 25);

  return (bits & 0x8000) != 0 ? -value : value;
}

static float
random_value (Kind kind)
{
  switch (kind) {
    case KIND_LARGE:
      return (float) (check_uniform (-1, 1) * 1e15);
    case KIND_TINY:
      return (float) (check_uniform (-1, 1) * 1e-38);
    case KIND_SPARSE:
      return check_below (3) == 0 ? (float) check_uniform (-1, 1) : 0;
    default:
      return (float) check_uniform (-1, 1);
  }
}

static uint16_t
random_half (Kind kind)
{
  uint16_t bits = (uint16_t) check_random ();

  if (kind == KIND_TINY)
    return bits & 0x83ff;
  if (kind == KIND_SPARSE && check_below (3) != 0)
    return bits & 0x8000;
  /* Neither infinity nor NaN. */
  return (bits & 0x7c00) == 0x7c00 ? bits & 0xbfff : bits;
}

static double
weight (const Product *p, size_t i)
{
  uint32_t bits;
  float value;

  if (p->type == WEIGHTS_F16)
    return check_half_value (((const uint16_t *) p->w)[i]);
  if (p->type == WEIGHTS_F32)
    return ((const float *) p->w)[i];

  bits = (uint32_t) ((const uint16_t *) p->w)[i] << 16;
  memcpy (&value, &bits, sizeof value);
  return value;
}

static void
set_weight (const Product *p, size_t i, int zero)
{
  uint32_t bits;
  float value = zero ? 0 : random_value (p->kind);

  memcpy (&bits, &value, sizeof bits);
  if (p->type == WEIGHTS_F32)
    ((float *) p->w)[i] = value;
  else if (p->type == WEIGHTS_BF16)
    ((uint16_t *) p->w)[i] = (uint16_t) (bits >> 16);
  else
    ((uint16_t *) p->w)[i] = zero ? 0 : random_half (p->kind);
}

static void
run (const Product *p, float *y, size_t first, size_t m, size_t n)
{
  const float *x = p->x + first * p->ldx;

  if (p->type == WEIGHTS_F32)
    p->kernels->matmul_f32 (y, p->ldy, x, p->ldx, m, p->w, p->k, n, p->bias);
  else if (p->type == WEIGHTS_F16)
    p->kernels->matmul_f16 (y, p->ldy, x, p->ldx, m, p->w, p->k, n, p->bias);
  else
    p->kernels->matmul_bf16 (y, p->ldy, x, p->ldx, m, p->w, p->k, n, p->bias);
}

static void
fill (Product *p)
{
  size_t panel = p->kernels->panel, i, j;
  size_t element = p->type == WEIGHTS_F32 ? sizeof (float) : sizeof (uint16_t);

  p->ldx = p->k + check_below (4);
  p->ldy = p->n + check_below (4);
  p->x = check_slot (SLOT_X, (p->m > 0 ? (p->m - 1) * p->ldx + p->k : 0) * sizeof (float));
  p->w = check_slot (SLOT_W, p->k * panel * element);
  p->bias = check_below (2) != 0 ? check_slot (SLOT_BIAS, p->n * sizeof (float)) : NULL;

  for (i = 0; i < p->m; i++) {
    for (j = 0; j < p->k; j++)
      p->x[i * p->ldx + j] = random_value (p->kind);
  }
  for (i = 0; i < p->k; i++) {
    for (j = 0; j < panel; j++)
      set_weight (p, i * panel + j, j >= p->n);
  }
  for (j = 0; p->bias != NULL && j < p->n; j++)
    p->bias[j] = random_value (p->kind);
}

static void
check_values (const Product *p, const float *y)
{
  static const unsigned char pattern[4] = { CHECK_PATTERN, CHECK_PATTERN, CHECK_PATTERN,
    CHECK_PATTERN };
  size_t i, j, l;

  for (i = 0; i < p->m; i++) {
    for (j = 0; j < p->n; j++) {
      double sum = p->bias != NULL ? p->bias[j] : 0, size = fabs (sum);

      for (l = 0; l < p->k; l++) {
        double product = p->x[i * p->ldx + l] * weight (p, l * p->kernels->panel + j);

        sum += product;
        size += fabs (product);
      }
      check_near (y[i * p->ldy + j], sum, p->k * (ldexp (size, -23) + 0x1p-149), "y", i * p->n + j);
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
    float *again = check_slot (SLOT_AGAIN, p->n * sizeof (float));

    run (p, again, i, 1, i % 2 == 0 ? p->n : n);
    check_expect (memcmp (again, y + i * p->ldy, (i % 2 == 0 ? p->n : n) * sizeof (float)) == 0,
        "m %zu k %zu n %zu: row %zu alone differs", p->m, p->k, p->n, i);
    check_expect (check_intact (SLOT_AGAIN), "wrote before row %zu", i);
  }
}

static void
check_product (Product *p)
{
  float *y;

  fill (p);
  y = check_slot (SLOT_Y, (p->m > 0 ? (p->m - 1) * p->ldy + p->n : 0) * sizeof (float));
  run (p, y, 0, p->m, p->n);
  check_expect (check_intact (SLOT_Y), "m %zu k %zu n %zu: wrote before y", p->m, p->k, p->n);
  check_values (p, y);
  check_splits (p, y);
}

static void
check_type (const VlmKernels *kernels, Weights type)
{
  static const size_t depths[] = { 0, 1, 2, 3, 7, 16, 65, 131, 400, 800 };
  Product p = { .kernels = kernels, .type = type };

  for (p.m = 0; p.m <= 25; p.m++) {
    for (p.kind = KIND_PLAIN; p.kind < N_KINDS; p.kind++) {
      p.k = depths[(p.m + p.kind) % (sizeof depths / sizeof depths[0])];
      p.n = kernels->panel;
      check_product (&p);
      p.k = depths[check_below (sizeof depths / sizeof depths[0])];
      p.n = 1 + check_below (kernels->panel);
      check_product (&p);
    }
  }
  p.m = 0;
  p.k = 3;
  p.n = 0;
  p.bias = NULL;
  run (&p, NULL, 0, 0, 0);
}

void
check_matmul_f32 (const VlmKernels *kernels)
{
  check_type (kernels, WEIGHTS_F32);
}

void
check_matmul_f16 (const VlmKernels *kernels)
{
  check_type (kernels, WEIGHTS_F16);
}

void
check_matmul_bf16 (const VlmKernels *kernels)
{
  check_type (kernels, WEIGHTS_BF16);
}
