/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The generator of the demo scenes: the pictures that the model was judged by can be drawn again,
 * and scenes are spread as promised.
 */

#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"

#define N_SCENES 3000

static void
test_checksums (void)
{
  g_autofree gchar *path = g_test_build_filename (G_TEST_DIST, "scenes.tsv", NULL);
  g_autofree gchar *text = NULL;
  g_auto (GStrv) lines = NULL;
  g_autoptr (GError) error = NULL;
  guint n_scenes = 0;

  g_file_get_contents (path, &text, NULL, &error);
  g_assert_no_error (error);
  lines = g_strsplit (text, "\n", -1);
  for (guint i = 1; lines[i] != NULL && lines[i][0] != '\0'; i++) {
    g_auto (GStrv) fields = g_strsplit (lines[i], "\t", -1);
    g_autofree guint8 *rgb = NULL;
    VlmScene scene;

    g_assert_cmpuint (g_strv_length (fields), ==, 7);
    vlm_scene_init (&scene, g_ascii_strtoull (fields[0], NULL, 10));
    g_assert_cmpint (scene.n_shapes, ==, atoi (fields[1]));
    g_assert_cmpint (scene.width, ==, atoi (fields[2]));
    g_assert_cmpint (scene.height, ==, atoi (fields[3]));
    g_assert_cmpstr (scene.caption, ==, fields[5]);
    rgb = g_malloc ((gsize) scene.width * scene.height * 3);
    vlm_scene_draw (&scene, rgb, (gsize) scene.width * 3);
    g_assert_cmphex (vlm_scene_checksum (rgb, scene.width, scene.height, (gsize) scene.width * 3),
        ==, g_ascii_strtoull (fields[4], NULL, 16));
    n_scenes++;
  }
  g_assert_cmpuint (n_scenes, ==, 500);
}

/* A row's padding belongs to the caller. */
static void
test_stride (void)
{
  VlmScene scene;
  gsize stride = 320 * 3 + 16;
  g_autofree guint8 *padded = g_malloc (stride * 240);
  g_autofree guint8 *packed = g_malloc (320 * 3 * 240);

  for (guint64 seed = 1; seed <= 20; seed++) {
    memset (padded, 0xa5, stride * 240);
    vlm_scene_init_sized (&scene, seed, 320, 240);
    vlm_scene_draw (&scene, padded, stride);
    vlm_scene_draw (&scene, packed, 320 * 3);
    for (gsize y = 0; y < 240; y++) {
      g_assert_cmpmem (padded + y * stride, 320 * 3, packed + y * 320 * 3, 320 * 3);
      for (gsize x = 320 * 3; x < stride; x++)
        g_assert_cmpuint (padded[y * stride + x], ==, 0xa5);
    }
    g_assert_cmphex (vlm_scene_checksum (padded, 320, 240, stride), ==,
        vlm_scene_checksum (packed, 320, 240, 320 * 3));
  }
}

static void
test_spread (void)
{
  guint shapes[VLM_SCENE_MAX_SHAPES + 1] = { 0 }, grounds[VLM_N_GROUNDS] = { 0 };
  guint kinds[VLM_N_SHAPES] = { 0 }, colours[VLM_N_COLOURS] = { 0 }, sizes[VLM_N_SIZES] = { 0 };
  guint wide = 0, tall = 0, square = 0, n_objects = 0;

  for (guint64 seed = 1; seed <= N_SCENES; seed++) {
    VlmScene scene;

    vlm_scene_init (&scene, seed);
    shapes[scene.n_shapes]++;
    grounds[scene.ground]++;
    if (scene.width == scene.height)
      square++;
    else if (scene.width > scene.height)
      wide++;
    else
      tall++;
    for (gint i = 0; i < scene.n_shapes; i++) {
      kinds[scene.objects[i].shape]++;
      colours[scene.objects[i].colour]++;
      sizes[scene.objects[i].size]++;
      n_objects++;
    }
  }

  for (guint i = 1; i <= VLM_SCENE_MAX_SHAPES; i++) {
    g_assert_cmpuint (shapes[i] * 100, >, N_SCENES * 30);
    g_assert_cmpuint (shapes[i] * 100, <, N_SCENES * 37);
  }
  g_assert_cmpuint (grounds[VLM_GROUND_PLAIN] * 100, >=, N_SCENES * 20);
  g_assert_cmpuint (grounds[VLM_GROUND_GRADIENT] * 100, >=, N_SCENES * 20);
  g_assert_cmpuint (
      (grounds[VLM_GROUND_STRIPES] + grounds[VLM_GROUND_CHECKS]) * 100, >=, N_SCENES * 20);
  g_assert_cmpuint (grounds[VLM_GROUND_NOISE] * 100, >=, N_SCENES * 20);
  for (guint i = 0; i < VLM_N_SHAPES; i++)
    g_assert_cmpuint (kinds[i] * 100, >, n_objects * 13);
  for (guint i = 0; i < VLM_N_COLOURS; i++)
    g_assert_cmpuint (colours[i] * 100, >, n_objects * 10);
  for (guint i = 0; i < VLM_N_SIZES; i++)
    g_assert_cmpuint (sizes[i] * 100, >, n_objects * 15);
  g_assert_cmpuint (wide, >, N_SCENES / 4);
  g_assert_cmpuint (tall, >, N_SCENES / 10);
  g_assert_cmpuint (square, >, N_SCENES / 10);
}

