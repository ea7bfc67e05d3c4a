/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Products of many rows with integer weights in bfloat16. The reference is in double precision and
 * made of the rows that were packed. Beside the bound of every element, which is a worst case, all
 * elements together must be as good as two roundings to bfloat16 let them be.
 */

#include "check-weights.h"

enum
{
  SLOT_X,
  SLOT_TILED,
  SLOT_BIAS,
  SLOT_Y,
  SLOT_AGAIN,
  SLOT_TILED_AGAIN,
  SLOT_PART
};

typedef enum
{
  X_RANDOM,
  X_ZEROS,  /* some rows, and others but for a few values */
  X_HUGE,   /* sums are just below the largest float */
  X_TINY,   /* subnormals too */
  X_SPREAD, /* exponents from -20 to 20 */
  N_VALUES
} Values;

typedef struct
{
  const VlmKernels *kernels;
  CheckWeights w;
  CheckKind kind;
  Values values;
  size_t m, k, n, ldx, ldy;
  float *x;
  size_t shift; /* bytes by which tiles are not aligned */
  VlmTiledRows tiled;
  float *bias;
  /* Of the weights, [n][k]: what they stand for, and |q * scale| + |min| */
  double *exact, *sizes;
  double most; /* the largest sum of sizes */
} Product;

static size_t
whole_rows (size_t m)
{
  return (m + VLM_TILED_ROWS - 1) / VLM_TILED_ROWS * VLM_TILED_ROWS;
}

static size_t
whole_columns (const Product *p, size_t n)
{
  const size_t panel = p->kernels->int_panel;

  return (n + panel - 1) / panel * panel;
}

/* ---- Inputs -------------------------------------------------------------------------------- */

static int
is_row (const Product *p)
{
  return p->w.format.scale == VLM_SCALE_ROW;
}

static void
find_weights (Product *p)
{
  size_t j, l;

  p->exact = malloc (p->n * p->k * sizeof *p->exact);
  p->sizes = malloc (p->n * p->k * sizeof *p->sizes);
  p->most = 0;
  for (j = 0; j < p->n; j++) {
    double sum = 0;

    for (l = 0; l < p->k; l++) {
      const size_t g = is_row (p) ? 0 : l / p->w.format.group;
      const double min = check_weight_min (&p->w, j, g);
      const double product =
          p->w.rows.q[j * p->w.rows.ldq + l] * (double) check_weight_scale (&p->w, j, g);

      p->exact[j * p->k + l] = product + min;
      sum += p->sizes[j * p->k + l] = fabs (product) + fabs (min);
    }
    p->most = fmax (p->most, sum);
  }
}

static void
drop_weights (Product *p)
{
  free (p->exact);
  free (p->sizes);
}

/* What values of x are about as large as. */
static double
x_size (const Product *p)
{
  return p->values == X_HUGE ? 1e37 / fmax (p->most, 1) : p->values == X_TINY ? 0x1p-120 : 1;
}

static float
random_x (const Product *p, size_t i)
{
  double x = check_uniform (-1, 1) * x_size (p);

  switch (p->values) {
    case X_ZEROS:
      return i % 2 == 0 || check_below (8) != 0 ? -0.0f : (float) x;
    case X_TINY:
      return (float) ldexp (x, -(int) check_below (30));
    case X_SPREAD:
      return (float) ldexp (x, (int) check_below (41) - 20);
    default:
      return (float) x;
  }
}

static void
fill_x (Product *p)
{
  size_t i, l;

  p->ldx = p->k + check_below (4);
  p->x = check_slot (SLOT_X, ((p->m - 1) * p->ldx + p->k) * sizeof (float));
  for (i = 0; i < p->m; i++) {
    for (l = 0; l < p->k; l++)
      p->x[i * p->ldx + l] = random_x (p, i);
  }
}

/* Biases are as large as sums. */
static void
fill_bias (Product *p)
{
  size_t j;

  p->bias = check_below (2) != 0 ? check_slot (SLOT_BIAS, p->n * sizeof (float)) : NULL;
  for (j = 0; p->bias != NULL && j < p->n; j++)
    p->bias[j] = (float) (check_uniform (-0.5, 0.5) * x_size (p) * p->most);
}

/* Room for tiles, full of NaNs or of zeros. */
static VlmTiledRows
make_tiles (const Product *p, unsigned slot, int filling)
{
  const size_t bytes = p->kernels->tiled_bytes (p->m, p->k);
  VlmTiledRows tiled = { check_slot (slot, bytes + p->shift), p->m, p->k };

  memset (tiled.data, filling, bytes);
  return tiled;
}

