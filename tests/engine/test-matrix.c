/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Products with float and integer weights against plain sums, on whatever level VLM_CPU chooses. */

#include <math.h>
#include <string.h>

#include <glib/gstdio.h>

#include "engine/formats/slm.h"
#include "engine/model/decoder.h"
#include "engine/model/level.h"
#include "golden.h"
#include "test-image-draw.h"

#define VL_MODEL "models/lfm2-first"

static VlmModel *
load (VlmPrecision precision)
{
  g_autofree gchar *path = golden_path (VL_MODEL);
  const VlmLoadOptions options = { .precision = precision };
  GError *error = NULL;
  VlmModel *model = vlm_model_load (path, &options, NULL, NULL, NULL, &error);

  g_assert_no_error (error);
  return model;
}

/* Between -1 and 1, now and then far beyond. */
static gfloat
random_value (guint64 seed)
{
  gfloat value = (gfloat) (test_image_splitmix (seed) % 20001) / 10000.0f - 1.0f;

  return test_image_splitmix (seed + 77) % 31 == 0 ? 30 * value : value;
}

static gfloat *
random_rows (gsize n, guint64 seed)
{
  gfloat *x = g_new (gfloat, n);
  gsize i;

  for (i = 0; i < n; i++)
    x[i] = random_value (seed * 1000003 + i);
  return x;
}

static void
unpack (const VlmModel *model, const VlmMatrix *matrix, gfloat *w)
{
  guint r;

  for (r = 0; r < matrix->rows; r++)
    vlm_matrix_get_row (matrix, &model->kernels, r, w + (gsize) r * matrix->cols);
}

/* Integers where the model has matrices for them, floats where they were asked to stay. */
static void
test_precision_decides (void)
{
  VlmModel *automatic = load (VLM_PRECISION_AUTO);
  VlmModel *exact = load (VLM_PRECISION_EXACT);
  VlmModel *fast = load (VLM_PRECISION_FAST);

  g_assert_cmpint (automatic->weights->embedding->dtype, !=, VLM_DTYPE_QUANTISED);
  g_assert_cmpint (exact->weights->layers[0].down->dtype, !=, VLM_DTYPE_QUANTISED);
  g_assert_cmpint (fast->weights->embedding->dtype, ==, VLM_DTYPE_QUANTISED);
  g_assert_cmpint (fast->weights->layers[0].gate_up->dtype, ==, VLM_DTYPE_QUANTISED);
  g_assert_cmpint (fast->weights->vision_layers[0].fc2.matrix->dtype, ==, VLM_DTYPE_QUANTISED);
  g_assert_cmpint (fast->weights->projector2.matrix->dtype, ==, VLM_DTYPE_QUANTISED);
  g_assert_cmpint (fast->weights->patch.matrix->dtype, !=, VLM_DTYPE_QUANTISED);
  g_assert_cmpuint (fast->weights->n_bytes, <, exact->weights->n_bytes);
  vlm_model_unref (fast);
  vlm_model_unref (exact);
  vlm_model_unref (automatic);
}

/* No value is further from the float weight than half a step and the scale's own rounding. */
static void
check_rounding (
    const VlmModel *exact, const VlmMatrix *floats, const VlmModel *fast, const VlmMatrix *integers)
{
  gsize n = (gsize) floats->rows * floats->cols, r, c;
  g_autofree gfloat *w = g_new (gfloat, n);
  g_autofree gfloat *rounded = g_new (gfloat, n);

  g_assert_cmpuint (floats->rows, ==, integers->rows);
  g_assert_cmpuint (floats->cols, ==, integers->cols);
  unpack (exact, floats, w);
  unpack (fast, integers, rounded);
  for (r = 0; r < floats->rows; r++) {
    gfloat amax = 0;

    for (c = 0; c < floats->cols; c++)
      amax = MAX (amax, fabsf (w[r * floats->cols + c]));
    for (c = 0; c < floats->cols; c++)
      g_assert_cmpfloat (fabsf (w[r * floats->cols + c] - rounded[r * floats->cols + c]), <=,
          amax / 127 * (0.5f + 127 * 0x1p-11f) + 0x1p-24f);
  }
}

static void
test_rounding (void)
{
  VlmModel *exact = load (VLM_PRECISION_EXACT);
  VlmModel *fast = load (VLM_PRECISION_FAST);
  const VlmWeights *a = exact->weights, *b = fast->weights;
  guint i;

  check_rounding (exact, a->embedding, fast, b->embedding);
  check_rounding (exact, a->projector1.matrix, fast, b->projector1.matrix);
  for (i = 0; i < exact->config.text.n_layers; i++) {
    check_rounding (exact, a->layers[i].gate_up, fast, b->layers[i].gate_up);
    if (a->layers[i].kind == VLM_LAYER_ATTENTION)
      check_rounding (exact, a->layers[i].qkv.matrix, fast, b->layers[i].qkv.matrix);
  }
  vlm_model_unref (fast);
  vlm_model_unref (exact);
}

