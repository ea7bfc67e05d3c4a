/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Generator of the demo model's scenes: one to three shapes on a ground, and the one sentence that
 * is true of them.  Integer arithmetic and libc only, so that a seed gives the same bytes on every
 * machine: training, tests and the quick start all draw their pictures from this file.
 */

#ifndef VLM_DEMO_SCENE_H
#define VLM_DEMO_SCENE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Seeds: tests use 1 to 999999, which training never sees.  Training data starts at 2^32, and the
 * few scenes that the training run watches itself with lie between 2^31 and 2^32. */
#define VLM_SCENE_SEED_TEST 1u
#define VLM_SCENE_SEED_TEST_LAST 999999u
#define VLM_SCENE_SEED_TRAINING UINT64_C (4294967296)

#define VLM_SCENE_MAX_SHAPES 3
#define VLM_SCENE_CAPTION_SIZE 128
/* Smallest side for which the distances of the grammar are still whole pixels apart. */
#define VLM_SCENE_MIN_SIDE 64
#define VLM_SCENE_MAX_SIDE 4096

enum
{
  VLM_SHAPE_CIRCLE,
  VLM_SHAPE_SQUARE,
  VLM_SHAPE_TRIANGLE,
  VLM_SHAPE_STAR,
  VLM_SHAPE_CROSS,
  VLM_SHAPE_RING,
  VLM_N_SHAPES
};

enum
{
  VLM_COLOUR_RED,
  VLM_COLOUR_GREEN,
  VLM_COLOUR_BLUE,
  VLM_COLOUR_YELLOW,
  VLM_COLOUR_PURPLE,
  VLM_COLOUR_ORANGE,
  VLM_COLOUR_WHITE,
  VLM_COLOUR_BLACK,
  VLM_N_COLOURS
};

enum
{
  VLM_SIZE_SMALL,
  VLM_SIZE_MEDIUM,
  VLM_SIZE_LARGE,
  VLM_N_SIZES
};

enum
{
  VLM_GROUND_PLAIN,
  VLM_GROUND_GRADIENT,
  VLM_GROUND_STRIPES,
  VLM_GROUND_CHECKS,
  VLM_GROUND_NOISE,
  VLM_N_GROUNDS
};

enum
{
  VLM_RELATION_NONE,
  VLM_RELATION_LEFT,
  VLM_RELATION_ABOVE
};

typedef struct
{
  int32_t shape;
  int32_t colour;
  int32_t size;
  /* Centre and half extent in pixels; every shape fits the circle's bounding square. */
  int32_t cx;
  int32_t cy;
  int32_t radius;
  int32_t rgb[3];
} VlmSceneObject;

typedef struct
{
  uint64_t seed;
  int32_t width;
  int32_t height;
  int32_t n_shapes;
  int32_t ground;
  /* How the first of two shapes lies to the second. */
  int32_t relation;
  /* In the order in which the caption names them. */
  VlmSceneObject objects[VLM_SCENE_MAX_SHAPES];
  /* Two ends of a gradient, two tints of a texture; a plain ground has the first only. */
  int32_t ground_rgb[2][3];
  /* 0 across, 1 down, 2 and 3 along the diagonals. */
  int32_t direction;
  /* Width of a stripe or check, grain of the noise, in pixels. */
  int32_t period;
  int32_t amplitude;
  char caption[VLM_SCENE_CAPTION_SIZE];
} VlmScene;

/* Picks everything, the picture's size included. */
void vlm_scene_init (VlmScene *scene, uint64_t seed);

/* Picks everything but the size, each side being VLM_SCENE_MIN_SIDE..VLM_SCENE_MAX_SIDE.  Another
 * size is another scene, since places are chosen in pixels. */
void vlm_scene_init_sized (VlmScene *scene, uint64_t seed, int width, int height);

/* Draws packed RGB rows, `stride` bytes apart. */
void vlm_scene_draw (const VlmScene *scene, uint8_t *rgb, size_t stride);

/* For each cell of a columns x rows grid laid over the picture: 0 where its centre is ground, else
 * 1 + the index of the object there. */
void vlm_scene_label (const VlmScene *scene, int columns, int rows, uint8_t *labels);

/* FNV-1a, 64 bits, of the picture's bytes without row padding. */
uint64_t vlm_scene_checksum (const uint8_t *rgb, int width, int height, size_t stride);

#ifdef __cplusplus
}
#endif

#endif /* VLM_DEMO_SCENE_H */