static void
check_tiles_intact (const Product *p, unsigned slot, const VlmTiledRows *tiled)
{
  const uint8_t *end = (const uint8_t *) tiled->data + p->kernels->tiled_bytes (p->m, p->k);
  size_t i;

  check_expect (check_intact (slot), "m %zu k %zu: wrote before the tiles", p->m, p->k);
  for (i = 0; i < p->shift; i++)
    check_expect (end[i] == CHECK_PATTERN, "m %zu k %zu: wrote beyond the tiles", p->m, p->k);
}

static VlmTiledRows
tile_rows (const Product *p, unsigned slot, int filling)
{
  const VlmTiledRows tiled = make_tiles (p, slot, filling);
  size_t i;

  for (i = 0; i < p->m; i++)
    p->kernels->tile_row (&tiled, i, 0, p->x + i * p->ldx, p->k);
  check_tiles_intact (p, slot, &tiled);
  return tiled;
}

static void
fill (Product *p)
{
  check_fill_weights (&p->w, p->kind, p->k, p->n);
  check_pack_weights (&p->w, p->kernels);
  find_weights (p);
  fill_x (p);
  fill_bias (p);
  p->shift = 2 * check_below (2);
  p->ldy = whole_columns (p, p->n) + check_below (4);
  p->tiled = tile_rows (p, SLOT_TILED, 0xff);
}

/* ---- Products ------------------------------------------------------------------------------ */

/* Leaves NaNs where a kernel has what is on its stack. */
static __attribute__ ((noinline)) void
spoil_stack (void)
{
  uint8_t room[256 * 1024];

  memset (room, 0xff, sizeof room);
  __asm__ volatile("" : : "r"(room) : "memory");
}

/* What is asked of a product. */
typedef struct
{
  size_t first, m;
  size_t panel; /* the first one */
  size_t n;
} Part;

/* Rows and columns that were not asked for may be written, as far as there is promised to be room. */
static float *
multiply (const Product *p, unsigned slot, const VlmTiledRows *tiled, Part part)
{
  static const unsigned char pattern[4] = { CHECK_PATTERN, CHECK_PATTERN, CHECK_PATTERN,
    CHECK_PATTERN };
  const size_t last = whole_rows (part.m) - 1, columns = whole_columns (p, part.n);
  const float *bias = p->bias != NULL ? p->bias + part.panel * p->kernels->int_panel : NULL;
  float *y = check_slot (slot, (last * p->ldy + columns) * sizeof (float));
  size_t i, j;

  spoil_stack ();
  p->kernels->matmul_tiled (y, p->ldy, tiled, part.first, part.m, &p->w.format,
      p->w.panel + part.panel * p->w.panel_bytes, p->w.panel_bytes, part.n, bias);
  check_expect (check_intact (slot), "m %zu k %zu n %zu: wrote before y", part.m, p->k, part.n);
  for (i = 0; i < last; i++) {
    for (j = columns; j < p->ldy; j++)
      check_expect (memcmp (y + i * p->ldy + j, pattern, 4) == 0,
          "m %zu k %zu n %zu: wrote beyond the last panel in row %zu", part.m, p->k, part.n, i);
  }
  return y;
}

static float *
multiply_all (const Product *p, unsigned slot, const VlmTiledRows *tiled)
{
  return multiply (p, slot, tiled, (Part){ 0, p->m, 0, p->n });
}

/* What all elements are off by, and what their terms are, in squares. */
typedef struct
{
  double error, size;
} Total;

static void
check_element (const Product *p, size_t i, size_t j, float found, Total *total)
{
  const double *exact = p->exact + j * p->k, *sizes = p->sizes + j * p->k;
  const double bias = p->bias != NULL ? p->bias[j] : 0;
  double sum = bias, size = fabs (bias), lost = 0, least = 1, bound;
  size_t l;

  for (l = 0; l < p->k; l++) {
    const double x = p->x[i * p->ldx + l];

    sum += x * exact[l];
    size += fabs (x) * sizes[l];
    total->size += x * x * sizes[l] * sizes[l];
    /* These may count as zero. */
    lost += fabs (x) < 0x1p-126 ? fabs (x) * sizes[l] : 0;
  }
  total->error += (found - sum) * (found - sum);
  if (is_row (p))
    least += 256 * fabs ((double) check_weight_scale (&p->w, j, 0));
  bound = (0x1p-7 + (double) p->k * 0x1p-22) * size + (double) p->k * 0x1p-125 * least + lost;
  check_expect (fabs (found - sum) <= bound,
      "%u bits, scale %d%s: m %zu k %zu n %zu group %zu kind %d values %d%s: y [%zu][%zu] is %.9g, "
      "expected %.9g +- %.3g",
      p->w.format.bits, p->w.format.scale, p->w.format.has_min ? ", minimum" : "", p->m, p->k, p->n,
      p->w.format.group, p->kind, p->values, p->bias != NULL ? ", bias" : "", i, j, found, sum,
      bound);
}

