/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Writing a .slm file, and reading what was written. */

#include <glib/gstdio.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "engine/formats/half.h"
#include "engine/formats/model-files.h"
#include "engine/vlm.h"
#include "slm-fixture.h"
#include "tests/engine/test-text-toy.h"

/* A path in a new directory, which fixture_directory_remove () takes with it. */
typedef struct
{
  gchar *directory, *path;
} Place;

static Place *
place_new (void)
{
  Place *place = g_new0 (Place, 1);

  place->directory = fixture_directory_new ();
  place->path = g_build_filename (place->directory, "model.slm", NULL);
  return place;
}

static void
place_free (Place *place)
{
  fixture_directory_remove (place->directory);
  g_free (place->path);
  g_free (place);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Place, place_free)

static guint
count_files (const gchar *directory)
{
  g_autoptr (GDir) entries = g_dir_open (directory, 0, NULL);
  guint n = 0;

  while (g_dir_read_name (entries) != NULL)
    n++;
  return n;
}

/* ---- Round trip --------------------------------------------------------------------------- */

/* What must be read where the value was x: the same rules, said by fixture_value ()'s quarters. */
static gfloat
expected_value (VlmSlmType type, const gfloat *row, guint64 columns, guint64 column)
{
  guint64 group = type == VLM_SLM_INT8 ? columns : 64, first = column / group * group, i;
  gfloat limit = type == VLM_SLM_INT8 ? 127 : 7, largest = 0, scale;

  if (type == VLM_SLM_F16)
    return row[column];
  for (i = first; i < MIN (first + group, columns); i++)
    largest = fmaxf (largest, fabsf (row[i]));
  scale = vlm_half_to_float (vlm_half_from_float (largest / limit));
  return scale == 0 ? 0 : rintf (row[column] / scale) * scale;
}

/* All values of a tensor as f32, some rows at a time. */
static gfloat *
read_values (VlmTensorSource *source, const VlmTensorInfo *info, gsize step)
{
  gfloat *values = g_new (gfloat, vlm_tensor_count_values (info));
  g_autofree guint16 *halves = g_new (guint16, vlm_tensor_count_values (info));
  g_autoptr (GError) error = NULL;
  VlmQuantRows rows;
  guint64 i, j;

  if (info->dtype == VLM_DTYPE_F16) {
    g_assert_true (vlm_tensor_source_read (source, info, 0, halves, info->n_bytes, NULL, &error));
    for (i = 0; i < vlm_tensor_count_values (info); i++)
      values[i] = vlm_half_to_float (GUINT16_FROM_LE (halves[i]));
    return values;
  }
  g_assert_true (vlm_quant_rows_init (&rows, &info->format, step, info->shape[1], &error));
  for (i = 0; i < info->shape[0]; i += step) {
    gsize n = MIN (step, info->shape[0] - i);
    VlmIntRows view = vlm_quant_rows_view (&rows, 0);

    g_assert_true (vlm_tensor_source_read_rows (source, info, i, n, &rows, NULL, &error));
    for (j = 0; j < n; j++)
      vlm_int_dequantise_row (
          &info->format, values + (i + j) * info->shape[1], &view, j, info->shape[1]);
  }
  g_assert_no_error (error);
  vlm_quant_rows_clear (&rows);
  return values;
}

static void
check_tensor (VlmTensorSource *source, const gchar *name, VlmSlmType type, const guint64 *shape,
    guint rank, gsize step)
{
  const VlmTensorInfo *info = vlm_tensor_source_lookup (source, name);
  g_autofree gfloat *values = NULL, *row = NULL;
  guint64 columns, i;

  g_assert_nonnull (info);
  g_assert_cmpuint (info->rank, ==, rank);
  g_assert_cmpmem (info->shape, rank * sizeof (*shape), shape, rank * sizeof (*shape));
  g_assert_cmpint (info->dtype, ==, type == VLM_SLM_F16 ? VLM_DTYPE_F16 : VLM_DTYPE_QUANTISED);
  if (type != VLM_SLM_F16)
    g_assert_cmpuint (info->format.bits, ==, type == VLM_SLM_INT8 ? 8 : 4);
  values = read_values (source, info, step);
  columns = type == VLM_SLM_F16 ? vlm_tensor_count_values (info) : shape[1];
  row = g_new (gfloat, columns);
  for (i = 0; i < vlm_tensor_count_values (info); i++) {
    guint64 j;

    for (j = 0; i % columns == 0 && j < columns; j++)
      row[j] = fixture_value (name, i + j);
    g_assert_cmpfloat (values[i], ==, expected_value (type, row, columns, i % columns));
  }
}

