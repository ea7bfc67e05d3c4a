/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Converting, verifying and describing through the public interface; values are compared elsewhere. */

#include <glib/gstdio.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/vlm.h"
#include "slm-fixture.h"
#include "tests/engine/test-text-toy.h"

#define NORM "model.language_model.layers.0.ffn_norm.weight"
#define MATRIX "model.language_model.layers.0.feed_forward.w1.weight"

static const VlmWeightType types[] = { VLM_WEIGHT_F16, VLM_WEIGHT_INT8, VLM_WEIGHT_INT4 };

/* A model that could also be asked. */
static FixtureModel *
new_model (gboolean has_vision)
{
  FixtureModel *model = fixture_model_new (has_vision);

  toy_add_token (model->tokenizer, "<|im_start|>", TRUE);
  return model;
}

/* The path of a file in a model's directory that is no part of it. */
static gchar *
target_path (const FixtureModel *model, const gchar *name)
{
  return g_build_filename (model->directory, name, NULL);
}

static gboolean
convert (const gchar *source, const gchar *target, VlmWeightType type, gboolean requantise,
    GError **error)
{
  const VlmConvertOptions options = { type, VLM_WEIGHT_AUTO, requantise, 2, NULL };

  return vlm_model_convert (source, target, &options, NULL, NULL, NULL, error);
}

static void
must_convert (const gchar *source, const gchar *target, VlmWeightType type, gboolean requantise)
{
  g_autoptr (GError) error = NULL;

  convert (source, target, type, requantise, &error);
  g_assert_no_error (error);
}

static void
collect (VlmFindingKind kind, const gchar *text, gpointer user_data)
{
  g_assert_cmpint (kind, ==, VLM_FINDING_PROBLEM);
  g_ptr_array_add (user_data, g_strdup (text));
}

/* All problems of a model. (transfer full) */
static GPtrArray *
verify (const gchar *path)
{
  GPtrArray *problems = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GError) error = NULL;

  g_assert_true (vlm_model_verify (path, NULL, collect, NULL, problems, NULL, &error));
  g_assert_no_error (error);
  return problems;
}

static void
assert_sound (const gchar *path)
{
  g_autoptr (GPtrArray) problems = verify (path);

  if (problems->len > 0)
    g_error ("%s", (const gchar *) problems->pdata[0]);
}

static void
assert_problem (const gchar *path, const gchar *part, const gchar *other)
{
  g_autoptr (GPtrArray) problems = verify (path);

  g_assert_cmpuint (problems->len, ==, 1);
  if (!strstr (problems->pdata[0], part) || !strstr (problems->pdata[0], other))
    g_error ("\"%s\" lacks %s or %s", (const gchar *) problems->pdata[0], part, other);
}

static void
test_types (void)
{
  guint vision, i;

  for (vision = 0; vision < 2; vision++) {
    g_autoptr (FixtureModel) model = new_model (vision);
    g_autofree gchar *path = target_path (model, "m.slm");

    fixture_save (model);
    assert_sound (model->directory);
    for (i = 0; i < G_N_ELEMENTS (types); i++) {
      must_convert (model->directory, path, types[i], FALSE);
      assert_sound (path);
    }
    fixture_remove (model->directory, "m.slm");
  }
}

static void
test_describe (void)
{
  g_autoptr (FixtureModel) model = new_model (TRUE);
  g_autofree gchar *path = target_path (model, "m.slm");
  g_autofree gchar *text = NULL;
  g_autoptr (GError) error = NULL;
  json_t *root;

  fixture_save (model);
  must_convert (model->directory, path, VLM_WEIGHT_INT4, FALSE);
  text = vlm_model_describe (path, NULL, &error);
  g_assert_no_error (error);
  root = json_loads (text, JSON_REJECT_DUPLICATES, NULL);
  g_assert_cmpstr (json_string_value (json_object_get (root, "format")), ==, "slm");
  g_assert_cmpint (
      json_integer_value (json_object_get (root, "n_tensors")), ==, model->tensors->len);
  g_assert_true (json_is_null (json_object_get (root, "published")));
  json_decref (root);
  fixture_remove (model->directory, "m.slm");
  g_assert_null (vlm_model_describe (path, NULL, &error));
  g_assert_error (error, VLM_ERROR, VLM_ERROR_NOT_FOUND);
}

