/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The resample against bytes that the reference gave, and against properties that follow from its
 * definition. Larger pictures are compared in test-image-golden.c.
 */

#include <math.h>
#include <string.h>

#include "engine/image/crops.h"
#include "engine/image/taps.h"
#include "test-image-draw.h"

static VlmKernels kernels;

static guint8 *
resample (const guint8 *src, guint width, guint height, guint out_width, guint out_height,
    VlmFilter filter, VlmResamplePath path)
{
  GError *error = NULL;
  guint8 *dst = g_malloc ((gsize) out_width * out_height * 3);

  vlm_resample_rgb (&kernels, src, (gsize) width * 3, width, height, dst, out_width, out_height,
      filter, path, &error);
  g_assert_no_error (error);
  return dst;
}

/* One grey row, as a row and as a column. */
static void
check_grey (const guint8 *grey, guint n, const guint8 *expected, guint out, VlmFilter filter,
    VlmResamplePath path)
{
  guint8 *src = g_malloc (n * 3);
  guint8 *row, *column;
  guint i, c;

  for (i = 0; i < n; i++)
    memset (src + i * 3, grey[i], 3);
  row = resample (src, n, 1, out, 1, filter, path);
  column = resample (src, 1, n, 1, out, filter, path);
  for (i = 0; i < out; i++) {
    for (c = 0; c < 3; c++) {
      g_assert_cmpuint (row[i * 3 + c], ==, expected[i]);
      g_assert_cmpuint (column[i * 3 + c], ==, expected[i]);
    }
  }
  g_free (src);
  g_free (row);
  g_free (column);
}

static const guint8 check_source[] = { 0, 10, 200, 255, 30, 77, 140 };

static void
test_check_rows (void)
{
  static const struct
  {
    guint out;
    guint8 bilinear[10], rounded[10], bicubic[10];
  } rows[] = {
    { 3, { 47, 164, 89 }, { 47, 164, 89 }, { 46, 170, 87 } },
    { 5, { 3, 116, 204, 51, 119 }, { 3, 116, 204, 51, 119 }, { 0, 122, 222, 44, 124 } },
    { 10, { 0, 5, 58, 191, 236, 176, 32, 65, 105, 140 },
        { 0, 5, 58, 191, 236, 176, 32, 65, 105, 140 },
        { 0, 0, 48, 193, 255, 186, 26, 58, 109, 144 } },
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (rows); i++) {
    check_grey (
        check_source, 7, rows[i].bilinear, rows[i].out, VLM_FILTER_BILINEAR, VLM_RESAMPLE_INTEGER);
    check_grey (
        check_source, 7, rows[i].rounded, rows[i].out, VLM_FILTER_BILINEAR, VLM_RESAMPLE_FLOAT);
    check_grey (
        check_source, 7, rows[i].bicubic, rows[i].out, VLM_FILTER_BICUBIC, VLM_RESAMPLE_INTEGER);
  }
}

static void
test_weights (void)
{
  /* By source pixel: ranges may include pixels of weight zero. */
  static const gint16 expected[3][7] = {
    { 23406, 28087, 14043 },
    { 0, 3855, 15420, 26985, 15420, 3855 },
    { 0, 0, 0, 0, 14043, 28087, 23406 },
  };
  static const struct
  {
    guint out, bits;
  } precisions[] = { { 3, 16 }, { 5, 15 }, { 10, 14 } };
  VlmTaps taps;
  guint i, j;

  g_assert_true (vlm_taps_init (&taps, 7, 3, VLM_FILTER_BILINEAR, VLM_RESAMPLE_INTEGER, NULL));
  for (i = 0; i < 3; i++) {
    gint16 weights[7] = { 0 };

    for (j = 0; j < taps.count[i]; j++)
      weights[taps.start[i] + j] = taps.weights[i * taps.max_taps + j];
    g_assert_cmpmem (weights, sizeof weights, expected[i], sizeof weights);
  }
  vlm_taps_clear (&taps);

  for (i = 0; i < G_N_ELEMENTS (precisions); i++) {
    g_assert_true (vlm_taps_init (
        &taps, 7, precisions[i].out, VLM_FILTER_BILINEAR, VLM_RESAMPLE_INTEGER, NULL));
    g_assert_cmpuint (taps.bits, ==, precisions[i].bits);
    vlm_taps_clear (&taps);
  }
}