static void
check_values (const Product *p, const float *y)
{
  Total total = { 0, 0 };
  size_t i, j;

  for (i = 0; i < p->m; i++) {
    for (j = 0; j < p->n; j++)
      check_element (p, i, j, y[i * p->ldy + j], &total);
  }
  if (p->values == X_RANDOM && p->m * p->n >= 256 && p->k >= 16)
    check_expect (total.error <= 0.003 * 0.003 * total.size,
        "%u bits, scale %d%s: m %zu k %zu n %zu group %zu kind %d: all elements are off by %.3f %%",
        p->w.format.bits, p->w.format.scale, p->w.format.has_min ? ", minimum" : "", p->m, p->k,
        p->n, p->w.format.group, p->kind, 100 * sqrt (total.error / total.size));
}

/* A part has the bits that it has in whole. */
static void
check_same (const Product *p, const float *y, const float *whole, Part part, const char *why)
{
  size_t i;

  whole += part.first * p->ldy + part.panel * p->kernels->int_panel;
  for (i = 0; i < part.m; i++)
    check_expect (memcmp (y + i * p->ldy, whole + i * p->ldy, part.n * sizeof (float)) == 0,
        "m %zu k %zu n %zu: of %zu rows from %zu on, and %zu columns from panel %zu on, row %zu "
        "differs %s",
        p->m, p->k, p->n, part.m, part.first, part.n, part.panel, i, why);
}

/* Other runs of rows, and other panels and columns, give the same bits. */
static void
check_splits (const Product *p, const float *whole)
{
  const size_t n_blocks = whole_rows (p->m) / VLM_TILED_ROWS, panel = p->kernels->int_panel;
  const size_t n_panels = whole_columns (p, p->n) / panel;
  size_t i;

  for (i = 0; i < 4; i++) {
    Part part = { .first = (i == 0 ? n_blocks - 1 : check_below (n_blocks)) * VLM_TILED_ROWS,
      .panel = i == 0 ? n_panels - 1 : check_below (n_panels) };
    const float *y;

    part.m = i == 1 ? 1 : 1 + check_below (p->m - part.first);
    part.n = 1 + check_below (p->n - part.panel * panel);
    y = multiply (p, SLOT_AGAIN, &p->tiled, part);
    check_same (p, y, whole, part, "from the same in all");
  }
}

/* Tiles of rows that were given in parts, the last one first, and each where memory ends. */
static void
check_parts (const Product *p)
{
  const VlmTiledRows tiled = make_tiles (p, SLOT_TILED_AGAIN, 0xff);
  size_t i, at;

  for (i = p->m; i-- > 0;) {
    for (at = p->k; at > 0;) {
      const size_t steps = (at + VLM_TILED_STEP - 1) / VLM_TILED_STEP;
      const size_t first = (steps - 1 - check_below (steps < 12 ? steps : 12)) * VLM_TILED_STEP;
      float *part = check_slot (SLOT_PART, (at - first) * sizeof (float));

      memcpy (part, p->x + i * p->ldx + first, (at - first) * sizeof (float));
      p->kernels->tile_row (&tiled, i, first, part, at - first);
      at = first;
    }
    p->kernels->tile_row (&tiled, i, 0, NULL, 0);
  }
  check_tiles_intact (p, SLOT_TILED_AGAIN, &tiled);
  check_expect (memcmp (tiled.data, p->tiled.data, p->kernels->tiled_bytes (p->m, p->k)) == 0,
      "m %zu k %zu: tiles of rows in parts differ", p->m, p->k);
}

/* What is where rows end does not count. */
static void
check_room (const Product *p, const float *whole)
{
  const VlmTiledRows tiled = tile_rows (p, SLOT_TILED_AGAIN, 0);
  const float *y = multiply_all (p, SLOT_AGAIN, &tiled);

  check_same (p, y, whole, (Part){ 0, p->m, 0, p->n }, "with zeros beyond the last row");
}

