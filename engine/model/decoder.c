/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder.h"

#include <math.h>
#include <string.h>

#include "attention.h"
#include "tiles.h"

/* One chunk on its way through the layers. All arrays have n rows. */
typedef struct
{
  const VlmTextConfig *config;
  const VlmKernels *kernels;
  VlmTeam *team;
  VlmCache *cache;
  gsize n;        /* tokens on their way */
  gsize n_wanted; /* of the last of these the output is wanted */
  gboolean is_prompt;
  gboolean may_pack; /* whether the cache has room for packed heads */

  gfloat *x;        /* [hidden] residual stream */
  VlmInputs inputs; /* of the first product of an operator or feed-forward */
  VlmInputs middle; /* of its second, which adds to the residual stream */
  VlmTileRoom room;
  VlmCacheAttention attention;
  gfloat *cos, *sin; /* [head_dim / 2] */
  const VlmDecoderLayer *layer;
  guint layer_index;
} Chunk;

gboolean
vlm_set_cancelled (GError **error)
{
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "The request was cancelled");
  return FALSE;
}

static gboolean
chunk_take_arrays (Chunk *chunk, VlmArena *arena, GError **error)
{
  const VlmTextConfig *config = chunk->config;
  gsize hidden = config->hidden_size, n = chunk->n;
  gsize mixed = (gsize) config->n_heads * config->head_dim;
  gsize middle = MAX (MAX (mixed, hidden), config->ff_size);
  gsize qkv = mixed + 2 * (gsize) config->n_kv_heads * config->head_dim;
  gsize widest = MAX (MAX (3 * hidden, qkv), 2 * (gsize) config->ff_size);
  gsize half = config->head_dim / 2;
  gsize total = 0;

  vlm_inputs_measure (&total, chunk->team, n, hidden);
  vlm_inputs_measure (&total, chunk->team, n, middle);
  vlm_tile_room_measure (&total, chunk->team, widest);
  vlm_attention_measure (&chunk->attention, &total);
  vlm_arena_measure (&total, n * half);
  vlm_arena_measure (&total, n * half);
  if (!vlm_arena_reserve (arena, total, error))
    return FALSE;

  vlm_tile_room_take (&chunk->room, arena, chunk->team, widest);
  vlm_attention_take (&chunk->attention, arena);
  chunk->cos = vlm_arena_take (arena, n * half);
  chunk->sin = vlm_arena_take (arena, n * half);
  /* Of these only the beginning is used, so that they leave large pages untouched. */
  vlm_inputs_take (&chunk->inputs, arena, chunk->team, n, hidden);
  vlm_inputs_take (&chunk->middle, arena, chunk->team, n, middle);
  return TRUE;
}

/* Angles as the reference makes them: inverse frequencies and their products in float32. */
static void
chunk_make_angles (Chunk *chunk)
{
  gsize half = chunk->config->head_dim / 2;
  gsize i, j;

  for (j = 0; j < half; j++) {
    gfloat exponent = (gfloat) (2 * j) / (gfloat) chunk->config->head_dim;
    gfloat frequency = 1.0f / powf ((gfloat) chunk->config->rope_theta, exponent);

    for (i = 0; i < chunk->n; i++) {
      gfloat angle = (gfloat) (chunk->attention.position + i) * frequency;

      chunk->cos[i * half + j] = cosf (angle);
      chunk->sin[i * half + j] = sinf (angle);
    }
  }
}

/* Normalises and rotates queries and keys of one head, and puts them, or values, in their place. */
static void
prepare_head (const Chunk *chunk, guint head, gsize first, gsize n, gfloat *rows, gsize ld)
{
  const VlmTextConfig *config = chunk->config;
  gsize dim = config->head_dim, half = dim / 2, i;
  gsize position = chunk->attention.position + first;
  guint n_heads = config->n_heads, n_kv = config->n_kv_heads;
  const VlmNorm *norm = head < n_heads ? &chunk->layer->q_norm : &chunk->layer->k_norm;

  for (i = 0; head < n_heads + n_kv && i < n; i++) {
    gsize angle = (first + i) * half;

    chunk->kernels->rms_norm (rows + i * ld, rows + i * ld, norm->weight, dim, config->norm_eps);
    chunk->kernels->rope (rows + i * ld, chunk->cos + angle, chunk->sin + angle, half);
  }
  if (head >= n_heads + n_kv)
    vlm_cache_store_values (
        chunk->cache, chunk->layer_index, head - n_heads - n_kv, position, n, rows, ld);
  else if (head >= n_heads)
    vlm_cache_store_keys (chunk->cache, chunk->layer_index, head - n_heads, position, n, rows, ld);
  for (i = 0; head < n_heads && i < n; i++)
    memcpy (chunk->attention.queries + ((first + i) * n_heads + head) * dim, rows + i * ld,
        dim * sizeof (gfloat));
}