/* Whatever the lengths: ranges stay within the axis, never go back, and weights sum to one. */
static void
test_weight_properties (void)
{
  static const guint lengths[] = { 1, 2, 3, 7, 32, 33, 100, 511, 512, 1000, 4097, 16384, 1000000 };
  guint a, b, kind, i;

  for (a = 0; a < G_N_ELEMENTS (lengths); a++) {
    for (b = 0; b < G_N_ELEMENTS (lengths) - 1; b++) {
      for (kind = 0; kind < 3; kind++) {
        VlmFilter filter = kind == 2 ? VLM_FILTER_BICUBIC : VLM_FILTER_BILINEAR;
        VlmResamplePath path = kind == 1 ? VLM_RESAMPLE_FLOAT : VLM_RESAMPLE_INTEGER;
        VlmTaps taps;
        gint32 previous = 0, j;

        g_assert_true (vlm_taps_init (&taps, lengths[a], lengths[b], filter, path, NULL));
        for (i = 0; i < taps.n; i++) {
          gdouble sum = 0, one = path == VLM_RESAMPLE_FLOAT ? 1.0 : 1 << taps.bits;

          g_assert_cmpint (taps.start[i], >=, previous);
          g_assert_cmpint (taps.count[i], >=, 1);
          g_assert_cmpint (taps.count[i], <=, taps.max_taps);
          g_assert_cmpint (taps.start[i] + taps.count[i], <=, lengths[a]);
          for (j = 0; j < taps.count[i]; j++)
            sum += path == VLM_RESAMPLE_FLOAT ? taps.float_weights[i * taps.max_taps + j]
                                              : taps.weights[i * taps.max_taps + j];
          g_assert_cmpfloat (fabs (sum - one), <=, 1e-4 * one + 0.5 * taps.count[i]);
          previous = taps.start[i];
        }
        vlm_taps_clear (&taps);
      }
    }
  }
}

static void
test_random_small (void)
{
  /* torchvision's bytes for a source of splitmix64 noise, seed 5. */
  static const struct
  {
    guint width, height, out_width, out_height;
    VlmFilter filter;
    guint8 expected[7 * 5 * 3];
  } cases[] = {
    { 7, 5, 3, 2, VLM_FILTER_BILINEAR,
        { 165, 129, 101, 169, 123, 141, 155, 88, 123, 157, 148, 111, 169, 89, 110, 164, 106, 91 } },
    { 7, 5, 3, 2, VLM_FILTER_BICUBIC,
        { 168, 129, 96, 167, 128, 146, 156, 83, 127, 152, 156, 112, 172, 82, 109, 165, 107, 85 } },
    { 3, 2, 7, 5, VLM_FILTER_BILINEAR,
        { 182, 113, 26, 191, 98, 24, 217, 54, 17, 244, 10, 10, 223, 100, 57, 202, 189, 104, 195,
            219, 120, 188, 124, 38, 194, 108, 36, 211, 60, 30, 228, 13, 24, 211, 95, 69, 193, 175,
            114, 187, 203, 129, 211, 167, 85, 205, 147, 85, 185, 86, 83, 166, 26, 82, 162, 74, 117,
            158, 121, 153, 156, 137, 165, 234, 209, 132, 215, 185, 133, 159, 112, 136, 104, 39, 139,
            112, 53, 165, 122, 67, 192, 125, 71, 201, 240, 220, 144, 218, 195, 145, 153, 118, 149,
            88, 42, 153, 100, 48, 177, 113, 53, 202, 117, 55, 210 } },
    { 3, 2, 7, 5, VLM_FILTER_BICUBIC,
        { 168, 112, 17, 184, 92, 12, 227, 33, 0, 255, 7, 0, 240, 101, 45, 209, 212, 101, 197, 255,
            123, 181, 130, 36, 190, 109, 32, 216, 46, 19, 234, 12, 19, 218, 91, 65, 194, 188, 116,
            185, 227, 137, 216, 180, 86, 207, 153, 84, 187, 81, 78, 166, 26, 82, 159, 66, 118, 157,
            125, 158, 155, 148, 173, 250, 230, 135, 223, 196, 136, 157, 115, 136, 98, 40, 144, 100,
            40, 171, 119, 62, 199, 125, 68, 209, 255, 248, 154, 229, 213, 156, 146, 128, 158, 73,
            45, 167, 78, 30, 191, 104, 38, 214, 113, 38, 223 } },
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++) {
    guint8 *src = test_image_draw ("hash", cases[i].width, cases[i].height, 5);
    guint8 *dst = resample (src, cases[i].width, cases[i].height, cases[i].out_width,
        cases[i].out_height, cases[i].filter, VLM_RESAMPLE_INTEGER);
    gsize size = cases[i].out_width * cases[i].out_height * 3;

    g_assert_cmpmem (dst, size, cases[i].expected, size);
    g_free (src);
    g_free (dst);
  }
}

