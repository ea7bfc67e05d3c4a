/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Integers of every format in .slm files: what is read is what was written, to the last bit. */

#include <math.h>
#include <string.h>

#include "engine/formats/slm-pack.h"
#include "engine/vlm.h"
#include "rows-fixture.h"
#include "slm-fixture.h"

/* ---- Packing ------------------------------------------------------------------------------ */

/* Bit number at of the bytes, counted from the lowest bit of the first. */
static guint
get_bit (const guint8 *bytes, gsize at)
{
  return bytes[at / 8] >> (at % 8) & 1;
}

/* The definition, bit by bit. */
static void
check_packing (const VlmIntFormat *format, gsize n, GRand *random)
{
  gsize size = vlm_slm_packed_size (format->bits, n), i;
  g_autofree guint8 *bytes = g_malloc (size + 1);
  g_autofree gint8 *back = g_malloc (n + 1);
  gint bias = format->has_min || format->bits == 8 ? 0 : 1 << (format->bits - 1);
  guint n_spare = vlm_slm_spare_bits (format->bits, n), bit, spare = 0;
  VlmQuantRows rows;

  g_assert_cmpuint (size, ==, (guint) ceil (n * format->bits / 8.0));
  g_assert_true (vlm_quant_rows_init (&rows, format, 1, n, NULL));
  rows_fixture_fill (&rows, 1, random);
  bytes[size] = 0xa5;
  back[n] = 77;
  vlm_slm_pack_row (format, bytes, rows.q, n, n_spare > 0 ? 1 : 0);
  for (i = 0; i < n; i++) {
    guint value = 0;

    for (bit = 0; bit < format->bits; bit++)
      value |= get_bit (bytes, i * format->bits + bit) << bit;
    g_assert_cmpuint (value, ==, (guint) (rows.q[i] + bias) & ((1u << format->bits) - 1));
  }
  for (bit = 0; bit < n_spare; bit++)
    spare |= get_bit (bytes, n * format->bits + bit) << bit;
  g_assert_cmpuint (spare, ==, n_spare > 0 ? 1 : 0);
  vlm_slm_unpack_row (format, back, bytes, n);
  g_assert_cmpmem (back, n, rows.q, n);
  g_assert_cmpuint (bytes[size], ==, 0xa5);
  g_assert_cmpint (back[n], ==, 77);
  vlm_quant_rows_clear (&rows);
}

static void
test_packing (void)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (5);
  guint i;
  gsize n;

  for (i = 0; i < rows_fixture_n_formats; i++) {
    for (n = 1; n <= 70; n++)
      check_packing (&rows_fixture_formats[i], n, random);
  }
}

/* ---- Files -------------------------------------------------------------------------------- */

typedef struct
{
  gchar *directory, *path;
  VlmIntFormat format;
  guint64 shape[2];
  VlmQuantRows rows;
} Written;

/* A file with one matrix, put some rows at a time. */
static void
write_matrix (Written *written, const VlmIntFormat *format, guint64 n_rows, guint64 columns)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (n_rows * 1000 + columns);
  g_autoptr (GError) error = NULL;
  VlmSlmWriter *writer;
  VlmConfig config;
  guint64 at = 0;
  gsize n;

  written->format = *format;
  written->shape[0] = n_rows;
  written->shape[1] = columns;
  g_assert_true (vlm_quant_rows_init (&written->rows, format, n_rows, columns, NULL));
  rows_fixture_fill (&written->rows, n_rows, random);
  slm_fixture_init_config (&config);
  writer = vlm_slm_writer_new (written->path, &config, &error);
  g_assert_true (vlm_slm_writer_add_integers (writer, "w", format, written->shape, &error));
  g_assert_true (vlm_slm_writer_begin (writer, &error));
  for (n = 1; at < n_rows; at += n, n++) {
    n = MIN (n, n_rows - at);
    g_assert_true (vlm_slm_writer_put_quantised (writer, &written->rows, at, n, &error));
  }
  g_assert_true (vlm_slm_writer_finish (writer, &error));
  g_assert_no_error (error);
  vlm_slm_writer_free (writer);
}

/* n rows that were read against those from first on that were written. */
static void
assert_rows (const VlmQuantRows *found, const VlmQuantRows *all, gsize first, gsize n)
{
  VlmQuantRows expected = vlm_quant_rows_skip (all, first);
  gsize scales = n * all->n_groups * vlm_int_scale_size (all->format.scale);
  gsize supers = n * all->n_supers * sizeof (guint16);

  g_assert_cmpmem (found->q, n * all->cols, expected.q, n * all->cols);
  g_assert_cmpmem (found->scale, scales, expected.scale, scales);
  if (all->min != NULL)
    g_assert_cmpmem (found->min, scales, expected.min, scales);
  if (all->super != NULL)
    g_assert_cmpmem (found->super, supers, expected.super, supers);
  if (all->super_min != NULL)
    g_assert_cmpmem (found->super_min, supers, expected.super_min, supers);
}