static void
test_round_trip (void)
{
  g_autoptr (Place) place = place_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmSlm) slm = NULL;
  g_autoptr (VlmTensorSource) source = NULL;
  g_autoptr (GBytes) file = NULL;
  guint step, i;

  slm_fixture_write (place->path);
  slm = vlm_slm_open (place->path, &error);
  g_assert_no_error (error);
  g_assert_true (vlm_slm_has_file (slm, "config.json"));
  g_assert_false (vlm_slm_has_file (slm, "generation_config.json"));
  file = vlm_slm_read_file (slm, "config.json", 100, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (g_bytes_get_data (file, NULL), ==, "{\"model_type\": \"lfm2\"}\n");
  g_assert_null (vlm_slm_read_file (slm, "config.json", 10, &error));
  fixture_assert_message (error, VLM_ERROR_FORMAT, "has 23 bytes, expected at most 10");
  g_clear_error (&error);
  g_assert_null (vlm_slm_read_file (slm, "generation_config.json", 10, &error));
  fixture_assert_message (error, VLM_ERROR_NOT_FOUND, "generation_config.json");
  g_clear_error (&error);

  source = vlm_slm_get_tensors (slm, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (vlm_tensor_source_get_count (source), ==, SLM_FIXTURE_N);
  for (step = 1; step < 5; step++) {
    for (i = 0; i < SLM_FIXTURE_N; i++) {
      const SlmFixtureTensor *tensor = &slm_fixture_tensors[i];

      g_assert_cmpstr (vlm_tensor_source_get_nth (source, i)->name, ==, tensor->name);
      check_tensor (source, tensor->name, tensor->type, tensor->shape, tensor->rank, step);
    }
  }
  g_assert_true (vlm_tensor_source_verify_rest (source, NULL, &error));
  g_assert_null (vlm_tensor_source_lookup (source, "rows.weight.scale"));
  g_assert_null (vlm_tensor_source_lookup (source, "padding/0"));
  g_assert_null (vlm_tensor_source_lookup (source, "files/config.json"));
}

/* Every payload begins at a multiple of 64 bytes of the file. */
static void
test_alignment (void)
{
  g_autoptr (Place) place = place_new ();
  g_autoptr (SlmParts) parts = NULL;
  g_autofree gchar *bytes = NULL;
  const gchar *name;
  json_t *entry;
  guint64 length;
  gsize size;

  slm_fixture_write (place->path);
  g_assert_true (g_file_get_contents (place->path, &bytes, &size, NULL));
  memcpy (&length, bytes, 8);
  length = GUINT64_FROM_LE (length);
  parts = slm_parts_load (place->path);
  json_object_foreach (parts->header, name, entry) {
    gint64 begin = json_integer_value (json_array_get (json_object_get (entry, "data_offsets"), 0));

    if (!g_str_has_prefix (name, "padding/") && strcmp (name, "__metadata__") != 0)
      g_assert_cmpuint ((8 + length + begin) % 64, ==, 0);
  }
}

static void
test_same_bytes (void)
{
  g_autoptr (Place) place = place_new ();
  g_autofree gchar *first = NULL, *second = NULL;
  gsize first_size, second_size;
  VlmSlmWriter *writer;

  slm_fixture_write (place->path);
  g_assert_true (g_file_get_contents (place->path, &first, &first_size, NULL));
  slm_fixture_write (place->path);
  g_assert_true (g_file_get_contents (place->path, &second, &second_size, NULL));
  g_assert_cmpmem (first, first_size, second, second_size);
  writer = slm_fixture_begin (place->path);
  g_assert_cmpuint (vlm_slm_writer_get_size (writer), ==, first_size);
  vlm_slm_writer_free (writer);
}

/* The three ways of handing rows over give one and the same file. */
static void
test_prepared_rows (void)
{
  g_autoptr (Place) place = place_new ();
  g_autofree gchar *expected = NULL, *found = NULL;
  gsize expected_size, found_size;
  g_autoptr (GError) error = NULL;
  VlmSlmWriter *writer;
  guint i, j;

  slm_fixture_write (place->path);
  g_assert_true (g_file_get_contents (place->path, &expected, &expected_size, NULL));
  writer = slm_fixture_begin (place->path);
  for (i = 0; i < SLM_FIXTURE_N; i++) {
    const SlmFixtureTensor *tensor = &slm_fixture_tensors[i];
    const VlmIntFormat *format = tensor->type == VLM_SLM_INT8 ? &vlm_quant_int8 : &vlm_quant_int4;
    gfloat values[4 * 130];
    guint16 halves[4 * 130];
    VlmQuantRows rows;

    for (j = 0; j < G_N_ELEMENTS (values); j++)
      values[j] = fixture_value (tensor->name, j);
    if (tensor->type == VLM_SLM_F16) {
      vlm_halves_from_floats (halves, values, G_N_ELEMENTS (values));
      g_assert_true (vlm_slm_writer_put_halves (writer, halves, tensor->shape[0], &error));
      continue;
    }
    g_assert_true (vlm_quant_rows_init (&rows, format, 4, tensor->shape[1], &error));
    g_assert_true (vlm_quant_round (&rows, values, tensor->shape[0], tensor->shape[1], &error));
    g_assert_true (vlm_slm_writer_put_quantised (writer, &rows, 0, 1, &error));
    g_assert_true (vlm_slm_writer_put_quantised (writer, &rows, 1, tensor->shape[0] - 1, &error));
    vlm_quant_rows_clear (&rows);
  }
  g_assert_true (vlm_slm_writer_finish (writer, &error));
  g_assert_no_error (error);
  vlm_slm_writer_free (writer);
  g_assert_true (g_file_get_contents (place->path, &found, &found_size, NULL));
  g_assert_cmpmem (found, found_size, expected, expected_size);
}

/* ---- A whole model ------------------------------------------------------------------------ */

/* With all that the chat layout needs. */
static FixtureModel *
new_model (gboolean has_vision)
{
  FixtureModel *model = fixture_model_new (has_vision);

  toy_add_token (model->tokenizer, "<|im_start|>", TRUE);
  return model;
}

static void
check_model (VlmSlmType type, gboolean has_vision)
{
  g_autoptr (FixtureModel) model = new_model (has_vision);
  g_autofree gchar *path = g_build_filename (model->directory, "small", NULL);
  g_autoptr (VlmCheckpoint) directory = fixture_open (model);
  g_autoptr (VlmCheckpoint) file = NULL;
  g_autoptr (GError) error = NULL;
  VlmTokenizer *tokenizer;
  VlmModel *loaded;

  slm_fixture_convert (model, path, type);
  g_assert_true (vlm_model_check_path (path, NULL, &error));
  file = vlm_checkpoint_open (path, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpmem (
      &file->config, sizeof (file->config), &directory->config, sizeof (directory->config));
  g_assert_cmpmem (&file->processor, sizeof (file->processor), &directory->processor,
      sizeof (directory->processor));
  g_assert_cmpuint (vlm_tensor_source_get_count (file->tensors), ==, model->tensors->len);
  tokenizer = vlm_tokenizer_load (path, &error);
  g_assert_no_error (error);
  g_assert_cmpint (vlm_tokenizer_lookup (tokenizer, "<image>"), ==, model->image_id);
  vlm_tokenizer_unref (tokenizer);

  loaded = vlm_model_load (path, NULL, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  vlm_model_unref (loaded);
}

static void
test_models (void)
{
  check_model (VLM_SLM_F16, TRUE);
  check_model (VLM_SLM_INT8, TRUE);
  check_model (VLM_SLM_INT4, TRUE);
  check_model (VLM_SLM_INT4, FALSE);
}

/* A file that is replaced is another model, though its path is the same. */
static void
test_replaced_model (void)
{
  g_autoptr (FixtureModel) model = new_model (FALSE);
  g_autofree gchar *path = g_build_filename (model->directory, "small.slm", NULL);
  g_autoptr (GError) error = NULL;
  VlmModel *first, *again, *other;

  fixture_save (model);
  slm_fixture_convert (model, path, VLM_SLM_INT8);
  first = vlm_model_load (path, NULL, NULL, NULL, NULL, &error);
  again = vlm_model_load (path, NULL, NULL, NULL, NULL, &error);
  slm_fixture_convert (model, path, VLM_SLM_INT4);
  other = vlm_model_load (path, NULL, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (first == again);
  g_assert_true (first != other);
  vlm_model_unref (first);
  vlm_model_unref (again);
  vlm_model_unref (other);
}

/* The model that is built in is a .slm file among the resources. */
static void
test_resource (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmModelFiles) files = NULL;

  g_assert_true (slm_read_all (vlm_builtin_model (), &error));
  g_assert_no_error (error);
  files = vlm_model_files_open (vlm_builtin_model (), NULL, &error);
  g_assert_cmpstr (vlm_model_files_get_format (files), ==, "slm");
  g_assert_true (vlm_model_files_has (files, "tokenizer.json"));
  g_assert_null (vlm_slm_open ("resource:///org/nothing.slm", &error));
  fixture_assert_message (error, VLM_ERROR_NOT_FOUND, "resource:///org/nothing.slm");
}

/* ---- What a writer refuses, and what it leaves behind ------------------------------------- */

static void
expect_refused_values (const gfloat *values, const gchar *message)
{
  g_autoptr (Place) place = place_new ();
  g_autoptr (GError) error = NULL;
  VlmSlmWriter *writer;

  fixture_write (place->directory, "model.slm", "old", 3);
  writer = slm_fixture_begin (place->path);
  if (strstr (message, "rows.weight"))
    slm_fixture_put (writer, &slm_fixture_tensors[0]);
  g_assert_false (vlm_slm_writer_put_floats (writer, values, 3, &error));
  fixture_assert_message (error, VLM_ERROR_FORMAT, message);
  vlm_slm_writer_free (writer);
  g_assert_cmpuint (count_files (place->directory), ==, 1);
}

static void
test_refused_values (void)
{
  const gfloat nan[21] = { [2] = NAN }, infinite[21] = { [1] = -INFINITY };
  const gfloat large[21] = { [0] = 65520 }, huge[21] = { [20] = 1e9f };

  expect_refused_values (nan, "value 2 of tensor norm.weight is nan");
  expect_refused_values (infinite, "value 1 of tensor norm.weight is -inf");
  expect_refused_values (large, "value 0 of tensor norm.weight is 65520");
  expect_refused_values (nan, "tensor rows.weight, from row 0 on: the value in row 0, column 2");
  expect_refused_values (huge, "rows.weight, from row 0 on: the largest value in row 2");
}

static void
expect_refused_rows (gint8 q, gfloat scale, const gchar *message)
{
  g_autoptr (Place) place = place_new ();
  VlmSlmWriter *writer = slm_fixture_begin (place->path);
  g_autoptr (GError) error = NULL;
  VlmQuantRows rows;

  slm_fixture_put (writer, &slm_fixture_tensors[0]);
  g_assert_true (vlm_quant_rows_init (&rows, &vlm_quant_int8, 3, 7, &error));
  memset (rows.q, 0, 21);
  memset (rows.scale, 0, 3 * sizeof (gfloat));
  rows.q[17] = q;
  ((gfloat *) rows.scale)[1] = scale;
  g_assert_false (vlm_slm_writer_put_quantised (writer, &rows, 0, 3, &error));
  fixture_assert_message (error, VLM_ERROR_FORMAT, message);
  vlm_quant_rows_clear (&rows);
  vlm_slm_writer_free (writer);
}

static void
test_refused_rows (void)
{
  expect_refused_rows (-128, 1, "row 2 of tensor rows.weight has the integer -128");
  expect_refused_rows (0, 0.1f, "row 1 of tensor rows.weight has the scale 0.1");
  expect_refused_rows (0, -1, "row 1 of tensor rows.weight has the scale -1");
  expect_refused_rows (0, NAN, "row 1 of tensor rows.weight has the scale nan");
  expect_refused_rows (0, INFINITY, "row 1 of tensor rows.weight has the scale inf");
}

static void
expect_refused_tensor (const gchar *name, guint64 rows, guint64 cols, const gchar *message)
{
  const guint64 shape[] = { rows, cols };
  g_autoptr (GError) error = NULL;
  VlmSlmWriter *writer;
  VlmConfig config;
  gboolean added;

  slm_fixture_init_config (&config);
  writer = vlm_slm_writer_new ("/nonexistent/x.slm", &config, &error);
  added = vlm_slm_writer_add_tensor (writer, name, VLM_SLM_INT4, shape, 2, &error);
  /* Names that are there twice only show when all are known. */
  g_assert_false (added
      && vlm_slm_writer_add_tensor (writer, "twice", VLM_SLM_F16, shape, 2, &error)
      && vlm_slm_writer_begin (writer, &error));
  fixture_assert_message (error, VLM_ERROR_FORMAT, message);
  vlm_slm_writer_free (writer);
}

static void
test_refused_tensors (void)
{
  g_autofree gchar *long_name = g_strnfill (501, 'x');

  expect_refused_tensor ("", 1, 1, "cannot be called \"\"");
  expect_refused_tensor ("a b", 1, 1, "cannot be called \"a b\"");
  expect_refused_tensor ("a\"b", 1, 1, "cannot be called");
  expect_refused_tensor ("files/config.json", 1, 1, "cannot be called");
  expect_refused_tensor ("padding/0", 1, 1, "cannot be called");
  expect_refused_tensor (long_name, 1, 1, "cannot be called");
  expect_refused_tensor ("x", 0, 1, "shape [0, 1]");
  expect_refused_tensor ("x", 1, 0, "shape [1, 0]");
  expect_refused_tensor ("x", G_MAXUINT64, 4, "within bounds");
  expect_refused_tensor ("twice", 1, 1, "tensor twice is there twice");
}

static void
test_abandoned (void)
{
  g_autoptr (Place) place = place_new ();
  g_autofree gchar *text = NULL;
  VlmSlmWriter *writer;
  gsize size;

  fixture_write (place->directory, "model.slm", "old", 3);
  writer = slm_fixture_begin (place->path);
  slm_fixture_put (writer, &slm_fixture_tensors[0]);
  g_assert_cmpuint (count_files (place->directory), <=, 2);
  vlm_slm_writer_free (writer);
  g_assert_cmpuint (count_files (place->directory), ==, 1);
  g_assert_true (g_file_get_contents (place->path, &text, &size, NULL));
  g_assert_cmpmem (text, size, "old", 3);
}

static void
expect_no_begin (const gchar *path, gint code)
{
  const guint64 shape[] = { 1000 };
  g_autoptr (GError) error = NULL;
  VlmSlmWriter *writer;
  VlmConfig config;

  slm_fixture_init_config (&config);
  writer = vlm_slm_writer_new (path, &config, &error);
  g_assert_true (vlm_slm_writer_add_tensor (writer, "x", VLM_SLM_F16, shape, 1, &error));
  g_assert_false (vlm_slm_writer_begin (writer, &error));
  g_assert_error (error, G_FILE_ERROR, code);
  g_assert_nonnull (strstr (error->message, path));
  vlm_slm_writer_free (writer);
}

static void
test_no_place (void)
{
  g_autoptr (Place) place = place_new ();
  g_autofree gchar *below = g_build_filename (place->path, "x.slm", NULL);
  struct rlimit old, small;

  expect_no_begin (place->directory, G_FILE_ERROR_ISDIR);
  expect_no_begin ("/nonexistent/x.slm", G_FILE_ERROR_NOENT);
  expect_no_begin (below, G_FILE_ERROR_NOENT);

  /* A disk that is full, as far as a process can make one. */
  signal (SIGXFSZ, SIG_IGN);
  g_assert_cmpint (getrlimit (RLIMIT_FSIZE, &old), ==, 0);
  small = old;
  small.rlim_cur = 1000;
  g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &small), ==, 0);
  expect_no_begin (place->path, G_FILE_ERROR_FAILED);
  g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &old), ==, 0);
  g_assert_cmpuint (count_files (place->directory), ==, 0);
}

