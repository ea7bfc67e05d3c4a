/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Integers of floats, byte by byte against an independent implementation of the rules: hard rows,
 * and every tensor of small checkpoints that were converted.
 */

#include <math.h>
#include <string.h>

#include "engine/formats/checkpoint.h"
#include "golden.h"
#include "test-image-draw.h"

static GArray *blob;

/* The f32 value of a half that is finite and not negative. */
static gfloat
value_of_half (guint half)
{
  guint exponent = half >> 10, fraction = half & 0x3ff;

  return exponent > 0 ? ldexpf (1024 + fraction, (gint) exponent - 25) : ldexpf (fraction, -24);
}

static void
check_scale (const VlmQuantRows *rows, gsize index, guint half, const gchar *where)
{
  if (rows->format.scale == VLM_SCALE_ROW) {
    gfloat found = ((const gfloat *) rows->scale)[index], expected = value_of_half (half);

    if (memcmp (&found, &expected, sizeof (found)) != 0)
      g_error ("%s: scale is %.9g, expected %.9g", where, found, expected);
  } else if (((const guint16 *) rows->scale)[index] != half) {
    g_error ("%s: scale is %#x, expected %#x", where, ((const guint16 *) rows->scale)[index], half);
  }
}

static void
check_row (const VlmQuantRows *rows, gsize row, json_t *entry)
{
  json_t *scales = json_array_get (golden_array (entry, "scales"), row);
  const gchar *q = json_string_value (json_array_get (golden_array (entry, "q"), row));
  gsize i;

  g_assert_cmpuint (strlen (q), ==, 2 * rows->cols);
  g_assert_cmpuint (json_array_size (scales), ==, rows->n_groups);
  for (i = 0; i < rows->n_groups; i++) {
    g_autofree gchar *where = g_strdup_printf ("row %zu group %zu", row, i);

    check_scale (rows, row * rows->n_groups + i,
        (guint) json_integer_value (json_array_get (scales, i)), where);
  }
  for (i = 0; i < rows->cols; i++) {
    gint expected =
        (gint8) (g_ascii_xdigit_value (q[2 * i]) << 4 | g_ascii_xdigit_value (q[2 * i + 1]));

    if (rows->q[row * rows->cols + i] != expected)
      g_error (
          "row %zu column %zu is %d, expected %d", row, i, rows->q[row * rows->cols + i], expected);
  }
}

/* All rows at once, and one by one. */
static void
test_rule (gconstpointer user_data)
{
  json_t *entry = (json_t *) user_data;
  gboolean int8 = strcmp (golden_string (entry, "kind"), "int8") == 0;
  const gfloat *x = (const gfloat *) blob->data + golden_int (entry, "x");
  gsize n_rows = golden_int (entry, "rows"), cols = golden_int (entry, "cols");
  VlmQuantRows rows, single;
  GError *error = NULL;
  gsize i;

  vlm_quant_rows_init (&rows, int8 ? &vlm_quant_int8 : &vlm_quant_int4, n_rows, cols, &error);
  g_assert_no_error (error);
  vlm_quant_rows_init (&single, &rows.format, 1, cols, &error);
  g_assert_no_error (error);
  vlm_quant_round (&rows, x, n_rows, cols, &error);
  g_assert_no_error (error);
  for (i = 0; i < n_rows; i++) {
    check_row (&rows, i, entry);
    vlm_quant_round (&single, x + i * cols, 1, cols, &error);
    g_assert_no_error (error);
    g_assert_cmpmem (single.q, cols, rows.q + i * cols, cols);
  }
  vlm_quant_rows_clear (&single);
  vlm_quant_rows_clear (&rows);
}

static void
check_hash (json_t *tensor, const gchar *key, gconstpointer data, gsize size, const gchar *name)
{
  g_autofree gchar *hash = test_image_hash (data, size);

  if (strcmp (hash, golden_string (tensor, key)) != 0)
    g_error ("%s: %s is %s, expected %s", name, key, hash, golden_string (tensor, key));
}

