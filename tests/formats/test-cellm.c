/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* .cellm files as containers: what was written is read. */

#include <math.h>
#include <string.h>

#include "cellm-fixture.h"
#include "engine/formats/cellm.h"
#include "engine/formats/half.h"
#include "engine/vlm.h"
#include "fixture.h"

/* Every value of a tensor, some rows at a time; NULL with an error. */
static gfloat *
read_values (VlmTensorSource *source, const VlmTensorInfo *info, gsize step, GError **error)
{
  gsize n = vlm_tensor_count_values (info), size = vlm_dtype_size (info->dtype), i, j;
  g_autofree gfloat *values = g_new (gfloat, n);
  g_autofree guint8 *raw = g_malloc (n * MAX (size, 1));
  VlmQuantRows rows = { 0 };
  gboolean good = TRUE;

  if (info->dtype != VLM_DTYPE_QUANTISED) {
    good = vlm_tensor_source_read (source, info, 0, raw, n * size, NULL, error);
    for (i = 0; i < n; i++) {
      guint32 word = (guint32) ((guint16 *) raw)[i] << 16;

      if (info->dtype == VLM_DTYPE_F16)
        values[i] = vlm_half_to_float (((guint16 *) raw)[i]);
      else
        memcpy (&values[i], info->dtype == VLM_DTYPE_F32 ? (gpointer) (raw + 4 * i) : &word, 4);
    }
    return good ? g_steal_pointer (&values) : NULL;
  }
  g_assert_true (vlm_quant_rows_init (&rows, &info->format, step, info->shape[1], NULL));
  for (i = 0; good && i < info->shape[0]; i += step) {
    gsize n_rows = MIN (step, info->shape[0] - i);
    VlmIntRows view = vlm_quant_rows_view (&rows, 0);

    good = vlm_tensor_source_read_rows (source, info, i, n_rows, &rows, NULL, error);
    for (j = 0; good && j < n_rows; j++)
      vlm_int_dequantise_row (
          &info->format, values + (i + j) * info->shape[1], &view, j, info->shape[1]);
  }
  vlm_quant_rows_clear (&rows);
  return good ? g_steal_pointer (&values) : NULL;
}

static VlmTensorSource *
open_tensors (const gchar *path)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmCellm) cellm = vlm_cellm_open (path, &error);
  VlmTensorSource *source;

  g_assert_no_error (error);
  source = vlm_cellm_get_tensors (cellm, &error);
  g_assert_no_error (error);
  return source;
}

/* All values of the tensor called name, from a file with this one. Any error is a failure. */
static gfloat *
read_back (CellmFixture *fixture, const gchar *name, const VlmTensorInfo **info)
{
  static VlmTensorInfo copy;
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *path = cellm_fixture_save_in (directory, fixture);
  g_autoptr (VlmTensorSource) source = open_tensors (path);
  const VlmTensorInfo *found = vlm_tensor_source_lookup (source, name);
  g_autoptr (GError) error = NULL;
  gfloat *values;

  g_assert_nonnull (found);
  values = read_values (source, found, 2, &error);
  g_assert_no_error (error);
  if (info != NULL) {
    copy = *found;
    copy.name = NULL;
    *info = &copy;
  }
  fixture_directory_remove (directory);
  return values;
}

/* ---- Round trip --------------------------------------------------------------------------- */

static void
check_sample (VlmTensorSource *source, const CellmSample *sample, gsize step)
{
  const VlmTensorInfo *info = vlm_tensor_source_lookup (source, sample->name);
  g_autofree gfloat *stored = g_new (gfloat, cellm_sample_count (sample));
  g_autoptr (CellmFixture) again = cellm_fixture_new ();
  g_autoptr (GError) error = NULL;
  g_autofree gfloat *values = NULL;
  gsize i;

  g_assert_nonnull (info);
  g_assert_cmpmem (info->shape, info->rank * sizeof (*info->shape), sample->shape,
      sample->rank * sizeof (*sample->shape));
  cellm_fixture_add_sample (again, sample, stored);
  values = read_values (source, info, step, &error);
  g_assert_no_error (error);
  for (i = 0; i < cellm_sample_count (sample); i++) {
    /* The kernels may add a minimum without rounding the product first. */
    if (sample->kind == CELLM_U32)
      g_assert_cmpfloat_with_epsilon (values[i], stored[i], 2e-6f);
    else
      g_assert_cmpfloat (values[i], ==, stored[i]);
  }
}

