/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* tests/golden/geometry.json, resize.json and positions.json: what the reference itself gave. */

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "engine/image/crops.h"
#include "test-image-draw.h"

static VlmKernels kernels;

static json_t *
load (const gchar *name)
{
  gchar *path = g_test_build_filename (G_TEST_DIST, "golden", name, NULL);
  json_error_t error;
  json_t *root = json_load_file (path, JSON_REJECT_DUPLICATES, &error);

  if (root == NULL)
    g_error ("%s: %s", path, error.text);
  g_free (path);
  return root;
}

static gint64
number (const json_t *object, const gchar *key)
{
  json_t *value = json_object_get (object, key);

  if (!json_is_integer (value))
    g_error ("no number %s", key);
  return json_integer_value (value);
}

static const gchar *
string (const json_t *object, const gchar *key)
{
  const gchar *value = json_string_value (json_object_get (object, key));

  if (value == NULL)
    g_error ("no string %s", key);
  return value;
}

static void
apply_settings (VlmProcessor *processor, json_t *settings)
{
  const gchar *key;
  json_t *value;

  vlm_processor_init_defaults (processor);
  json_object_foreach (settings, key, value) {
    if (strcmp (key, "min_image_tokens") == 0)
      processor->min_image_tokens = json_integer_value (value);
    else if (strcmp (key, "max_image_tokens") == 0)
      processor->max_image_tokens = json_integer_value (value);
    else if (strcmp (key, "min_tiles") == 0)
      processor->min_tiles = json_integer_value (value);
    else if (strcmp (key, "max_tiles") == 0)
      processor->max_tiles = json_integer_value (value);
    else if (strcmp (key, "tile_size") == 0)
      processor->tile_size = json_integer_value (value);
    else if (strcmp (key, "do_image_splitting") == 0)
      processor->do_image_splitting = json_is_true (value);
    else if (strcmp (key, "use_thumbnail") == 0)
      processor->use_thumbnail = json_is_true (value);
    else if (strcmp (key, "max_pixels_tolerance") == 0)
      processor->max_pixels_tolerance = json_number_value (value);
    else
      g_error ("setting %s", key);
  }
  g_assert_true (vlm_processor_validate (processor, NULL));
}

/* Columns: w, h, split, grid rows, grid columns, smart h, smart w, image tokens, marker tokens. */
static void
check_geometry (const VlmProcessor *processor, json_t *row)
{
  gint64 v[9];
  VlmLayout layout;
  guint i, last_width, last_height, marks;
  gboolean refused, one_tile;

  for (i = 0; i < G_N_ELEMENTS (v); i++)
    v[i] = json_integer_value (json_array_get (row, i));
  refused =
      (v[2] == 0 || processor->use_thumbnail) && (v[5] / 16) * (v[6] / 16) > VLM_MAX_CROP_PATCHES;
  if (refused) {
    g_assert_false (vlm_layout_plan (&layout, processor, v[0], v[1], NULL));
    return;
  }
  if (!vlm_layout_plan (&layout, processor, v[0], v[1], NULL))
    g_error ("%d x %d is refused", (gint) v[0], (gint) v[1]);

  g_assert_cmpint (layout.grid_rows, ==, v[3]);
  g_assert_cmpint (layout.grid_columns, ==, v[4]);
  /* One tile out of a split: the reference contradicts itself there. */
  one_tile = v[2] != 0 && v[3] * v[4] == 1;
  if (one_tile) {
    g_assert_cmpuint (layout.tile_width, ==, processor->tile_size);
    g_assert_cmpuint (layout.n_crops, ==, 1);
    return;
  }
  g_assert_cmpint (layout.tiled, ==, v[2]);
  g_assert_cmpint (layout.image_tokens, ==, v[7]);
  marks = 2 + (layout.tiled ? layout.grid_rows * layout.grid_columns : 0)
      + (layout.has_thumbnail ? 1 : 0);
  g_assert_cmpint (marks, ==, v[8]);
  if (layout.tiled && !layout.has_thumbnail)
    return;
  vlm_layout_crop_size (&layout, layout.n_crops - 1, &last_width, &last_height);
  g_assert_cmpint (last_height, ==, v[5]);
  g_assert_cmpint (last_width, ==, v[6]);
}

static void
test_geometry (void)
{
  json_t *root = load ("geometry.json");
  json_t *group, *row;
  gsize i, j, n_rows = 0;

  json_array_foreach (json_object_get (root, "groups"), i, group) {
    VlmProcessor processor;

    apply_settings (&processor, json_object_get (group, "settings"));
    json_array_foreach (json_object_get (group, "rows"), j, row) {
      check_geometry (&processor, row);
      n_rows++;
    }
  }
  g_assert_cmpuint (n_rows, >, 1000);
  json_decref (root);
}