static void
check_integers (VlmTensorSource *source, const VlmTensorInfo *info, json_t *tensor)
{
  gsize n_rows = info->shape[0], cols = info->shape[1];
  VlmQuantRows rows;
  g_autofree guint16 *halves = NULL;
  GError *error = NULL;
  gsize i;

  g_assert_cmpint (info->dtype, ==, VLM_DTYPE_QUANTISED);
  g_assert_cmpuint (
      info->format.bits, ==, strcmp (golden_string (tensor, "type"), "int8") == 0 ? 8 : 4);
  vlm_quant_rows_init (&rows, &info->format, n_rows, cols, &error);
  g_assert_no_error (error);
  vlm_tensor_source_read_rows (source, info, 0, n_rows, &rows, NULL, &error);
  g_assert_no_error (error);
  check_hash (tensor, "q_fnv", rows.q, n_rows * cols, info->name);

  halves = g_new (guint16, n_rows * rows.n_groups);
  for (i = 0; i < n_rows * rows.n_groups; i++) {
    if (info->format.scale == VLM_SCALE_ROW) {
      guint half = 0;

      /* Ascending with their bits. */
      while (value_of_half (half) < ((const gfloat *) rows.scale)[i])
        half++;
      halves[i] = half;
    } else {
      halves[i] = ((const guint16 *) rows.scale)[i];
    }
  }
  check_hash (tensor, "scale_fnv", halves, n_rows * rows.n_groups * sizeof (guint16), info->name);
  vlm_quant_rows_clear (&rows);
}

static void
test_converted (gconstpointer user_data)
{
  g_autofree gchar *cases = g_strdup_printf ("cases/%s.json", (const gchar *) user_data);
  json_t *root = golden_json (cases);
  json_t *tensors = json_object_get (root, "tensors");
  g_autofree gchar *path = golden_convert (root);
  g_autoptr (VlmCheckpoint) checkpoint = NULL;
  GError *error = NULL;
  const gchar *name;
  json_t *tensor;

  checkpoint = vlm_checkpoint_open (path, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (
      vlm_tensor_source_get_count (checkpoint->tensors), ==, json_object_size (tensors));
  json_object_foreach (tensors, name, tensor) {
    const VlmTensorInfo *info = vlm_tensor_source_lookup (checkpoint->tensors, name);

    g_assert_nonnull (info);
    if (strcmp (golden_string (tensor, "type"), "f16") == 0) {
      g_autofree guint8 *data = g_malloc (info->n_bytes);

      g_assert_cmpint (info->dtype, ==, VLM_DTYPE_F16);
      vlm_tensor_source_read (checkpoint->tensors, info, 0, data, info->n_bytes, NULL, &error);
      g_assert_no_error (error);
      check_hash (tensor, "fnv", data, info->n_bytes, name);
    } else {
      check_integers (checkpoint->tensors, info, tensor);
    }
  }
  golden_remove_converted (path);
  json_decref (root);
}

int
main (int argc, char **argv)
{
  static const gchar *const converted[] = { "lfm25-int8", "attn-first-int4", "untied-int4",
    "text-only-int4", "text-only-f16" };
  json_t *root, *entry;
  size_t i;
  int status;

  g_test_init (&argc, &argv, NULL);
  root = golden_json ("quant.json");
  blob = golden_floats (golden_string (root, "blob"));
  json_array_foreach (golden_array (root, "entries"), i, entry) {
    g_autofree gchar *path = g_strconcat ("/quant/rule/", golden_string (entry, "name"), NULL);

    g_test_add_data_func (path, entry, test_rule);
  }
  for (i = 0; i < G_N_ELEMENTS (converted); i++) {
    g_autofree gchar *path = g_strconcat ("/quant/converted/", converted[i], NULL);

    g_test_add_data_func (path, converted[i], test_converted);
  }
  status = g_test_run ();
  g_array_unref (blob);
  json_decref (root);
  return status;
}