static void
test_checkerboard (void)
{
  guint8 *src = test_image_draw ("checker", 256, 256, 0);
  guint8 *dst = resample (src, 256, 256, 32, 32, VLM_FILTER_BILINEAR, VLM_RESAMPLE_INTEGER);
  guint i;

  for (i = 0; i < 32 * 32 * 3; i++)
    g_assert_true (dst[i] == 127 || dst[i] == 128);
  g_free (src);
  g_free (dst);
}

static void
test_untouched (void)
{
  guint8 *src = test_image_draw ("hash", 37, 21, 3);
  guint path;

  for (path = 0; path < 2; path++) {
    guint8 *dst = resample (src, 37, 21, 37, 21, VLM_FILTER_BILINEAR, path);

    g_assert_cmpmem (src, 37 * 21 * 3, dst, 37 * 21 * 3);
    g_free (dst);
  }
  g_free (src);
}

/* A constant picture stays constant, whatever the sizes. */
static void
test_constant (void)
{
  static const guint sides[][4] = {
    { 1, 1, 256, 256 },
    { 1, 3000, 32, 600 },
    { 300, 100, 448, 160 },
    { 65, 64, 64, 65 },
  };
  guint i, kind, j;

  for (i = 0; i < G_N_ELEMENTS (sides); i++) {
    guint8 *src = test_image_draw ("solid", sides[i][0], sides[i][1], 0xFF8003);

    for (kind = 0; kind < 3; kind++) {
      guint8 *dst = resample (src, sides[i][0], sides[i][1], sides[i][2], sides[i][3],
          kind == 2 ? VLM_FILTER_BICUBIC : VLM_FILTER_BILINEAR,
          kind == 1 ? VLM_RESAMPLE_FLOAT : VLM_RESAMPLE_INTEGER);

      for (j = 0; j < sides[i][2] * sides[i][3]; j++) {
        g_assert_cmpuint (dst[j * 3], ==, 0xFF);
        g_assert_cmpuint (dst[j * 3 + 1], ==, 0x80);
        g_assert_cmpuint (dst[j * 3 + 2], ==, 0x03);
      }
      g_free (dst);
    }
    g_free (src);
  }
}

/* Rows with padding behind them give the same result; the padding is never read into it. */
static void
test_stride (void)
{
  const guint w = 50, h = 40;
  const gsize stride = w * 3 + 13;
  guint8 *tight = test_image_draw ("mix", w, h, 9);
  guint8 *loose = g_malloc (stride * h);
  guint path, y;

  memset (loose, 0xEE, stride * h);
  for (y = 0; y < h; y++)
    memcpy (loose + y * stride, tight + y * w * 3, w * 3);
  for (path = 0; path < 2; path++) {
    static const guint sizes[][2] = { { 50, 40 }, { 32, 40 }, { 50, 64 }, { 96, 32 } };
    guint i;

    for (i = 0; i < G_N_ELEMENTS (sizes); i++) {
      gsize size = sizes[i][0] * sizes[i][1] * 3;
      guint8 *a = resample (tight, w, h, sizes[i][0], sizes[i][1], VLM_FILTER_BILINEAR, path);
      guint8 *b = g_malloc (size);

      g_assert_true (vlm_resample_rgb (&kernels, loose, stride, w, h, b, sizes[i][0], sizes[i][1],
          VLM_FILTER_BILINEAR, path, NULL));
      g_assert_cmpmem (a, size, b, size);
      g_free (a);
      g_free (b);
    }
  }
  g_free (tight);
  g_free (loose);
}

/* The two paths never differ by more than one step. */
static void
test_paths (void)
{
  static const guint sizes[][4] = {
    { 97, 61, 64, 32 },
    { 40, 30, 96, 64 },
    { 33, 200, 64, 96 },
    { 300, 20, 32, 20 },
  };
  guint i, n_different = 0;
  gsize j;

  for (i = 0; i < G_N_ELEMENTS (sizes); i++) {
    guint8 *src = test_image_draw ("hash", sizes[i][0], sizes[i][1], i);
    guint8 *a = resample (src, sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3],
        VLM_FILTER_BILINEAR, VLM_RESAMPLE_INTEGER);
    guint8 *b = resample (src, sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3],
        VLM_FILTER_BILINEAR, VLM_RESAMPLE_FLOAT);

    for (j = 0; j < sizes[i][2] * sizes[i][3] * 3; j++) {
      g_assert_cmpint (ABS (a[j] - b[j]), <=, 1);
      n_different += a[j] != b[j];
    }
    g_free (src);
    g_free (a);
    g_free (b);
  }
  g_assert_cmpuint (n_different, >, 0);
}

