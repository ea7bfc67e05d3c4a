/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* .cellm files that contradict themselves: each is refused, with its name and the reason. */

#include <string.h>

#include "cellm-fixture.h"
#include "engine/formats/model-files.h"
#include "engine/vlm.h"
#include "fixture.h"

/* ---- Lies --------------------------------------------------------------------------------- */

static void
expect_refusal (CellmFixture *fixture, gint code, const gchar *part)
{
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *path = cellm_fixture_save_in (directory, fixture);
  g_autoptr (VlmModelFiles) files = NULL;
  g_autoptr (GError) error = NULL;

  files = vlm_model_files_open (path, NULL, &error);
  g_assert_null (files);
  fixture_assert_message (error, code, part);
  fixture_assert_message (error, code, "victim.cellm");
  fixture_directory_remove (directory);
}

static void
set (CellmFixture *fixture, const gchar *name, const gchar *key, json_t *value)
{
  json_object_set_new (cellm_fixture_entry (fixture, name), key, value);
}

static json_int_t
get (CellmFixture *fixture, const gchar *name, const gchar *key)
{
  return json_integer_value (json_object_get (cellm_fixture_entry (fixture, name), key));
}

static void
shift (CellmFixture *fixture, const gchar *name, gint by)
{
  set (fixture, name, "offset_bytes", json_integer (get (fixture, name, "offset_bytes") + by));
}

/* A part with other data. */
static void
replace (CellmFixture *fixture, const gchar *name, const gchar *dtype, guint rank, guint64 size0,
    guint64 size1, gsize size)
{
  g_autofree guint8 *bytes = g_malloc0 (size);
  const guint64 shape[] = { size0, size1 };

  cellm_fixture_drop (fixture, name);
  cellm_fixture_add (fixture, name, dtype, rank, shape, bytes, size);
  cellm_fixture_lay_out (fixture);
}

static void
drop (CellmFixture *fixture, const gchar *name)
{
  cellm_fixture_drop (fixture, name);
  cellm_fixture_lay_out (fixture);
}

/* In the text of the header. */
static void
exchange (CellmFixture *fixture, const gchar *from, const gchar *to)
{
  g_autofree gchar *text = cellm_fixture_print_header (fixture);
  g_auto (GStrv) pieces = g_strsplit (text, from, 2);

  g_assert_cmpuint (g_strv_length (pieces), ==, 2);
  fixture->text = g_strjoinv (to, pieces);
}

static void
add (CellmFixture *fixture, const gchar *name, const gchar *dtype, guint rank, guint64 size0,
    guint64 size1, gsize size)
{
  const guint64 shape[] = { size0, size1 };
  g_autofree guint8 *bytes = g_malloc0 (size);

  cellm_fixture_add (fixture, name, dtype, rank, shape, bytes, size);
  cellm_fixture_lay_out (fixture);
}

typedef void (*Lie) (CellmFixture *fixture);

#define LIE(name, body)                                                                            \
  static void lie_##name (CellmFixture *fixture)                                                   \
  {                                                                                                \
    body;                                                                                          \
  }

LIE (sum_wraps, set (fixture, "norm.weight", "offset_bytes", json_integer (31337));
     exchange (fixture, "31337", "18446744073709551608"))
LIE (huge_offset, set (fixture, "norm.weight", "offset_bytes", json_integer (G_MAXINT64 - 7)))
LIE (behind_end, shift (fixture, "affine.biases", 1 << 20))
LIE (negative_offset, set (fixture, "norm.weight", "offset_bytes", json_integer (-64)))
LIE (real_offset, set (fixture, "norm.weight", "offset_bytes", json_real (640.0)))
LIE (text_offset, set (fixture, "norm.weight", "offset_bytes", json_string ("640")))
LIE (in_header, set (fixture, "norm.weight", "offset_bytes", json_integer (0)))
LIE (odd_half, shift (fixture, "norm.weight", 1))
LIE (even_float, shift (fixture, "taps.weight", 2))
LIE (even_word, shift (fixture, "affine.weight", 2))
LIE (short_half, replace (fixture, "norm.weight", "f16", 2, 4, 4, 30))
LIE (long_i4, replace (fixture, "groups.weight", "i4", 2, 4, 128, 512))
LIE (twice, set (fixture, "brain.weight", "name", json_string ("norm.weight")))
LIE (overlap,
    set (fixture, "taps.weight", "offset_bytes",
        json_integer (get (fixture, "norm.weight", "offset_bytes"))))
