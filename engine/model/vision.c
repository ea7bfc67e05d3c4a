/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "vision.h"

#include <math.h>
#include <string.h>

#include "decoder.h"
#include "rows.h"
#include "tiles.h"

/* Queries of one head that one attention job takes, and one with packed heads. */
#define QUERY_BLOCK 64
#define HEAD_QUERY_BLOCK 128

/* Rows of the feed-forward that are widened at once: its hidden array is the largest of all. */
#define FF_BLOCK 1024

typedef struct
{
  const VlmVisionConfig *config;
  const VlmKernels *kernels;
  VlmTeam *team;
  gsize n; /* patches */

  gfloat *x;                   /* [n][hidden] residual stream */
  VlmInputs inputs, ff_inputs; /* of products with n rows, of the second of the feed-forward */
  gfloat *qkv;                 /* [n][3 hidden] */
  gfloat *keys;                /* [heads][ceil (n / 16)][head_dim][16], or packed heads */
  gfloat *mixed;               /* [n][hidden] attention output */
  VlmTileRoom room;
} Tower;

static gsize
n_key_panels (const Tower *tower)
{
  return (tower->n + VLM_KEY_PANEL - 1) / VLM_KEY_PANEL;
}

/* Floats that a packed head takes; each begins where an array of the arena does. */
static gsize
head_floats (const Tower *tower)
{
  gsize bytes = tower->kernels->head_bytes (tower->n, tower->config->head_dim);

  return (bytes + 63) / 64 * 16;
}

/* What all heads take, in whichever form. */
static gsize
keys_floats (const Tower *tower)
{
  gsize plain = n_key_panels (tower) * VLM_KEY_PANEL * tower->config->hidden_size;

  if (tower->kernels->head_form == VLM_HEAD_NONE)
    return plain;
  return MAX (plain, tower->config->n_heads * head_floats (tower));
}

static gboolean
tower_take_arrays (Tower *tower, VlmArena *arena, GError **error)
{
  gsize hidden = tower->n * tower->config->hidden_size;
  gsize keys = keys_floats (tower);
  gsize widest = MAX (3 * (gsize) tower->config->hidden_size, tower->config->ff_size);
  gsize total = 0;

  vlm_inputs_measure (&total, tower->team, tower->n, tower->config->hidden_size);
  vlm_inputs_measure (&total, tower->team, MIN (tower->n, FF_BLOCK), tower->config->ff_size);
  vlm_arena_measure (&total, 3 * hidden);
  vlm_arena_measure (&total, keys);
  vlm_arena_measure (&total, hidden);
  vlm_tile_room_measure (&total, tower->team, widest);
  if (!vlm_arena_reserve (arena, total, error))
    return FALSE;

  vlm_inputs_take (&tower->inputs, arena, tower->team, tower->n, tower->config->hidden_size);
  vlm_inputs_take (
      &tower->ff_inputs, arena, tower->team, MIN (tower->n, FF_BLOCK), tower->config->ff_size);
  tower->qkv = vlm_arena_take (arena, 3 * hidden);
  tower->keys = vlm_arena_take (arena, keys);
  tower->mixed = vlm_arena_take (arena, hidden);
  vlm_tile_room_take (&tower->room, arena, tower->team, widest);
  tower->inputs.many = tower->ff_inputs.many = TRUE;
  return TRUE;
}

/* Brings one panel of 16 keys of every head into the attention kernel's order. */
static void
pack_keys_job (gsize panel, guint thread, gpointer user_data)
{
  const Tower *tower = user_data;
  gsize hidden = tower->config->hidden_size;
  gsize dim = tower->config->head_dim;
  gsize lanes = MIN (VLM_KEY_PANEL, tower->n - panel * VLM_KEY_PANEL);
  gsize head, lane, i;

  for (head = 0; head < tower->config->n_heads; head++) {
    gfloat *dst = tower->keys + (head * n_key_panels (tower) + panel) * dim * VLM_KEY_PANEL;

    if (lanes < VLM_KEY_PANEL)
      memset (dst, 0, dim * VLM_KEY_PANEL * sizeof (gfloat));
    for (lane = 0; lane < lanes; lane++) {
      const gfloat *src =
          tower->qkv + (panel * VLM_KEY_PANEL + lane) * 3 * hidden + hidden + head * dim;

      for (i = 0; i < dim; i++)
        dst[i * VLM_KEY_PANEL + lane] = src[i];
    }
  }
}