static void
test_second_rounding (void)
{
  g_autoptr (FixtureModel) model = new_model (TRUE);
  g_autofree gchar *first = target_path (model, "a.slm");
  g_autofree gchar *second = target_path (model, "b.slm");
  guint from, to;

  fixture_save (model);
  for (from = 1; from < G_N_ELEMENTS (types); from++) {
    must_convert (model->directory, first, types[from], FALSE);
    for (to = 0; to < G_N_ELEMENTS (types); to++) {
      g_autoptr (GError) error = NULL;

      if (convert (first, second, types[to], FALSE, &error)) {
        g_assert_cmpuint (from, ==, to);
      } else {
        g_assert_cmpuint (from, !=, to);
        g_assert_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED);
        must_convert (first, second, types[to], TRUE);
      }
      assert_sound (second);
      fixture_remove (model->directory, "b.slm");
    }
  }
  fixture_remove (model->directory, "a.slm");
}

/* ---- Keeping ------------------------------------------------------------------------------ */

static void
assert_same_file (const gchar *one, const gchar *other)
{
  g_autofree gchar *a = NULL, *b = NULL;
  gsize a_size, b_size;

  g_assert_true (g_file_get_contents (one, &a, &a_size, NULL));
  g_assert_true (g_file_get_contents (other, &b, &b_size, NULL));
  g_assert_cmpmem (a, a_size, b, b_size);
}

/* Every tensor of one is in other, stored alike, with the same bytes. The order may be another. */
static void
assert_same_tensors (const gchar *one, const gchar *other)
{
  g_autoptr (SlmParts) a = slm_parts_load (one), b = slm_parts_load (other);
  const json_t *tensors = json_object_get (a->manifest, "tensors");
  json_t *entry;
  gsize i;

  g_assert_cmpuint (
      json_array_size (tensors), ==, json_array_size (json_object_get (b->manifest, "tensors")));
  /* The hash of the payload is in it. */
  json_array_foreach (tensors, i, entry)
    g_assert_true (json_equal (
        entry, slm_parts_find (b, json_string_value (json_object_get (entry, "name")))));
}

/* What this program's own rounding made is kept as it was, scheme included. */
static void
test_keep_rounded (void)
{
  g_autoptr (FixtureModel) model = new_model (TRUE);
  g_autofree gchar *first = target_path (model, "a.slm");
  g_autofree gchar *second = target_path (model, "b.slm");
  guint i;

  fixture_save (model);
  for (i = 0; i < G_N_ELEMENTS (types); i++) {
    must_convert (model->directory, first, types[i], FALSE);
    must_convert (first, second, VLM_WEIGHT_KEEP, FALSE);
    assert_same_file (first, second);
    if (types[i] != VLM_WEIGHT_F16)
      must_convert (first, second, VLM_WEIGHT_AUTO, FALSE);
    assert_same_file (first, second);
  }
  must_convert (model->directory, first, VLM_WEIGHT_F16, FALSE);
  must_convert (model->directory, second, VLM_WEIGHT_KEEP, FALSE);
  assert_same_file (first, second);
  fixture_remove (model->directory, "a.slm");
  fixture_remove (model->directory, "b.slm");
}

/* Integers of every format, those of one product among them, whatever is asked of them. */
static void
test_keep_formats (void)
{
  g_autoptr (FixtureModel) model = new_model (TRUE);
  g_autofree gchar *source = target_path (model, "a.slm");
  g_autofree gchar *kept = target_path (model, "b.slm");
  g_autofree gchar *again = target_path (model, "c.slm");
  g_autoptr (GError) error = NULL;
  guint precision, i;

  fixture_save (model);
  slm_fixture_convert_mixed (model, source);
  assert_sound (source);
  must_convert (source, kept, VLM_WEIGHT_KEEP, FALSE);
  assert_sound (kept);
  assert_same_tensors (source, kept);
  must_convert (kept, again, VLM_WEIGHT_AUTO, FALSE);
  assert_same_file (kept, again);

  for (precision = VLM_PRECISION_AUTO; precision <= VLM_PRECISION_FAST; precision++) {
    const VlmLoadOptions options = { .precision = precision };
    VlmModel *loaded = vlm_model_load (kept, &options, NULL, NULL, NULL, &error);
    VlmModelInfo info;

    g_assert_no_error (error);
    vlm_model_get_info (loaded, &info);
    g_assert_true (info.fast == (precision != VLM_PRECISION_EXACT));
    vlm_model_unref (loaded);
  }
  for (i = 0; i < G_N_ELEMENTS (types); i++) {
    g_assert_false (convert (kept, again, types[i], FALSE, &error));
    fixture_assert_message (
        error, VLM_ERROR_UNSUPPORTED, "model.language_model.embed_tokens.weight");
    fixture_assert_message (error, VLM_ERROR_UNSUPPORTED, "quantised a second time");
    g_clear_error (&error);
    must_convert (kept, again, types[i], TRUE);
    assert_sound (again);
  }
  fixture_remove (model->directory, "a.slm");
  fixture_remove (model->directory, "b.slm");
  fixture_remove (model->directory, "c.slm");
}