LIE (dtype_i3, set (fixture, "norm.weight", "dtype", json_string ("i3")))
LIE (dtype_i2, set (fixture, "rows.weight", "dtype", json_string ("i2")))
LIE (dtype_q1, set (fixture, "rows.weight", "dtype", json_string ("q1_0_g128")))
LIE (dtype_u8, set (fixture, "rows.weight", "dtype", json_string ("u8")))
LIE (dtype_q8, set (fixture, "rows.weight", "dtype", json_string ("q8_0")))
LIE (dtype_number, set (fixture, "norm.weight", "dtype", json_integer (16)))
LIE (rank_0, set (fixture, "norm.weight", "shape", json_array ()))
LIE (rank_9,
    set (fixture, "norm.weight", "shape", json_pack ("[iiiiiiiii]", 1, 1, 1, 1, 1, 1, 1, 1, 5)))
LIE (side_0, set (fixture, "norm.weight", "shape", json_pack ("[i]", 0)))
LIE (side_minus, set (fixture, "norm.weight", "shape", json_pack ("[i]", -5)))
LIE (side_text, set (fixture, "norm.weight", "shape", json_pack ("[s]", "5")))
LIE (side_huge,
    set (fixture, "norm.weight", "shape", json_pack ("[II]", (json_int_t) 1 << 62, (json_int_t) 5)))
LIE (cube_of_i8, set (fixture, "rows.weight", "shape", json_pack ("[iii]", 2, 2, 7)))
LIE (name_empty, set (fixture, "norm.weight", "name", json_string ("")))
LIE (name_absent, json_object_del (cellm_fixture_entry (fixture, "norm.weight"), "name"))
LIE (nbytes_absent, json_object_del (cellm_fixture_entry (fixture, "norm.weight"), "nbytes"))
LIE (entry_number, json_array_append_new (fixture->index, json_integer (3)))
LIE (seven_scales, replace (fixture, "rows.weight.qscale", "f16", 1, 7, 0, 14))
LIE (two_scales_i8, replace (fixture, "rows.weight.qscale", "f16", 2, 4, 2, 16))
LIE (turned_scales, replace (fixture, "groups.weight.qscale", "f16", 2, 5, 3, 30))
LIE (no_scales, drop (fixture, "rows.weight.qscale"))
LIE (lone_scales, drop (fixture, "rows.weight"))
LIE (scales_of_floats, add (fixture, "brain.weight.qscale", "f16", 1, 3, 0, 6))
LIE (wide_scales, replace (fixture, "rows.weight.qscale", "f32", 1, 4, 0, 16))
LIE (no_biases, drop (fixture, "affine.biases"))
LIE (no_affine_scales, drop (fixture, "affine.scales"))
LIE (lone_biases, drop (fixture, "affine.weight"))
LIE (more_biases, replace (fixture, "affine.biases", "f32", 2, 2, 4, 32))
LIE (odd_groups, replace (fixture, "affine.biases", "f32", 2, 2, 3, 24);
     replace (fixture, "affine.scales", "f32", 2, 2, 3, 24))
LIE (mixed_affine, replace (fixture, "affine.biases", "f16", 2, 2, 2, 8))
LIE (u32_alone, add (fixture, "affine", "u32", 2, 2, 8, 64))
LIE (either_group, replace (fixture, "whole.weight", "i4", 2, 3, 192, 288);
     replace (fixture, "whole.weight.qscale", "f16", 2, 3, 2, 12))
LIE (no_group, replace (fixture, "whole.weight", "i4", 2, 3, 40, 60);
     replace (fixture, "whole.weight.qscale", "f16", 2, 3, 2, 12))