static void
prepare_tile (VlmTile *tile, gpointer user_data)
{
  const Chunk *chunk = user_data;
  gsize dim = chunk->config->head_dim, column;

  for (column = 0; column < tile->n_columns; column += dim)
    prepare_head (chunk, (tile->column + column) / dim, tile->first, tile->n_rows,
        tile->values[0] + column, tile->ld);
}

/* inputs = norm (x), made ready for matrix */
static gboolean
norm_inputs (Chunk *chunk, const VlmMatrix *matrix, const VlmNorm *norm)
{
  return vlm_inputs_norm (&chunk->inputs, matrix, chunk->team, chunk->kernels, norm,
      chunk->config->norm_eps, chunk->x, chunk->n);
}

/* The product of inputs, handed to epilogue. */
static gboolean
multiply_tiles (Chunk *chunk, const VlmLinear *linear, const VlmEpilogue *epilogue)
{
  return vlm_matrix_multiply_tiles (linear->matrix, chunk->team, chunk->kernels, linear->bias,
      &chunk->inputs, &chunk->room, epilogue);
}

/* x += the product of middle */
static gboolean
multiply_add (Chunk *chunk, const VlmLinear *linear)
{
  return vlm_matrix_multiply_add (linear->matrix, chunk->team, chunk->kernels, linear->bias,
      &chunk->middle, &chunk->room, chunk->x, chunk->x);
}

static gboolean
has_attention (const VlmTextConfig *config, guint first_layer)
{
  guint i;

  for (i = first_layer; i < config->n_layers; i++) {
    if (config->layers[i] == VLM_LAYER_ATTENTION)
      return TRUE;
  }
  return FALSE;
}

/*
 * Tokens, the last ones of the chunk, that must go into the layer so that the last n_wanted come out of
 * the last one, and the cache is right. Attention sees all tokens, a convolution the few before each:
 * where it begins later than the chunk, the first few lack them, and nothing depends on those.
 */
static gsize
count_needed (const Chunk *chunk, guint layer)
{
  const VlmTextConfig *config = chunk->config;
  gsize n_layers = config->n_layers - layer;

  if (has_attention (config, layer))
    return chunk->n;
  return MIN (chunk->n_wanted + n_layers * (config->conv_taps - 1), chunk->n);
}

/*
 * Leaves behind all tokens that the layer need not see. Behind the last attention these are nearly all,
 * and products of those that are left are like those of an answer, however a prompt is cut.
 */
static void
narrow (Chunk *chunk, guint layer)
{
  const VlmTextConfig *config = chunk->config;
  const gsize n = count_needed (chunk, layer), skip = chunk->n - n;
  const gsize angles = skip * (config->head_dim / 2);

  chunk->inputs.many = chunk->middle.many = chunk->is_prompt && has_attention (config, layer);
  chunk->n = n;
  chunk->x += skip * config->hidden_size;
  chunk->cos += angles;
  chunk->sin += angles;
  chunk->attention.n = n;
  chunk->attention.position += skip;
  chunk->attention.queries += skip * config->n_heads * config->head_dim;
}

static gboolean
attention_layer (Chunk *chunk)
{
  const VlmTextConfig *config = chunk->config;
  const VlmDecoderLayer *layer = chunk->layer;
  const VlmLinear *out = &layer->attention_out;
  const gboolean may_round = chunk->may_pack && vlm_matrix_has_integers (layer->qkv.matrix);
  const VlmEpilogue prepare = {
    .n_segments = 1, .unit = config->head_dim, .func = prepare_tile, .user_data = chunk
  };

  if (!norm_inputs (chunk, layer->qkv.matrix, &layer->operator_norm)
      || !multiply_tiles (chunk, &layer->qkv, &prepare))
    return FALSE;
  narrow (chunk, chunk->layer_index + 1);
  return vlm_attention_mix (&chunk->attention, chunk->layer_index, may_round)
      && vlm_inputs_rows (&chunk->middle, out->matrix, chunk->team, chunk->kernels,
          chunk->attention.mixed, out->matrix->cols, chunk->n)
      && multiply_add (chunk, out);
}

