/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <string.h>

#include "decoder.h"
#include "rows.h"
#include "tiles.h"
#include "vision.h"

/* Fixed in the reference; no configuration key changes it. */
#define PROJECTOR_NORM_EPS 1e-5f

typedef struct
{
  const VlmModel *model;
  const gfloat *features; /* [grid_rows][grid_columns][vision hidden] */
  gsize grid_columns;
} Projection;

/*
 * Pixel unshuffle: token (a, b) is the concatenation of features (f a + s, f b + r), s outer and
 * r inner; each s is one run of f neighbouring rows of the feature array. Then the norm, if any.
 */
static void
fold_row (gsize token, gfloat *row, gpointer user_data)
{
  const Projection *projection = user_data;
  const VlmModel *model = projection->model;
  const VlmNorm *norm = &model->weights->projector_norm;
  gsize factor = model->config.projector.downsample_factor;
  gsize width = model->config.vision.hidden_size, run = factor * width;
  gsize columns = projection->grid_columns / factor;
  gsize first = token / columns * factor * projection->grid_columns + token % columns * factor;
  gsize s;

  for (s = 0; s < factor; s++)
    memcpy (row + s * run, projection->features + (first + s * projection->grid_columns) * width,
        run * sizeof (gfloat));
  if (norm->weight != NULL)
    vlm_norm_row (&model->kernels, norm, PROJECTOR_NORM_EPS, row, row, factor * run);
}

static void
gelu_tile (VlmTile *tile, gpointer user_data)
{
  const Projection *projection = user_data;
  gsize i;

  for (i = 0; i < tile->n_rows; i++)
    projection->model->kernels.gelu_erf (tile->values[0] + i * tile->ld, tile->n_columns);
}

static gboolean
project (const Projection *projection, VlmTeam *team, VlmArena *arena, gsize n, gfloat *tokens,
    GError **error)
{
  const VlmModel *model = projection->model;
  const VlmProjectorConfig *config = &model->config.projector;
  const VlmLinear *first = &model->weights->projector1, *second = &model->weights->projector2;
  gsize widest = MAX (config->hidden_size, model->config.text.hidden_size), total = 0;
  VlmInputs inputs = { .many = TRUE }, middle = { .many = TRUE };
  const VlmEpilogue gelu = { .n_segments = 1,
    .func = gelu_tile,
    .user_data = (gpointer) projection,
    .next = &middle,
    .next_matrix = second->matrix };
  VlmTileRoom room;

  vlm_inputs_measure (&total, team, n, first->matrix->cols);
  vlm_inputs_measure (&total, team, n, config->hidden_size);
  vlm_tile_room_measure (&total, team, widest);
  if (!vlm_arena_reserve (arena, total, error))
    return FALSE;
  vlm_inputs_take (&inputs, arena, team, n, first->matrix->cols);
  vlm_inputs_take (&middle, arena, team, n, config->hidden_size);
  vlm_tile_room_take (&room, arena, team, widest);

  return (vlm_inputs_make (&inputs, first->matrix, team, &model->kernels, n, first->matrix->cols,
              fold_row, (gpointer) projection)
             && vlm_matrix_multiply_tiles (
                 first->matrix, team, &model->kernels, first->bias, &inputs, &room, &gelu)
             && vlm_matrix_multiply (second->matrix, team, &model->kernels, second->bias, &middle,
                 &room, tokens, model->config.text.hidden_size))
      || vlm_set_cancelled (error);
}

gboolean
vlm_vision_project (VlmModel *model, VlmTeam *team, VlmArena *arena, const gfloat *features,
    guint grid_rows, guint grid_columns, gfloat *tokens, GError **error)
{
  const Projection projection = { model, features, grid_columns };
  guint factor = model->config.projector.downsample_factor;
  gsize n = (gsize) (grid_rows / factor) * (grid_columns / factor);

  g_return_val_if_fail (grid_rows % factor == 0 && grid_columns % factor == 0, FALSE);
  return project (&projection, team, arena, n, tokens, error);
}