static void
read_matrix (const Written *written, gsize step)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmSlm) slm = vlm_slm_open (written->path, &error);
  g_autoptr (VlmTensorSource) source = slm != NULL ? vlm_slm_get_tensors (slm, &error) : NULL;
  const VlmTensorInfo *info;
  VlmQuantRows rows;
  guint64 at;

  g_assert_no_error (error);
  g_assert_cmpuint (vlm_tensor_source_get_count (source), ==, 1);
  info = vlm_tensor_source_get_nth (source, 0);
  g_assert_cmpstr (info->name, ==, "w");
  g_assert_cmpint (info->dtype, ==, VLM_DTYPE_QUANTISED);
  g_assert_true (vlm_int_format_equal (&info->format, &written->format));
  g_assert_false (info->symmetric);
  g_assert_cmpmem (info->shape, sizeof (written->shape), written->shape, sizeof (written->shape));
  g_assert_true (vlm_quant_rows_init (&rows, &info->format, step, info->shape[1], &error));
  for (at = 0; at < info->shape[0]; at += step) {
    gsize n = MIN (step, info->shape[0] - at);

    g_assert_true (vlm_tensor_source_read_rows (source, info, at, n, &rows, NULL, &error));
    assert_rows (&rows, &written->rows, at, n);
  }
  g_assert_no_error (error);
  vlm_quant_rows_clear (&rows);
}

/* No more than a tenth above what the values, codes and halves would take without any gap. */
static void
check_size (const Written *written)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmSlm) slm = vlm_slm_open (written->path, &error);
  g_autoptr (VlmTensorSource) source = vlm_slm_get_tensors (slm, &error);
  const VlmQuantRows *rows = &written->rows;
  const VlmIntFormat *format = &written->format;
  gdouble scales = (gdouble) rows->n_groups * vlm_int_scale_size (format->scale) * 8;
  gdouble bits = (gdouble) written->shape[1] * format->bits
      + (scales + rows->n_supers * 16.0) * (format->has_min ? 2 : 1);

  g_assert_cmpfloat (vlm_tensor_source_get_nth (source, 0)->n_bytes, <=,
      written->shape[0] * ceil (bits / 8) * 1.1);
}

static void
test_formats (void)
{
  static const guint64 shapes[][2] = { { 1, 1 }, { 3, 7 }, { 7, 16 }, { 4, 33 }, { 9, 256 },
    { 5, 300 }, { 2, 4099 } };
  Written written = { 0 };
  guint i, j;
  gsize step;

  written.directory = fixture_directory_new ();
  written.path = g_build_filename (written.directory, "m.slm", NULL);
  for (i = 0; i < rows_fixture_n_formats; i++) {
    for (j = 0; j < G_N_ELEMENTS (shapes); j++) {
      write_matrix (&written, &rows_fixture_formats[i], shapes[j][0], shapes[j][1]);
      for (step = 1; step <= shapes[j][0]; step += 2)
        read_matrix (&written, step);
      if (shapes[j][1] == 256)
        check_size (&written);
      vlm_quant_rows_clear (&written.rows);
    }
  }
  g_free (written.path);
  fixture_directory_remove (written.directory);
}

/* What the tensors are called and what they hold, as docs/formats.md says. */
static void
test_fields (void)
{
  static const struct
  {
    const gchar *name, *dtype;
    guint rows, columns; /* columns of 0: one dimension */
  } fields[] = {
    { "five.weight", "U8", 3, 24 },
    { "five.weight.scale", "F16", 3, 3 },
    { "five.weight.min", "F16", 3, 3 },
    { "codes.weight", "U8", 2, 17 },
    { "codes.weight.scale", "I8", 2, 2 },
    { "codes.weight.min", "I8", 2, 2 },
    { "codes.weight.super_scale", "F16", 2, 1 },
    { "codes.weight.super_min", "F16", 2, 1 },
    { "row.weight", "U8", 3, 4 },
    { "row.weight.scale", "F32", 3, 0 },
    { "bytes.weight", "I8", 2, 18 },
    { "bytes.weight.scale", "F32", 2, 2 },
  };
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *path = g_build_filename (directory, "m.slm", NULL);
  g_autoptr (SlmParts) parts = NULL;
  guint i;

  slm_fixture_write_integers (path);
  parts = slm_parts_load (path);
  g_assert_cmpuint (json_array_size (json_object_get (parts->manifest, "tensors")), ==,
      2 + G_N_ELEMENTS (fields));
  for (i = 0; i < G_N_ELEMENTS (fields); i++) {
    const json_t *entry = slm_parts_find (parts, fields[i].name);
    const json_t *shape = json_object_get (entry, "shape");

    g_assert_true (entry == json_array_get (json_object_get (parts->manifest, "tensors"), 2 + i));
    g_assert_cmpstr (json_string_value (json_object_get (entry, "dtype")), ==, fields[i].dtype);
    g_assert_cmpuint (json_array_size (shape), ==, fields[i].columns > 0 ? 2 : 1);
    g_assert_cmpint (json_integer_value (json_array_get (shape, 0)), ==, fields[i].rows);
    g_assert_cmpint (json_integer_value (json_array_get (shape, 1)), ==, fields[i].columns);
  }
  fixture_directory_remove (directory);
}