LIE (longer_json,
    exchange (
        fixture, "}]}", "}]}                                                                "))
LIE (no_json, fixture->text = g_strdup ("{\"model_type\": \"lfm2\""))
LIE (list, fixture->text = g_strdup ("[]"))
LIE (no_utf8, exchange (fixture, "norm.weight", "norm\xff.weight"))
LIE (key_twice, exchange (fixture, "{", "{\"vocab_size\": 1, "))
LIE (no_tensors, exchange (fixture, "\"tensors\"", "\"tensor_\""))
LIE (tensors_text, fixture->index = json_string ("none"))
LIE (other_model, json_object_set_new (fixture->header, "model_type", json_string ("qwen3")))
LIE (text_size, json_object_set_new (fixture->header, "vocab_size", json_string ("272")))
LIE (null_layers, json_object_set_new (fixture->header, "num_layers", json_null ()))
LIE (gap_used,
    set (fixture, "norm.weight", "offset_bytes",
        json_integer (get (fixture, "norm.weight", "offset_bytes") + 2)))
LIE (dropped_entry, json_array_remove (fixture->index, 1))

static const struct
{
  const gchar *name;
  Lie lie;
  gint code;
  const gchar *part;
} lies[] = {
#define CASE(name, code, part)                                                                     \
  {                                                                                                \
#name, lie_##name, VLM_ERROR_##code, part                                                      \
  }
  CASE (sum_wraps, FORMAT, "too big integer near '18446744073709551608'"),
  CASE (huge_offset, FORMAT, "tensor norm.weight has 10 bytes from byte 9223372036854775800 on"),
  CASE (behind_end, FORMAT, "tensor affine.biases has 16 bytes from byte"),
  CASE (negative_offset, FORMAT, "tensors[0].offset_bytes is -64, expected an integer of 0"),
  CASE (real_offset, FORMAT, "tensors[0].offset_bytes is 640.0, expected an integer"),
  CASE (text_offset, FORMAT, "tensors[0].offset_bytes is \"640\", expected an integer"),
  CASE (in_header, FORMAT, "tensor norm.weight has offset_bytes 0, expected at least"),
  CASE (odd_half, FORMAT, "tensor norm.weight of f16 has offset_bytes"),
  CASE (even_float, FORMAT, "expected a multiple of 4"),
  CASE (even_word, FORMAT, "tensor affine.weight of u32 has offset_bytes"),
  CASE (
      short_half, FORMAT, "tensor norm.weight has nbytes 30, expected 32 for f16 of shape [4, 4]"),
  CASE (long_i4, FORMAT, "has nbytes 512, expected 256 for i4 of shape [4, 128]"),
  CASE (twice, FORMAT, "tensor norm.weight is in the index twice"),
  CASE (overlap, FORMAT, "weight, which ends at byte"),
  CASE (dtype_i3, UNSUPPORTED, "tensor norm.weight has dtype i3, expected f16, f32"),
  CASE (dtype_i2, UNSUPPORTED, "tensor rows.weight has dtype i2"),
  CASE (dtype_q1, UNSUPPORTED, "tensor rows.weight has dtype q1_0_g128"),
  CASE (dtype_u8, UNSUPPORTED, "tensor rows.weight has dtype u8"),
  CASE (dtype_q8, UNSUPPORTED, "tensor rows.weight has dtype q8_0"),
  CASE (dtype_number, FORMAT, "tensors[0].dtype is 16, expected a string"),
  CASE (rank_0, FORMAT, "tensors[0].shape is [], expected 1 to 8 integers"),
  CASE (rank_9, FORMAT, "tensors[0].shape is [1,1,1,1,1,1,1,1,5], expected 1 to 8"),
  CASE (side_0, FORMAT, "tensors[0].shape is [0], expected"),
  CASE (side_minus, FORMAT, "tensors[0].shape is [-5], expected"),
  CASE (side_text, FORMAT, "tensors[0].shape is [\"5\"], expected"),
  CASE (side_huge, FORMAT, "tensor norm.weight has shape [4611686018427387904, 5], which no file"),
  CASE (cube_of_i8, FORMAT, "tensor rows.weight of i8 has shape [2, 2, 7], expected two"),
  CASE (name_empty, FORMAT, "tensors[0].name is \"\", expected a name"),
  CASE (name_absent, FORMAT, "tensors[0].name is absent, expected a name"),
  CASE (nbytes_absent, FORMAT, "tensors[0].nbytes is absent, expected an integer"),
  CASE (entry_number, FORMAT, "] is no object"),
  CASE (seven_scales, FORMAT, "tensor rows.weight.qscale has shape [7], expected [4] or [4, "),
  CASE (two_scales_i8, FORMAT, "has 2 scales for each row of tensor rows.weight, expected 1"),
  CASE (turned_scales, FORMAT, "tensor groups.weight.qscale has shape [5, 3], expected [3]"),
  CASE (no_scales, FORMAT, "of i8, but tensor rows.weight.qscale is missing"),
  CASE (
      lone_scales, FORMAT, "tensor rows.weight.qscale is there, but tensor rows.weight is missing"),
  CASE (scales_of_floats, FORMAT, "but tensor brain.weight is of bf16, expected i8 or i4"),
  CASE (wide_scales, UNSUPPORTED, "tensor rows.weight.qscale has dtype f32, expected f16 for"),
  CASE (no_biases, FORMAT, "of u32, but tensor affine.biases is missing"),
  CASE (no_affine_scales, FORMAT, "of u32, but tensor affine.scales is missing"),
  CASE (lone_biases, FORMAT, "is there, but tensor affine.weight is missing, expected u32"),
  CASE (more_biases, FORMAT, "has 2 scales of f32 and 4 biases of f32 for each row of 128"),
  CASE (odd_groups, FORMAT, "has 3 scales of f32 and 3 biases of f32 for each row of 128"),
  CASE (mixed_affine, FORMAT, "has 2 scales of f32 and 2 biases of f16 for each row"),
  CASE (u32_alone, UNSUPPORTED, "tensor affine of u32 is no weight"),
  CASE (either_group, UNSUPPORTED, "that may be groups of 128 or of 96"),
  CASE (no_group, UNSUPPORTED, "2 scales for each row of 40 values, expected groups of 64, of 128"),
  CASE (longer_json, FORMAT, "tensor norm.weight has offset_bytes"),
  CASE (no_json, FORMAT, "not valid JSON"),
  CASE (list, FORMAT, "not a JSON object"),
  CASE (no_utf8, FORMAT, "not valid JSON"),
  CASE (key_twice, FORMAT, "duplicate object key"),
  CASE (no_tensors, FORMAT, "tensors is absent, expected an array"),
  CASE (tensors_text, FORMAT, "tensors is \"none\", expected an array"),
  CASE (other_model, UNSUPPORTED, "model_type is \"qwen3\", expected \"lfm2\""),
  CASE (text_size, FORMAT, "vocab_size is \"272\", expected a number"),
  CASE (null_layers, FORMAT, "num_layers is absent, expected a number"),
  CASE (gap_used, FORMAT, "and belongs to no tensor, expected 0"),
  CASE (dropped_entry, FORMAT, "and belongs to no tensor, expected 0"),
#undef CASE
};

