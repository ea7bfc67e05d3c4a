/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tiles, thumbnails, patch rows and the position table. */

#include <math.h>
#include <string.h>

#include "engine/image/crops.h"
#include "test-image-draw.h"

static VlmKernels kernels;
static VlmProcessor processor;

static GPtrArray *
cut (const guint8 *pixels, guint width, guint height, VlmLayout *layout)
{
  VlmImage image = { pixels, (gsize) width * 3, width, height };
  GError *error = NULL;
  GPtrArray *crops;
  guint i;

  g_assert_true (vlm_layout_plan (layout, &processor, width, height, &error));
  crops = vlm_image_crops (&kernels, &processor, layout, &image, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (crops->len, ==, layout->n_crops);
  for (i = 0; i < crops->len; i++) {
    guint w, h;

    vlm_layout_crop_size (layout, i, &w, &h);
    g_assert_cmpuint (g_bytes_get_size (crops->pdata[i]), ==, (gsize) w * h * 3);
  }
  return crops;
}

static void
assert_solid (GBytes *crop, guint8 r, guint8 g, guint8 b)
{
  gsize size, i;
  const guint8 *p = g_bytes_get_data (crop, &size);

  for (i = 0; i < size; i += 3) {
    if (p[i] != r || p[i + 1] != g || p[i + 2] != b)
      g_error ("byte %" G_GSIZE_FORMAT " is %u %u %u, expected %u %u %u", i, p[i], p[i + 1],
          p[i + 2], r, g, b);
  }
}

static void
test_tiles_in_order (void)
{
  guint8 *pixels = test_image_draw ("halves", 1024, 544, 0);
  VlmLayout layout;
  GPtrArray *crops = cut (pixels, 1024, 544, &layout);
  guint x, y, i;

  g_assert_cmpuint (crops->len, ==, 3);
  assert_solid (crops->pdata[0], 255, 0, 0);
  assert_solid (crops->pdata[1], 0, 0, 255);
  g_ptr_array_unref (crops);
  g_free (pixels);

  /* Four quadrants of four colours, on the tiles' borders. */
  pixels = g_malloc (1024 * 1024 * 3);
  for (y = 0; y < 1024; y++) {
    for (x = 0; x < 1024; x++)
      memset (pixels + (y * 1024 + x) * 3, 10 + 2 * (y / 512) + x / 512, 3);
  }
  crops = cut (pixels, 1024, 1024, &layout);
  g_assert_cmpuint (crops->len, ==, 5);
  for (i = 0; i < 4; i++)
    assert_solid (crops->pdata[i], 10 + i, 10 + i, 10 + i);
  g_ptr_array_unref (crops);
  g_free (pixels);
}

/* Tiles are cut from the stretched picture; the thumbnail is made from the original. */
static void
test_tiles_and_thumbnail (void)
{
  const guint w = 1280, h = 720;
  guint8 *pixels = test_image_draw ("mix", w, h, 2);
  guint8 *grid = g_malloc (1024 * 512 * 3), *small = g_malloc (672 * 384 * 3);
  VlmLayout layout;
  GPtrArray *crops = cut (pixels, w, h, &layout);
  guint i, y;

  g_assert_true (vlm_resample_rgb (&kernels, pixels, w * 3, w, h, grid, 1024, 512,
      VLM_FILTER_BILINEAR, VLM_RESAMPLE_INTEGER, NULL));
  g_assert_true (vlm_resample_rgb (&kernels, pixels, w * 3, w, h, small, 672, 384,
      VLM_FILTER_BILINEAR, VLM_RESAMPLE_INTEGER, NULL));
  g_assert_cmpuint (crops->len, ==, 3);
  for (i = 0; i < 2; i++) {
    const guint8 *tile = g_bytes_get_data (crops->pdata[i], NULL);

    for (y = 0; y < 512; y++)
      g_assert_cmpmem (tile + y * 512 * 3, 512 * 3, grid + (y * 1024 + i * 512) * 3, 512 * 3);
  }
  g_assert_cmpmem (g_bytes_get_data (crops->pdata[2], NULL), 672 * 384 * 3, small, 672 * 384 * 3);
  g_ptr_array_unref (crops);
  g_free (pixels);
  g_free (grid);
  g_free (small);
}

static void
test_single (void)
{
  guint8 *pixels = test_image_draw ("hash", 512, 512, 4);
  VlmLayout layout;
  GPtrArray *crops = cut (pixels, 512, 512, &layout);

  g_assert_cmpmem (g_bytes_get_data (crops->pdata[0], NULL), 512 * 512 * 3, pixels, 512 * 512 * 3);
  g_ptr_array_unref (crops);
  g_free (pixels);

  pixels = test_image_draw ("solid", 1, 1, 0x0A64C8);
  crops = cut (pixels, 1, 1, &layout);
  g_assert_cmpuint (layout.tile_width, ==, 256);
  assert_solid (crops->pdata[0], 10, 100, 200);
  g_ptr_array_unref (crops);
  g_free (pixels);
}

static void
test_extreme (void)
{
  static const guint sides[][3] = { { 1, 8000, 250 }, { 16384, 16, 512 }, { 1, 9000, 1517 } };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (sides); i++) {
    guint8 *pixels = test_image_draw ("solid", sides[i][0], sides[i][1], 0x123456);
    VlmLayout layout;
    GPtrArray *crops = cut (pixels, sides[i][0], sides[i][1], &layout);

    g_assert_cmpuint (crops->len, ==, 1);
    g_assert_cmpuint (layout.image_tokens, ==, sides[i][2]);
    assert_solid (crops->pdata[0], 0x12, 0x34, 0x56);
    g_ptr_array_unref (crops);
    g_free (pixels);
  }
}