/* ---- What a writer refuses ----------------------------------------------------------------- */

static void
expect_refused (const VlmIntFormat *format, VlmQuantRows *rows, const gchar *message)
{
  const guint64 shape[] = { 2, 32 };
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *path = g_build_filename (directory, "m.slm", NULL);
  g_autoptr (GError) error = NULL;
  VlmSlmWriter *writer;
  VlmConfig config;

  slm_fixture_init_config (&config);
  writer = vlm_slm_writer_new (path, &config, &error);
  g_assert_true (vlm_slm_writer_add_integers (writer, "w", format, shape, &error));
  g_assert_true (vlm_slm_writer_begin (writer, &error));
  g_assert_false (vlm_slm_writer_put_quantised (writer, rows, 0, 2, &error));
  fixture_assert_message (error, VLM_ERROR_FORMAT, message);
  vlm_slm_writer_free (writer);
  fixture_directory_remove (directory);
}

/* Integers that their bits cannot hold, and scales that are no numbers. */
static void
test_refused (void)
{
  static const VlmIntFormat five = { 5, VLM_SCALE_F16, TRUE, 32 };
  static const VlmIntFormat six = { 6, VLM_SCALE_F32, FALSE, 32 };
  static const VlmIntFormat codes = { 4, VLM_SCALE_CODES, TRUE, 32 };
  VlmQuantRows rows;

  g_assert_true (vlm_quant_rows_init (&rows, &five, 2, 32, NULL));
  memset (rows.q, 0, 64);
  memset (rows.scale, 0, 4);
  memset (rows.min, 0, 4);
  rows.q[40] = -1;
  expect_refused (&five, &rows, "row 1 of tensor w has the integer -1, expected 0..31");
  rows.q[40] = 32;
  expect_refused (&five, &rows, "row 1 of tensor w has the integer 32, expected 0..31");
  rows.q[40] = 31;
  ((guint16 *) rows.min)[1] = 0xfc00;
  expect_refused (&five, &rows, "row 1 of tensor w has the scale -inf, expected a finite number");
  vlm_quant_rows_clear (&rows);

  g_assert_true (vlm_quant_rows_init (&rows, &six, 2, 32, NULL));
  memset (rows.q, 0, 64);
  rows.q[0] = -33;
  expect_refused (&six, &rows, "row 0 of tensor w has the integer -33, expected -32..31");
  rows.q[0] = -32;
  ((gfloat *) rows.scale)[0] = NAN;
  expect_refused (&six, &rows, "row 0 of tensor w has the scale nan, expected a finite number");
  vlm_quant_rows_clear (&rows);

  g_assert_true (vlm_quant_rows_init (&rows, &codes, 2, 32, NULL));
  memset (rows.q, 0, 64);
  memset (rows.super, 0, 4);
  memset (rows.super_min, 0, 4);
  rows.super_min[1] = 0x7e00;
  expect_refused (&codes, &rows, "row 1 of tensor w has the scale nan, expected a finite number");
  vlm_quant_rows_clear (&rows);
}

/* The formats that VlmIntFormat allows, and none beside them. */
static void
test_valid_formats (void)
{
  static const VlmIntFormat wrong[] = { { 3, VLM_SCALE_F16, FALSE, 32 },
    { 7, VLM_SCALE_ROW, FALSE, 0 }, { 8, VLM_SCALE_F16, TRUE, 32 }, { 4, VLM_SCALE_ROW, TRUE, 0 },
    { 4, VLM_SCALE_F16, FALSE, 0 }, { 4, VLM_SCALE_F16, FALSE, 24 },
    { 4, VLM_SCALE_F32, FALSE, 65552 }, { 4, VLM_SCALE_CODES, FALSE, 48 },
    { 4, VLM_SCALE_CODES, FALSE, 512 } };
  guint i;

  for (i = 0; i < rows_fixture_n_formats; i++)
    g_assert_true (vlm_int_format_is_valid (&rows_fixture_formats[i]));
  for (i = 0; i < G_N_ELEMENTS (wrong); i++)
    g_assert_false (vlm_int_format_is_valid (&wrong[i]));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/slm/integers/packing", test_packing);
  g_test_add_func ("/slm/integers/formats", test_formats);
  g_test_add_func ("/slm/integers/fields", test_fields);
  g_test_add_func ("/slm/integers/refused", test_refused);
  g_test_add_func ("/slm/integers/valid-formats", test_valid_formats);
  return g_test_run ();
}
