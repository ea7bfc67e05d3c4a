/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <string.h>

#include "decoder.h"
#include "rows.h"
#include "vision.h"

/* Fixed in the reference; no configuration key changes it. */
#define PROJECTOR_NORM_EPS 1e-5f

/*
 * Pixel unshuffle: token (a, b) is the concatenation of features (f a + s, f b + r), s outer and
 * r inner; each s is one run of f neighbouring rows of the feature array.
 */
static void
unshuffle (const gfloat *features, guint grid_columns, guint factor, gsize width, guint rows,
    guint columns, gfloat *folded)
{
  gsize run = factor * width;
  guint a, b, s;

  for (a = 0; a < rows; a++) {
    for (b = 0; b < columns; b++) {
      for (s = 0; s < factor; s++) {
        gsize first = (gsize) (factor * a + s) * grid_columns + factor * b;

        memcpy (folded, features + first * width, run * sizeof (gfloat));
        folded += run;
      }
    }
  }
}

static void
gelu_row (gfloat *row, gpointer user_data)
{
  const VlmModel *model = user_data;

  model->kernels.gelu_erf (row, model->config.projector.hidden_size);
}

gboolean
vlm_vision_project (VlmModel *model, VlmTeam *team, VlmArena *arena, const gfloat *features,
    guint grid_rows, guint grid_columns, gfloat *tokens, GError **error)
{
  const VlmProjectorConfig *config = &model->config.projector;
  const VlmWeights *weights = model->weights;
  const VlmKernels *kernels = &model->kernels;
  guint factor = config->downsample_factor;
  gsize width = (gsize) factor * factor * model->config.vision.hidden_size;
  gsize hidden = model->config.text.hidden_size;
  gsize n = (gsize) (grid_rows / factor) * (grid_columns / factor);
  VlmInputs inputs = { 0 };
  gfloat *folded, *middle;
  gsize total = 0;

  g_return_val_if_fail (grid_rows % factor == 0 && grid_columns % factor == 0, FALSE);
  vlm_arena_measure (&total, n * width);
  vlm_arena_measure (&total, n * config->hidden_size);
  vlm_inputs_measure (&total, team, n, MAX (width, config->hidden_size));
  if (!vlm_arena_reserve (arena, total, error))
    return FALSE;
  folded = vlm_arena_take (arena, n * width);
  middle = vlm_arena_take (arena, n * config->hidden_size);
  vlm_inputs_take (&inputs, arena, team, n, MAX (width, config->hidden_size));

  unshuffle (features, grid_columns, factor, model->config.vision.hidden_size, grid_rows / factor,
      grid_columns / factor, folded);
  if (weights->projector_norm.weight != NULL
      && !vlm_rows_norm (
          team, kernels, &weights->projector_norm, PROJECTOR_NORM_EPS, folded, folded, n, width))
    return vlm_set_cancelled (error);
  if (!vlm_inputs_rows (
          &inputs, weights->projector1.matrix, team, kernels, folded, width, n, 0, NULL, NULL)
      || !vlm_matrix_multiply (weights->projector1.matrix, team, kernels, weights->projector1.bias,
          &inputs, middle, config->hidden_size)
      || !vlm_inputs_rows (&inputs, weights->projector2.matrix, team, kernels, middle,
          config->hidden_size, n, 16 * config->hidden_size, gelu_row, model)
      || !vlm_matrix_multiply (weights->projector2.matrix, team, kernels, weights->projector2.bias,
          &inputs, tokens, hidden))
    return vlm_set_cancelled (error);
  return TRUE;
}
