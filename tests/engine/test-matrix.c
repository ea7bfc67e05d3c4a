/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Products with float and integer weights against plain sums, on whatever level VLM_CPU chooses. */

#include <math.h>
#include <string.h>

#include <glib/gstdio.h>

#include "engine/formats/slm.h"
#include "engine/model/decoder.h"
#include "engine/model/level.h"
#include "engine/model/tiles.h"
#include "golden.h"
#include "test-image-draw.h"
#include "tests/formats/rows-fixture.h"

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

static VlmDType
dtype_of (const VlmMatrix *matrix)
{
  g_assert_cmpuint (matrix->n_parts, ==, 1);
  return matrix->parts[0].dtype;
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

  g_assert_cmpint (dtype_of (automatic->weights->embedding), !=, VLM_DTYPE_QUANTISED);
  g_assert_cmpint (dtype_of (exact->weights->layers[0].down), !=, VLM_DTYPE_QUANTISED);
  g_assert_cmpint (dtype_of (fast->weights->embedding), ==, VLM_DTYPE_QUANTISED);
  g_assert_cmpint (dtype_of (fast->weights->layers[0].gate_up), ==, VLM_DTYPE_QUANTISED);
  g_assert_cmpint (dtype_of (fast->weights->vision_layers[0].fc2.matrix), ==, VLM_DTYPE_QUANTISED);
  g_assert_cmpint (dtype_of (fast->weights->projector2.matrix), ==, VLM_DTYPE_QUANTISED);
  g_assert_cmpint (dtype_of (fast->weights->patch.matrix), !=, VLM_DTYPE_QUANTISED);
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

/* Whether many rows are put into tiles for the part. */
static gboolean
takes_tiles (const VlmModel *model, const VlmMatrixPart *part)
{
  return model->kernels.matmul_tiled != NULL && part->dtype == VLM_DTYPE_QUANTISED;
}

static gboolean
any_takes_tiles (const VlmModel *model, const VlmMatrix *matrix)
{
  guint p;

  for (p = 0; p < matrix->n_parts; p++) {
    if (takes_tiles (model, &matrix->parts[p]))
      return TRUE;
  }
  return FALSE;
}

/* The rows of x as the product with a part sees them, but for tiles, whose bound is for x itself. */
static void
round_inputs (
    const VlmMatrixPart *part, gboolean tiled, const gfloat *x, gsize m, gsize k, gfloat *seen)
{
  gsize group = part->input_group, i, at, l;

  memcpy (seen, x, m * k * sizeof (gfloat));
  if (part->dtype != VLM_DTYPE_QUANTISED || tiled)
    return;
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

/* The part of all magnitudes that a product may be wrong by. */
static gdouble
bound_of (gsize k, gboolean tiled)
{
  return tiled ? 0x1p-7 + (gdouble) k * 0x1p-22 : (gdouble) (k + 2) * 0x1p-23;
}

/* w and the magnitudes that its values are made of, both [rows][cols]. */
static void
check_product (const VlmModel *model, const VlmMatrix *matrix, gboolean many, const gdouble *w,
    const gdouble *sizes, const gfloat *x, const gfloat *bias, gsize m, const gfloat *y, gsize ldy)
{
  gsize k = matrix->cols, i, j, l;
  g_autofree gfloat *seen = g_new (gfloat, m * k);
  guint p;

  for (p = 0; p < matrix->n_parts; p++) {
    const VlmMatrixPart *part = &matrix->parts[p];
    const gboolean tiled = many && takes_tiles (model, part);

    round_inputs (part, tiled, x, m, k, seen);
    for (i = 0; i < m; i++) {
      for (j = part->first; j < part->first + part->rows; j++) {
        gdouble sum = bias[j], size = fabsf (bias[j]);

        for (l = 0; l < k; l++) {
          sum += seen[i * k + l] * w[j * k + l];
          size += fabsf (seen[i * k + l]) * sizes[j * k + l];
        }
        g_assert_cmpfloat (
            fabs (y[i * ldy + j] - sum), <=, bound_of (k, tiled) * size + (gdouble) k * 0x1p-125);
      }
    }
  }
}

/* inputs of m rows of x, and their product; the values beyond a row are not touched. */
static void
multiply (const VlmModel *model, const VlmMatrix *matrix, gboolean many, guint n_threads,
    const gfloat *x, gsize m, const gfloat *bias, gfloat *y, gsize ldy)
{
  VlmTeam *team = vlm_team_new (n_threads, NULL);
  VlmInputs inputs = { .many = many };
  VlmTileRoom room;
  VlmArena arena = { 0 };
  GError *error = NULL;
  gsize total = 0;

  vlm_inputs_measure (&total, team, m, matrix->cols);
  vlm_tile_room_measure (&total, team, matrix->rows);
  vlm_arena_reserve (&arena, total, &error);
  g_assert_no_error (error);
  vlm_inputs_take (&inputs, &arena, team, m, matrix->cols);
  vlm_tile_room_take (&room, &arena, team, matrix->rows);
  g_assert_true (vlm_team_begin_turn (team));
  g_assert_true (vlm_inputs_rows (&inputs, matrix, team, &model->kernels, x, matrix->cols, m));
  g_assert_true ((inputs.tiled.data != NULL) == (many && any_takes_tiles (model, matrix)));
  g_assert_true (vlm_matrix_multiply (
      matrix, team, &model->kernels, bias, &inputs, many ? &room : NULL, y, ldy));
  vlm_team_end_turn (team);
  vlm_arena_clear (&arena);
  vlm_team_free (team);
}

/* Against sums of doubles; and neither the other rows of the call nor the threads make a
 * difference. */
static void
check_rows (const VlmModel *model, const VlmMatrix *matrix, gboolean many, const gdouble *w,
    const gdouble *sizes, guint64 seed)
{
  static const gsize counts[] = { 1, 2, 7, 13, 75, 301 };
  gsize most = 301, rows = matrix->rows, k = matrix->cols, ldy = rows + 3, c, i;
  g_autofree gfloat *x = random_rows (most * k, seed);
  g_autofree gfloat *bias = random_rows (rows, seed + 1);
  g_autofree gfloat *all = g_new0 (gfloat, most * ldy);
  g_autofree gfloat *y = g_new0 (gfloat, most * ldy);

  multiply (model, matrix, many, 1, x, most, bias, all, ldy);
  check_product (model, matrix, many, w, sizes, x, bias, 20, all, ldy);
  for (c = 0; c < G_N_ELEMENTS (counts); c++) {
    gsize m = counts[c];

    multiply (model, matrix, many, 1 + c % 3, x + (most - m) * k, m, bias, y, ldy);
    for (i = 0; i < m; i++)
      g_assert_cmpmem (
          y + i * ldy, rows * sizeof (gfloat), all + (most - m + i) * ldy, rows * sizeof (gfloat));
    g_assert_cmpfloat (y[rows], ==, 0);
  }
}

static void
check_against (const VlmModel *model, const VlmMatrix *matrix, const gdouble *w,
    const gdouble *sizes, guint64 seed)
{
  check_rows (model, matrix, FALSE, w, sizes, seed);
  check_rows (model, matrix, TRUE, w, sizes, seed);
}

/* The weights are what the matrix says that they are. */
static void
check_matrix (const VlmModel *model, const VlmMatrix *matrix, guint64 seed)
{
  gsize n = (gsize) matrix->rows * matrix->cols, i;
  g_autofree gfloat *floats = g_new (gfloat, n);
  g_autofree gdouble *w = g_new (gdouble, n);
  g_autofree gdouble *sizes = g_new (gdouble, n);

  unpack (model, matrix, floats);
  for (i = 0; i < n; i++) {
    w[i] = floats[i];
    sizes[i] = fabsf (floats[i]);
  }
  check_against (model, matrix, w, sizes, seed);
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
    g_assert_true (vlm_matrix_has_integers (matrix)
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

/* ---- Tensors of several kinds in one product ----------------------------------------------- */

#define Q4_K ROWS_INTEGERS (4, VLM_SCALE_CODES, TRUE, 32)
#define Q6_K ROWS_INTEGERS (6, VLM_SCALE_CODES, FALSE, 16)
#define Q8_0 ROWS_INTEGERS (8, VLM_SCALE_F16, FALSE, 32)
#define Q5_1 ROWS_INTEGERS (5, VLM_SCALE_F16, TRUE, 32)

typedef struct
{
  RowsTensor tensors[N_PARTS];
  guint n_parts, n_groups; /* with automatic precision: parts, and kinds of rounded inputs */
} Mixture;

static const Mixture mixtures[] = {
  { { Q4_K, Q4_K, Q6_K }, 2, 2 },
  { { Q4_K, Q6_K, Q4_K }, 3, 2 },
  { { Q8_0, Q5_1, ROWS_FLOATS (F16) }, 3, 1 },
  { { ROWS_FLOATS (F32), ROWS_INTEGERS (8, VLM_SCALE_ROW, FALSE, 0), ROWS_FLOATS (BF16) }, 3, 1 },
  { { Q6_K, ROWS_FLOATS (F32), Q4_K }, 3, 2 },
  { { Q6_K, Q4_K, ROWS_INTEGERS (4, VLM_SCALE_F32, TRUE, 64) }, 3, 3 },
  { { ROWS_INTEGERS (4, VLM_SCALE_ROW, FALSE, 0), ROWS_FLOATS (F32), ROWS_FLOATS (F32) }, 2, 1 },
  { { Q4_K, Q4_K, Q4_K }, 1, 1 },
  { { Q8_0, ROWS_FLOATS (F32), ROWS_INTEGERS (8, VLM_SCALE_ROW, FALSE, 0) }, 3, 2 },
};

/* Every value of every tensor as a double, whatever it is packed as. */
static void
collect_weights (VlmTensorSource *source, gdouble *w, gdouble *sizes)
{
  gsize at = 0, r, c;
  guint i;

  for (i = 0; i < N_PARTS; i++) {
    const VlmTensorInfo *info = vlm_tensor_source_get_nth (source, i);

    for (r = 0; r < info->shape[0]; r++) {
      for (c = 0; c < info->shape[1]; c++, at++) {
        if (info->dtype == VLM_DTYPE_QUANTISED) {
          w[at] = rows_fixture_value (rows_fixture_get_rows (source, i), r, c, &sizes[at]);
        } else {
          w[at] = rows_fixture_get_floats (source, i)[r * info->shape[1] + c];
          sizes[at] = fabs (w[at]);
        }
      }
    }
  }
}

/* What is packed, is packed once, and as what it was. */
static void
check_kinds (const VlmModel *model, const VlmMatrix *matrix, VlmTensorSource *source)
{
  gsize n_bytes = 0;
  guint p, i = 0, at = 0;

  for (p = 0; p < matrix->n_parts; p++) {
    const VlmMatrixPart *part = &matrix->parts[p];
    gboolean is_int = part->dtype == VLM_DTYPE_QUANTISED;
    guint panel = is_int ? model->kernels.int_panel : model->kernels.panel;

    for (; i < N_PARTS && at < part->first + part->rows; i++) {
      const VlmTensorInfo *info = vlm_tensor_source_get_nth (source, i);

      g_assert_cmpint (info->dtype, ==, part->dtype);
      g_assert_true (!is_int || vlm_int_format_equal (&info->format, &part->format));
      at += info->shape[0];
    }
    g_assert_cmpuint (at, ==, part->first + part->rows);
    n_bytes += (part->rows + panel - 1) / panel
        * (is_int ? vlm_int_panel_bytes (&model->kernels, &part->format, matrix->cols)
                  : matrix->cols * panel * vlm_dtype_size (part->dtype));
  }
  g_assert_cmpuint (vlm_matrix_get_bytes (matrix), ==, n_bytes);
}

/* Inputs that a norm makes are those that are made of normalised rows; each kind is made once. */
static void
check_norm (const VlmModel *model, const VlmMatrix *matrix, gboolean many, guint n_groups)
{
  enum
  {
    M = 5
  };
  gsize k = matrix->cols, ldy = matrix->rows, i;
  g_autofree gfloat *x = random_rows (M * k, 7);
  g_autofree gfloat *weight = random_rows (k, 8);
  g_autofree gfloat *normed = g_new (gfloat, M * k);
  g_autofree gfloat *expected = g_new (gfloat, M * ldy);
  g_autofree gfloat *found = g_new (gfloat, M * ldy);
  const VlmNorm norm = { weight, NULL };
  VlmTeam *team = vlm_team_new (2, NULL);
  VlmInputs inputs = { .many = many };
  VlmTileRoom room;
  VlmArena arena = { 0 };
  gsize total = 0;

  for (i = 0; i < M; i++)
    model->kernels.rms_norm (normed + i * k, x + i * k, weight, k, 1e-5f);
  multiply (model, matrix, many, 1, normed, M, NULL, expected, ldy);
  vlm_inputs_measure (&total, team, M, k);
  vlm_tile_room_measure (&total, team, matrix->rows);
  g_assert_true (vlm_arena_reserve (&arena, total, NULL));
  vlm_inputs_take (&inputs, &arena, team, M, k);
  vlm_tile_room_take (&room, &arena, team, matrix->rows);
  g_assert_true (vlm_team_begin_turn (team));
  g_assert_true (vlm_inputs_norm (&inputs, matrix, team, &model->kernels, &norm, 1e-5f, x, M));
  g_assert_cmpuint (inputs.n_rounded, ==, n_groups);
  g_assert_true (
      vlm_matrix_multiply (matrix, team, &model->kernels, NULL, &inputs, &room, found, ldy));
  vlm_team_end_turn (team);
  g_assert_cmpmem (found, M * ldy * sizeof (gfloat), expected, M * ldy * sizeof (gfloat));
  vlm_arena_clear (&arena);
  vlm_team_free (team);
}

/* As many threads as there may be give the same panels. */
static void
check_packing (
    const VlmMatrixLoader *loader, const VlmTensorInfo *const *infos, const VlmMatrix *matrix)
{
  g_autoptr (VlmSlab) slab = vlm_slab_new ();
  VlmTeam *alone = vlm_team_new (1, NULL);
  VlmMatrixLoader other = *loader;
  VlmMatrix *again;
  guint p;

  other.team = alone;
  other.slab = slab;
  again = vlm_matrix_load (&other, infos, N_PARTS, TRUE, NULL);
  g_assert_cmpuint (again->n_parts, ==, matrix->n_parts);
  for (p = 0; p < matrix->n_parts; p++) {
    const VlmMatrixPart *part = &matrix->parts[p];
    gsize size = (part->rows + part->panel - 1) / part->panel * part->panel_bytes;

    g_assert_cmpmem (again->parts[p].data, size, part->data, size);
  }
  vlm_matrix_free (again);
  vlm_team_free (alone);
}

static void
check_mixture (VlmModel *model, const Mixture *mixture, const Shape *shape, guint32 seed)
{
  RowsTensor tensors[N_PARTS];
  const VlmTensorInfo *infos[N_PARTS];
  gsize n = (shape->rows[0] + shape->rows[1] + shape->rows[2]) * shape->cols;
  g_autofree gdouble *w = g_new (gdouble, n);
  g_autofree gdouble *sizes = g_new (gdouble, n);
  g_autoptr (VlmTensorSource) source = NULL;
  VlmTeam *team = vlm_team_new (2, NULL);
  g_autoptr (GError) error = NULL;
  guint precision, i;

  for (i = 0; i < N_PARTS; i++) {
    tensors[i] = mixture->tensors[i];
    tensors[i].name = part_names[i];
    tensors[i].rows = shape->rows[i];
    tensors[i].cols = shape->cols;
  }
  source = rows_fixture_new (tensors, N_PARTS, seed);
  collect_weights (source, w, sizes);
  for (i = 0; i < N_PARTS; i++)
    infos[i] = vlm_tensor_source_get_nth (source, i);
  for (precision = VLM_PRECISION_AUTO; precision <= VLM_PRECISION_EXACT; precision++) {
    gboolean exact = precision == VLM_PRECISION_EXACT;
    g_autoptr (VlmSlab) slab = vlm_slab_new ();
    VlmMatrixLoader loader = { source, &model->kernels, precision, team, slab, NULL };
    VlmMatrix *matrix = vlm_matrix_load (&loader, infos, N_PARTS, TRUE, &error);

    g_assert_no_error (error);
    g_assert_true (vlm_matrix_has_integers (matrix) == !exact);
    if (!exact) {
      g_assert_cmpuint (matrix->n_parts, ==, mixture->n_parts);
      check_kinds (model, matrix, source);
    }
    check_packing (&loader, infos, matrix);
    check_against (model, matrix, w, sizes, seed + precision);
    check_norm (model, matrix, FALSE, exact ? 0 : mixture->n_groups);
    if (any_takes_tiles (model, matrix))
      check_norm (model, matrix, TRUE, 0);
    vlm_matrix_free (matrix);
  }
  vlm_team_free (team);
}

static void
test_mixtures (void)
{
  static const Shape shapes[] = { { { 1, 2, 1 }, 1 }, { { 20, 3, 7 }, 16 }, { { 9, 20, 4 }, 70 },
    { { 96, 32, 32 }, 256 }, { { 33, 17, 50 }, 300 } };
  VlmModel model = { 0 };
  VlmCpuLevel level;
  gsize i, j;

  g_assert_true (vlm_cpu_level_choose (&level, NULL));
  g_assert_cmpint (vlm_kernels_init (&model.kernels, level), ==, 0);
  for (i = 0; i < G_N_ELEMENTS (mixtures); i++) {
    for (j = 0; j < G_N_ELEMENTS (shapes); j++)
      check_mixture (&model, &mixtures[i], &shapes[j], 100 * i + j);
  }
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
  g_test_add_func ("/matrix/mixtures", test_mixtures);
  return g_test_run ();
}