/* The rows of x as the product sees them, and half a step of their rounding for each. */
static void
round_inputs (const VlmMatrix *matrix, const gfloat *x, gsize m, gfloat *seen)
{
  gsize k = matrix->cols, group = matrix->input_group, i, at, l;

  for (i = 0; i < m; i++) {
    for (at = 0; at < k; at += group) {
      gsize end = MIN (at + group, k);
      gfloat amax = 0;

      for (l = at; l < end; l++)
        amax = MAX (amax, fabsf (x[i * k + l]));
      for (l = at; l < end; l++)
        seen[i * k + l] = amax > 0 ? rintf (x[i * k + l] * (127 / amax)) * (amax / 127) : 0;
    }
  }
}

static void
check_product (const VlmMatrix *matrix, const gfloat *w, const gfloat *x, const gfloat *bias,
    gsize m, const gfloat *y, gsize ldy)
{
  gsize k = matrix->cols, i, j, l;

  for (i = 0; i < m; i++) {
    for (j = 0; j < matrix->rows; j++) {
      gdouble sum = bias[j], size = fabsf (bias[j]);

      for (l = 0; l < k; l++) {
        sum += (gdouble) x[i * k + l] * w[j * k + l];
        size += fabs ((gdouble) x[i * k + l] * w[j * k + l]);
      }
      g_assert_cmpfloat (fabs (y[i * ldy + j] - sum), <=, (gdouble) k * 0x1p-23 * size);
    }
  }
}

/* inputs of m rows of a copy of x, and their product; the values beyond a row are not touched. */
static void
multiply (const VlmModel *model, const VlmMatrix *matrix, guint n_threads, const gfloat *x, gsize m,
    const gfloat *bias, gfloat *y, gsize ldy)
{
  VlmTeam *team = vlm_team_new (n_threads, NULL);
  g_autofree gfloat *rows = g_memdup2 (x, m * matrix->cols * sizeof (gfloat));
  VlmInputs inputs = { 0 };
  VlmArena arena = { 0 };
  GError *error = NULL;
  gsize total = 0;

  vlm_inputs_measure (&total, team, m, matrix->cols);
  vlm_arena_reserve (&arena, total, &error);
  g_assert_no_error (error);
  vlm_inputs_take (&inputs, &arena, team, m, matrix->cols);
  g_assert_true (vlm_team_begin_turn (team));
  g_assert_true (vlm_inputs_rows (
      &inputs, matrix, team, &model->kernels, rows, matrix->cols, m, 0, NULL, NULL));
  g_assert_true (vlm_matrix_multiply (matrix, team, &model->kernels, bias, &inputs, y, ldy));
  vlm_team_end_turn (team);
  vlm_arena_clear (&arena);
  vlm_team_free (team);
}

static void
check_matrix (const VlmModel *model, const VlmMatrix *matrix, guint64 seed)
{
  static const gsize counts[] = { 1, 2, 7, 13, 75, 301 };
  gsize most = 301, rows = matrix->rows, k = matrix->cols, ldy = rows + 3, c, i;
  gboolean is_int = matrix->dtype == VLM_DTYPE_QUANTISED;
  g_autofree gfloat *w = g_new (gfloat, rows * k);
  g_autofree gfloat *x = random_rows (most * k, seed);
  g_autofree gfloat *bias = random_rows (rows, seed + 1);
  g_autofree gfloat *seen = g_memdup2 (x, most * k * sizeof (gfloat));
  g_autofree gfloat *all = g_new0 (gfloat, most * ldy);
  g_autofree gfloat *y = g_new0 (gfloat, most * ldy);

  unpack (model, matrix, w);
  if (is_int)
    round_inputs (matrix, x, most, seen);
  multiply (model, matrix, 1, x, most, bias, all, ldy);
  check_product (matrix, w, seen, bias, 20, all, ldy);

  /* Neither the other rows of the call nor the threads make a difference. */
  for (c = 0; c < G_N_ELEMENTS (counts); c++) {
    gsize m = counts[c];

    multiply (model, matrix, 1 + c % 3, x + (most - m) * k, m, bias, y, ldy);
    for (i = 0; i < m; i++)
      g_assert_cmpmem (
          y + i * ldy, rows * sizeof (gfloat), all + (most - m + i) * ldy, rows * sizeof (gfloat));
    g_assert_cmpfloat (y[rows], ==, 0);
  }
}

static void
test_products (gconstpointer data)
{
  VlmModel *model = load (GPOINTER_TO_INT (data));
  const VlmWeights *weights = model->weights;

  check_matrix (model, weights->layers[0].gate_up, 1);
  check_matrix (model, weights->layers[0].down, 2);
  check_matrix (model, weights->vision_layers[0].qkv.matrix, 3);
  check_matrix (model, weights->projector1.matrix, 4);
  check_matrix (model, weights->patch.matrix, 5);
  vlm_model_unref (model);
}

/* ---- Shapes that no model of ours has ----------------------------------------------------- */

#define N_PARTS 3

typedef struct
{
  guint64 rows[N_PARTS], cols;
} Shape;

static const gchar *const part_names[N_PARTS] = { "q", "k", "v" };