static void
check_size (const VlmSceneObject *object, gint side)
{
  /* Thousandths of the shorter side; between the ranges nothing is drawn. */
  static const gint range[VLM_N_SIZES][2] = { { 105, 125 }, { 165, 195 }, { 250, 290 } };
  gint extent = object->radius * 1000 / side;

  g_assert_cmpint (extent, >=, range[object->size][0]);
  g_assert_cmpint (extent, <=, range[object->size][1]);
}

static void
check_places (const VlmScene *scene)
{
  const VlmSceneObject *o = scene->objects;

  for (gint i = 0; i < scene->n_shapes; i++) {
    g_assert_cmpint (o[i].cx - o[i].radius, >, 0);
    g_assert_cmpint (o[i].cy - o[i].radius, >, 0);
    g_assert_cmpint (o[i].cx + o[i].radius, <, scene->width - 1);
    g_assert_cmpint (o[i].cy + o[i].radius, <, scene->height - 1);
    for (gint j = 0; j < i; j++) {
      gint dx = o[i].cx - o[j].cx, dy = o[i].cy - o[j].cy, reach = o[i].radius + o[j].radius;

      g_assert_cmpint (dx * dx + dy * dy, >, reach * reach);
      g_assert_true (o[i].shape != o[j].shape || o[i].colour != o[j].colour);
    }
  }
  if (scene->n_shapes == 2) {
    gint dx = o[1].cx - o[0].cx, dy = o[1].cy - o[0].cy;

    if (scene->relation == VLM_RELATION_LEFT)
      g_assert_cmpint (dx * 10, >=, abs (dy) * 16);
    else
      g_assert_cmpint (dy * 10, >=, abs (dx) * 16);
  } else if (scene->n_shapes == 3) {
    g_assert_cmpint ((o[1].cx - o[0].cx) * 100, >=, scene->width * 12);
    g_assert_cmpint ((o[2].cx - o[1].cx) * 100, >=, scene->width * 12);
  }
}

static void
test_no_near_ties (void)
{
  for (guint64 seed = 1; seed <= N_SCENES; seed++) {
    VlmScene scene;
    gint side;

    vlm_scene_init (&scene, seed);
    side = MIN (scene.width, scene.height);
    for (gint i = 0; i < scene.n_shapes; i++)
      check_size (&scene.objects[i], side);
    check_places (&scene);
  }
}

/* The caption speaks of what is in the picture: each object's tint is at its middle (or, for a
 * ring, on its rim). */
static void
test_drawn (void)
{
  g_autofree guint8 *rgb = g_malloc (640 * 480 * 3);

  for (guint64 seed = 1; seed <= 200; seed++) {
    VlmScene scene;

    vlm_scene_init_sized (&scene, seed, 640, 480);
    vlm_scene_draw (&scene, rgb, 640 * 3);
    for (gint i = 0; i < scene.n_shapes; i++) {
      const VlmSceneObject *object = &scene.objects[i];
      gint x = object->cx;
      const guint8 *pixel;

      if (object->shape == VLM_SHAPE_RING)
        x += object->radius * 4 / 5;
      pixel = rgb + ((gsize) object->cy * 640 + (gsize) x) * 3;
      for (guint c = 0; c < 3; c++)
        g_assert_cmpint (pixel[c], ==, object->rgb[c]);
    }
  }
}

static void
test_extreme_sizes (void)
{
  static const gint sizes[][2] = { { VLM_SCENE_MIN_SIDE, VLM_SCENE_MIN_SIDE },
    { VLM_SCENE_MAX_SIDE, VLM_SCENE_MIN_SIDE }, { VLM_SCENE_MIN_SIDE, VLM_SCENE_MAX_SIDE },
    { 1920, 1080 } };

  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
    gsize stride = (gsize) sizes[i][0] * 3;
    g_autofree guint8 *rgb = g_malloc (stride * (gsize) sizes[i][1]);

    for (guint64 seed = 1; seed <= 30; seed++) {
      VlmScene scene;

      vlm_scene_init_sized (&scene, seed, sizes[i][0], sizes[i][1]);
      check_places (&scene);
      vlm_scene_draw (&scene, rgb, stride);
    }
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/demo/scene/checksums", test_checksums);
  g_test_add_func ("/demo/scene/stride", test_stride);
  g_test_add_func ("/demo/scene/spread", test_spread);
  g_test_add_func ("/demo/scene/no-near-ties", test_no_near_ties);
  g_test_add_func ("/demo/scene/drawn", test_drawn);
  g_test_add_func ("/demo/scene/extreme-sizes", test_extreme_sizes);
  return g_test_run ();
}