static void
test_lie (gconstpointer data)
{
  guint i = GPOINTER_TO_UINT (data);
  g_autoptr (CellmFixture) fixture = cellm_fixture_new_samples ();

  cellm_fixture_lay_out (fixture);
  lies[i].lie (fixture);
  expect_refusal (fixture, lies[i].code, lies[i].part);
}

/* Every key that the format asks for, one missing at a time. */
static void
test_required (void)
{
  static const gchar *const keys[] = { "model_type", "vocab_size", "hidden_dim",
    "intermediate_size", "num_layers", "num_heads", "num_kv_heads", "rms_norm_eps", "rope_theta" };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (keys); i++) {
    g_autoptr (CellmFixture) fixture = cellm_fixture_new_samples ();
    g_autofree gchar *expected = g_strconcat (keys[i], " is absent, expected a ", NULL);

    json_object_del (fixture->header, keys[i]);
    expect_refusal (fixture, VLM_ERROR_FORMAT, expected);
  }
}

/* ---- Beginnings --------------------------------------------------------------------------- */

static void
expect_bytes (gconstpointer bytes, gsize size, gint code, const gchar *part)
{
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *path = g_build_filename (directory, "thing", NULL);
  g_autoptr (GError) error = NULL;

  fixture_write (directory, "thing", bytes, size);
  g_assert_null (vlm_model_files_open (path, NULL, &error));
  fixture_assert_message (error, code, part);
  fixture_directory_remove (directory);
}

