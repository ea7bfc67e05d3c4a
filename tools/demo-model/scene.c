/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Places are tried this often before the sizes are chosen anew. */
#define PLACE_TRIES 40

static const char *const shape_names[VLM_N_SHAPES] = { "circle", "square", "triangle", "star",
  "cross", "ring" };

static const char *const colour_names[VLM_N_COLOURS] = { "red", "green", "blue", "yellow", "purple",
  "orange", "white", "black" };

static const char *const size_names[VLM_N_SIZES] = { "small", "medium", "large" };

static const char *const ground_names[VLM_N_GROUNDS] = { "plain", "shaded", "striped", "checked",
  "noisy" };

static const int colour_rgb[VLM_N_COLOURS][3] = { { 220, 30, 30 }, { 30, 165, 50 }, { 40, 60, 220 },
  { 240, 225, 30 }, { 140, 40, 170 }, { 248, 136, 16 }, { 246, 246, 246 }, { 12, 12, 12 } };

/* Half extents in thousandths of the picture's shorter side; the gaps between the three ranges are
 * what makes a size a fact and not a matter of taste. */
static const int size_range[VLM_N_SIZES][2] = { { 110, 125 }, { 170, 195 }, { 255, 290 } };

static const int natural_sizes[][2] = { { 320, 240 }, { 640, 480 }, { 400, 300 }, { 240, 320 },
  { 480, 640 }, { 256, 256 }, { 384, 384 }, { 320, 180 }, { 640, 360 }, { 480, 270 }, { 270, 480 },
  { 360, 240 } };

/* A five-pointed star in thousandths of its half extent, clockwise from the top. */
static const int star_points[10][2] = { { 0, -1000 }, { 247, -340 }, { 951, -309 }, { 399, 130 },
  { 588, 809 }, { 0, 420 }, { -588, 809 }, { -399, 130 }, { -951, -309 }, { -247, -340 } };

static const int triangle_points[3][2] = { { 0, -1000 }, { 1000, 800 }, { -1000, 800 } };