/* Text and vision are kept, or not, each by itself. */
static void
test_keep_parts (void)
{
  g_autoptr (FixtureModel) model = new_model (TRUE);
  g_autofree gchar *source = target_path (model, "a.slm");
  g_autofree gchar *target = target_path (model, "b.slm");
  const VlmConvertOptions text = { VLM_WEIGHT_KEEP, VLM_WEIGHT_INT8, FALSE, 2, NULL };
  const VlmConvertOptions vision = { VLM_WEIGHT_INT8, VLM_WEIGHT_KEEP, FALSE, 2, NULL };
  g_autoptr (GError) error = NULL;

  fixture_save (model);
  slm_fixture_convert_mixed (model, source);
  g_assert_false (vlm_model_convert (source, target, &text, NULL, NULL, NULL, &error));
  fixture_assert_message (error, VLM_ERROR_UNSUPPORTED, "tensor model.vision_tower.");
  g_clear_error (&error);
  g_assert_false (vlm_model_convert (source, target, &vision, NULL, NULL, NULL, &error));
  fixture_assert_message (error, VLM_ERROR_UNSUPPORTED, "tensor model.language_model.");
  fixture_remove (model->directory, "a.slm");
}

/* The kinds of integers that a description of the mixed model lists. */
static void
test_describe_formats (void)
{
  g_autoptr (FixtureModel) model = new_model (TRUE);
  g_autofree gchar *path = target_path (model, "a.slm");
  g_autofree gchar *text = NULL;
  g_autoptr (GError) error = NULL;
  guint n_matrices = 0, n_minimums = 0, n_codes = 0;
  json_t *root, *group;
  gsize i;

  fixture_save (model);
  slm_fixture_convert_mixed (model, path);
  text = vlm_model_describe (path, NULL, &error);
  g_assert_no_error (error);
  root = json_loads (text, JSON_REJECT_DUPLICATES, NULL);
  json_array_foreach (json_object_get (root, "weights"), i, group) {
    const gchar *scale = json_string_value (json_object_get (group, "scale"));
    gboolean is_int = g_str_has_prefix (json_string_value (json_object_get (group, "type")), "int");

    g_assert_true (is_int == (scale != NULL));
    g_assert_true (json_is_integer (json_object_get (group, "group"))
        == (is_int && !g_str_equal (scale, "row")));
    n_matrices += is_int;
    n_minimums += json_is_true (json_object_get (group, "minimum"));
    n_codes += !g_strcmp0 (scale, "codes");
  }
  json_decref (root);
  g_assert_cmpuint (n_matrices, >, 10);
  g_assert_cmpuint (n_minimums, >, 2);
  g_assert_cmpuint (n_codes, >, 2);
  fixture_remove (model->directory, "a.slm");
}