static void
test_mismatch (void)
{
  static const guint8 pixels[12];
  VlmImage image = { pixels, 6, 2, 2 };
  GError *error = NULL;
  VlmLayout layout;

  g_assert_true (vlm_layout_plan (&layout, &processor, 2, 3, NULL));
  g_assert_null (vlm_image_crops (&kernels, &processor, &layout, &image, &error));
  g_assert_error (error, VLM_ERROR, VLM_ERROR_IMAGE);
  g_clear_error (&error);

  g_assert_true (vlm_layout_plan (&layout, &processor, 2, 2, NULL));
  image.stride = 5;
  g_assert_null (vlm_image_crops (&kernels, &processor, &layout, &image, &error));
  g_assert_error (error, VLM_ERROR, VLM_ERROR_IMAGE);
  g_clear_error (&error);
}

/* Pure colours: every patch repeats one triple, channels fastest. */
static void
test_patch_channels (void)
{
  static const guint32 colours[] = { 0xFF0000, 0x00FF00, 0x0000FF };
  gfloat *rows = g_new (gfloat, 4 * 768);
  guint c, i;

  for (c = 0; c < 3; c++) {
    guint8 *crop = test_image_draw ("solid", 32, 32, colours[c]);

    vlm_crop_patches (&processor, crop, 32, 32, rows);
    for (i = 0; i < 4 * 768; i++)
      g_assert_cmpfloat (rows[i], ==, i % 3 == c ? 1.0f : -1.0f);
    g_free (crop);
  }
  g_free (rows);
}

static void
test_patch_order (void)
{
  const guint w = 96, h = 64;
  guint8 *crop = test_image_draw ("hash", w, h, 6);
  gfloat *rows = g_new (gfloat, w * h * 3);
  guint x, y, c;

  vlm_crop_patches (&processor, crop, w, h, rows);
  for (y = 0; y < h; y++) {
    for (x = 0; x < w; x++) {
      for (c = 0; c < 3; c++) {
        gfloat value = ((gfloat) crop[(y * w + x) * 3 + c] - 127.5f) / 127.5f;
        guint row = y / 16 * (w / 16) + x / 16;

        g_assert_cmpfloat (rows[row * 768 + (y % 16 * 16 + x % 16) * 3 + c], ==, value);
      }
    }
  }
  g_free (crop);
  g_free (rows);
}

/* Mean, deviation and rescaling of the processor are obeyed, each channel its own. */
static void
test_patch_settings (void)
{
  VlmProcessor other = processor;
  guint8 *crop = test_image_draw ("hash", 32, 32, 7);
  gfloat *rows = g_new (gfloat, 32 * 32 * 3);
  guint i, c;

  other.patch_size = 32;
  other.rescale_factor = 0.00392156862745098;
  for (c = 0; c < 3; c++) {
    other.mean[c] = 0.1f + 0.2f * c;
    other.std[c] = 0.3f + 0.1f * c;
  }
  vlm_crop_patches (&other, crop, 32, 32, rows);
  for (i = 0; i < 32 * 32 * 3; i++) {
    gdouble expected = (crop[i] / 255.0 - other.mean[i % 3]) / other.std[i % 3];

    g_assert_cmpfloat (fabs (rows[i] - expected), <, 1e-5);
  }
  g_free (crop);
  g_free (rows);
}

/* x and y are scaled apart: one bright square of a 2:1 picture lands in the patch it belongs to. */
static void
test_place (void)
{
  const guint w = 800, h = 400;
  guint8 *pixels = g_malloc0 (w * h * 3);
  gfloat *rows;
  gdouble best = -1e9;
  VlmLayout layout;
  GPtrArray *crops;
  guint i, j, y, columns, found = 0;

  for (y = 100; y < 125; y++)
    memset (pixels + (y * w + 600) * 3, 255, 25 * 3);
  crops = cut (pixels, w, h, &layout);
  columns = layout.tile_width / 16;
  g_assert_cmpuint (layout.tile_width, ==, 704);
  g_assert_cmpuint (layout.tile_height, ==, 352);
  rows = g_new (gfloat, layout.tile_width * layout.tile_height * 3);
  vlm_crop_patches (&processor, g_bytes_get_data (crops->pdata[0], NULL), layout.tile_width,
      layout.tile_height, rows);
  for (i = 0; i < columns * (layout.tile_height / 16); i++) {
    gdouble sum = 0;

    for (j = 0; j < 768; j++)
      sum += rows[i * 768 + j];
    if (sum > best) {
      best = sum;
      found = i;
    }
  }
  /* The square's centre, (612.5, 112.5), is at (539, 99) of the crop. */
  g_assert_cmpuint (found % columns, ==, 539 / 16);
  g_assert_cmpuint (found / columns, ==, 99 / 16);
  g_ptr_array_unref (crops);
  g_free (pixels);
  g_free (rows);
}

