/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "test-image-draw.h"

#include <string.h>

typedef struct
{
  guint width, height;
  guint64 seed;
  /* Of the triangle waves, [channel][wave]. */
  gint64 period[3][3], step_x[3][3], step_y[3][3], phase[3][3];
} Picture;

typedef guint8 (*PixelFunc) (const Picture *picture, guint x, guint y, guint c);

guint64
test_image_splitmix (guint64 state)
{
  guint64 z = state + G_GUINT64_CONSTANT (0x9E3779B97F4A7C15);

  z = (z ^ (z >> 30)) * G_GUINT64_CONSTANT (0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * G_GUINT64_CONSTANT (0x94D049BB133111EB);
  return z ^ (z >> 31);
}

static guint8
hash_pixel (const Picture *picture, guint x, guint y, guint c)
{
  guint64 index = ((guint64) y * picture->width + x) * 3 + c;

  return test_image_splitmix ((picture->seed << 32) + index) >> 56;
}

static void
make_waves (Picture *picture)
{
  guint c, k;

  for (c = 0; c < 3; c++) {
    for (k = 0; k < 3; k++) {
      guint64 r = test_image_splitmix ((picture->seed << 32) + 16 * c + k);

      picture->period[c][k] = 24 + (r & 0xFF);
      picture->step_x[c][k] = (r >> 8) & 7;
      picture->step_y[c][k] = (r >> 16) & 7;
      picture->phase[c][k] = (r >> 24) & 0x3FF;
      if (picture->step_x[c][k] == 0 && picture->step_y[c][k] == 0)
        picture->step_x[c][k] = 1;
    }
  }
}

static guint8
tri_pixel (const Picture *picture, guint x, guint y, guint c)
{
  gint64 total = 0;
  guint k;

  for (k = 0; k < 3; k++) {
    gint64 period = picture->period[c][k];
    gint64 t = (picture->step_x[c][k] * x + picture->step_y[c][k] * y + picture->phase[c][k])
        % (2 * period);

    total += ABS (t - period) * 255 / period;
  }
  return total / 3;
}

static guint8
mix_pixel (const Picture *picture, guint x, guint y, guint c)
{
  return (3 * tri_pixel (picture, x, y, c) + hash_pixel (picture, x, y, c)) / 4;
}

static guint8
ramp_pixel (const Picture *picture, guint x, guint y, guint c)
{
  gint64 w = picture->width, h = picture->height;

  if (c == 0)
    return (gint64) x * 255 / MAX (w - 1, 1);
  if (c == 1)
    return (gint64) y * 255 / MAX (h - 1, 1);
  return ((gint64) x + y) * 255 / MAX (w + h - 2, 1);
}

static guint8
halves_pixel (const Picture *picture, guint x, guint y, guint c)
{
  return c == (x < picture->width / 2 ? 0 : 2) ? 255 : 0;
}

static guint8
checker_pixel (const Picture *picture, guint x, guint y, guint c)
{
  return ((x ^ y) & 1) * 255;
}

static guint8
solid_pixel (const Picture *picture, guint x, guint y, guint c)
{
  return picture->seed >> (16 - 8 * c);
}

guint8 *
test_image_draw (const gchar *pattern, guint width, guint height, guint64 seed)
{
  static const struct
  {
    const gchar *name;
    PixelFunc pixel;
  } patterns[] = {
    { "hash", hash_pixel },
    { "tri", tri_pixel },
    { "mix", mix_pixel },
    { "ramp", ramp_pixel },
    { "halves", halves_pixel },
    { "checker", checker_pixel },
    { "solid", solid_pixel },
  };
  Picture picture = { width, height, seed, { { 0 } }, { { 0 } }, { { 0 } }, { { 0 } } };
  guint8 *pixels = g_malloc ((gsize) width * height * 3);
  guint8 *out = pixels;
  guint i, x, y, c;

  for (i = 0; i < G_N_ELEMENTS (patterns); i++) {
    if (strcmp (patterns[i].name, pattern) == 0)
      break;
  }
  if (i == G_N_ELEMENTS (patterns))
    g_error ("no picture pattern %s", pattern);

  make_waves (&picture);
  for (y = 0; y < height; y++) {
    for (x = 0; x < width; x++) {
      for (c = 0; c < 3; c++)
        *out++ = patterns[i].pixel (&picture, x, y, c);
    }
  }
  return pixels;
}

gchar *
test_image_hash (const guint8 *data, gsize size)
{
  guint64 hash = G_GUINT64_CONSTANT (0xcbf29ce484222325);
  gsize i;

  for (i = 0; i < size; i++) {
    hash ^= data[i];
    hash *= G_GUINT64_CONSTANT (0x100000001b3);
  }
  return g_strdup_printf ("%016" G_GINT64_MODIFIER "x", hash);
}