static void
check_resize (json_t *entry)
{
  json_t *picture = json_object_get (entry, "picture");
  const gchar *name = string (entry, "filter");
  guint w = number (picture, "w"), h = number (picture, "h");
  guint out_w = number (entry, "out_w"), out_h = number (entry, "out_h");
  gboolean exact = g_str_has_suffix (name, "-float");
  VlmFilter filter = g_str_has_prefix (name, "bicubic") ? VLM_FILTER_BICUBIC : VLM_FILTER_BILINEAR;
  gsize size = (gsize) out_w * out_h * 3;
  guint8 *src = test_image_draw (string (picture, "pattern"), w, h, number (picture, "seed"));
  guint8 *dst = g_malloc (size);
  gchar *hash = test_image_hash (src, (gsize) w * h * 3);
  GError *error = NULL;

  g_assert_cmpstr (hash, ==, string (picture, "fnv"));
  g_free (hash);
  vlm_resample_rgb (&kernels, src, (gsize) w * 3, w, h, dst, out_w, out_h, filter,
      exact ? VLM_RESAMPLE_FLOAT : VLM_RESAMPLE_INTEGER, &error);
  g_assert_no_error (error);
  hash = test_image_hash (dst, size);
  if (strcmp (hash, string (entry, "fnv")) != 0)
    g_error ("%ux%u to %ux%u, %s: other bytes than the reference", w, h, out_w, out_h, name);
  g_free (hash);
  g_free (src);
  g_free (dst);
}

static void
test_resize (void)
{
  json_t *root = load ("resize.json");
  json_t *entries = json_object_get (root, "entries"), *entry;
  gsize i;

  g_assert_cmpuint (json_array_size (entries), >, 50);
  json_array_foreach (entries, i, entry)
    check_resize (entry);
  json_decref (root);
}

/* (transfer full) the unpacked floats of a .gz file */
static GBytes *
load_floats (const gchar *name)
{
  gchar *path = g_test_build_filename (G_TEST_DIST, "golden", name, NULL);
  GFile *file = g_file_new_for_path (path);
  GError *error = NULL;
  GInputStream *raw = G_INPUT_STREAM (g_file_read (file, NULL, &error));
  GConverter *unzip = G_CONVERTER (g_zlib_decompressor_new (G_ZLIB_COMPRESSOR_FORMAT_GZIP));
  GInputStream *stream;
  GOutputStream *memory = g_memory_output_stream_new_resizable ();
  GBytes *bytes;

  g_assert_no_error (error);
  stream = g_converter_input_stream_new (raw, unzip);
  g_output_stream_splice (memory, stream, G_OUTPUT_STREAM_SPLICE_CLOSE_TARGET, NULL, &error);
  g_assert_no_error (error);
  bytes = g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (memory));
  g_object_unref (memory);
  g_object_unref (stream);
  g_object_unref (unzip);
  g_object_unref (raw);
  g_object_unref (file);
  g_free (path);
  return bytes;
}

/* The floats that a descriptor points at, with its numbers of rows and columns checked. */
static const gfloat *
floats_at (GBytes *bytes, json_t *descriptor)
{
  gsize size;
  const gfloat *data = g_bytes_get_data (bytes, &size);
  gsize offset = number (descriptor, "offset");
  gsize n = (gsize) number (descriptor, "rows") * number (descriptor, "cols");

  g_assert_cmpuint ((offset + n) * sizeof (gfloat), <=, size);
  return data + offset;
}

static void
check_positions (json_t *root, json_t *entry, GBytes *bytes)
{
  json_t *table = json_object_get (json_object_get (root, "tables"), string (entry, "table"));
  json_t *kept = json_object_get (entry, "rows");
  guint side = number (root, "table_h"), dim = number (table, "cols");
  guint h = number (entry, "h"), w = number (entry, "w"), i, d;
  const gfloat *expected = floats_at (bytes, kept);
  gfloat *out = g_new (gfloat, (gsize) h * w * dim);
  gdouble bound = 2e-5 * MAX (1.0, json_number_value (json_object_get (kept, "maxabs")));

  vlm_position_table_resize (floats_at (bytes, table), side, dim, h, w, out);
  for (i = 0; i < number (kept, "rows"); i++) {
    gsize row = number (kept, "start") + i * number (kept, "stride");

    g_assert_cmpuint (row, <, (gsize) h * w);
    for (d = 0; d < dim; d++)
      g_assert_cmpfloat (fabs (out[row * dim + d] - expected[i * dim + d]), <=, bound);
  }
  g_free (out);
}

static void
test_positions (void)
{
  json_t *root = load ("positions.json");
  GBytes *bytes = load_floats (string (root, "blob"));
  json_t *entries = json_object_get (root, "entries"), *entry;
  gsize i;

  g_assert_cmpuint (json_array_size (entries), >, 10);
  json_array_foreach (entries, i, entry)
    check_positions (root, entry, bytes);
  g_bytes_unref (bytes);
  json_decref (root);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_assert_cmpint (vlm_kernels_init (&kernels, vlm_cpu_best_level ()), ==, 0);
  g_test_add_func ("/image/golden/geometry", test_geometry);
  g_test_add_func ("/image/golden/resize", test_resize);
  g_test_add_func ("/image/golden/positions", test_positions);
  return g_test_run ();
}
