/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Products that are used tile by tile against the same steps one after the other: every bit of what
 * the next product multiplies, for every kind of weights, however the work is cut.
 */

#include <string.h>

#include "engine/model/level.h"
#include "engine/model/tiles.h"
#include "golden.h"
#include "tests/formats/rows-fixture.h"

#define MAX_TENSORS 3
#define MOST_ROWS 301

/* Floats behind the room for tiles, which nothing may touch: not even instructions that sanitizers
 * do not see. */
#define GUARD 4096
#define UNTOUCHED 12345

#define INT8_ROW ROWS_INTEGERS (8, VLM_SCALE_ROW, FALSE, 0)
#define INT4_64 ROWS_INTEGERS (4, VLM_SCALE_F16, FALSE, 64)
#define Q4_K ROWS_INTEGERS (4, VLM_SCALE_CODES, TRUE, 32)
#define Q6_K ROWS_INTEGERS (6, VLM_SCALE_CODES, FALSE, 16)
#define INT8_512 ROWS_INTEGERS (8, VLM_SCALE_F16, FALSE, 512)

/* The tensors of a matrix. */
typedef struct
{
  guint n;
  RowsTensor tensors[MAX_TENSORS];
} Kind;

static const Kind product_kinds[] = {
  { 1, { INT8_ROW } },
  { 1, { INT4_64 } },
  { 1, { ROWS_FLOATS (F32) } },
  { 2, { Q4_K, Q6_K } },
  { 2, { ROWS_FLOATS (F16), INT8_ROW } },
  { 3, { Q4_K, Q6_K, Q4_K } },
};

static const Kind next_kinds[] = {
  { 1, { INT8_ROW } },
  { 1, { INT4_64 } },
  { 1, { ROWS_FLOATS (BF16) } },
  { 1, { INT8_512 } },
  { 3, { Q6_K, ROWS_FLOATS (F32), Q4_K } },
};

typedef struct
{
  guint n_segments;
  gsize segment, cols;
  gsize unit;
} Shape;

static const Shape shapes[] = { { 1, 1, 16, 0 }, { 1, 70, 33, 0 }, { 1, 300, 256, 0 },
  { 1, 512, 70, 0 }, { 2, 64, 16, 0 }, { 2, 100, 70, 0 }, { 2, 192, 256, 0 }, { 2, 256, 33, 0 },
  { 3, 48, 33, 0 }, { 3, 128, 256, 0 }, { 3, 320, 70, 0 }, { 1, 640, 33, 80 }, { 2, 480, 33, 96 } };

static VlmKernels kernels;

static gfloat *
random_rows (gsize n, guint32 seed)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (seed);
  gfloat *x = g_new (gfloat, n);
  gsize i;

  for (i = 0; i < n; i++)
    x[i] = (gfloat) g_rand_double_range (random, -1, 1) * (i % 29 == 0 ? 20 : 1);
  return x;
}

/* A matrix of random weights, in which each tensor has its share of the rows. */
static VlmMatrix *
make_matrix (const Kind *kind, VlmSlab *slab, gsize rows, gsize cols, guint32 seed)
{
  static const gchar *const names[MAX_TENSORS] = { "a", "b", "c" };
  RowsTensor tensors[MAX_TENSORS];
  const VlmTensorInfo *infos[MAX_TENSORS];
  g_autoptr (VlmTensorSource) source = NULL;
  g_autoptr (GError) error = NULL;
  VlmTeam *team = vlm_team_new (1, NULL);
  VlmMatrixLoader loader = { NULL, &kernels, VLM_PRECISION_AUTO, team, slab, NULL };
  guint n = MIN (kind->n, rows), i;
  VlmMatrix *matrix;

  for (i = 0; i < n; i++) {
    tensors[i] = kind->tensors[i];
    tensors[i].name = names[i];
    tensors[i].rows = i + 1 < n ? rows / n : rows - rows / n * (n - 1);
    tensors[i].cols = cols;
  }
  source = rows_fixture_new (tensors, n, seed);
  for (i = 0; i < n; i++)
    infos[i] = vlm_tensor_source_get_nth (source, i);
  loader.source = source;
  matrix = vlm_matrix_load (&loader, infos, n, TRUE, &error);
  g_assert_no_error (error);
  vlm_team_free (team);
  return matrix;
}

