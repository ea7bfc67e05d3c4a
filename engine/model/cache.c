/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cache.h"

#include <string.h>

#include "engine/runtime/alloc.h"

void
vlm_cache_init (VlmCache *cache, const VlmTextConfig *config)
{
  memset (cache, 0, sizeof (*cache));
  cache->n_layers = config->n_layers;
  cache->layers = config->layers;
  cache->n_kv_heads = config->n_kv_heads;
  cache->head_dim = config->head_dim;
  cache->hidden_size = config->hidden_size;
  cache->n_columns = config->conv_taps - 1;
  cache->keys = g_new0 (gfloat *, config->n_layers);
  cache->values = g_new0 (gfloat *, config->n_layers);
  cache->columns = g_new0 (gfloat *, config->n_layers);
}

static void
drop_tokens (VlmCache *cache)
{
  g_clear_pointer (&cache->tokens, g_free);
  g_clear_pointer (&cache->packed, g_free);
  cache->capacity = 0;
}

void
vlm_cache_clear (VlmCache *cache)
{
  guint i;

  drop_tokens (cache);
  g_free (cache->marked_columns);
  for (i = 0; i < cache->n_layers; i++)
    g_free (cache->columns[i]);
  g_free (cache->keys);
  g_free (cache->values);
  g_free (cache->columns);
  memset (cache, 0, sizeof (*cache));
}

static guint
count_attention (const VlmCache *cache, guint n_layers)
{
  guint i, n = 0;

  for (i = 0; i < n_layers; i++)
    n += cache->layers[i] == VLM_LAYER_ATTENTION;
  return n;
}

/* One block for all, so that it is large enough for large pages. */
static gboolean
grow (VlmCache *cache, gsize capacity, GError **error)
{
  gsize token_values = (gsize) cache->n_kv_heads * cache->head_dim;
  gsize layer_values = capacity * token_values;
  guint i, n_layers = count_attention (cache, cache->n_layers);
  gfloat *next;

  drop_tokens (cache);
  next = cache->tokens = vlm_alloc (capacity, 2 * n_layers * token_values * sizeof (gfloat),
      "the keys and values of the text so far", error);
  if (next == NULL)
    return FALSE;
  for (i = 0; i < cache->n_layers; i++) {
    if (cache->layers[i] != VLM_LAYER_ATTENTION)
      continue;
    /* Lanes of a key panel that no token has filled are read, and must be numbers. */
    cache->keys[i] = memset (next, 0, layer_values * sizeof (gfloat));
    cache->values[i] = next + layer_values;
    next += 2 * layer_values;
  }
  cache->capacity = capacity;
  return TRUE;
}

static gboolean
reset_columns (VlmCache *cache, GError **error)
{
  gsize column_bytes = cache->hidden_size * sizeof (gfloat);
  guint i;

  for (i = 0; i < cache->n_layers; i++) {
    if (cache->layers[i] != VLM_LAYER_CONV)
      continue;
    if (cache->columns[i] == NULL)
      cache->columns[i] = vlm_alloc (cache->n_columns, column_bytes, "convolution state", error);
    if (cache->columns[i] == NULL)
      return FALSE;
    memset (cache->columns[i], 0, cache->n_columns * column_bytes);
  }
  return TRUE;
}

gboolean
vlm_cache_reset (VlmCache *cache, gsize n_tokens, GError **error)
{
  gsize capacity = (n_tokens + VLM_KEY_PANEL - 1) / VLM_KEY_PANEL * VLM_KEY_PANEL;

  cache->length = cache->n_packed = cache->marked_length = 0;
  return reset_columns (cache, error)
      && (capacity <= cache->capacity || grow (cache, capacity, error));
}

/* Copies the columns of all convolution layers to where the mark keeps them, or back. */
static void
copy_columns (VlmCache *cache, gboolean back)
{
  const gsize bytes = (gsize) cache->n_columns * cache->hidden_size * sizeof (gfloat);
  gfloat *marked = cache->marked_columns;
  guint i;

  for (i = 0; i < cache->n_layers; i++) {
    if (cache->layers[i] != VLM_LAYER_CONV)
      continue;
    memcpy (back ? cache->columns[i] : marked, back ? marked : cache->columns[i], bytes);
    marked += bytes / sizeof (gfloat);
  }
}