static void
check_round_trip (guint alignment, gboolean tight)
{
  gchar *directory = fixture_directory_new ();
  g_autoptr (CellmFixture) fixture = cellm_fixture_new_samples ();
  g_autofree gchar *path = NULL;
  g_autoptr (VlmTensorSource) source = NULL;
  gsize step, i;

  fixture->alignment = alignment;
  fixture->tight = tight;
  path = cellm_fixture_save_in (directory, fixture);
  source = open_tensors (path);
  g_assert_cmpuint (vlm_tensor_source_get_count (source), ==, CELLM_N_SAMPLES);
  for (step = 1; step < 5; step++) {
    for (i = 0; i < CELLM_N_SAMPLES; i++)
      check_sample (source, &cellm_samples[i], step);
  }
  g_assert_true (vlm_tensor_source_verify_rest (source, NULL, NULL));
  fixture_directory_remove (directory);
}

/* Writers align to 64, or let scales follow their tensors at any even place. */
static void
test_round_trip (void)
{
  check_round_trip (64, FALSE);
  check_round_trip (64, TRUE);
  check_round_trip (4, FALSE);
}

static void
test_formats (void)
{
  static const VlmIntFormat formats[] = {
    { .bits = 8, .scale = VLM_SCALE_ROW },
    { .bits = 4, .scale = VLM_SCALE_ROW },
    { .bits = 4, .scale = VLM_SCALE_ROW },
    { .bits = 4, .scale = VLM_SCALE_F16, .group = 64 },
    { .bits = 4, .scale = VLM_SCALE_F16, .group = 64 },
    { .bits = 4, .scale = VLM_SCALE_F16, .group = 128 },
    { .bits = 4, .scale = VLM_SCALE_F32, .has_min = TRUE, .group = 64 },
  };
  gchar *directory = fixture_directory_new ();
  g_autoptr (CellmFixture) fixture = cellm_fixture_new_samples ();
  g_autofree gchar *path = cellm_fixture_save_in (directory, fixture);
  g_autoptr (VlmTensorSource) source = open_tensors (path);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (formats); i++) {
    const VlmTensorInfo *info = vlm_tensor_source_lookup (source, cellm_samples[3 + i].name);

    g_assert_cmpint (info->dtype, ==, VLM_DTYPE_QUANTISED);
    g_assert_true (vlm_int_format_equal (&info->format, &formats[i]));
  }
  /* What the file spends: integers, scales and biases. */
  g_assert_cmpuint (vlm_tensor_source_lookup (source, "rows.weight")->n_bytes, ==, 28 + 8);
  g_assert_cmpuint (vlm_tensor_source_lookup (source, "odd.weight")->n_bytes, ==, 6 + 4);
  g_assert_cmpuint (vlm_tensor_source_lookup (source, "affine.weight")->n_bytes, ==, 128 + 32);
  fixture_directory_remove (directory);
}

/* ---- Single numbers ----------------------------------------------------------------------- */

/* A file with one i4 or i8 matrix "x" of one row, byte for byte. */
static CellmFixture *
new_row (const gchar *dtype, guint64 cols, gconstpointer data, gsize size, guint16 scale)
{
  CellmFixture *fixture = cellm_fixture_new ();
  const guint64 shape[] = { 1, cols }, scales[] = { 1 };

  cellm_fixture_add (fixture, "x", dtype, 2, shape, data, size);
  cellm_fixture_add (fixture, "x.qscale", "f16", 1, scales, &scale, sizeof (scale));
  return fixture;
}

static void
assert_row (CellmFixture *fixture, const gfloat *expected, gsize n)
{
  g_autofree gfloat *values = read_back (fixture, "x", NULL);
  gsize i;

  for (i = 0; i < n; i++)
    g_assert_cmpfloat (values[i], ==, expected[i]);
  cellm_fixture_free (fixture);
}

#define ONE 0x3c00

