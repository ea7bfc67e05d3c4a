/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Attention of the decoder: some consecutive tokens look at themselves and all before them. */

#ifndef VLM_ATTENTION_H
#define VLM_ATTENTION_H

#include "cache.h"
#include "engine/runtime/arena.h"
#include "engine/runtime/team.h"

typedef struct
{
  const VlmTextConfig *config;
  const VlmKernels *kernels;
  VlmTeam *team;
  VlmCache *cache;   /* has the keys and values of all tokens up to the last of these */
  gsize position, n; /* of the first token, and how many there are */

  gfloat *queries; /* [n][n_heads * head_dim] */
  gfloat *mixed;   /* [n][n_heads * head_dim] what comes out */
  gfloat *keys;    /* [threads][VLM_PACKED_TOKENS][head_dim] */
} VlmCacheAttention;

/* Adds to *total what vlm_attention_take () will take for n tokens. */
void vlm_attention_measure (const VlmCacheAttention *attention, gsize *total);
void vlm_attention_take (VlmCacheAttention *attention, VlmArena *arena);

/*
 * mixed = attention of queries over the keys and values of a layer. may_round: with what the cache
 * has packed of the context, and packs of it here; it must have room for that
 * (vlm_cache_make_packed ()). What comes out for a token does not depend on which others are with
 * it. FALSE when cancelled. Call within a turn.
 */
gboolean vlm_attention_mix (const VlmCacheAttention *attention, guint layer, gboolean may_round);

#endif
