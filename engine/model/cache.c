/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cache.h"

#include <string.h>

#include "engine/vlm.h"
#include "kernels/kernels.h"

void
vlm_cache_init (VlmCache *cache, const VlmTextConfig *config)
{
  guint i;

  memset (cache, 0, sizeof (*cache));
  cache->n_layers = config->n_layers;
  cache->n_kv_heads = config->n_kv_heads;
  cache->head_dim = config->head_dim;
  cache->hidden_size = config->hidden_size;
  cache->n_columns = config->conv_taps - 1;
  cache->keys = g_new0 (gfloat *, config->n_layers);
  cache->values = g_new0 (gfloat *, config->n_layers);
  cache->columns = g_new0 (gfloat *, config->n_layers);
  for (i = 0; i < config->n_layers; i++) {
    if (config->layers[i] == VLM_LAYER_CONV)
      cache->columns[i] = g_new0 (gfloat, MAX (cache->n_columns, 1) * cache->hidden_size);
  }
}

static void
drop_tokens (VlmCache *cache)
{
  guint i;

  for (i = 0; i < cache->n_layers; i++) {
    g_clear_pointer (&cache->keys[i], g_free);
    g_clear_pointer (&cache->values[i], g_free);
  }
  cache->capacity = 0;
}

void
vlm_cache_clear (VlmCache *cache)
{
  guint i;

  drop_tokens (cache);
  for (i = 0; i < cache->n_layers; i++)
    g_free (cache->columns[i]);
  g_free (cache->keys);
  g_free (cache->values);
  g_free (cache->columns);
  memset (cache, 0, sizeof (*cache));
}

static gboolean
grow (VlmCache *cache, gsize capacity, GError **error)
{
  gsize n_floats;
  guint i;

  drop_tokens (cache);
  if (!g_size_checked_mul (&n_floats, capacity, (gsize) cache->n_kv_heads * cache->head_dim)
      || n_floats > G_MAXSIZE / sizeof (gfloat))
    n_floats = G_MAXSIZE / sizeof (gfloat);

  for (i = 0; i < cache->n_layers; i++) {
    if (cache->columns[i] != NULL)
      continue;
    cache->keys[i] = g_try_malloc0_n (n_floats, sizeof (gfloat));
    cache->values[i] = g_try_malloc_n (n_floats, sizeof (gfloat));
    if (cache->keys[i] == NULL || cache->values[i] == NULL) {
      drop_tokens (cache);
      g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
          "No memory to remember %" G_GSIZE_FORMAT " tokens", capacity);
      return FALSE;
    }
  }
  cache->capacity = capacity;
  return TRUE;
}

gboolean
vlm_cache_reset (VlmCache *cache, gsize n_tokens, GError **error)
{
  gsize capacity = (n_tokens + VLM_KEY_PANEL - 1) / VLM_KEY_PANEL * VLM_KEY_PANEL;
  guint i;

  cache->length = 0;
  for (i = 0; i < cache->n_layers; i++) {
    if (cache->columns[i] != NULL)
      memset (cache->columns[i], 0, sizeof (gfloat) * cache->n_columns * cache->hidden_size);
  }
  return capacity <= cache->capacity || grow (cache, capacity, error);
}

void
vlm_cache_store (
    VlmCache *cache, guint layer, gsize position, const gfloat *key, const gfloat *value)
{
  gsize dim = cache->head_dim;
  gsize panel = position / VLM_KEY_PANEL;
  gsize lane = position % VLM_KEY_PANEL;
  guint head;
  gsize i;

  for (head = 0; head < cache->n_kv_heads; head++) {
    gfloat *keys = cache->keys[layer]
        + (head * (cache->capacity / VLM_KEY_PANEL) + panel) * dim * VLM_KEY_PANEL + lane;

    for (i = 0; i < dim; i++)
      keys[i * VLM_KEY_PANEL] = key[head * dim + i];
    memcpy (cache->values[layer] + (head * cache->capacity + position) * dim, value + head * dim,
        dim * sizeof (gfloat));
  }
}