static uint64_t
mix64 (uint64_t x)
{
  /* The finaliser of SplitMix64. */
  x = (x ^ (x >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C (0x94d049bb133111eb);
  return x ^ (x >> 31);
}

static uint32_t
next_u32 (uint64_t *state)
{
  *state += UINT64_C (0x9e3779b97f4a7c15);
  return (uint32_t) (mix64 (*state) >> 32);
}

/* A whole number from low to high, both included. */
static int
pick (uint64_t *state, int low, int high)
{
  uint64_t span = (uint64_t) (high - low + 1);

  return low + (int) ((next_u32 (state) * span) >> 32);
}

static int
min_int (int a, int b)
{
  return a < b ? a : b;
}

static int
clamp_byte (int value)
{
  return value < 0 ? 0 : value > 255 ? 255 : value;
}

static int
floor_div (int64_t a, int64_t b)
{
  int64_t q = a / b;

  if (a % b != 0 && (a < 0) != (b < 0))
    q--;
  return (int) q;
}

static int
is_clear_of (const VlmSceneObject *a, const VlmSceneObject *b, int side)
{
  int64_t dx = a->cx - b->cx, dy = a->cy - b->cy;
  int64_t reach = (a->radius + b->radius) * 21 / 20 + side / 32;

  return dx * dx + dy * dy > reach * reach;
}

static int
place_objects (VlmScene *scene, uint64_t *state)
{
  int side = min_int (scene->width, scene->height);
  int edge = side / 50 + 1;

  for (int i = 0; i < scene->n_shapes; i++) {
    VlmSceneObject *object = &scene->objects[i];

    object->cx = pick (state, object->radius + edge, scene->width - 1 - object->radius - edge);
    object->cy = pick (state, object->radius + edge, scene->height - 1 - object->radius - edge);
    for (int j = 0; j < i; j++) {
      if (!is_clear_of (object, &scene->objects[j], side))
        return 0;
    }
  }
  return 1;
}

static void
swap_objects (VlmSceneObject *a, VlmSceneObject *b)
{
  VlmSceneObject t = *a;

  *a = *b;
  *b = t;
}

/* Orders two objects; refuses places that are neither clearly side by side nor clearly one above
 * the other. */
static int
relate_two (VlmScene *scene)
{
  VlmSceneObject *a = &scene->objects[0], *b = &scene->objects[1];
  int dx = abs (a->cx - b->cx), dy = abs (a->cy - b->cy);

  if (dx * 5 >= dy * 8)
    scene->relation = VLM_RELATION_LEFT;
  else if (dy * 5 >= dx * 8)
    scene->relation = VLM_RELATION_ABOVE;
  else
    return 0;
  if (scene->relation == VLM_RELATION_LEFT ? a->cx > b->cx : a->cy > b->cy)
    swap_objects (a, b);
  return 1;
}

/* Orders three objects from left to right; refuses those that nearly stand above each other. */
static int
relate_three (VlmScene *scene)
{
  VlmSceneObject *o = scene->objects;
  int gap = scene->width * 13 / 100;

  if (o[0].cx > o[1].cx)
    swap_objects (&o[0], &o[1]);
  if (o[1].cx > o[2].cx)
    swap_objects (&o[1], &o[2]);
  if (o[0].cx > o[1].cx)
    swap_objects (&o[0], &o[1]);
  return o[1].cx - o[0].cx >= gap && o[2].cx - o[1].cx >= gap;
}

static void
pick_sizes (VlmScene *scene, uint64_t *state)
{
  int side = min_int (scene->width, scene->height);

  for (int i = 0; i < scene->n_shapes; i++) {
    VlmSceneObject *object = &scene->objects[i];

    object->size = pick (state, 0, VLM_N_SIZES - 1);
    object->radius = pick (state, size_range[object->size][0] * side / 1000 + 1,
        size_range[object->size][1] * side / 1000);
  }
}

static void
pick_objects (VlmScene *scene, uint64_t *state)
{
  for (int i = 0; i < scene->n_shapes; i++) {
    VlmSceneObject *object = &scene->objects[i];
    int fresh;

    /* Two shapes that the caption names alike would make its order untestable. */
    do {
      object->shape = pick (state, 0, VLM_N_SHAPES - 1);
      object->colour = pick (state, 0, VLM_N_COLOURS - 1);
      fresh = 1;
      for (int j = 0; j < i; j++) {
        if (scene->objects[j].shape == object->shape && scene->objects[j].colour == object->colour)
          fresh = 0;
      }
    } while (!fresh);
    for (int c = 0; c < 3; c++)
      object->rgb[c] = clamp_byte (colour_rgb[object->colour][c] + pick (state, -14, 14));
  }

  for (;;) {
    pick_sizes (scene, state);
    for (int i = 0; i < PLACE_TRIES; i++) {
      if (!place_objects (scene, state))
        continue;
      if (scene->n_shapes == 1
          || (scene->n_shapes == 2 ? relate_two (scene) : relate_three (scene)))
        return;
    }
  }
}

static void
pick_grey (uint64_t *state, int low, int high, int32_t *rgb)
{
  int grey = pick (state, low, high);

  for (int c = 0; c < 3; c++)
    rgb[c] = grey + pick (state, -8, 8);
}

/* Grounds stay between black and white and nearly without colour, so that all eight colours stand
 * out from them. */
static void
pick_ground (VlmScene *scene, uint64_t *state)
{
  int side = min_int (scene->width, scene->height);

  switch (pick (state, 0, 3)) {
    case 0:
      scene->ground = VLM_GROUND_PLAIN;
      pick_grey (state, 80, 180, scene->ground_rgb[0]);
      break;
    case 1:
      scene->ground = VLM_GROUND_GRADIENT;
      scene->direction = pick (state, 0, 3);
      pick_grey (state, 68, 90, scene->ground_rgb[0]);
      pick_grey (state, 160, 188, scene->ground_rgb[1]);
      if (pick (state, 0, 1)) {
        for (int c = 0; c < 3; c++) {
          int32_t t = scene->ground_rgb[0][c];

          scene->ground_rgb[0][c] = scene->ground_rgb[1][c];
          scene->ground_rgb[1][c] = t;
        }
      }
      break;
    case 2:
      scene->ground = pick (state, 0, 1) ? VLM_GROUND_STRIPES : VLM_GROUND_CHECKS;
      scene->direction = pick (state, 0, 3);
      scene->period = pick (state, side * 70 / 1000, side * 110 / 1000);
      pick_grey (state, 75, 110, scene->ground_rgb[0]);
      for (int c = 0; c < 3; c++)
        scene->ground_rgb[1][c] = scene->ground_rgb[0][c] + pick (state, 50, 65);
      break;
    default:
      scene->ground = VLM_GROUND_NOISE;
      /* The grain follows the picture's size: finer noise would vanish in the model's resize. */
      scene->period = side / 100 + 1;
      scene->amplitude = pick (state, 40, 56);
      pick_grey (state, 110, 145, scene->ground_rgb[0]);
      break;
  }
}

/* "a small red circle" */
static void
describe (const VlmSceneObject *object, int with_size, char *text, size_t length)
{
  const char *colour = colour_names[object->colour];

  if (with_size)
    snprintf (
        text, length, "a %s %s %s", size_names[object->size], colour, shape_names[object->shape]);
  else
    snprintf (text, length, "%s %s %s", object->colour == VLM_COLOUR_ORANGE ? "an" : "a", colour,
        shape_names[object->shape]);
}

static void
write_caption (VlmScene *scene)
{
  char names[VLM_SCENE_MAX_SHAPES][32] = { "", "", "" };

  for (int i = 0; i < scene->n_shapes; i++)
    describe (&scene->objects[i], scene->n_shapes < 3, names[i], sizeof (names[i]));

  if (scene->n_shapes == 1)
    snprintf (scene->caption, sizeof (scene->caption), "%s on a %s background.", names[0],
        ground_names[scene->ground]);
  else if (scene->n_shapes == 2)
    snprintf (scene->caption, sizeof (scene->caption), "%s %s %s.", names[0],
        scene->relation == VLM_RELATION_LEFT ? "to the left of" : "above", names[1]);
  else
    snprintf (scene->caption, sizeof (scene->caption), "From left to right: %s, %s and %s.",
        names[0], names[1], names[2]);
  if (scene->caption[0] == 'a')
    scene->caption[0] = 'A';
}

void
vlm_scene_init (VlmScene *scene, uint64_t seed)
{
  uint64_t state = mix64 (seed ^ UINT64_C (0x73697a65));
  int n = (int) (sizeof (natural_sizes) / sizeof (natural_sizes[0]));
  const int *size = natural_sizes[pick (&state, 0, n - 1)];

  vlm_scene_init_sized (scene, seed, size[0], size[1]);
}

void
vlm_scene_init_sized (VlmScene *scene, uint64_t seed, int width, int height)
{
  uint64_t state = mix64 (seed);

  memset (scene, 0, sizeof (*scene));
  scene->seed = seed;
  scene->width = width;
  scene->height = height;
  scene->n_shapes = pick (&state, 1, VLM_SCENE_MAX_SHAPES);
  pick_ground (scene, &state);
  pick_objects (scene, &state);
  write_caption (scene);
}

static void
put (uint8_t *pixel, const int32_t *rgb)
{
  for (int c = 0; c < 3; c++)
    pixel[c] = (uint8_t) rgb[c];
}

/* How far (x, y) lies along the scene's direction, and the length of the whole way. */
static int
along (const VlmScene *scene, int x, int y)
{
  switch (scene->direction) {
    case 0:
      return x;
    case 1:
      return y;
    case 2:
      return x + y;
    default:
      return scene->width - 1 - x + y;
  }
}

static int
way_length (const VlmScene *scene)
{
  if (scene->direction == 0)
    return scene->width;
  if (scene->direction == 1)
    return scene->height;
  return scene->width + scene->height;
}

static void
draw_gradient (const VlmScene *scene, uint8_t *row, int y)
{
  int length = way_length (scene);

  for (int x = 0; x < scene->width; x++) {
    int t = along (scene, x, y);

    for (int c = 0; c < 3; c++)
      row[3 * x + c] =
          (uint8_t) ((scene->ground_rgb[0][c] * (length - t) + scene->ground_rgb[1][c] * t)
              / length);
  }
}

static void
draw_texture (const VlmScene *scene, uint8_t *row, int y)
{
  /* A diagonal step is longer than it looks across. */
  int period = scene->direction > 1 ? scene->period * 7 / 5 : scene->period;

  for (int x = 0; x < scene->width; x++) {
    int tint;

    if (scene->ground == VLM_GROUND_CHECKS)
      tint = (x / scene->period + y / scene->period) & 1;
    else
      tint = (along (scene, x, y) / period) & 1;
    put (row + 3 * x, scene->ground_rgb[tint]);
  }
}

static void
draw_noise (const VlmScene *scene, uint8_t *row, int y)
{
  uint64_t line = mix64 (scene->seed + (uint64_t) (y / scene->period) * 0x10001u);
  int span = 2 * scene->amplitude + 1;

  for (int x = 0; x < scene->width; x += scene->period) {
    uint64_t bits = mix64 (line + (uint64_t) x);
    int end = min_int (x + scene->period, scene->width);
    int32_t rgb[3];

    for (int c = 0; c < 3; c++) {
      int step = (int) (((bits >> (16 * c)) & 0xffff) * (uint64_t) span >> 16);

      rgb[c] = clamp_byte (scene->ground_rgb[0][c] + step - scene->amplitude);
    }
    for (int i = x; i < end; i++)
      put (row + 3 * i, rgb);
  }
}

static void
draw_ground (const VlmScene *scene, uint8_t *row, int y)
{
  switch (scene->ground) {
    case VLM_GROUND_GRADIENT:
      draw_gradient (scene, row, y);
      break;
    case VLM_GROUND_STRIPES:
    case VLM_GROUND_CHECKS:
      draw_texture (scene, row, y);
      break;
    case VLM_GROUND_NOISE:
      draw_noise (scene, row, y);
      break;
    default:
      for (int x = 0; x < scene->width; x++)
        put (row + 3 * x, scene->ground_rgb[0]);
  }
}

static void
fill_span (const VlmSceneObject *object, uint8_t *row, int first, int last)
{
  for (int x = first; x <= last; x++)
    put (row + 3 * x, object->rgb);
}

/* One row of a polygon by the even-odd rule. */
static void
fill_polygon (const VlmSceneObject *object, uint8_t *row, int dy, const int points[][2], int n)
{
  int crossings[10], n_crossings = 0;
  int64_t y = (int64_t) dy * 1000;

  for (int i = 0; i < n; i++) {
    int64_t x0 = (int64_t) points[i][0] * object->radius;
    int64_t y0 = (int64_t) points[i][1] * object->radius;
    int64_t x1 = (int64_t) points[(i + 1) % n][0] * object->radius;
    int64_t y1 = (int64_t) points[(i + 1) % n][1] * object->radius;
    int at, k;

    if ((y0 <= y) == (y1 <= y))
      continue;
    at = floor_div (x0 * (y1 - y0) + (y - y0) * (x1 - x0), (y1 - y0) * 1000);
    for (k = n_crossings++; k > 0 && crossings[k - 1] > at; k--)
      crossings[k] = crossings[k - 1];
    crossings[k] = at;
  }
  for (int i = 0; i + 1 < n_crossings; i += 2)
    fill_span (object, row, object->cx + crossings[i] + 1, object->cx + crossings[i + 1]);
}

static void
fill_disc (const VlmSceneObject *object, uint8_t *row, int dy, int hole)
{
  int outer = object->radius * object->radius;

  for (int dx = -object->radius; dx <= object->radius; dx++) {
    int d = dx * dx + dy * dy;

    if (d <= outer && d >= hole * hole)
      put (row + 3 * (object->cx + dx), object->rgb);
  }
}

static void
draw_object (const VlmSceneObject *object, uint8_t *row, int y)
{
  int dy = y - object->cy, r = object->radius, half;

  if (abs (dy) > r)
    return;
  switch (object->shape) {
    case VLM_SHAPE_CIRCLE:
      fill_disc (object, row, dy, 0);
      break;
    case VLM_SHAPE_RING:
      fill_disc (object, row, dy, r * 3 / 5);
      break;
    case VLM_SHAPE_SQUARE:
      half = r * 9 / 10;
      if (abs (dy) <= half)
        fill_span (object, row, object->cx - half, object->cx + half);
      break;
    case VLM_SHAPE_CROSS:
      half = abs (dy) <= r / 3 ? r : r / 3;
      fill_span (object, row, object->cx - half, object->cx + half);
      break;
    case VLM_SHAPE_TRIANGLE:
      fill_polygon (object, row, dy, triangle_points, 3);
      break;
    default:
      fill_polygon (object, row, dy, star_points, 10);
  }
}

void
vlm_scene_draw (const VlmScene *scene, uint8_t *rgb, size_t stride)
{
  for (int y = 0; y < scene->height; y++) {
    uint8_t *row = rgb + (size_t) y * stride;

    draw_ground (scene, row, y);
    for (int i = 0; i < scene->n_shapes; i++)
      draw_object (&scene->objects[i], row, y);
  }
}

void
vlm_scene_label (const VlmScene *scene, int columns, int rows, uint8_t *labels)
{
  for (int row = 0; row < rows; row++) {
    for (int column = 0; column < columns; column++) {
      int64_t x = (int64_t) (2 * column + 1) * scene->width / (2 * columns);
      int64_t y = (int64_t) (2 * row + 1) * scene->height / (2 * rows);
      uint8_t label = 0;

      for (int i = 0; i < scene->n_shapes; i++) {
        const VlmSceneObject *object = &scene->objects[i];
        int64_t dx = x - object->cx, dy = y - object->cy;

        if (dx * dx + dy * dy <= (int64_t) object->radius * object->radius)
          label = (uint8_t) (i + 1);
      }
      labels[row * columns + column] = label;
    }
  }
}

uint64_t
vlm_scene_checksum (const uint8_t *rgb, int width, int height, size_t stride)
{
  uint64_t hash = UINT64_C (0xcbf29ce484222325);

  for (int y = 0; y < height; y++) {
    const uint8_t *row = rgb + (size_t) y * stride;

    for (size_t x = 0; x < (size_t) width * 3; x++)
      hash = (hash ^ row[x]) * UINT64_C (0x100000001b3);
  }
  return hash;
}
