/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Blocks of integers: their values are those of the reference package to the last bit. */

#include <string.h>

#include "engine/formats/gguf-blocks.h"
#include "engine/formats/gguf-private.h"
#include "tests/engine/golden.h"
#include "tests/engine/test-image-draw.h"

/* Rows that are unpacked at a time. */
#define STEP 7

static guint64
fnv (const guint8 *bytes, gsize n)
{
  guint64 hash = G_GUINT64_CONSTANT (0xcbf29ce484222325);
  gsize i;

  for (i = 0; i < n; i++)
    hash = (hash ^ bytes[i]) * G_GUINT64_CONSTANT (0x100000001b3);
  return hash;
}

static guint64
hash_in (const gchar *text)
{
  return g_ascii_strtoull (text, NULL, 16);
}

static gsize
block_size (guint type)
{
  guint n_values, n_bytes;

  g_assert_true (vlm_gguf_type_block (type, &n_values, &n_bytes));
  return n_bytes;
}

/* The bytes that README.md of the goldens describes. */
static guint8 *
make_blocks (json_t *entry, gsize n_blocks, gsize size)
{
  guint64 seed = 7000 + golden_int (entry, "type");
  json_t *halves = golden_array (entry, "halves");
  guint8 *blocks = g_malloc (n_blocks * size);
  gsize i, b;

  for (i = 0; i < n_blocks * size; i++)
    blocks[i] = test_image_splitmix ((seed << 32) + i) >> 56;
  for (b = 0; b < n_blocks; b++) {
    for (i = 0; i < json_array_size (halves); i++) {
      guint8 *high = blocks + b * size + json_integer_value (json_array_get (halves, i)) + 1;

      if ((*high & 0x7c) == 0x7c)
        *high &= 0xbf;
    }
  }
  g_assert_cmphex (fnv (blocks, n_blocks * size), ==, hash_in (golden_string (entry, "block_fnv")));
  return blocks;
}

/* Values of a row as bytes of little-endian floats. */
static guint64
hash_row (const VlmQuantRows *rows, gsize row, guint32 *words)
{
  VlmIntRows view = vlm_quant_rows_view (rows, 0);
  gsize i;

  vlm_int_dequantise_row (&rows->format, (gfloat *) words, &view, row, rows->cols);
  for (i = 0; i < rows->cols; i++)
    words[i] = GUINT32_TO_LE (words[i]);
  return fnv ((const guint8 *) words, rows->cols * sizeof (*words));
}

static void
test_values (gconstpointer data)
{
  json_t *entry = (json_t *) data, *hashes = golden_array (entry, "row_fnv");
  guint type = golden_int (entry, "type");
  gsize n_rows = golden_int (entry, "rows"), cols = golden_int (entry, "cols"), first, i;
  gsize n_blocks = cols / (type < 10 ? 32 : 256), size = block_size (type);
  g_autofree guint32 *words = g_new (guint32, cols);
  g_autofree guint8 *blocks = NULL;
  g_autoptr (GError) error = NULL;
  VlmIntFormat format;
  VlmQuantRows rows;

  g_assert_true (vlm_gguf_blocks_get_format (type, &format));
  blocks = make_blocks (entry, n_rows * n_blocks, size);
  g_assert_true (vlm_quant_rows_init (&rows, &format, STEP, cols, &error));
  for (first = 0; first < n_rows; first += STEP) {
    gsize n = MIN (STEP, n_rows - first);

    g_assert_cmpuint (vlm_gguf_blocks_unpack (type, blocks + first * n_blocks * size, n, &rows), ==,
        n * n_blocks);
    for (i = 0; i < n; i++)
      g_assert_cmphex (hash_row (&rows, i, words), ==,
          hash_in (json_string_value (json_array_get (hashes, first + i))));
  }
  vlm_quant_rows_clear (&rows);
}

/* Every half of a block, made NaN or infinite in turn: that block is named. */
static void
test_special_scales (gconstpointer data)
{
  static const guint8 bad[][2] = { { 0x00, 0x7c }, { 0x00, 0xfc }, { 0x01, 0x7c }, { 0xff, 0xff } };
  json_t *entry = (json_t *) data, *halves = golden_array (entry, "halves");
  guint type = golden_int (entry, "type");
  gsize cols = golden_int (entry, "cols"), n_blocks = cols / (type < 10 ? 32 : 256),
        size = block_size (type);
  g_autofree guint8 *blocks = NULL;
  g_autoptr (GError) error = NULL;
  VlmIntFormat format;
  VlmQuantRows rows;
  gsize i, j;

  g_assert_true (vlm_gguf_blocks_get_format (type, &format));
  blocks = g_malloc0 (2 * n_blocks * size);
  g_assert_true (vlm_quant_rows_init (&rows, &format, 2, cols, &error));
  for (i = 0; i < json_array_size (halves); i++) {
    guint8 *half = blocks + (n_blocks + 2) * size + json_integer_value (json_array_get (halves, i));

    for (j = 0; j < G_N_ELEMENTS (bad); j++) {
      memcpy (half, bad[j], 2);
      g_assert_cmpuint (vlm_gguf_blocks_unpack (type, blocks, 2, &rows), ==, n_blocks + 2);
    }
    memset (half, 0, 2);
  }
  g_assert_cmpuint (vlm_gguf_blocks_unpack (type, blocks, 2, &rows), ==, 2 * n_blocks);
  vlm_quant_rows_clear (&rows);
}

static void
test_other_types (void)
{
  static const guint types[] = { 0, 1, 4, 5, 9, 10, 11, 15, 30, 99, G_MAXUINT };
  VlmIntFormat format;
  gsize i;

  for (i = 0; i < G_N_ELEMENTS (types); i++)
    g_assert_false (vlm_gguf_blocks_get_format (types[i], &format));
}

int
main (int argc, char **argv)
{
  json_t *root = golden_json ("gguf.json"), *entries = golden_array (root, "entries");
  gsize i;
  int status;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < json_array_size (entries); i++) {
    json_t *entry = json_array_get (entries, i);
    g_autofree gchar *values =
        g_strconcat ("/gguf-golden/values/", golden_string (entry, "name"), NULL);
    g_autofree gchar *special =
        g_strconcat ("/gguf-golden/special/", golden_string (entry, "name"), NULL);

    g_test_add_data_func (values, entry, test_values);
    g_test_add_data_func (special, entry, test_special_scales);
  }
  g_test_add_func ("/gguf-golden/other-types", test_other_types);
  status = g_test_run ();
  json_decref (root);
  return status;
}