/* The weights of one axis in double, straight from their definition. */
static void
axis_weights (gdouble *weights, guint side, guint n, guint index)
{
  gdouble scale = (gdouble) side / n, reach = MAX (scale, 1.0), total = 0;
  guint i;

  for (i = 0; i < side; i++) {
    weights[i] = MAX (1.0 - fabs (i + 0.5 - (index + 0.5) * scale) / reach, 0.0);
    total += weights[i];
  }
  for (i = 0; i < side; i++)
    weights[i] /= total;
}

static void
check_table (guint side, guint dim, guint grid_rows, guint grid_columns)
{
  gfloat *table = g_new (gfloat, side * side * dim);
  gfloat *out = g_new (gfloat, grid_rows * grid_columns * dim);
  gdouble *wr = g_new (gdouble, side), *wc = g_new (gdouble, side);
  guint i, j, r, c, d;

  for (i = 0; i < side * side * dim; i++)
    table[i] = (gdouble) (test_image_splitmix (i) >> 40) / (1 << 23) - 1.0;
  vlm_position_table_resize (table, side, dim, grid_rows, grid_columns, out);
  for (r = 0; r < grid_rows; r++) {
    axis_weights (wr, side, grid_rows, r);
    for (c = 0; c < grid_columns; c++) {
      axis_weights (wc, side, grid_columns, c);
      for (d = 0; d < dim; d++) {
        gdouble expected = 0;

        for (i = 0; i < side; i++) {
          for (j = 0; j < side; j++)
            expected += wr[i] * wc[j] * table[(i * side + j) * dim + d];
        }
        g_assert_cmpfloat (fabs (out[(r * grid_columns + c) * dim + d] - expected), <, 2e-5);
      }
    }
  }
  g_free (table);
  g_free (out);
  g_free (wr);
  g_free (wc);
}

static void
test_position_table (void)
{
  static const guint grids[][2] = {
    { 4, 12 },
    { 8, 116 },
    { 168, 6 },
    { 14, 22 },
    { 16, 16 },
    { 32, 32 },
    { 15, 17 },
    { 2, 500 },
    { 1, 1 },
  };
  gfloat table[16], out[16];
  guint i;

  for (i = 0; i < G_N_ELEMENTS (grids); i++)
    check_table (16, 5, grids[i][0], grids[i][1]);
  check_table (7, 3, 5, 9);

  /* 16 to 14: the first outputs begin at the entry of their own number, with two taps each. */
  for (i = 0; i < 3; i++) {
    static const gfloat taps[][2] = {
      { 0.83333331f, 0.16666672f },
      { 0.72222209f, 0.27777794f },
      { 0.61111104f, 0.38888896f },
    };
    gfloat column[16 * 16] = { 0 };
    gfloat resized[14 * 16];
    guint y;

    for (y = 0; y < 2; y++) {
      memset (column, 0, sizeof column);
      column[(i + y) * 16] = 1.0f;
      vlm_position_table_resize (column, 16, 1, 14, 16, resized);
      g_assert_cmpfloat (fabs (resized[i * 16] - taps[i][y]), <, 1e-6);
    }
  }

  /* An axis of the table's own size is left alone, to the bit. */
  for (i = 0; i < 16; i++)
    table[i] = 0.1f + i / 7.0f;
  vlm_position_table_resize (table, 4, 1, 4, 4, out);
  g_assert_cmpmem (table, sizeof table, out, sizeof out);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_assert_cmpint (vlm_kernels_init (&kernels, vlm_cpu_best_level ()), ==, 0);
  vlm_processor_init_defaults (&processor);
  g_test_add_func ("/image/crops/tiles-in-order", test_tiles_in_order);
  g_test_add_func ("/image/crops/tiles-and-thumbnail", test_tiles_and_thumbnail);
  g_test_add_func ("/image/crops/single", test_single);
  g_test_add_func ("/image/crops/extreme", test_extreme);
  g_test_add_func ("/image/crops/mismatch", test_mismatch);
  g_test_add_func ("/image/patches/channels", test_patch_channels);
  g_test_add_func ("/image/patches/order", test_patch_order);
  g_test_add_func ("/image/patches/settings", test_patch_settings);
  g_test_add_func ("/image/patches/place", test_place);
  g_test_add_func ("/image/position-table", test_position_table);
  return g_test_run ();
}