static void
attend_job (gsize job, guint thread, gpointer user_data)
{
  const Tower *tower = user_data;
  gsize hidden = tower->config->hidden_size;
  gsize dim = tower->config->head_dim;
  gsize n_blocks = (tower->n + QUERY_BLOCK - 1) / QUERY_BLOCK;
  gsize head = job / n_blocks;
  gsize first = job % n_blocks * QUERY_BLOCK;
  VlmAttention args = { 0 };

  args.out = tower->mixed + first * hidden + head * dim;
  args.out_stride = hidden;
  args.q = tower->qkv + first * 3 * hidden + head * dim;
  args.q_stride = 3 * hidden;
  args.n_queries = MIN (QUERY_BLOCK, tower->n - first);
  args.k = tower->keys + head * n_key_panels (tower) * dim * VLM_KEY_PANEL;
  args.v = tower->qkv + 2 * hidden + head * dim;
  args.v_stride = 3 * hidden;
  args.n_keys = tower->n;
  args.head_dim = dim;
  args.scale = 1.0f / sqrtf ((gfloat) dim);
  tower->kernels->attention (&args);
}

/* Brings the keys and values of a head into the order of attend_head. */
static void
pack_head_job (gsize head, guint thread, gpointer user_data)
{
  const Tower *tower = user_data;
  gsize hidden = tower->config->hidden_size;
  VlmHead args = { 0 };

  args.k = tower->qkv + hidden + head * tower->config->head_dim;
  args.v = args.k + hidden;
  args.k_stride = args.v_stride = 3 * hidden;
  args.n_keys = tower->n;
  args.head_dim = tower->config->head_dim;
  tower->kernels->pack_head (tower->keys + head * head_floats (tower), &args);
}

static void
attend_head_job (gsize job, guint thread, gpointer user_data)
{
  const Tower *tower = user_data;
  gsize hidden = tower->config->hidden_size;
  gsize n_blocks = (tower->n + HEAD_QUERY_BLOCK - 1) / HEAD_QUERY_BLOCK;
  gsize head = job / n_blocks;
  gsize first = job % n_blocks * HEAD_QUERY_BLOCK;
  VlmHeadAttention args = { 0 };

  args.head_dim = tower->config->head_dim;
  args.out = tower->mixed + first * hidden + head * args.head_dim;
  args.out_stride = hidden;
  args.q = tower->qkv + first * 3 * hidden + head * args.head_dim;
  args.q_stride = 3 * hidden;
  args.n_queries = MIN (HEAD_QUERY_BLOCK, tower->n - first);
  args.head = tower->keys + head * head_floats (tower);
  args.n_keys = tower->n;
  args.scale = 1.0f / sqrtf ((gfloat) args.head_dim);
  tower->kernels->attend_head (&args);
}

/*
 * mixed = attention of qkv. Where the products around it round what they multiply, so may this.
 */
static gboolean
mix_values (Tower *tower, gboolean may_round)
{
  gsize n_heads = tower->config->n_heads;
  gsize n_blocks = (tower->n + QUERY_BLOCK - 1) / QUERY_BLOCK;
  gsize n_wide_blocks = (tower->n + HEAD_QUERY_BLOCK - 1) / HEAD_QUERY_BLOCK;

  if (may_round && tower->kernels->head_form != VLM_HEAD_NONE)
    return vlm_team_run (tower->team, n_heads, pack_head_job, tower)
        && vlm_team_run (tower->team, n_wide_blocks * n_heads, attend_head_job, tower);
  return vlm_team_run (tower->team, n_key_panels (tower), pack_keys_job, tower)
      && vlm_team_run (tower->team, n_blocks * n_heads, attend_job, tower);
}

/* y = addend + product */
static gboolean
multiply_add (
    Tower *tower, const VlmLinear *linear, const VlmInputs *inputs, const gfloat *addend, gfloat *y)
{
  return vlm_matrix_multiply_add (
      linear->matrix, tower->team, tower->kernels, linear->bias, inputs, &tower->room, addend, y);
}