gboolean
vlm_cache_mark (VlmCache *cache, GError **error)
{
  const gsize n_layers = cache->n_layers - count_attention (cache, cache->n_layers);

  if (cache->marked_columns == NULL)
    cache->marked_columns = vlm_alloc (MAX (n_layers * cache->n_columns, 1),
        cache->hidden_size * sizeof (gfloat), "convolution state", error);
  if (cache->marked_columns == NULL)
    return FALSE;
  copy_columns (cache, FALSE);
  cache->marked_length = cache->length;
  cache->marked_packed = cache->n_packed;
  return TRUE;
}

gboolean
vlm_cache_rewind (VlmCache *cache, gsize n_tokens)
{
  if (cache->marked_length == 0 || n_tokens > cache->capacity)
    return FALSE;
  copy_columns (cache, TRUE);
  cache->length = cache->marked_length;
  cache->n_packed = cache->marked_packed;
  return TRUE;
}

/* Tokens of one panel: every line of it is written once. */
static void
store_panel (gfloat *panel, gsize dim, gsize first_lane, gsize n, const gfloat *keys, gsize ld)
{
  gsize i, lane;

  for (i = 0; i < dim; i++) {
    for (lane = 0; lane < n; lane++)
      panel[i * VLM_KEY_PANEL + first_lane + lane] = keys[lane * ld + i];
  }
}

void
vlm_cache_store_keys (
    VlmCache *cache, guint layer, guint head, gsize position, gsize n, const gfloat *keys, gsize ld)
{
  gsize dim = cache->head_dim;
  gfloat *of_head = cache->keys[layer] + head * cache->capacity * dim;

  while (n > 0) {
    gsize lane = position % VLM_KEY_PANEL, n_lanes = MIN (VLM_KEY_PANEL - lane, n);

    store_panel (of_head + (position - lane) * dim, dim, lane, n_lanes, keys, ld);
    position += n_lanes;
    keys += n_lanes * ld;
    n -= n_lanes;
  }
}

void
vlm_cache_store_values (VlmCache *cache, guint layer, guint head, gsize position, gsize n,
    const gfloat *values, gsize ld)
{
  gsize dim = cache->head_dim, i;
  gfloat *dst = cache->values[layer] + (head * cache->capacity + position) * dim;

  for (i = 0; i < n; i++)
    memcpy (dst + i * dim, values + i * ld, dim * sizeof (gfloat));
}

/* Bytes from a packed head to the next. */
static gsize
packed_stride (const VlmKernels *kernels, gsize head_dim)
{
  return (kernels->head_bytes (VLM_PACKED_TOKENS, head_dim) + 63) / 64 * 64;
}

gboolean
vlm_cache_make_packed (VlmCache *cache, const VlmKernels *kernels, GError **error)
{
  const gsize n_heads = count_attention (cache, cache->n_layers) * (gsize) cache->n_kv_heads;

  if (cache->packed != NULL)
    return TRUE;
  cache->packed_bytes = packed_stride (kernels, cache->head_dim);
  cache->packed = vlm_alloc (MAX (n_heads * (cache->capacity / VLM_PACKED_TOKENS), 1),
      cache->packed_bytes, "the packed keys and values of the text so far", error);
  return cache->packed != NULL;
}

gpointer
vlm_cache_get_packed (const VlmCache *cache, guint layer, guint head, gsize index)
{
  const gsize of_head = cache->capacity / VLM_PACKED_TOKENS;
  const gsize before = (gsize) count_attention (cache, layer) * cache->n_kv_heads + head;

  return cache->packed + (before * of_head + index) * cache->packed_bytes;
}

void
vlm_cache_pack (const VlmCache *cache, const VlmKernels *kernels, guint layer, guint head,
    gsize index, gfloat *rows)
{
  const gsize dim = cache->head_dim, first = head * cache->capacity + index * VLM_PACKED_TOKENS;
  const gfloat *keys = cache->keys[layer] + first * dim;
  const VlmHead args = { .k = rows,
    .k_stride = dim,
    .v = cache->values[layer] + first * dim,
    .v_stride = dim,
    .n_keys = VLM_PACKED_TOKENS,
    .head_dim = dim };
  gsize token, lane, i;

  for (token = 0; token < VLM_PACKED_TOKENS; token += VLM_KEY_PANEL) {
    for (lane = 0; lane < VLM_KEY_PANEL; lane++) {
      for (i = 0; i < dim; i++)
        rows[(token + lane) * dim + i] = keys[token * dim + i * VLM_KEY_PANEL + lane];
    }
  }
  kernels->pack_head (vlm_cache_get_packed (cache, layer, head, index), &args);
}