/* The permissions are those of any new file. */
static void
test_permissions (void)
{
  g_autoptr (Place) place = place_new ();
  GStatBuf status;

  slm_fixture_write (place->path);
  fixture_write (place->directory, "other", "", 0);
  g_assert_cmpint (g_stat (place->path, &status), ==, 0);
  {
    g_autofree gchar *other = g_build_filename (place->directory, "other", NULL);
    GStatBuf ordinary;

    g_assert_cmpint (g_stat (other, &ordinary), ==, 0);
    g_assert_cmpint (status.st_mode, ==, ordinary.st_mode);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/slm/round-trip", test_round_trip);
  g_test_add_func ("/slm/alignment", test_alignment);
  g_test_add_func ("/slm/same-bytes", test_same_bytes);
  g_test_add_func ("/slm/prepared-rows", test_prepared_rows);
  g_test_add_func ("/slm/models", test_models);
  g_test_add_func ("/slm/replaced-model", test_replaced_model);
  g_test_add_func ("/slm/resource", test_resource);
  g_test_add_func ("/slm/refused/values", test_refused_values);
  g_test_add_func ("/slm/refused/rows", test_refused_rows);
  g_test_add_func ("/slm/refused/tensors", test_refused_tensors);
  g_test_add_func ("/slm/abandoned", test_abandoned);
  g_test_add_func ("/slm/no-place", test_no_place);
  g_test_add_func ("/slm/permissions", test_permissions);
  return g_test_run ();
}
