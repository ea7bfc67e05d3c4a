/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sizes, grids and token counts against tables worked out with the reference. */

#include <math.h>
#include <string.h>

#include "engine/image/grid.h"
#include "engine/image/layout.h"
#include "engine/vlm.h"

typedef struct
{
  guint width, height;
  guint grid_rows, grid_columns;
  guint crop_height, crop_width; /* of the single crop or of the thumbnail */
  guint tokens;
} Row;

static const Row defaults[] = {
  { 32, 32, 1, 1, 256, 256, 64 },
  { 80, 48, 1, 1, 224, 352, 77 },
  { 224, 224, 1, 1, 256, 256, 64 },
  { 256, 256, 1, 1, 256, 256, 64 },
  { 320, 240, 1, 1, 256, 320, 80 },
  { 336, 336, 1, 1, 320, 320, 100 },
  { 400, 300, 1, 1, 288, 384, 108 },
  { 480, 270, 1, 1, 256, 480, 120 },
  { 512, 512, 1, 1, 512, 512, 256 },
  { 512, 1024, 1, 1, 704, 352, 242 },
  { 640, 480, 1, 1, 416, 576, 234 },
  { 650, 500, 1, 1, 448, 576, 252 },
  { 720, 730, 1, 1, 512, 480, 240 },
  { 768, 768, 2, 2, 512, 512, 1280 },
  { 768, 1024, 3, 2, 576, 416, 1770 },
  { 800, 600, 1, 1, 416, 576, 234 },
  { 960, 540, 1, 1, 384, 672, 252 },
  { 1000, 300, 1, 1, 256, 928, 232 },
  { 1000, 500, 1, 1, 352, 704, 242 },
  { 1000, 1000, 2, 2, 512, 512, 1280 },
  { 1024, 512, 1, 1, 352, 704, 242 },
  { 1024, 544, 1, 2, 352, 672, 743 },
  { 1024, 768, 2, 3, 416, 576, 1770 },
  { 1024, 1024, 2, 2, 512, 512, 1280 },
  { 1080, 1920, 4, 2, 672, 384, 2300 },
  { 1280, 720, 1, 2, 384, 672, 764 },
  { 1600, 800, 2, 4, 352, 704, 2290 },
  { 1920, 1080, 2, 4, 384, 672, 2300 },
  { 1920, 2485, 3, 2, 576, 448, 1788 },
  { 2560, 1440, 2, 4, 384, 672, 2300 },
  { 3840, 2160, 2, 4, 384, 672, 2300 },
  { 4000, 300, 1, 10, 128, 1856, 2792 },
  { 4000, 3000, 2, 3, 416, 576, 1770 },
  { 144, 4000, 1, 1, 2688, 96, 252 },
  { 1, 8000, 1, 1, 8000, 32, 250 },
  { 1, 1, 1, 1, 256, 256, 64 },
  { 1, 9000, 1, 1, 48544, 32, 1517 },
  { 16384, 16, 1, 1, 32, 16384, 512 },
  { 300, 100, 1, 1, 160, 448, 70 },
  { 1100, 420, 1, 1, 288, 800, 225 },
  { 1100, 900, 2, 2, 448, 544, 1262 },
  { 1100, 1100, 3, 3, 512, 512, 2560 },
};

/* The same with min_image_tokens 32. */
static const Row fewer_tokens[] = {
  { 32, 32, 1, 1, 192, 192, 36 },
  { 80, 48, 1, 1, 160, 256, 40 },
  { 224, 224, 1, 1, 224, 224, 49 },
  { 256, 256, 1, 1, 256, 256, 64 },
  { 640, 480, 1, 1, 416, 576, 234 },
  { 1280, 720, 1, 2, 384, 672, 764 },
};