/* inputs = norm (x [n][hidden]), made ready for linear */
static gboolean
norm_inputs (Tower *tower, const VlmLinear *linear, const VlmNorm *norm, const gfloat *x, gsize n)
{
  return vlm_inputs_norm (&tower->inputs, linear->matrix, tower->team, tower->kernels, norm,
      tower->config->norm_eps, x, n);
}

static gboolean
attention (Tower *tower, const VlmVisionLayer *layer)
{
  gsize hidden = tower->config->hidden_size;

  return norm_inputs (tower, &layer->qkv, &layer->norm1, tower->x, tower->n)
      && vlm_matrix_multiply (layer->qkv.matrix, tower->team, tower->kernels, layer->qkv.bias,
          &tower->inputs, &tower->room, tower->qkv, 3 * hidden)
      && mix_values (tower, vlm_matrix_has_integers (layer->qkv.matrix))
      && vlm_inputs_rows (&tower->inputs, layer->out.matrix, tower->team, tower->kernels,
          tower->mixed, hidden, tower->n)
      && multiply_add (tower, &layer->out, &tower->inputs, tower->x, tower->x);
}

static void
gelu_tile (VlmTile *tile, gpointer user_data)
{
  const Tower *tower = user_data;
  gsize i;

  for (i = 0; i < tile->n_rows; i++)
    tower->kernels->gelu_tanh (tile->values[0] + i * tile->ld, tile->n_columns);
}

static gboolean
feed_forward (Tower *tower, const VlmVisionLayer *layer)
{
  const VlmEpilogue gelu = { .n_segments = 1,
    .func = gelu_tile,
    .user_data = tower,
    .next = &tower->ff_inputs,
    .next_matrix = layer->fc2.matrix };
  gsize first;

  for (first = 0; first < tower->n; first += FF_BLOCK) {
    gfloat *x = tower->x + first * tower->config->hidden_size;

    if (!norm_inputs (tower, &layer->fc1, &layer->norm2, x, MIN (FF_BLOCK, tower->n - first))
        || !vlm_matrix_multiply_tiles (layer->fc1.matrix, tower->team, tower->kernels,
            layer->fc1.bias, &tower->inputs, &tower->room, &gelu)
        || !multiply_add (tower, &layer->fc2, &tower->ff_inputs, x, x))
      return FALSE;
  }
  return TRUE;
}

static gboolean
embed_patches (Tower *tower, VlmModel *model, const gfloat *patches, guint grid_rows,
    guint grid_columns, GError **error)
{
  const VlmVisionConfig *config = tower->config;
  const VlmWeights *weights = model->weights;
  gsize patch_len = (gsize) config->patch_size * config->patch_size * 3;
  guint side = (guint) lrint (sqrt (config->n_positions));
  g_autoptr (GBytes) grid = vlm_positions_get (&model->positions, weights->positions, side,
      config->hidden_size, grid_rows, grid_columns, error);

  if (grid == NULL)
    return FALSE;
  vlm_inputs_borrow (&tower->inputs, patches, patch_len, tower->n);
  return multiply_add (
             tower, &weights->patch, &tower->inputs, g_bytes_get_data (grid, NULL), tower->x)
      || vlm_set_cancelled (error);
}

gboolean
vlm_vision_tower (VlmModel *model, VlmTeam *team, VlmArena *arena, const gfloat *patches,
    guint grid_rows, guint grid_columns, gfloat *features, GError **error)
{
  const VlmVisionConfig *config = &model->config.vision;
  Tower tower = { 0 };
  guint i;

  tower.config = config;
  tower.kernels = &model->kernels;
  tower.team = team;
  tower.n = (gsize) grid_rows * grid_columns;
  tower.x = features;
  if (!tower_take_arrays (&tower, arena, error))
    return FALSE;

  if (!embed_patches (&tower, model, patches, grid_rows, grid_columns, error))
    return FALSE;
  for (i = 0; i < config->n_layers; i++) {
    const VlmVisionLayer *layer = &model->weights->vision_layers[i];

    if (!attention (&tower, layer) || !feed_forward (&tower, layer))
      return vlm_set_cancelled (error);
  }
  if (!vlm_rows_norm (team, &model->kernels, &model->weights->post_norm, config->norm_eps, features,
          features, tower.n, config->hidden_size))
    return vlm_set_cancelled (error);
  return TRUE;
}