/* Columns of a convolution at a time. */
#define CONV_COLUMNS 64

/* Columns of a tile, whose first segment holds what the taps go over, for some of its columns. */
typedef struct
{
  const Chunk *chunk;
  const VlmTile *tile;
  gfloat *past;       /* [conv_taps - 1][hidden] the tokens before the tile, oldest first */
  gsize first, width; /* of the tile's columns */
} ConvColumns;

/* C * (taps over B x' + bias), into the third segment */
static void
convolve_columns (const ConvColumns *c)
{
  const Chunk *chunk = c->chunk;
  const VlmDecoderLayer *layer = chunk->layer;
  const VlmTile *tile = c->tile;
  gsize hidden = chunk->config->hidden_size, n_past = chunk->config->conv_taps - 1;
  gsize column = tile->column + c->first, i, t;
  gfloat taps[VLM_MAX_CONV_TAPS * CONV_COLUMNS];
  const gfloat *inputs[VLM_MAX_CONV_TAPS];

  for (t = 0; t <= n_past; t++)
    memcpy (taps + t * c->width, layer->taps + t * hidden + column, c->width * sizeof (gfloat));
  for (i = 0; i < tile->n_rows; i++) {
    gsize at = i * tile->ld + c->first;
    gfloat *gate = tile->values[1] + at, *y = tile->values[2] + at;

    for (t = 0; t <= n_past; t++)
      inputs[t] = i + t < n_past ? c->past + (i + t) * hidden + column
                                 : tile->values[0] + (i + t - n_past) * tile->ld + c->first;
    chunk->kernels->short_conv (y, gate, inputs, taps, n_past + 1, c->width);
    if (layer->taps_bias != NULL) {
      chunk->kernels->mul (gate, gate, layer->taps_bias + column, c->width);
      chunk->kernels->add (y, gate, c->width);
    }
  }
}

/* The last tokens up to the end of the tile are the past of the next. */
static void
remember_columns (const ConvColumns *c)
{
  const VlmTile *tile = c->tile;
  gsize hidden = c->chunk->config->hidden_size, n_past = c->chunk->config->conv_taps - 1, t;

  for (t = 0; t < n_past; t++) {
    gsize from = tile->n_rows + t;
    const gfloat *src = from < n_past ? c->past + from * hidden + tile->column
                                      : tile->values[0] + (from - n_past) * tile->ld;

    memcpy (c->past + t * hidden + tile->column, src, tile->n_columns * sizeof (gfloat));
  }
}

static void
convolve_tile (VlmTile *tile, gpointer user_data)
{
  const Chunk *chunk = user_data;
  ConvColumns c = { chunk, tile, chunk->cache->columns[chunk->layer_index], 0, 0 };
  gfloat *convolved = tile->values[2];
  gsize i;

  for (i = 0; i < tile->n_rows; i++) {
    gfloat *b = tile->values[0] + i * tile->ld;

    chunk->kernels->mul (b, b, tile->values[2] + i * tile->ld, tile->n_columns);
  }
  for (; c.first < tile->n_columns; c.first += CONV_COLUMNS) {
    c.width = MIN (CONV_COLUMNS, tile->n_columns - c.first);
    convolve_columns (&c);
  }
  remember_columns (&c);
  tile->values[0] = convolved;
}

static gboolean
conv_layer (Chunk *chunk)
{
  const VlmDecoderLayer *layer = chunk->layer;
  const VlmEpilogue convolve = { .n_segments = 3,
    .in_order = TRUE,
    .func = convolve_tile,
    .user_data = chunk,
    .next = &chunk->middle,
    .next_matrix = layer->conv_out.matrix };

  narrow (chunk, chunk->layer_index);
  return norm_inputs (chunk, layer->conv_in.matrix, &layer->operator_norm)
      && multiply_tiles (chunk, &layer->conv_in, &convolve)
      && multiply_add (chunk, &layer->conv_out);
}

/* silu (gate) * up */
static void
gate_tile (VlmTile *tile, gpointer user_data)
{
  const Chunk *chunk = user_data;
  gsize i;

  for (i = 0; i < tile->n_rows; i++) {
    gfloat *gate = tile->values[0] + i * tile->ld;

    chunk->kernels->silu_mul (gate, gate, tile->values[1] + i * tile->ld, tile->n_columns);
  }
}