/* A row with an infinity or a NaN is not finite; all others are as they were. */
static void
check_infinite_row (const Product *p, const float *whole)
{
  const size_t bad = check_below (p->m), at = check_below (p->k);
  const int is_nan = (int) check_below (2);
  const VlmTiledRows tiled = tile_rows (p, SLOT_TILED_AGAIN, 0);
  float *row = check_slot (SLOT_PART, p->k * sizeof (float));
  const float *y;
  size_t j;

  memcpy (row, p->x + bad * p->ldx, p->k * sizeof (float));
  row[at] = is_nan ? NAN : INFINITY;
  p->kernels->tile_row (&tiled, bad, 0, row, p->k);
  y = multiply_all (p, SLOT_AGAIN, &tiled);
  for (j = 0; j < p->n; j++)
    check_expect (is_nan ? isnan (y[bad * p->ldy + j]) : !isfinite (y[bad * p->ldy + j]),
        "k %zu: a row with %g at %zu has %g", p->k, row[at], at, y[bad * p->ldy + j]);
  check_same (p, y, whole, (Part){ 0, bad, 0, p->n }, "below one with infinities");
  check_same (p, y + (bad + 1) * p->ldy, whole, (Part){ bad + 1, p->m - bad - 1, 0, p->n },
      "above one with infinities");
}

static void
check_product (Product *p)
{
  float *y;

  fill (p);
  y = multiply_all (p, SLOT_Y, &p->tiled);
  check_values (p, y);
  check_splits (p, y);
  check_parts (p);
  check_room (p, y);
  check_infinite_row (p, y);
  p->kernels->matmul_tiled (
      NULL, 0, &p->tiled, 0, 0, &p->w.format, p->w.panel, p->w.panel_bytes, p->n, p->bias);
  p->kernels->matmul_tiled (
      NULL, 0, &p->tiled, 0, p->m, &p->w.format, p->w.panel, p->w.panel_bytes, 0, p->bias);
  drop_weights (p);
}

/* Whole panels, and parts of one or of several. */
static size_t
random_columns (const VlmKernels *kernels)
{
  const size_t panels = 1 + check_below (VLM_TILED_PANELS), n = panels * kernels->int_panel;

  return check_below (3) == 0 ? n : n - check_below (kernels->int_panel);
}

void
check_matmul_tiled (const VlmKernels *kernels)
{
  static const size_t rows[] = { 1, 2, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 97, 130 };
  static const size_t depths[] = { 1, 2, 15, 16, 17, 31, 32, 33, 48, 64, 100, 128, 255, 256, 257,
    272, 289, 300, 513, 784 };
  Product p = { .kernels = kernels };
  size_t i;

  for (i = 0; i < 20 * CHECK_N_INT_FORMATS; i++) {
    p.w.format = check_int_formats[i % CHECK_N_INT_FORMATS];
    p.kind = i % 3 == 0 ? KIND_PLAIN : (CheckKind) check_below (N_KINDS);
    p.values = i % 2 == 0 ? X_RANDOM : (Values) check_below (N_VALUES);
    p.m = check_pick (rows, sizeof rows / sizeof rows[0]);
    p.k = depths[i / CHECK_N_INT_FORMATS];
    p.n = random_columns (kernels);
    check_product (&p);
  }
}

/* Descriptors that no file has. */
void
check_matmul_tiled_any (const VlmKernels *kernels)
{
  static const unsigned bits[] = { 4, 5, 6, 8 };
  static const VlmIntScale scales[] = { VLM_SCALE_ROW, VLM_SCALE_F16, VLM_SCALE_F32,
    VLM_SCALE_CODES };
  Product p = { .kernels = kernels };
  size_t i;

  for (i = 0; i < 160; i++) {
    p.w.format = check_random_format (bits[i % 4], scales[i / 4 % 4]);
    p.kind = (CheckKind) check_below (N_KINDS);
    p.values = i % 2 == 0 ? X_RANDOM : (Values) check_below (N_VALUES);
    p.m = 1 + check_below (100);
    p.k = 1 + check_below (900);
    p.n = random_columns (kernels);
    check_product (&p);
  }
}

/* Long rows, with few scales. */
void
check_matmul_tiled_long (const VlmKernels *kernels)
{
  static const VlmIntFormat longest[] = {
    { 8, VLM_SCALE_ROW, 0, 0 },
    { 8, VLM_SCALE_F16, 0, 65536 },
    { 4, VLM_SCALE_F16, 0, 65536 },
    { 4, VLM_SCALE_F32, 1, 32768 },
    { 5, VLM_SCALE_F16, 1, 48 },
    { 6, VLM_SCALE_F32, 1, 65536 },
    { 6, VLM_SCALE_CODES, 0, 16 },
  };
  Product p = { .kernels = kernels };
  size_t i;

  for (i = 0; i < sizeof longest / sizeof longest[0]; i++) {
    p.w.format = longest[i];
    p.m = 1 + i;
    p.k = 65536 + check_below (200);
    p.n = 1 + check_below (4);
    check_product (&p);
  }
}