/* ---- What becomes of tiles ----------------------------------------------------------------- */

typedef struct
{
  gsize segment, unit;
  gint n_parted; /* atomic; tiles that had not all columns */
  gint *seen;    /* [segment] rows so far, of each column */
  gfloat *past;  /* [segment] what the rows so far made */
} Use;

static void
count_tile (const VlmTile *tile, Use *use)
{
  gsize i;

  g_assert_cmpuint (tile->column % use->unit, ==, 0);
  for (i = 0; i < tile->n_columns; i++)
    g_atomic_int_add (&use->seen[tile->column + i], (gint) tile->n_rows);
  if (tile->n_columns < use->segment)
    g_atomic_int_inc (&use->n_parted);
}

static void
gelu_tile (VlmTile *tile, gpointer user_data)
{
  gsize i;

  count_tile (tile, user_data);
  for (i = 0; i < tile->n_rows; i++)
    kernels.gelu_tanh (tile->values[0] + i * tile->ld, tile->n_columns);
}

static void
gate_tile (VlmTile *tile, gpointer user_data)
{
  gsize i;

  count_tile (tile, user_data);
  for (i = 0; i < tile->n_rows; i++) {
    gfloat *gate = tile->values[0] + i * tile->ld;

    kernels.silu_mul (gate, gate, tile->values[1] + i * tile->ld, tile->n_columns);
  }
}

/* A sum that goes on from row to row, into the third segment. */
static void
chain_tile (VlmTile *tile, gpointer user_data)
{
  Use *use = user_data;
  gfloat *made = tile->values[2];
  gsize i, c;

  for (c = 0; c < tile->n_columns; c++)
    g_assert_cmpint (use->seen[tile->column + c], ==, (gint) tile->first);
  count_tile (tile, use);
  for (i = 0; i < tile->n_rows; i++) {
    for (c = 0; c < tile->n_columns; c++) {
      gfloat *past = &use->past[tile->column + c];

      *past = 0.5f * *past + tile->values[0][i * tile->ld + c] * tile->values[1][i * tile->ld + c];
      made[i * tile->ld + c] += *past;
    }
  }
  tile->values[0] = made;
}

static const VlmTileFunc uses[VLM_MAX_SEGMENTS] = { gelu_tile, gate_tile, chain_tile };

/* ---- Both ways ------------------------------------------------------------------------------ */

typedef struct
{
  const Shape *shape;
  const VlmMatrix *matrix, *next;
  const gfloat *x, *bias; /* [MOST_ROWS][cols], [n_segments * segment] */
  gboolean many;          /* what both inputs are */
} Case;

/* Memory of one way, which ends in what next multiplies. */
typedef struct
{
  VlmTeam *team;
  VlmArena arena;
  VlmInputs first, second;
  VlmTileRoom room;
  gfloat *y, *guard;
  Use use;
} Way;

static void
way_init (Way *way, const Case *c, gsize m, guint n_threads)
{
  gsize rows = c->matrix->rows, segment = c->shape->segment, total = 0, i;

  memset (way, 0, sizeof *way);
  way->team = vlm_team_new (n_threads, NULL);
  vlm_inputs_measure (&total, way->team, m, c->matrix->cols);
  vlm_inputs_measure (&total, way->team, m, segment);
  vlm_arena_measure (&total, m * rows);
  vlm_tile_room_measure (&total, way->team, rows);
  vlm_arena_measure (&total, GUARD);
  g_assert_true (vlm_arena_reserve (&way->arena, total, NULL));
  vlm_inputs_take (&way->first, &way->arena, way->team, m, c->matrix->cols);
  vlm_inputs_take (&way->second, &way->arena, way->team, m, segment);
  way->first.many = way->second.many = c->many;
  /* Rows of tiles beyond the last are to be the same. */
  memset (way->second.storage, 0, way->second.size * sizeof (gfloat));
  way->y = vlm_arena_take (&way->arena, m * rows);
  vlm_tile_room_take (&way->room, &way->arena, way->team, rows);
  way->guard = vlm_arena_take (&way->arena, GUARD);
  for (i = 0; i < GUARD; i++)
    way->guard[i] = UNTOUCHED;
  way->use = (Use){ segment, MAX (c->shape->unit, 1), 0, g_new0 (gint, segment),
    g_new0 (gfloat, segment) };
}