static gboolean
feed_forward (Chunk *chunk)
{
  const VlmDecoderLayer *layer = chunk->layer;
  const VlmLinear gate_up = { layer->gate_up, NULL }, down = { layer->down, NULL };
  const VlmEpilogue gate = { .n_segments = 2,
    .func = gate_tile,
    .user_data = chunk,
    .next = &chunk->middle,
    .next_matrix = layer->down };

  return norm_inputs (chunk, layer->gate_up, &layer->ffn_norm)
      && multiply_tiles (chunk, &gate_up, &gate) && multiply_add (chunk, &down);
}

static gboolean
run_layer (Chunk *chunk)
{
  return (chunk->layer->kind == VLM_LAYER_CONV ? conv_layer (chunk) : attention_layer (chunk))
      && feed_forward (chunk);
}

/* Whether attention of any layer may be in integers. */
static gboolean
wants_packed (const VlmModel *model)
{
  guint i;

  for (i = 0; i < model->config.text.n_layers; i++) {
    const VlmDecoderLayer *layer = &model->weights->layers[i];

    if (layer->kind == VLM_LAYER_ATTENTION && vlm_matrix_has_integers (layer->qkv.matrix))
      return model->kernels.head_form != VLM_HEAD_NONE;
  }
  return FALSE;
}

static gboolean
forward (VlmModel *model, VlmTeam *team, VlmArena *arena, VlmCache *cache, gfloat *x,
    gsize n_tokens, gsize n_wanted, gboolean is_prompt, GError **error)
{
  const gboolean may_pack = is_prompt && wants_packed (model);
  Chunk chunk = { 0 };
  guint i;

  chunk.config = &model->config.text;
  chunk.kernels = &model->kernels;
  chunk.team = team;
  chunk.cache = cache;
  chunk.n = n_tokens;
  chunk.n_wanted = n_wanted;
  chunk.is_prompt = is_prompt;
  chunk.may_pack = may_pack;
  chunk.attention = (VlmCacheAttention){ chunk.config, chunk.kernels, team, cache, cache->length,
    n_tokens, NULL, NULL, NULL };
  chunk.x = x;
  g_return_val_if_fail (cache->length + n_tokens <= cache->capacity, FALSE);
  g_return_val_if_fail (n_wanted > 0 && n_wanted <= n_tokens, FALSE);

  if (may_pack && !vlm_cache_make_packed (cache, chunk.kernels, error))
    return FALSE;
  if (!chunk_take_arrays (&chunk, arena, error))
    return FALSE;
  chunk.inputs.many = chunk.middle.many = is_prompt;
  chunk_make_angles (&chunk);
  for (i = 0; i < chunk.config->n_layers; i++) {
    chunk.layer = &model->weights->layers[i];
    chunk.layer_index = i;
    if (!run_layer (&chunk))
      return vlm_set_cancelled (error);
  }
  cache->length += n_tokens;
  if (may_pack)
    cache->n_packed = cache->length / VLM_PACKED_TOKENS;
  return TRUE;
}

gboolean
vlm_decoder_forward (VlmModel *model, VlmTeam *team, VlmArena *arena, VlmCache *cache, gfloat *x,
    gsize n_tokens, gsize n_wanted, GError **error)
{
  return forward (model, team, arena, cache, x, n_tokens, n_wanted, TRUE, error);
}

gboolean
vlm_decoder_step (
    VlmModel *model, VlmTeam *team, VlmArena *arena, VlmCache *cache, gfloat *x, GError **error)
{
  return forward (model, team, arena, cache, x, 1, 1, FALSE, error);
}

gboolean
vlm_decoder_logits (VlmModel *model, VlmTeam *team, VlmArena *arena, const gfloat *x,
    gfloat *logits, GError **error)
{
  const VlmTextConfig *config = &model->config.text;
  const VlmWeights *weights = model->weights;
  VlmInputs inputs = { 0 };
  gsize total = 0;

  vlm_inputs_measure (&total, team, 1, config->hidden_size);
  if (!vlm_arena_reserve (arena, total, error))
    return FALSE;
  vlm_inputs_take (&inputs, arena, team, 1, config->hidden_size);
  if (!vlm_inputs_norm (&inputs, weights->head, team, &model->kernels, &weights->final_norm,
          config->norm_eps, x, 1)
      || !vlm_matrix_multiply (
          weights->head, team, &model->kernels, NULL, &inputs, NULL, logits, config->vocab_size))
    return vlm_set_cancelled (error);
  return TRUE;
}