static void
check_row (const VlmProcessor *processor, const Row *row)
{
  GError *error = NULL;
  VlmLayout layout;
  guint width, height, i;
  guint n_tiles = row->grid_rows * row->grid_columns;

  g_test_message ("%ux%u", row->width, row->height);
  g_assert_true (vlm_layout_plan (&layout, processor, row->width, row->height, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (layout.width, ==, row->width);
  g_assert_cmpuint (layout.height, ==, row->height);
  g_assert_cmpuint (layout.grid_rows, ==, row->grid_rows);
  g_assert_cmpuint (layout.grid_columns, ==, row->grid_columns);
  g_assert_cmpint (layout.tiled, ==, n_tiles > 1);
  g_assert_cmpint (layout.has_thumbnail, ==, n_tiles > 1);
  g_assert_cmpuint (layout.n_crops, ==, n_tiles > 1 ? n_tiles + 1 : 1);
  g_assert_cmpuint (layout.image_tokens, ==, row->tokens);
  g_assert_cmpuint (
      layout.image_tokens, ==, n_tiles * layout.tile_tokens + layout.thumbnail_tokens);

  for (i = 0; i + 1 < layout.n_crops; i++) {
    vlm_layout_crop_size (&layout, i, &width, &height);
    g_assert_cmpuint (width, ==, 512);
    g_assert_cmpuint (height, ==, 512);
  }
  vlm_layout_crop_size (&layout, layout.n_crops - 1, &width, &height);
  g_assert_cmpuint (width, ==, row->crop_width);
  g_assert_cmpuint (height, ==, row->crop_height);
}

static void
test_table (void)
{
  VlmProcessor processor;
  guint i;

  vlm_processor_init_defaults (&processor);
  for (i = 0; i < G_N_ELEMENTS (defaults); i++)
    check_row (&processor, &defaults[i]);
  processor.min_image_tokens = 32;
  for (i = 0; i < G_N_ELEMENTS (fewer_tokens); i++)
    check_row (&processor, &fewer_tokens[i]);
}

static void
check_candidates (guint min_tiles, guint max_tiles, const VlmGrid *expected, guint n)
{
  GArray *grids = vlm_grid_candidates (min_tiles, max_tiles);
  guint i;

  g_assert_cmpuint (grids->len, ==, n);
  for (i = 0; i < n; i++) {
    g_assert_cmpuint (g_array_index (grids, VlmGrid, i).columns, ==, expected[i].columns);
    g_assert_cmpuint (g_array_index (grids, VlmGrid, i).rows, ==, expected[i].rows);
  }
  g_array_unref (grids);
}

static void
test_candidates (void)
{
  static const VlmGrid two_to_ten[] = {
    { 1, 2 },
    { 2, 1 },
    { 3, 1 },
    { 1, 3 },
    { 2, 2 },
    { 4, 1 },
    { 1, 4 },
    { 5, 1 },
    { 1, 5 },
    { 1, 6 },
    { 6, 1 },
    { 3, 2 },
    { 2, 3 },
    { 7, 1 },
    { 1, 7 },
    { 4, 2 },
    { 2, 4 },
    { 1, 8 },
    { 8, 1 },
    { 1, 9 },
    { 3, 3 },
    { 9, 1 },
    { 2, 5 },
    { 5, 2 },
    { 10, 1 },
    { 1, 10 },
  };
  static const VlmGrid four[] = { { 4, 1 }, { 1, 4 }, { 2, 2 } };
  static const VlmGrid twelve[] = { { 1, 12 }, { 6, 2 }, { 12, 1 }, { 3, 4 }, { 4, 3 }, { 2, 6 } };
  GArray *grids;
  guint min, max;

  check_candidates (2, 10, two_to_ten, G_N_ELEMENTS (two_to_ten));
  check_candidates (4, 4, four, G_N_ELEMENTS (four));
  check_candidates (12, 12, twelve, G_N_ELEMENTS (twelve));

  /* All settings end, and give each pair once. */
  for (min = 1; min <= 100; min += 9) {
    for (max = min; max <= 100; max += 11) {
      guint expected = 0, n;

      for (n = min; n <= max; n++) {
        guint d;

        for (d = 1; d <= n; d++)
          expected += n % d == 0;
      }
      grids = vlm_grid_candidates (min, max);
      g_assert_cmpuint (grids->len, ==, expected);
      g_array_unref (grids);
    }
  }
}

static void
test_options (void)
{
  static const Row splitting_off = { 1280, 720, 1, 1, 384, 672, 252 };
  VlmProcessor processor;
  VlmLayout layout;

  vlm_processor_init_defaults (&processor);
  processor.do_image_splitting = FALSE;
  check_row (&processor, &splitting_off);

  vlm_processor_init_defaults (&processor);
  processor.min_tiles = processor.max_tiles = 1;
  check_row (&processor, &splitting_off);

  vlm_processor_init_defaults (&processor);
  processor.use_thumbnail = FALSE;
  g_assert_true (vlm_layout_plan (&layout, &processor, 1280, 720, NULL));
  g_assert_cmpuint (layout.n_crops, ==, 2);
  g_assert_cmpuint (layout.image_tokens, ==, 512);
  g_assert_cmpuint (layout.thumbnail_tokens, ==, 0);
  g_assert_false (layout.has_thumbnail);
  g_assert_true (vlm_layout_plan (&layout, &processor, 256, 256, NULL));
  g_assert_cmpuint (layout.image_tokens, ==, 64);

  /* The limit is compared strictly, and moves with the tolerance and the token limit. */
  vlm_processor_init_defaults (&processor);
  processor.max_pixels_tolerance = 1.0;
  g_assert_true (vlm_layout_plan (&layout, &processor, 512, 512, NULL));
  g_assert_false (layout.tiled);
  g_assert_true (vlm_layout_plan (&layout, &processor, 544, 512, NULL));
  g_assert_true (layout.tiled);
  vlm_processor_init_defaults (&processor);
  processor.max_image_tokens = 64;
  g_assert_true (vlm_layout_plan (&layout, &processor, 512, 288, NULL));
  g_assert_true (layout.tiled);
  g_assert_cmpuint (layout.thumbnail_tokens, <=, 64);
  g_assert_cmpuint (layout.tile_tokens, ==, 256);
}

/* With min_tiles 1 a large picture may get a grid of one: one whole tile, no thumbnail. */
static void
test_one_tile (void)
{
  VlmProcessor processor;
  VlmLayout layout;

  vlm_processor_init_defaults (&processor);
  processor.min_tiles = 1;
  g_assert_true (vlm_layout_plan (&layout, &processor, 721, 726, NULL));
  g_assert_false (layout.tiled);
  g_assert_false (layout.has_thumbnail);
  g_assert_cmpuint (layout.n_crops, ==, 1);
  g_assert_cmpuint (layout.tile_width, ==, 512);
  g_assert_cmpuint (layout.tile_height, ==, 512);
  g_assert_cmpuint (layout.image_tokens, ==, 256);
  g_assert_true (vlm_layout_plan (&layout, &processor, 725, 725, NULL));
  g_assert_cmpuint (layout.n_crops, ==, 5);
}

static void
check_refused (guint width, guint height, const gchar *first, const gchar *second)
{
  VlmProcessor processor;
  VlmLayout layout = { 0 };
  GError *error = NULL;

  vlm_processor_init_defaults (&processor);
  layout.n_crops = 77;
  g_assert_false (vlm_layout_plan (&layout, &processor, width, height, &error));
  g_assert_error (error, VLM_ERROR, VLM_ERROR_IMAGE);
  g_assert_nonnull (strstr (error->message, first));
  g_assert_nonnull (strstr (error->message, second));
  g_assert_cmpuint (layout.n_crops, ==, 77);
  g_error_free (error);
}

static void
test_refused (void)
{
  check_refused (0, 0, "0x0", "at least 1");
  check_refused (0, 480, "0x480", "at least 1");
  check_refused (640, 0, "640x0", "at least 1");
  check_refused (1, 20000, "1x20000", "8192");
  check_refused (20000, 1, "20000x1", "8192");
  check_refused (G_MAXUINT, 1, "4294967295x1", "8192");
  check_refused (G_MAXUINT, 3, "4294967295x3", "8192");
}

/* Around the limit: 1 x h is refused exactly when its crop has more patches. */
static void
test_limit (void)
{
  VlmProcessor processor;
  VlmLayout layout;
  guint h, n_good = 0, n_refused = 0;

  vlm_processor_init_defaults (&processor);
  for (h = 8100; h < 20000; h += 37) {
    gdouble rounded = rint (h / 32.0) * 32;
    gdouble side = rounded * 32 > 262144 ? floor (h / sqrt (h / 262144.0) / 32) * 32 : rounded;

    if (vlm_layout_plan (&layout, &processor, 1, h, NULL)) {
      g_assert_cmpuint (layout.tile_height, ==, (guint) side);
      g_assert_cmpuint (layout.tile_width, ==, 32);
      g_assert_cmpfloat (side / 16 * 2, <=, 8192);
      n_good++;
    } else {
      g_assert_cmpfloat (side / 16 * 2, >, 8192);
      n_refused++;
    }
  }
  g_assert_cmpuint (n_good, >, 20);
  g_assert_cmpuint (n_refused, >, 20);
}

typedef void (*Spoil) (VlmProcessor *processor);

static void
spoil_patch (VlmProcessor *processor)
{
  processor->patch_size = 0;
}

static void
spoil_factor (VlmProcessor *processor)
{
  processor->downsample_factor = 0;
}

static void
spoil_tile (VlmProcessor *processor)
{
  processor->tile_size = 500;
}

static void
spoil_min_tiles (VlmProcessor *processor)
{
  processor->min_tiles = 0;
}

static void
spoil_max_tiles (VlmProcessor *processor)
{
  processor->max_tiles = G_MAXUINT;
}

static void
spoil_tiles_order (VlmProcessor *processor)
{
  processor->min_tiles = 11;
}

static void
spoil_tokens (VlmProcessor *processor)
{
  processor->max_image_tokens = G_MAXUINT;
}

static void
spoil_tokens_order (VlmProcessor *processor)
{
  processor->min_image_tokens = processor->max_image_tokens + 1;
}

static void
spoil_tolerance (VlmProcessor *processor)
{
  processor->max_pixels_tolerance = NAN;
}

static void
spoil_filter (VlmProcessor *processor)
{
  processor->filter = 1;
}

static void
spoil_path (VlmProcessor *processor)
{
  processor->filter = VLM_FILTER_BICUBIC;
  processor->path = VLM_RESAMPLE_FLOAT;
}

static void
spoil_rescale (VlmProcessor *processor)
{
  processor->rescale_factor = 0;
}

static void
spoil_mean (VlmProcessor *processor)
{
  processor->mean[1] = INFINITY;
}

static void
spoil_std (VlmProcessor *processor)
{
  processor->std[2] = 0;
}

static void
test_validate (void)
{
  static const struct
  {
    Spoil spoil;
    const gchar *field;
  } cases[] = {
    { spoil_patch, "encoder_patch_size" },
    { spoil_factor, "downsample_factor" },
    { spoil_tile, "tile_size" },
    { spoil_min_tiles, "min_tiles" },
    { spoil_max_tiles, "max_tiles" },
    { spoil_tiles_order, "min_tiles" },
    { spoil_tokens, "max_image_tokens" },
    { spoil_tokens_order, "min_image_tokens" },
    { spoil_tolerance, "max_pixels_tolerance" },
    { spoil_filter, "resample" },
    { spoil_path, "bilinear" },
    { spoil_rescale, "rescale_factor" },
    { spoil_mean, "image_mean" },
    { spoil_std, "image_std" },
  };
  VlmProcessor processor;
  guint i;

  vlm_processor_init_defaults (&processor);
  g_assert_true (vlm_processor_validate (&processor, NULL));
  for (i = 0; i < G_N_ELEMENTS (cases); i++) {
    GError *error = NULL;

    vlm_processor_init_defaults (&processor);
    cases[i].spoil (&processor);
    g_assert_false (vlm_processor_validate (&processor, &error));
    g_assert_nonnull (error);
    g_assert_true (error->domain == VLM_ERROR);
    g_assert_nonnull (strstr (error->message, cases[i].field));
    g_error_free (error);
  }

  /* Tile numbers are judged even where they are not used: a request may switch tiling on. */
  vlm_processor_init_defaults (&processor);
  processor.do_image_splitting = FALSE;
  g_assert_true (vlm_processor_validate (&processor, NULL));
  processor.max_tiles = 60000;
  g_assert_false (vlm_processor_validate (&processor, NULL));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/image/layout/table", test_table);
  g_test_add_func ("/image/layout/candidates", test_candidates);
  g_test_add_func ("/image/layout/options", test_options);
  g_test_add_func ("/image/layout/one-tile", test_one_tile);
  g_test_add_func ("/image/layout/refused", test_refused);
  g_test_add_func ("/image/layout/limit", test_limit);
  g_test_add_func ("/image/processor/validate", test_validate);
  return g_test_run ();
}
