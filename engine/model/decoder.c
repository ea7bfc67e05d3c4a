/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder.h"

#include <math.h>
#include <string.h>

#include "rows.h"

/* Queries of one head that one attention job takes. */
#define QUERY_BLOCK 32

/* One chunk on its way through the layers. All arrays have n rows. */
typedef struct
{
  const VlmTextConfig *config;
  const VlmKernels *kernels;
  VlmTeam *team;
  VlmCache *cache;
  gsize n, position; /* tokens of the chunk, position of its first */

  gfloat *x;         /* [hidden] residual stream */
  VlmInputs inputs;  /* of the next product */
  gfloat *wide;      /* widest projection: qkv, B C x, or gate and up */
  gfloat *mixed;     /* attention or convolution output */
  gfloat *out;       /* [hidden] what is added to the residual stream */
  gfloat *window;    /* [conv_taps - 1 + n][hidden] convolution inputs, oldest first */
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

static gsize
qkv_width (const VlmTextConfig *config)
{
  return (gsize) (config->n_heads + 2 * config->n_kv_heads) * config->head_dim;
}

static gboolean
chunk_take_arrays (Chunk *chunk, VlmArena *arena, GError **error)
{
  const VlmTextConfig *config = chunk->config;
  gsize hidden = config->hidden_size;
  gsize wide = MAX (MAX (qkv_width (config), 3 * hidden), 2 * (gsize) config->ff_size);
  gsize mixed = MAX ((gsize) config->n_heads * config->head_dim, hidden);
  gsize widest_input = MAX (mixed, config->ff_size);
  gsize window = config->conv_taps - 1 + chunk->n;
  gsize half = config->head_dim / 2;
  gsize total = 0;

  vlm_inputs_measure (&total, chunk->team, chunk->n, widest_input);
  vlm_arena_measure (&total, chunk->n * wide);
  vlm_arena_measure (&total, chunk->n * mixed);
  vlm_arena_measure (&total, chunk->n * hidden);
  vlm_arena_measure (&total, window * hidden);
  vlm_arena_measure (&total, chunk->n * half);
  vlm_arena_measure (&total, chunk->n * half);
  if (!vlm_arena_reserve (arena, total, error))
    return FALSE;

  vlm_inputs_take (&chunk->inputs, arena, chunk->team, chunk->n, widest_input);
  chunk->wide = vlm_arena_take (arena, chunk->n * wide);
  chunk->mixed = vlm_arena_take (arena, chunk->n * mixed);
  chunk->out = vlm_arena_take (arena, chunk->n * hidden);
  chunk->window = vlm_arena_take (arena, window * hidden);
  chunk->cos = vlm_arena_take (arena, chunk->n * half);
  chunk->sin = vlm_arena_take (arena, chunk->n * half);
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
      gfloat angle = (gfloat) (chunk->position + i) * frequency;

      chunk->cos[i * half + j] = cosf (angle);
      chunk->sin[i * half + j] = sinf (angle);
    }
  }
}

/* Normalises and rotates queries and keys of some tokens and stores keys and values. */
static void
prepare_rows (gsize first, gsize n_rows, gpointer user_data)
{
  const Chunk *chunk = user_data;
  const VlmTextConfig *config = chunk->config;
  gsize dim = config->head_dim;
  gsize i;
  guint h;

  for (i = first; i < first + n_rows; i++) {
    gfloat *row = chunk->wide + i * qkv_width (config);

    for (h = 0; h < config->n_heads + config->n_kv_heads; h++) {
      const VlmNorm *norm = h < config->n_heads ? &chunk->layer->q_norm : &chunk->layer->k_norm;
      gfloat *head = row + h * dim;

      chunk->kernels->rms_norm (head, head, norm->weight, dim, config->norm_eps);
      chunk->kernels->rope (head, chunk->cos + i * (dim / 2), chunk->sin + i * (dim / 2), dim / 2);
    }
    vlm_cache_store (chunk->cache, chunk->layer_index, chunk->position + i,
        row + config->n_heads * dim, row + (config->n_heads + config->n_kv_heads) * dim);
  }
}