/* The low half first, 8 taken off: no two's complement. */
static void
test_nibbles (void)
{
  static const gfloat four[] = { -8, -7, 0, 7 }, odd[] = { 1, 2, -3 };

  assert_row (new_row ("i4", 4, "\x10\xf8", 2, ONE), four, 4);
  /* Nobody looks at the spare half byte. */
  assert_row (new_row ("i4", 3, "\xa9\x85", 2, ONE), odd, 3);
  assert_row (new_row ("i4", 3, "\xa9\x05", 2, ONE), odd, 3);
}

static void
test_bytes (void)
{
  static const gfloat expected[] = { -128, -1, 0, 127 };

  assert_row (new_row ("i8", 4, "\x80\xff\x00\x7f", 4, ONE), expected, 4);
}

static void
test_small_scales (void)
{
  const gfloat least = ldexpf (1, -24), subnormal[] = { 3 * least, -127 * least };
  static const gfloat zero[] = { 0, 0 };

  assert_row (new_row ("i8", 2, "\x03\x81", 2, 0x0001), subnormal, 2);
  assert_row (new_row ("i8", 2, "\x03\x81", 2, 0x0000), zero, 2);
}

/* The packed shape stands in the index, and the name loses its end. */
static void
test_affine_words (void)
{
  g_autoptr (CellmFixture) fixture = cellm_fixture_new ();
  const guint64 shape[] = { 2, 8 }, groups[] = { 2, 1 };
  const gfloat scales[] = { 0.5f, -2 }, biases[] = { -1, 100 };
  g_autofree gfloat *values = NULL;
  const VlmTensorInfo *info;
  guint32 words[16] = { 0x76543210, 0xfedcba98 };
  guint i;

  words[8] = 0x0000000f;
  cellm_fixture_add (fixture, "a.weight", "u32", 2, shape, words, sizeof (words));
  cellm_fixture_add (fixture, "a.scales", "f32", 2, groups, scales, sizeof (scales));
  cellm_fixture_add (fixture, "a.biases", "f32", 2, groups, biases, sizeof (biases));
  values = read_back (fixture, "a.weight", &info);
  g_assert_cmpuint (info->shape[0], ==, 2);
  g_assert_cmpuint (info->shape[1], ==, 64);
  for (i = 0; i < 16; i++)
    g_assert_cmpfloat (values[i], ==, i * 0.5f - 1);
  g_assert_cmpfloat (values[16], ==, -1);
  g_assert_cmpfloat (values[64], ==, 15 * -2 + 100);
  g_assert_cmpfloat (values[65], ==, 100);
}

/* Scales and biases of halves are kept as halves. */
static void
test_affine_halves (void)
{
  g_autoptr (CellmFixture) fixture = cellm_fixture_new ();
  const guint64 shape[] = { 1, 8 }, groups[] = { 1, 2 };
  const guint16 scales[] = { ONE, 0x4000 }, biases[] = { 0xbc00, 0x0001 };
  g_autofree gfloat *values = NULL;
  const VlmTensorInfo *info;
  guint32 words[8] = { 0x21 };

  words[4] = 0x03;
  cellm_fixture_add (fixture, "a.weight", "u32", 2, shape, words, sizeof (words));
  cellm_fixture_add (fixture, "a.scales", "f16", 2, groups, scales, sizeof (scales));
  cellm_fixture_add (fixture, "a.biases", "f16", 2, groups, biases, sizeof (biases));
  values = read_back (fixture, "a.weight", &info);
  g_assert_cmpint (info->format.scale, ==, VLM_SCALE_F16);
  g_assert_cmpuint (info->format.group, ==, 32);
  g_assert_cmpfloat (values[0], ==, 0);
  g_assert_cmpfloat (values[1], ==, 1);
  g_assert_cmpfloat (values[2], ==, -1);
  g_assert_cmpfloat (values[32], ==, 6 + ldexpf (1, -24));
}

/* ---- Groups ------------------------------------------------------------------------------- */

/* A file with an i4 matrix of one row that has n scales. */
static CellmFixture *
new_groups (guint64 cols, guint64 n)
{
  CellmFixture *fixture = cellm_fixture_new ();
  const guint64 shape[] = { 1, cols }, scales[] = { 1, n };
  g_autofree guint8 *bytes = g_malloc0 (cols);
  guint i;

  cellm_fixture_add (fixture, "x", "i4", 2, shape, bytes, (cols + 1) / 2);
  for (i = 0; i < n; i++)
    bytes[2 * i + 1] = 0x3c;
  cellm_fixture_add (fixture, "x.qscale", "f16", 2, scales, bytes, 2 * n);
  return fixture;
}

