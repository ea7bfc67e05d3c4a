/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "golden.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "engine/vlm.h"
#include "kernels/kernels.h"

/* What meson counts as skipped. */
#define EXIT_SKIPPED 77

void
golden_skip_without_level (void)
{
  const gchar *name = g_getenv ("VLM_CPU");
  gint level = name != NULL ? vlm_cpu_level_from_name (name) : -1;

  if (level < 0 || vlm_cpu_supports ((VlmCpuLevel) level))
    return;
  g_print ("1..0 # SKIP this processor has no %s\n", name);
  exit (EXIT_SKIPPED);
}

gchar *
golden_path (const gchar *name)
{
  const gchar *root = g_getenv ("VLM_GOLDEN_DIR");

  g_assert_nonnull (root);
  return g_build_filename (root, name, NULL);
}

gboolean
golden_exists (const gchar *name)
{
  g_autofree gchar *path = golden_path (name);

  return g_file_test (path, G_FILE_TEST_EXISTS);
}

static GBytes *
read_gunzipped (const gchar *path)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GZlibDecompressor) gunzip = g_zlib_decompressor_new (G_ZLIB_COMPRESSOR_FORMAT_GZIP);
  g_autoptr (GError) error = NULL;
  g_autoptr (GInputStream) raw = G_INPUT_STREAM (g_file_read (file, NULL, &error));
  g_autoptr (GInputStream) plain = NULL;
  g_autoptr (GOutputStream) memory = g_memory_output_stream_new_resizable ();

  g_assert_no_error (error);
  plain = g_converter_input_stream_new (raw, G_CONVERTER (gunzip));
  g_output_stream_splice (memory, plain, G_OUTPUT_STREAM_SPLICE_CLOSE_TARGET, NULL, &error);
  g_assert_no_error (error);
  return g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (memory));
}

json_t *
golden_json (const gchar *name)
{
  g_autofree gchar *path = golden_path (name);
  json_error_t error;
  json_t *root;

  if (g_str_has_suffix (name, ".gz")) {
    g_autoptr (GBytes) bytes = read_gunzipped (path);
    gsize size;
    const gchar *data = g_bytes_get_data (bytes, &size);

    root = json_loadb (data, size, JSON_ALLOW_NUL, &error);
  } else {
    root = json_load_file (path, JSON_ALLOW_NUL, &error);
  }
  if (root == NULL)
    g_error ("%s: line %d: %s", path, error.line, error.text);
  return root;
}

GArray *
golden_floats (const gchar *name)
{
  g_autofree gchar *path = golden_path (name);
  g_autoptr (GBytes) bytes = read_gunzipped (path);
  GArray *floats = g_array_new (FALSE, FALSE, sizeof (gfloat));
  gsize size;
  const guint32 *words = g_bytes_get_data (bytes, &size);
  gsize i;

  for (i = 0; i < size / sizeof (gfloat); i++) {
    union
    {
      guint32 word;
      gfloat value;
    } u = { GUINT32_FROM_LE (words[i]) };

    g_array_append_val (floats, u.value);
  }
  return floats;
}

static json_t *
member (json_t *object, const gchar *key, gboolean right)
{
  if (!right)
    g_error ("golden file: member %s is missing or of another type", key);
  return json_object_get (object, key);
}

const gchar *
golden_string (json_t *object, const gchar *key)
{
  return json_string_value (member (object, key, json_is_string (json_object_get (object, key))));
}

gint64
golden_int (json_t *object, const gchar *key)
{
  return json_integer_value (member (object, key, json_is_integer (json_object_get (object, key))));
}

gdouble
golden_real (json_t *object, const gchar *key)
{
  return json_number_value (member (object, key, json_is_number (json_object_get (object, key))));
}

json_t *
golden_array (json_t *object, const gchar *key)
{
  return member (object, key, json_is_array (json_object_get (object, key)));
}

static VlmWeightType
weight_type (const gchar *name)
{
  if (strcmp (name, "f16") == 0)
    return VLM_WEIGHT_F16;
  g_assert_true (strcmp (name, "int8") == 0 || strcmp (name, "int4") == 0);
  return strcmp (name, "int8") == 0 ? VLM_WEIGHT_INT8 : VLM_WEIGHT_INT4;
}

gchar *
golden_convert (json_t *root)
{
  g_autofree gchar *name = g_strconcat ("models/", golden_string (root, "model"), NULL);
  g_autofree gchar *source = golden_path (name);
  g_autofree gchar *folder = NULL;
  VlmConvertOptions options = { 0 };
  GError *error = NULL;
  gchar *path;

  folder = g_dir_make_tmp ("vlm-golden-XXXXXX", &error);
  g_assert_no_error (error);
  path = g_build_filename (folder, "model.slm", NULL);
  options.text_type = weight_type (golden_string (root, "type"));
  options.vision_type = weight_type (golden_string (root, "vision_type"));
  options.n_threads = 2;
  vlm_model_convert (source, path, &options, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  return path;
}

void
golden_remove_converted (const gchar *path)
{
  g_autofree gchar *folder = g_path_get_dirname (path);

  g_assert_cmpint (g_unlink (path), ==, 0);
  g_assert_cmpint (g_rmdir (folder), ==, 0);
}

gdouble
golden_compare_rows (json_t *description, const GArray *blob, const gfloat *found, gsize n_rows,
    gsize n_cols, gdouble tolerance, const gchar *what)
{
  const gfloat *expected = (const gfloat *) blob->data + golden_int (description, "offset");
  gsize start = golden_int (description, "start");
  gsize stride = golden_int (description, "stride");
  gdouble scale = golden_real (description, "maxabs");
  gdouble largest = 0;
  gsize i, c;

  g_assert_cmpuint (n_rows, ==, golden_int (description, "of"));
  g_assert_cmpuint (n_cols, ==, golden_int (description, "cols"));
  for (i = 0; i < (gsize) golden_int (description, "rows"); i++) {
    const gfloat *row = found + (start + i * stride) * n_cols;

    for (c = 0; c < n_cols; c++) {
      gdouble difference = fabs ((gdouble) row[c] - expected[i * n_cols + c]) / scale;

      if (!(difference <= tolerance))
        g_error ("%s: row %" G_GSIZE_FORMAT " column %" G_GSIZE_FORMAT " is %.9g, expected %.9g "
                 "within %g of %g",
            what, start + i * stride, c, row[c], expected[i * n_cols + c], tolerance, scale);
      largest = MAX (largest, difference);
    }
  }
  return largest;
}