static void
attend_job (gsize job, guint thread, gpointer user_data)
{
  const Chunk *chunk = user_data;
  const VlmTextConfig *config = chunk->config;
  VlmCache *cache = chunk->cache;
  gsize dim = config->head_dim;
  guint head = job % config->n_heads;
  guint kv_head = head / (config->n_heads / config->n_kv_heads);
  gsize first = job / config->n_heads * QUERY_BLOCK;
  VlmAttention args = { 0 };

  args.n_queries = MIN (QUERY_BLOCK, chunk->n - first);
  args.out_stride = config->n_heads * dim;
  args.out = chunk->mixed + first * args.out_stride + head * dim;
  args.q_stride = qkv_width (config);
  args.q = chunk->wide + first * args.q_stride + head * dim;
  args.k = cache->keys[chunk->layer_index] + kv_head * cache->capacity * dim;
  args.v = cache->values[chunk->layer_index] + kv_head * cache->capacity * dim;
  args.v_stride = dim;
  args.causal = TRUE;
  args.first_keys = chunk->position + first + 1;
  args.n_keys = args.first_keys + args.n_queries - 1;
  args.head_dim = dim;
  args.scale = 1.0f / sqrtf ((gfloat) dim);
  chunk->kernels->attention (&args);
}

/* inputs = norm (x), made ready for matrix */
static gboolean
norm_inputs (Chunk *chunk, const VlmMatrix *matrix, const VlmNorm *norm)
{
  return vlm_inputs_norm (&chunk->inputs, matrix, chunk->team, chunk->kernels, norm,
      chunk->config->norm_eps, chunk->x, chunk->n);
}

/* inputs = the first width values of the rows of mixed */
static gboolean
mixed_inputs (Chunk *chunk, const VlmMatrix *matrix)
{
  return vlm_inputs_rows (&chunk->inputs, matrix, chunk->team, chunk->kernels, chunk->mixed,
      matrix->cols, chunk->n, 0, NULL, NULL);
}

static gboolean
multiply (Chunk *chunk, const VlmLinear *linear, gfloat *y, gsize ldy)
{
  return vlm_matrix_multiply (
      linear->matrix, chunk->team, chunk->kernels, linear->bias, &chunk->inputs, y, ldy);
}

static gboolean
attention_layer (Chunk *chunk)
{
  const VlmTextConfig *config = chunk->config;
  const VlmDecoderLayer *layer = chunk->layer;
  gsize n_blocks = (chunk->n + QUERY_BLOCK - 1) / QUERY_BLOCK;

  return norm_inputs (chunk, layer->qkv.matrix, &layer->operator_norm)
      && multiply (chunk, &layer->qkv, chunk->wide, qkv_width (config))
      && vlm_rows_run (chunk->team, chunk->n, 8 * qkv_width (config), prepare_rows, chunk)
      && vlm_team_run (chunk->team, n_blocks * config->n_heads, attend_job, chunk)
      && mixed_inputs (chunk, layer->attention_out.matrix)
      && multiply (chunk, &layer->attention_out, chunk->out, config->hidden_size);
}

/* window[taps - 1 + i] = B[i] * x'[i] */
static void
fill_window_rows (gsize first, gsize n_rows, gpointer user_data)
{
  const Chunk *chunk = user_data;
  gsize hidden = chunk->config->hidden_size;
  gsize i;

  for (i = first; i < first + n_rows; i++) {
    const gfloat *bcx = chunk->wide + i * 3 * hidden;

    chunk->kernels->mul (
        chunk->window + (chunk->config->conv_taps - 1 + i) * hidden, bcx, bcx + 2 * hidden, hidden);
  }
}

/* mixed[i] = C[i] * (taps over window + bias) */
static void
convolve_rows (gsize first, gsize n_rows, gpointer user_data)
{
  const Chunk *chunk = user_data;
  gsize hidden = chunk->config->hidden_size;
  guint n_taps = chunk->config->conv_taps;
  const gfloat *columns[VLM_MAX_CONV_TAPS];
  gsize i;
  guint t;

  for (i = first; i < first + n_rows; i++) {
    gfloat *gate = chunk->wide + i * 3 * hidden + hidden;

    for (t = 0; t < n_taps; t++)
      columns[t] = chunk->window + (i + t) * hidden;
    chunk->kernels->short_conv (
        chunk->mixed + i * hidden, gate, columns, chunk->layer->taps, n_taps, hidden);
    if (chunk->layer->taps_bias != NULL) {
      chunk->kernels->mul (gate, gate, chunk->layer->taps_bias, hidden);
      chunk->kernels->add (chunk->mixed + i * hidden, gate, hidden);
    }
  }
}