static void
way_clear (Way *way)
{
  gsize i;

  for (i = 0; i < GUARD; i++)
    g_assert_cmpfloat (way->guard[i], ==, UNTOUCHED);
  g_free (way->use.seen);
  g_free (way->use.past);
  vlm_arena_clear (&way->arena);
  vlm_team_free (way->team);
}

/* The product, all of it as one tile, and its rounding. */
static void
go_in_steps (Way *way, const Case *c, gsize m)
{
  VlmTile all = { 0, m, 0, c->shape->segment, { NULL }, c->matrix->rows };
  guint s;

  g_assert_true (vlm_matrix_multiply (
      c->matrix, way->team, &kernels, c->bias, &way->first, &way->room, way->y, c->matrix->rows));
  for (s = 0; s < c->shape->n_segments; s++)
    all.values[s] = way->y + s * c->shape->segment;
  uses[c->shape->n_segments - 1](&all, &way->use);
  g_assert_true (vlm_inputs_rows (
      &way->second, c->next, way->team, &kernels, all.values[0], c->matrix->rows, m));
}

static void
go_by_tiles (Way *way, const Case *c, gsize m)
{
  const VlmEpilogue epilogue = { .n_segments = c->shape->n_segments,
    .unit = c->shape->unit,
    .in_order = c->shape->n_segments == 3,
    .func = uses[c->shape->n_segments - 1],
    .user_data = &way->use,
    .next = &way->second,
    .next_matrix = c->next };
  gsize i;

  g_assert_true (vlm_matrix_multiply_tiles (
      c->matrix, way->team, &kernels, c->bias, &way->first, &way->room, &epilogue));
  for (i = 0; i < c->shape->segment; i++)
    g_assert_cmpint (way->use.seen[i], ==, (gint) m);
}

static void
check_same (const VlmInputs *found, const VlmInputs *expected, gsize k)
{
  gsize n = expected->n, i;
  guint form;

  g_assert_cmpuint (found->n, ==, n);
  g_assert_true ((found->x != NULL) == (expected->x != NULL));
  for (i = 0; expected->x != NULL && i < n; i++)
    g_assert_cmpmem (found->x + i * found->ldx, k * sizeof (gfloat),
        expected->x + i * expected->ldx, k * sizeof (gfloat));
  g_assert_cmpuint (found->n_rounded, ==, expected->n_rounded);
  for (form = 0; form < expected->n_rounded; form++) {
    const VlmActivations *a = &found->rounded[form], *b = &expected->rounded[form];
    gsize n_groups = n * b->ldg;

    g_assert_cmpuint (a->ldq, ==, b->ldq);
    g_assert_cmpuint (a->ldg, ==, b->ldg);
    g_assert_cmpuint (a->group, ==, b->group);
    g_assert_cmpmem (a->q, n * a->ldq, b->q, n * b->ldq);
    g_assert_cmpmem (a->scale, n_groups * sizeof (gfloat), b->scale, n_groups * sizeof (gfloat));
    g_assert_cmpmem (a->sum, n_groups * sizeof (gint32), b->sum, n_groups * sizeof (gint32));
  }
  g_assert_true ((found->tiled.data != NULL) == (expected->tiled.data != NULL));
  if (expected->tiled.data != NULL)
    g_assert_cmpmem (found->tiled.data, kernels.tiled_bytes (n, k), expected->tiled.data,
        kernels.tiled_bytes (n, k));
}

