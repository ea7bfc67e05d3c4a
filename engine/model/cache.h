/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a session remembers of the text so far: keys, values and convolution columns. */

#ifndef VLM_CACHE_H
#define VLM_CACHE_H

#include <gio/gio.h>

#include "config.h"
#include "kernels/kernels.h"

/* Tokens of a packed head. */
#define VLM_PACKED_TOKENS 128

typedef struct
{
  guint n_layers;
  const VlmLayerKind *layers; /* of the configuration, which outlives the cache */
  guint n_kv_heads, head_dim, hidden_size, n_columns; /* n_columns: conv_taps - 1 */
  gsize capacity;                                     /* tokens, a multiple of the key panel */
  gsize length;                                       /* tokens stored */
  gfloat *tokens;                                     /* what keys and values point into */
  gfloat **keys;    /* attention layers: [kv_heads][capacity / 16][head_dim][16] */
  gfloat **values;  /* attention layers: [kv_heads][capacity][head_dim] */
  gfloat **columns; /* convolution layers: [n_columns][hidden], oldest first */

  /* The same keys and values as attend_head wants them, or NULL: attention layers, one after the
   * other, [kv_heads][capacity / VLM_PACKED_TOKENS][packed_bytes] */
  guint8 *packed;
  gsize packed_bytes; /* of a packed head */
  gsize n_packed;     /* packed heads that all tokens stored so far have filled */

  /* Where vlm_cache_rewind () goes back to; 0: nowhere */
  gsize marked_length, marked_packed;
  gfloat *marked_columns; /* those of all convolution layers at that place, or NULL */
} VlmCache;

/* Allocates nothing yet; keys and values exist for attention layers only. */
void vlm_cache_init (VlmCache *cache, const VlmTextConfig *config);
void vlm_cache_clear (VlmCache *cache);

/*
 * Empties the cache (convolution columns become zero) and makes room for n_tokens.
 * VLM_ERROR_MEMORY when there is none.
 */
gboolean vlm_cache_reset (VlmCache *cache, gsize n_tokens, GError **error);

/*
 * Marks the end of what is stored, to begin there again: what is stored from then on does not touch what
 * is stored now. VLM_ERROR_MEMORY when the convolution columns cannot be kept.
 */
gboolean vlm_cache_mark (VlmCache *cache, GError **error);

/*
 * Goes back to the mark instead of a reset; FALSE when there is none, or no room for n_tokens. A reset
 * takes the mark away.
 */
gboolean vlm_cache_rewind (VlmCache *cache, gsize n_tokens);

/* Stores the keys, or values, that one head has of n tokens from position on; rows are [n][ld]. */
void vlm_cache_store_keys (VlmCache *cache, guint layer, guint head, gsize position, gsize n,
    const gfloat *keys, gsize ld);
void vlm_cache_store_values (VlmCache *cache, guint layer, guint head, gsize position, gsize n,
    const gfloat *values, gsize ld);

/* Makes room for packed heads, unless it is there. VLM_ERROR_MEMORY when there is none. */
gboolean vlm_cache_make_packed (VlmCache *cache, const VlmKernels *kernels, GError **error);

/* The packed head of tokens index * VLM_PACKED_TOKENS and those after. */
gpointer vlm_cache_get_packed (const VlmCache *cache, guint layer, guint head, gsize index);

/* Packs these tokens, which are stored. rows: room for [VLM_PACKED_TOKENS][head_dim] */
void vlm_cache_pack (const VlmCache *cache, const VlmKernels *kernels, guint layer, guint head,
    gsize index, gfloat *rows);

#endif