/* ---- Roundings ----------------------------------------------------------------------------- */

/* found is x rounded to the nearest bfloat16, where x itself may be wrong by slack, and be zero below 2^-126. */
static void
check_rounded (float found, double x, double slack, const char *what, size_t i, size_t l)
{
  uint32_t bits;
  int exponent;

  if (fabs (x) < 0x1p-126 && found == 0)
    return;
  memcpy (&bits, &found, sizeof bits);
  frexp (fmax (fabs (x), 0x1p-126), &exponent);
  check_expect ((bits & 0xffff) == 0 && fabs (found - x) <= ldexp (1, exponent - 9) + slack,
      "%s [%zu][%zu] is %.9g, rounded from %.9g", what, i, l, found, x);
}

/* Rows of one 1 each give weights, which are rounded unless they are integers until the end. */
static void
check_weight_rounding (const VlmKernels *kernels, const VlmIntFormat *format)
{
  Product p = { .kernels = kernels, .w.format = *format, .values = X_ZEROS };
  VlmTiledRows tiled;
  const float *y;
  size_t j, l;

  p.m = p.k = 100 + check_below (200);
  p.n = kernels->int_panel;
  fill (&p);
  p.bias = NULL;
  for (l = 0; l < p.k; l++) {
    memset (p.x + l * p.ldx, 0, p.k * sizeof (float));
    p.x[l * p.ldx + l] = 1;
  }
  tiled = tile_rows (&p, SLOT_TILED, 0xff);
  y = multiply_all (&p, SLOT_Y, &tiled);
  for (l = 0; l < p.k; l++) {
    for (j = 0; j < p.n; j++) {
      const double exact = p.exact[j * p.k + l], slack = p.sizes[j * p.k + l] * 0x1p-22;

      if (is_row (&p))
        check_near (y[l * p.ldy + j], exact, slack, "a weight", j * p.k + l);
      else
        check_rounded (y[l * p.ldy + j], exact, slack, "a weight", j, l);
    }
  }
  drop_weights (&p);
}

/* Weights of one 1 each, which columns have from first on, give values of rows. */
static void
check_row_rounding (const Product *p, int8_t *q, size_t first)
{
  const size_t n = p->k - first < p->n ? p->k - first : p->n;
  const float *y;
  size_t i, j;

  memset (q, 0, p->n * p->k);
  for (j = 0; j < n; j++)
    q[j * p->k + first + j] = 64;
  vlm_int_pack (p->kernels, &p->w.format, p->w.panel, &p->w.rows, p->k, p->n);
  y = multiply_all (p, SLOT_Y, &p->tiled);
  for (i = 0; i < p->m; i++) {
    for (j = 0; j < n; j++)
      check_rounded (y[i * p->ldy + j], p->x[i * p->ldx + first + j], 0, "x", i, first + j);
  }
}

static void
check_row_values (const VlmKernels *kernels, Values values)
{
  Product p = { .kernels = kernels, .w.format = { 8, VLM_SCALE_F16, 0, 512 }, .values = values };
  uint16_t *scales;
  size_t j, first;
  int8_t *q;

  p.m = 1 + check_below (80);
  p.k = 1 + check_below (300);
  p.n = kernels->int_panel;
  fill (&p);
  drop_weights (&p);
  p.bias = NULL;
  q = check_slot (SLOT_Q, p.n * p.k);
  scales = check_slot (SLOT_SCALES, p.n * sizeof *scales);
  for (j = 0; j < p.n; j++)
    scales[j] = 0x2400; /* 2^-6 */
  p.w.rows = (VlmIntRows){ .q = q, .ldq = p.k, .scale = scales, .lds = 1 };
  for (first = 0; first < p.k; first += p.n)
    check_row_rounding (&p, q, first);
}

void
check_tile_row (const VlmKernels *kernels)
{
  size_t i;

  for (i = 0; i < 4 * N_VALUES; i++)
    check_row_values (kernels, (Values) (i % N_VALUES));
  for (i = 0; i < CHECK_N_INT_FORMATS; i++)
    check_weight_rounding (kernels, &check_int_formats[i]);
}