static void
test_group_sizes (void)
{
  /* 4304 is a width of published towers: 34 groups of it are those of 128, the last one short. */
  static const guint64 cases[][3] = { { 256, 4, 64 }, { 256, 2, 128 }, { 100, 2, 64 },
    { 4304, 68, 64 }, { 4304, 34, 128 }, { 512, 16, 32 }, { 512, 2, 256 }, { 2304, 3, 768 },
    { 320, 3, 128 }, { 64, 4, 16 } };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (CellmFixture) fixture = new_groups (cases[i][0], cases[i][1]);
    g_autofree gfloat *values = NULL;
    const VlmTensorInfo *info;

    values = read_back (fixture, "x", &info);
    g_assert_cmpint (info->format.scale, ==, VLM_SCALE_F16);
    g_assert_cmpuint (info->format.group, ==, cases[i][2]);
    g_assert_cmpfloat (values[cases[i][0] - 1], ==, -8);
  }
}

/* ---- Numbers that are none ---------------------------------------------------------------- */

/* Reads a good file with some bytes of one part replaced. */
static void
expect_value (const gchar *name, const gchar *part, gsize at, gconstpointer bytes, gsize size,
    const gchar *message)
{
  gchar *directory = fixture_directory_new ();
  g_autoptr (CellmFixture) fixture = cellm_fixture_new_samples ();
  g_autofree gchar *path = NULL;
  g_autoptr (VlmTensorSource) source = NULL;
  g_autofree gfloat *values = NULL;
  g_autoptr (GError) error = NULL;

  memcpy (cellm_fixture_find (fixture, part)->data->data + at, bytes, size);
  path = cellm_fixture_save_in (directory, fixture);
  source = open_tensors (path);
  values = read_values (source, vlm_tensor_source_lookup (source, name), 4, &error);
  g_assert_null (values);
  fixture_assert_message (error, VLM_ERROR_FORMAT, message);
  fixture_assert_message (error, VLM_ERROR_FORMAT, "victim.cellm");
  fixture_directory_remove (directory);
}

static void
test_values (void)
{
  expect_value ("rows.weight", "rows.weight.qscale", 2, "\0\x7c", 2,
      "value 1 of tensor rows.weight.qscale is inf, expected a finite number of 0 or above");
  expect_value ("rows.weight", "rows.weight.qscale", 2, "\0\x7e", 2,
      "value 1 of tensor rows.weight.qscale is nan");
  expect_value ("odd.weight", "odd.weight.qscale", 2, "\0\xbc", 2,
      "value 1 of tensor odd.weight.qscale is -1");
  expect_value ("groups.weight", "groups.weight.qscale", 6, "\0\xfc", 2,
      "value 3 of tensor groups.weight.qscale is -inf");
  expect_value ("affine.weight", "affine.scales", 4, "\0\0\xc0\x7f", 4,
      "value 1 of tensor affine.scales is nan, expected a finite number");
  expect_value ("affine.weight", "affine.biases", 12, "\0\0\x80\xff", 4,
      "value 3 of tensor affine.biases is -inf");
  expect_value ("norm.weight", "norm.weight", 4, "\0\x7c", 2, "tensor norm.weight has Inf at [2]");
  expect_value ("taps.weight", "taps.weight", 12, "\0\0\xc0\x7f", 4,
      "tensor taps.weight has NaN at [1, 0, 1]");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cellm/round-trip", test_round_trip);
  g_test_add_func ("/cellm/formats", test_formats);
  g_test_add_func ("/cellm/nibbles", test_nibbles);
  g_test_add_func ("/cellm/bytes", test_bytes);
  g_test_add_func ("/cellm/small-scales", test_small_scales);
  g_test_add_func ("/cellm/affine-words", test_affine_words);
  g_test_add_func ("/cellm/affine-halves", test_affine_halves);
  g_test_add_func ("/cellm/group-sizes", test_group_sizes);
  g_test_add_func ("/cellm/values", test_values);
  return g_test_run ();
}