/* The sum is written where it belongs and nowhere else; its first addend may be itself. */
static void
go_to_sums (Way *way, const Case *c, gsize m)
{
  gsize rows = c->matrix->rows, n = m * rows, i;
  g_autofree gfloat *addend = random_rows (n, 3);
  g_autofree gfloat *apart = g_new0 (gfloat, n + 1);
  g_autofree gfloat *sum = g_new0 (gfloat, n + 1);

  memcpy (sum, addend, n * sizeof (gfloat));
  g_assert_true (vlm_matrix_multiply (
      c->matrix, way->team, &kernels, c->bias, &way->first, &way->room, way->y, rows));
  g_assert_true (vlm_matrix_multiply_add (
      c->matrix, way->team, &kernels, c->bias, &way->first, &way->room, addend, apart));
  g_assert_true (vlm_matrix_multiply_add (
      c->matrix, way->team, &kernels, c->bias, &way->first, &way->room, sum, sum));
  for (i = 0; i < n; i++)
    way->y[i] += addend[i];
  g_assert_cmpmem (apart, n * sizeof (gfloat), way->y, n * sizeof (gfloat));
  g_assert_cmpmem (sum, n * sizeof (gfloat), way->y, n * sizeof (gfloat));
  g_assert_cmpfloat (apart[n], ==, 0);
  g_assert_cmpfloat (sum[n], ==, 0);
}

typedef void (*WayFunc) (Way *way, const Case *c, gsize m);

static void
go (Way *way, const Case *c, gsize m, guint n_threads, WayFunc func)
{
  way_init (way, c, m, n_threads);
  g_assert_true (vlm_team_begin_turn (way->team));
  g_assert_true (
      vlm_inputs_rows (&way->first, c->matrix, way->team, &kernels, c->x, c->matrix->cols, m));
  func (way, c, m);
  vlm_team_end_turn (way->team);
}

/* How many tiles had a part of the columns. */
static gint
check_case (const Case *c)
{
  static const gsize counts[] = { 1, 37, MOST_ROWS };
  static const guint n_threads[] = { 1, 2, 3 };
  gint n_parted = 0;
  gsize i;

  for (i = 0; i < G_N_ELEMENTS (counts); i++) {
    Way steps, tiles;

    go (&steps, c, counts[i], 1, go_in_steps);
    go (&tiles, c, counts[i], n_threads[i], go_by_tiles);
    check_same (&tiles.second, &steps.second, c->shape->segment);
    n_parted += tiles.use.n_parted;
    way_clear (&tiles);
    way_clear (&steps);
  }
  return n_parted;
}

typedef gint (*CaseFunc) (const Case *c);

static gint
check_kinds (
    const Kind *product, const Kind *next, const Shape *shape, gboolean many, CaseFunc func)
{
  gsize rows = shape->n_segments * shape->segment;
  g_autoptr (VlmSlab) slab = vlm_slab_new ();
  g_autofree gfloat *x = random_rows (MOST_ROWS * shape->cols, 1);
  g_autofree gfloat *bias = random_rows (rows, 2);
  VlmMatrix *matrix = make_matrix (product, slab, rows, shape->cols, 11);
  VlmMatrix *next_matrix = make_matrix (next, slab, 5, shape->segment, 12);
  const Case c = { shape, matrix, next_matrix, x, bias, many };
  gint result = func (&c);

  vlm_matrix_free (next_matrix);
  vlm_matrix_free (matrix);
  return result;
}

static void
test_all_kinds (gconstpointer user_data)
{
  const gboolean many = GPOINTER_TO_INT (user_data);
  gsize i, j, k;

  for (i = 0; i < G_N_ELEMENTS (product_kinds); i++) {
    for (j = 0; j < G_N_ELEMENTS (next_kinds); j++) {
      for (k = 0; k < G_N_ELEMENTS (shapes); k++)
        check_kinds (&product_kinds[i], &next_kinds[j], &shapes[k], many, check_case);
    }
  }
}