static void
test_settings (void)
{
  g_autoptr (FixtureModel) model = new_model (TRUE);
  g_autofree gchar *path = target_path (model, "m.slm");
  g_autofree gchar *part = target_path (model, "config.json");
  const VlmConvertOptions wrong[] = { { VLM_WEIGHT_AUTO, VLM_WEIGHT_AUTO, FALSE, 0, NULL },
    { VLM_WEIGHT_INT4, VLM_WEIGHT_INT4, FALSE, 0, NULL } };
  g_autoptr (GError) own = NULL;
  guint i;

  fixture_save (model);
  for (i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (GError) error = NULL;

    g_assert_false (
        vlm_model_convert (model->directory, path, &wrong[i], NULL, NULL, NULL, &error));
    g_assert_error (error, VLM_ERROR, VLM_ERROR_SETTINGS);
    g_assert_false (g_file_test (path, G_FILE_TEST_EXISTS));
  }
  g_assert_false (convert (model->directory, part, VLM_WEIGHT_F16, FALSE, &own));
  g_assert_error (own, VLM_ERROR, VLM_ERROR_SETTINGS);
}

typedef struct
{
  GCancellable *cancellable;
  guint n_calls, limit; /* cancelled at the call after limit others */
  gdouble last;
} Watch;

static void
watch_progress (gdouble fraction, gpointer user_data)
{
  Watch *watch = user_data;

  g_assert_cmpfloat (fraction, >=, watch->last);
  g_assert_cmpfloat (fraction, <=, 1);
  watch->last = fraction;
  if (watch->n_calls++ == watch->limit)
    g_cancellable_cancel (watch->cancellable);
}

static guint
count_entries (const gchar *directory)
{
  g_autoptr (GDir) dir = g_dir_open (directory, 0, NULL);
  guint n = 0;

  while (g_dir_read_name (dir) != NULL)
    n++;
  return n;
}

/* Wherever it is stopped, what was there before is still there and nothing else. */
static void
test_cancel (void)
{
  static const VlmConvertOptions options = { VLM_WEIGHT_INT4, VLM_WEIGHT_AUTO, FALSE, 1, NULL };
  g_autoptr (FixtureModel) model = new_model (TRUE);
  g_autofree gchar *path = target_path (model, "m.slm");
  guint n_entries, limit;
  gboolean done = FALSE;

  fixture_save (model);
  fixture_write (model->directory, "m.slm", "before", 6);
  n_entries = count_entries (model->directory);
  for (limit = 0; !done; limit++) {
    g_autoptr (GCancellable) cancellable = g_cancellable_new ();
    g_autoptr (GError) error = NULL;
    Watch watch = { cancellable, 0, limit, 0 };

    done = vlm_model_convert (
        model->directory, path, &options, watch_progress, &watch, cancellable, &error);
    g_assert_cmpuint (count_entries (model->directory), ==, n_entries);
    if (done) {
      g_assert_cmpfloat (watch.last, ==, 1);
    } else {
      g_autofree gchar *text = NULL;

      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      g_file_get_contents (path, &text, NULL, NULL);
      g_assert_cmpstr (text, ==, "before");
    }
  }
  g_assert_cmpuint (limit, >, model->tensors->len);
  assert_sound (path);
  fixture_remove (model->directory, "m.slm");
}

/* Overwrites the value at index of an F32 tensor. */
static void
put_float (const FixtureModel *model, const gchar *name, guint index, gfloat value)
{
  g_autoptr (VlmCheckpoint) checkpoint = vlm_checkpoint_open (model->directory, NULL, NULL);
  const VlmTensorInfo *info = vlm_tensor_source_lookup (checkpoint->tensors, name);
  FILE *file = g_fopen (vlm_tensor_source_get_path (checkpoint->tensors, info), "r+be");

  g_assert_cmpint (info->dtype, ==, VLM_DTYPE_F32);
  g_assert_cmpint (fseek (file, (long) (info->offset + 4 * index), SEEK_SET), ==, 0);
  g_assert_cmpuint (fwrite (&value, sizeof (value), 1, file), ==, 1);
  g_assert_cmpint (fclose (file), ==, 0);
}