/* A .slm file with the parts of one product. */
static void
write_parts (const gchar *path, const Shape *shape, VlmSlmType type)
{
  VlmConfig config = { .text.n_layers = 1 };
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmSlmWriter) writer = vlm_slm_writer_new (path, &config, &error);
  guint i;

  for (i = 0; i < N_PARTS; i++) {
    const guint64 sides[] = { shape->rows[i], shape->cols };

    g_assert_true (vlm_slm_writer_add_tensor (writer, part_names[i], type, sides, 2, &error));
  }
  g_assert_true (vlm_slm_writer_begin (writer, &error));
  for (i = 0; i < N_PARTS; i++) {
    g_autofree gfloat *values = random_rows (shape->rows[i] * shape->cols, 50 + i);

    g_assert_true (vlm_slm_writer_put_floats (writer, values, shape->rows[i], &error));
  }
  g_assert_true (vlm_slm_writer_finish (writer, &error));
}

/* Every row is that of its part, within what rounding does to it. */
static void
check_parts (const VlmModel *model, const VlmMatrix *matrix, const Shape *shape, gfloat steps)
{
  g_autofree gfloat *row = g_new (gfloat, shape->cols);
  guint i, at = 0;
  guint64 r, c;

  for (i = 0; i < N_PARTS; i++) {
    g_autofree gfloat *values = random_rows (shape->rows[i] * shape->cols, 50 + i);

    for (r = 0; r < shape->rows[i]; r++, at++) {
      vlm_matrix_get_row (matrix, &model->kernels, at, row);
      for (c = 0; c < shape->cols; c++)
        g_assert_cmpfloat (fabsf (row[c] - values[r * shape->cols + c]), <=, 30 / steps);
    }
  }
  g_assert_cmpuint (matrix->rows, ==, at);
}

static void
check_shape (VlmModel *model, const gchar *path, const Shape *shape, VlmSlmType type)
{
  static const gfloat steps[] = { [VLM_SLM_F16] = 1024, [VLM_SLM_INT8] = 250, [VLM_SLM_INT4] = 13 };
  const VlmTensorInfo *infos[N_PARTS];
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmSlm) slm = vlm_slm_open (path, &error);
  g_autoptr (VlmTensorSource) source = vlm_slm_get_tensors (slm, &error);
  VlmTeam *team = vlm_team_new (2, NULL);
  guint precision, i;

  for (i = 0; i < N_PARTS; i++)
    infos[i] = vlm_tensor_source_lookup (source, part_names[i]);
  for (precision = VLM_PRECISION_AUTO; precision <= VLM_PRECISION_FAST; precision++) {
    g_autoptr (VlmSlab) slab = vlm_slab_new ();
    VlmMatrixLoader loader = { source, &model->kernels, precision, team, slab, NULL };
    VlmMatrix *matrix = vlm_matrix_load (&loader, infos, N_PARTS, TRUE, &error);

    g_assert_no_error (error);
    g_assert_true ((matrix->dtype == VLM_DTYPE_QUANTISED)
        == (precision == VLM_PRECISION_FAST
            || (precision == VLM_PRECISION_AUTO && type != VLM_SLM_F16)));
    check_parts (model, matrix, shape, MIN (steps[type], 250));
    check_matrix (model, matrix, 60 + precision);
    vlm_matrix_free (matrix);
  }
  vlm_team_free (team);
}

/* Rows and columns that are no multiples of anything, and parts that end within a panel. */
static void
test_shapes (void)
{
  static const Shape shapes[] = { { { 1, 1, 1 }, 1 }, { { 1, 2, 1 }, 7 }, { { 16, 1, 15 }, 16 },
    { { 9, 20, 4 }, 33 }, { { 33, 17, 1 }, 63 }, { { 2, 3, 5 }, 65 }, { { 31, 2, 40 }, 130 },
    { { 5, 5, 5 }, 449 } };
  g_autofree gchar *directory = g_dir_make_tmp ("matrix-XXXXXX", NULL);
  g_autofree gchar *path = g_build_filename (directory, "m.slm", NULL);
  VlmModel model = { 0 };
  VlmCpuLevel level;
  gsize i;
  guint type;

  g_assert_true (vlm_cpu_level_choose (&level, NULL));
  g_assert_cmpint (vlm_kernels_init (&model.kernels, level), ==, 0);
  for (i = 0; i < G_N_ELEMENTS (shapes); i++) {
    for (type = VLM_SLM_F16; type <= VLM_SLM_INT4; type++) {
      write_parts (path, &shapes[i], type);
      check_shape (&model, path, &shapes[i], type);
    }
  }
  g_unlink (path);
  g_rmdir (directory);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  golden_skip_without_level ();
  g_test_add_func ("/matrix/precision-decides", test_precision_decides);
  g_test_add_func ("/matrix/rounding", test_rounding);
  g_test_add_data_func (
      "/matrix/products/exact", GINT_TO_POINTER (VLM_PRECISION_EXACT), test_products);
  g_test_add_data_func (
      "/matrix/products/fast", GINT_TO_POINTER (VLM_PRECISION_FAST), test_products);
  g_test_add_func ("/matrix/shapes", test_shapes);
  return g_test_run ();
}