static gboolean
conv_layer (Chunk *chunk)
{
  const VlmDecoderLayer *layer = chunk->layer;
  gsize hidden = chunk->config->hidden_size;
  gsize n_columns = chunk->config->conv_taps - 1;
  gfloat *columns = chunk->cache->columns[chunk->layer_index];

  if (!norm_inputs (chunk, layer->conv_in.matrix, &layer->operator_norm)
      || !multiply (chunk, &layer->conv_in, chunk->wide, 3 * hidden))
    return FALSE;

  memcpy (chunk->window, columns, n_columns * hidden * sizeof (gfloat));
  if (!vlm_rows_run (chunk->team, chunk->n, hidden, fill_window_rows, chunk)
      || !vlm_rows_run (chunk->team, chunk->n, 4 * hidden, convolve_rows, chunk))
    return FALSE;
  memcpy (columns, chunk->window + chunk->n * hidden, n_columns * hidden * sizeof (gfloat));

  return mixed_inputs (chunk, layer->conv_out.matrix)
      && multiply (chunk, &layer->conv_out, chunk->out, hidden);
}

/* gate = silu (gate) * up, of a row that holds both */
static void
gate_row (gfloat *gate, gpointer user_data)
{
  const Chunk *chunk = user_data;
  gsize ff = chunk->config->ff_size;

  chunk->kernels->silu_mul (gate, gate, gate + ff, ff);
}

static gboolean
feed_forward (Chunk *chunk)
{
  const VlmDecoderLayer *layer = chunk->layer;
  gsize hidden = chunk->config->hidden_size;
  gsize ff = chunk->config->ff_size;

  return norm_inputs (chunk, layer->gate_up, &layer->ffn_norm)
      && vlm_matrix_multiply (
          layer->gate_up, chunk->team, chunk->kernels, NULL, &chunk->inputs, chunk->wide, 2 * ff)
      && vlm_inputs_rows (&chunk->inputs, layer->down, chunk->team, chunk->kernels, chunk->wide,
          2 * ff, chunk->n, 16 * ff, gate_row, chunk)
      && vlm_matrix_multiply (
          layer->down, chunk->team, chunk->kernels, NULL, &chunk->inputs, chunk->out, hidden);
}

static gboolean
run_layer (Chunk *chunk)
{
  gsize hidden = chunk->config->hidden_size;

  return (chunk->layer->kind == VLM_LAYER_CONV ? conv_layer (chunk) : attention_layer (chunk))
      && vlm_rows_add (chunk->team, chunk->kernels, chunk->out, chunk->x, chunk->n, hidden)
      && feed_forward (chunk)
      && vlm_rows_add (chunk->team, chunk->kernels, chunk->out, chunk->x, chunk->n, hidden);
}

gboolean
vlm_decoder_forward (VlmModel *model, VlmTeam *team, VlmArena *arena, VlmCache *cache, gfloat *x,
    gsize n_tokens, GError **error)
{
  Chunk chunk = { 0 };
  guint i;

  chunk.config = &model->config.text;
  chunk.kernels = &model->kernels;
  chunk.team = team;
  chunk.cache = cache;
  chunk.n = n_tokens;
  chunk.position = cache->length;
  chunk.x = x;
  g_return_val_if_fail (cache->length + n_tokens <= cache->capacity, FALSE);

  if (!chunk_take_arrays (&chunk, arena, error))
    return FALSE;
  chunk_make_angles (&chunk);
  for (i = 0; i < chunk.config->n_layers; i++) {
    chunk.layer = &model->weights->layers[i];
    chunk.layer_index = i;
    if (!run_layer (&chunk))
      return vlm_set_cancelled (error);
  }
  cache->length += n_tokens;
  return TRUE;
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
          weights->head, team, &model->kernels, NULL, &inputs, logits, config->vocab_size))
    return vlm_set_cancelled (error);
  return TRUE;
}