static void
test_special_values (void)
{
  g_autoptr (FixtureModel) model = new_model (TRUE);
  g_autofree gchar *path = target_path (model, "m.slm");
  g_autoptr (GError) error = NULL;

  fixture_find (model, NORM)->dtype = VLM_DTYPE_F32;
  fixture_find (model, MATRIX)->dtype = VLM_DTYPE_F32;
  fixture_save (model);
  put_float (model, NORM, 5, -INFINITY);
  put_float (model, NORM, 9, NAN);
  assert_problem (model->directory, "tensor " NORM " has -Inf at [5] and 1 more", "");
  g_assert_false (convert (model->directory, path, VLM_WEIGHT_F16, FALSE, &error));
  fixture_assert_message (
      error, VLM_ERROR_FORMAT, "tensor " NORM " has -Inf at [5], expected a finite number");
  g_clear_error (&error);

  put_float (model, NORM, 5, 0);
  put_float (model, NORM, 9, 1e5f);
  assert_sound (model->directory);
  g_assert_false (convert (model->directory, path, VLM_WEIGHT_F16, FALSE, &error));
  fixture_assert_message (error, VLM_ERROR_FORMAT, "tensor " NORM " has 100000 at [9], expected");
  g_clear_error (&error);

  put_float (model, NORM, 9, 0);
  put_float (model, MATRIX, 33, 1e30f);
  g_assert_false (convert (model->directory, path, VLM_WEIGHT_INT8, FALSE, &error));
  fixture_assert_message (error, VLM_ERROR_FORMAT, MATRIX);
  g_assert_false (g_file_test (path, G_FILE_TEST_EXISTS));
}

/* Damage whose checksum is right: a scale that is no number, a half that is none. */
static void
test_damaged_slm (void)
{
  static const gchar *const names[] = { MATRIX ".scale", NORM };
  g_autoptr (FixtureModel) model = new_model (TRUE);
  g_autofree gchar *path = target_path (model, "m.slm");
  guint i;

  fixture_save (model);
  for (i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autoptr (SlmParts) parts = NULL;

    must_convert (model->directory, path, VLM_WEIGHT_INT4, FALSE);
    parts = slm_parts_load (path);
    memcpy (slm_parts_payload (parts, names[i]) + 2, "\x00\x7e", 2);
    slm_parts_rehash (parts, names[i]);
    slm_parts_save (parts, path);
    assert_problem (path, names[i], i == 0 ? "nan" : "NaN at [1]");
  }
  fixture_remove (model->directory, "m.slm");
}

/* A vocabulary in which nothing can be asked: what cannot be loaded cannot be converted either, and
 * has a problem. */
static void
test_no_chat (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autofree gchar *path = target_path (model, "m.slm");
  g_autoptr (GError) loaded = NULL, converted = NULL;

  fixture_save (model);
  g_assert_null (vlm_model_load (model->directory, NULL, NULL, NULL, NULL, &loaded));
  fixture_assert_message (loaded, VLM_ERROR_FORMAT, model->directory);
  fixture_assert_message (loaded, VLM_ERROR_FORMAT, "no token \"<|im_start|>\"");
  assert_problem (model->directory, loaded->message, "");
  g_assert_false (convert (model->directory, path, VLM_WEIGHT_INT8, FALSE, &converted));
  g_assert_cmpstr (converted->message, ==, loaded->message);
}

static void
test_no_model (void)
{
  g_autofree gchar *directory = fixture_directory_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (FixtureModel) model = new_model (FALSE);
  g_autoptr (GError) error = NULL;

  g_assert_false (vlm_model_verify (directory, NULL, collect, NULL, NULL, NULL, &error));
  g_assert_error (error, VLM_ERROR, VLM_ERROR_NOT_FOUND);
  g_clear_error (&error);
  fixture_save (model);
  g_cancellable_cancel (cancellable);
  g_assert_false (
      vlm_model_verify (model->directory, NULL, collect, NULL, NULL, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  fixture_directory_remove (g_steal_pointer (&directory));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/convert/types", test_types);
  g_test_add_func ("/convert/describe", test_describe);
  g_test_add_func ("/convert/second-rounding", test_second_rounding);
  g_test_add_func ("/convert/keep/rounded", test_keep_rounded);
  g_test_add_func ("/convert/keep/formats", test_keep_formats);
  g_test_add_func ("/convert/keep/parts", test_keep_parts);
  g_test_add_func ("/convert/describe-formats", test_describe_formats);
  g_test_add_func ("/convert/settings", test_settings);
  g_test_add_func ("/convert/cancel", test_cancel);
  g_test_add_func ("/convert/special-values", test_special_values);
  g_test_add_func ("/convert/damaged-slm", test_damaged_slm);
  g_test_add_func ("/convert/no-chat", test_no_chat);
  g_test_add_func ("/convert/no-model", test_no_model);
  return g_test_run ();
}