static gint
check_sums (const Case *c)
{
  Way one, many;

  go (&one, c, 1, 1, go_to_sums);
  way_clear (&one);
  go (&many, c, MOST_ROWS, 2, go_to_sums);
  way_clear (&many);
  return 0;
}

static void
test_sums (gconstpointer user_data)
{
  const gboolean many = GPOINTER_TO_INT (user_data);
  gsize i, k;

  for (i = 0; i < G_N_ELEMENTS (product_kinds); i++) {
    for (k = 0; k < G_N_ELEMENTS (shapes); k++)
      check_kinds (&product_kinds[i], &next_kinds[0], &shapes[k], many, check_sums);
  }
}

/* Columns are parted where groups and panels allow it, and only there. */
static void
test_parting (void)
{
  static const Kind rows = { 1, { INT8_ROW } }, groups = { 1, { INT4_64 } };
  static const Kind long_groups = { 1, { INT8_512 } }, floats = { 1, { ROWS_FLOATS (F32) } };
  static const Kind halves = { 2, { Q4_K, Q6_K } };
  static const Shape one = { 1, 300, 48, 0 }, two = { 2, 256, 48, 0 };
  static const Shape three = { 3, 192, 48, 0 }, together = { 1, 500, 48, 96 };
  static const Shape odd = { 2, 200, 48, 0 };

  g_assert_cmpint (check_kinds (&rows, &rows, &one, FALSE, check_case), >, 0);
  g_assert_cmpint (check_kinds (&groups, &rows, &two, FALSE, check_case), >, 0);
  g_assert_cmpint (check_kinds (&halves, &groups, &two, FALSE, check_case), >, 0);
  g_assert_cmpint (check_kinds (&rows, &groups, &three, FALSE, check_case), >, 0);
  g_assert_cmpint (check_kinds (&rows, &floats, &together, FALSE, check_case), >, 0);
  g_assert_cmpint (check_kinds (&rows, &rows, &odd, FALSE, check_case), ==, 0);
  g_assert_cmpint (check_kinds (&halves, &groups, &three, FALSE, check_case), ==, 0);
  g_assert_cmpint (check_kinds (&rows, &long_groups, &two, FALSE, check_case), ==, 0);
}

/* Rows in tiles are put in steps of their own, whatever the groups of the weights. */
static void
test_parting_of_many (void)
{
  static const Kind groups = { 1, { INT4_64 } }, long_groups = { 1, { INT8_512 } };
  static const Kind halves = { 2, { Q4_K, Q6_K } };
  static const Shape two = { 2, 256, 48, 0 }, three = { 3, 192, 48, 0 }, odd = { 2, 200, 48, 0 };

  g_assert_cmpint (check_kinds (&groups, &long_groups, &two, TRUE, check_case), >, 0);
  g_assert_cmpint (check_kinds (&halves, &halves, &two, TRUE, check_case), >, 0);
  g_assert_cmpint (check_kinds (&groups, &halves, &three, TRUE, check_case), >, 0);
  g_assert_cmpint (check_kinds (&groups, &groups, &odd, TRUE, check_case), ==, 0);
}

int
main (int argc, char **argv)
{
  VlmCpuLevel level;

  g_test_init (&argc, &argv, NULL);
  golden_skip_without_level ();
  g_assert_true (vlm_cpu_level_choose (&level, NULL));
  g_assert_cmpint (vlm_kernels_init (&kernels, level), ==, 0);
  g_test_add_data_func ("/tiles/all-kinds", GINT_TO_POINTER (FALSE), test_all_kinds);
  g_test_add_data_func ("/tiles/sums", GINT_TO_POINTER (FALSE), test_sums);
  if (kernels.matmul_tiled != NULL) {
    g_test_add_data_func ("/tiles/many/all-kinds", GINT_TO_POINTER (TRUE), test_all_kinds);
    g_test_add_data_func ("/tiles/many/sums", GINT_TO_POINTER (TRUE), test_sums);
    g_test_add_func ("/tiles/many/parting", test_parting_of_many);
  }
  g_test_add_func ("/tiles/parting", test_parting);
  return g_test_run ();
}
