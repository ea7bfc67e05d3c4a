/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The SigLIP2 NaFlex tower and the projector: patch rows in, image tokens out. */

#ifndef VLM_VISION_H
#define VLM_VISION_H

#include "engine/runtime/arena.h"
#include "model.h"

/*
 * Runs one crop of grid_rows x grid_columns patches through the tower.
 * patches: [grid_rows * grid_columns][patch * patch * 3], row-major over the grid.
 * features: [grid_rows * grid_columns][vision.hidden_size], after the last norm.
 * Call within a turn. FALSE with G_IO_ERROR_CANCELLED or VLM_ERROR_MEMORY.
 */
gboolean vlm_vision_tower (VlmModel *model, VlmTeam *team, VlmArena *arena, const gfloat *patches,
    guint grid_rows, guint grid_columns, gfloat *features, GError **error);

/*
 * Folds downsample_factor x downsample_factor features into one token each and projects them.
 * Both sides of the grid must be multiples of the factor.
 * tokens: [(grid_rows / f) * (grid_columns / f)][text.hidden_size]. Errors as above.
 */
gboolean vlm_vision_project (VlmModel *model, VlmTeam *team, VlmArena *arena,
    const gfloat *features, guint grid_rows, guint grid_columns, gfloat *tokens, GError **error);

#endif