static void
test_beginnings (void)
{
  expect_bytes ("CELLM\1\0\0\0", 9, VLM_ERROR_FORMAT, "has 9 bytes, expected at least 10");
  expect_bytes ("CELLM\0\2\0\0\0{}", 12, VLM_ERROR_UNSUPPORTED, "version 0 of the .cellm");
  expect_bytes ("CELLM\2\2\0\0\0{}", 12, VLM_ERROR_UNSUPPORTED, "version 2 of the .cellm");
  expect_bytes ("CELLN\1\2\0\0\0{}", 12, VLM_ERROR_UNSUPPORTED, "\"CELLN");
  expect_bytes (
      "CELLM\1\3\0\0\0{}", 12, VLM_ERROR_FORMAT, "has 3 bytes by its length, expected at");
  expect_bytes (
      "CELLM\1\xff\xff\xff\xff{}", 12, VLM_ERROR_FORMAT, "has 4294967295 bytes by its length");
  expect_bytes ("CELLM\1\0\0\0\0", 10, VLM_ERROR_FORMAT, "not valid JSON");
  expect_bytes ("CELLM\1\2\0\0\0{}", 12, VLM_ERROR_FORMAT, "model_type is absent");
}

/* A header of more than 4 MB, in a file that holds it. */
static void
test_long_header (void)
{
  gsize size = (4u << 20) + 11;
  g_autofree gchar *bytes = g_malloc (size);

  memset (bytes, ' ', size);
  memcpy (bytes, "CELLM\1\1\0\x40\0{}", 12);
  expect_bytes (
      bytes, size, VLM_ERROR_FORMAT, "has 4194305 bytes by its length, expected at most 4194304");
}

/* 10,000 levels end with an error, not with the stack. */
static void
test_nesting (void)
{
  g_autoptr (CellmFixture) fixture = cellm_fixture_new_samples ();

  fixture->text = g_malloc0 (20001);
  memset (fixture->text, '[', 10000);
  memset (fixture->text + 10000, ']', 10000);
  expect_refusal (fixture, VLM_ERROR_FORMAT, "not valid JSON: maximum parsing depth reached");
}

/* Zeros between payloads are fine up to a page. */
static void
test_gaps (void)
{
  g_autoptr (CellmFixture) fixture = cellm_fixture_new_samples ();
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *path = NULL;
  g_autoptr (VlmModelFiles) files = NULL;
  g_autoptr (GError) error = NULL;

  fixture->alignment = 4096;
  path = cellm_fixture_save_in (directory, fixture);
  files = vlm_model_files_open (path, NULL, &error);
  g_assert_no_error (error);
  g_clear_pointer (&fixture->index, json_decref);
  fixture->alignment = 16384;
  expect_refusal (fixture, VLM_ERROR_FORMAT, "belong to no tensor, expected at most 4095");
  fixture_directory_remove (directory);
}

int
main (int argc, char **argv)
{
  guint i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < G_N_ELEMENTS (lies); i++) {
    g_autofree gchar *path = g_strconcat ("/cellm/lies/", lies[i].name, NULL);

    g_test_add_data_func (path, GUINT_TO_POINTER (i), test_lie);
  }
  g_test_add_func ("/cellm/required", test_required);
  g_test_add_func ("/cellm/beginnings", test_beginnings);
  g_test_add_func ("/cellm/long-header", test_long_header);
  g_test_add_func ("/cellm/nesting", test_nesting);
  g_test_add_func ("/cellm/gaps", test_gaps);
  return g_test_run ();
}