static void
check_error (gsize stride, guint width, guint height, guint out_width, guint out_height,
    VlmFilter filter, VlmResamplePath path, gint code)
{
  static const guint8 src[3 * 16];
  guint8 dst[3 * 16];
  GError *error = NULL;

  g_assert_false (vlm_resample_rgb (
      &kernels, src, stride, width, height, dst, out_width, out_height, filter, path, &error));
  g_assert_error (error, VLM_ERROR, code);
  g_error_free (error);
}

static void
test_errors (void)
{
  const VlmFilter linear = VLM_FILTER_BILINEAR;
  const VlmResamplePath integer = VLM_RESAMPLE_INTEGER;

  check_error (12, 0, 4, 4, 4, linear, integer, VLM_ERROR_IMAGE);
  check_error (12, 4, 0, 4, 4, linear, integer, VLM_ERROR_IMAGE);
  check_error (12, 4, 4, 0, 4, linear, integer, VLM_ERROR_IMAGE);
  check_error (12, 4, 4, 4, 0, linear, integer, VLM_ERROR_IMAGE);
  check_error (11, 4, 4, 2, 2, linear, integer, VLM_ERROR_IMAGE);
  check_error (12, 4, 4, G_MAXUINT, G_MAXUINT, linear, integer, VLM_ERROR_IMAGE);
  check_error (12, 4, 4, 4, G_MAXUINT, linear, integer, VLM_ERROR_IMAGE);
  check_error (G_MAXSIZE, 4, 4, 2, 2, linear, integer, VLM_ERROR_IMAGE);
  check_error (12, 4, 4, 2, 2, VLM_FILTER_BICUBIC, VLM_RESAMPLE_FLOAT, VLM_ERROR_UNSUPPORTED);
}

/* Every level of this machine gives the bytes of the plain C one. */
static void
test_levels (void)
{
  static const guint sizes[][4] = {
    { 1, 1, 64, 64 },
    { 101, 67, 64, 32 },
    { 31, 17, 96, 96 },
    { 640, 3, 64, 3 },
    { 5, 900, 5, 32 },
  };
  guint i, filter;
  gint level;

  for (i = 0; i < G_N_ELEMENTS (sizes); i++) {
    for (filter = VLM_FILTER_BILINEAR; filter <= VLM_FILTER_BICUBIC; filter++) {
      gsize size = sizes[i][2] * sizes[i][3] * 3;
      guint8 *src = test_image_draw ("hash", sizes[i][0], sizes[i][1], 40 + i);
      guint8 *plain = resample (
          src, sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], filter, VLM_RESAMPLE_INTEGER);

      for (level = VLM_CPU_SCALAR + 1; level < VLM_CPU_N_LEVELS; level++) {
        VlmKernels other;
        guint8 *dst;

        if (!vlm_cpu_supports (level))
          continue;
        dst = g_malloc (size);
        g_assert_cmpint (vlm_kernels_init (&other, level), ==, 0);
        g_assert_true (vlm_resample_rgb (&other, src, sizes[i][0] * 3, sizes[i][0], sizes[i][1],
            dst, sizes[i][2], sizes[i][3], filter, VLM_RESAMPLE_INTEGER, NULL));
        g_assert_cmpmem (dst, size, plain, size);
        g_free (dst);
      }
      g_free (src);
      g_free (plain);
    }
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_assert_cmpint (vlm_kernels_init (&kernels, VLM_CPU_SCALAR), ==, 0);
  g_test_add_func ("/image/resample/check-rows", test_check_rows);
  g_test_add_func ("/image/resample/weights", test_weights);
  g_test_add_func ("/image/resample/weight-properties", test_weight_properties);
  g_test_add_func ("/image/resample/random-small", test_random_small);
  g_test_add_func ("/image/resample/checkerboard", test_checkerboard);
  g_test_add_func ("/image/resample/untouched", test_untouched);
  g_test_add_func ("/image/resample/constant", test_constant);
  g_test_add_func ("/image/resample/stride", test_stride);
  g_test_add_func ("/image/resample/paths", test_paths);
  g_test_add_func ("/image/resample/errors", test_errors);
  g_test_add_func ("/image/resample/levels", test_levels);
  return g_test_run ();
}
