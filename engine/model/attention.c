/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Tokens of a prompt look at older ones in packed heads of 128 tokens each, rounded, and at those
 * since the last multiple of 128 in floats, or nearly so in tiles. So a head is packed once, when its
 * tokens are complete, and what a token sees depends on its position alone: not on the chunk that it
 * comes in, nor on tokens after it, whose values would have a part in the scales of a head that is
 * not full yet.
 */

#include "attention.h"

#include <math.h>

/* Queries of one head that one job takes: a divisor of the tokens of a packed head. */
#define QUERY_BLOCK 32

/* An attention over one layer. */
typedef struct
{
  const VlmCacheAttention *attention;
  guint layer;
  gboolean may_round;
  gsize n_blocks; /* of queries */
} Run;

void
vlm_attention_measure (const VlmCacheAttention *attention, gsize *total)
{
  const VlmTextConfig *config = attention->config;
  const gsize mixed = attention->n * config->n_heads * config->head_dim;
  const gsize n_threads = vlm_team_get_n_threads (attention->team);

  vlm_arena_measure (total, mixed);
  vlm_arena_measure (total, mixed);
  vlm_arena_measure (total, n_threads * VLM_PACKED_TOKENS * config->head_dim);
}

void
vlm_attention_take (VlmCacheAttention *attention, VlmArena *arena)
{
  const VlmTextConfig *config = attention->config;
  const gsize mixed = attention->n * config->n_heads * config->head_dim;
  const gsize n_threads = vlm_team_get_n_threads (attention->team);

  attention->queries = vlm_arena_take (arena, mixed);
  attention->mixed = vlm_arena_take (arena, mixed);
  attention->keys = vlm_arena_take (arena, n_threads * VLM_PACKED_TOKENS * config->head_dim);
}

/* Packs one head of the tokens that have become complete. */
static void
pack_job (gsize job, guint thread, gpointer user_data)
{
  const Run *run = user_data;
  const VlmCacheAttention *attention = run->attention;
  const gsize n_kv_heads = attention->config->n_kv_heads;
  gfloat *keys = attention->keys + thread * VLM_PACKED_TOKENS * (gsize) attention->config->head_dim;

  vlm_cache_pack (attention->cache, attention->kernels, run->layer, job % n_kv_heads,
      attention->cache->n_packed + job / n_kv_heads, keys);
}

/* The queries of args over the first n_packed packed heads, for attention to go on from. */
static void
attend_packed (const Run *run, const VlmAttention *args, guint kv_head, gsize n_packed, gfloat *max,
    gfloat *sum)
{
  const VlmCache *cache = run->attention->cache;
  const VlmHeadAttention packed = { .out = args->out,
    .out_stride = args->out_stride,
    .q = args->q,
    .q_stride = args->q_stride,
    .n_queries = args->n_queries,
    .head = vlm_cache_get_packed (cache, run->layer, kv_head, 0),
    .n_keys = VLM_PACKED_TOKENS,
    .head_dim = args->head_dim,
    .scale = args->scale,
    .max = max,
    .sum = sum,
    .n_more = n_packed - 1,
    .head_stride = cache->packed_bytes };

  run->attention->kernels->attend_head (&packed);
}

/*
 * A block of queries of a head; blocks begin at multiples of QUERY_BLOCK. Blocks of a head follow one
 * another, so that a thread stays with a head, whose keys are in its cache then.
 */
static void
attend_job (gsize job, guint thread, gpointer user_data)
{
  const Run *run = user_data;
  const VlmCacheAttention *attention = run->attention;
  const VlmTextConfig *config = attention->config;
  const VlmCache *cache = attention->cache;
  const gsize dim = config->head_dim, head = job / run->n_blocks;
  const guint kv_head = head / (config->n_heads / config->n_kv_heads);
  const gsize block = (attention->position / QUERY_BLOCK + job % run->n_blocks) * QUERY_BLOCK;
  const gsize first = MAX (block, attention->position);
  const gsize end = MIN (block + QUERY_BLOCK, attention->position + attention->n);
  const gsize n_packed = run->may_round ? first / VLM_PACKED_TOKENS : 0;
  const gsize first_key = n_packed * VLM_PACKED_TOKENS;
  gfloat max[QUERY_BLOCK], sum[QUERY_BLOCK];
  VlmAttention args = { .causal = TRUE, .head_dim = dim, .v_stride = dim };
  void (*attend) (const VlmAttention *) = attention->kernels->attention;

  if (run->may_round && attention->kernels->attention_tiled != NULL)
    attend = attention->kernels->attention_tiled;
  args.n_queries = end - first;
  args.out_stride = args.q_stride = config->n_heads * dim;
  args.out = attention->mixed + (first - attention->position) * args.out_stride + head * dim;
  args.q = attention->queries + (first - attention->position) * args.q_stride + head * dim;
  args.k = cache->keys[run->layer] + (kv_head * cache->capacity + first_key) * dim;
  args.v = cache->values[run->layer] + (kv_head * cache->capacity + first_key) * dim;
  args.first_keys = first - first_key + 1;
  args.n_keys = args.first_keys + args.n_queries - 1;
  args.scale = 1.0f / sqrtf ((gfloat) dim);
  if (n_packed > 0) {
    attend_packed (run, &args, kv_head, n_packed, max, sum);
    args.max = max;
    args.sum = sum;
  }
  attend (&args);
}

gboolean
vlm_attention_mix (const VlmCacheAttention *attention, guint layer, gboolean may_round)
{
  const VlmTextConfig *config = attention->config;
  const gsize end = attention->position + attention->n;
  const gsize n_new = end / VLM_PACKED_TOKENS - attention->cache->n_packed;
  const gsize n_blocks = (end + QUERY_BLOCK - 1) / QUERY_BLOCK - attention->position / QUERY_BLOCK;
  Run run = { attention, layer, may_round, n_blocks };

  if (may_round && n_new > 0
      && !vlm_team_run (attention->team, n_new * config->n_kv_heads, pack_job, &run))
    return FALSE;
  return vlm_team_run (attention->team, n_blocks * config->n_heads, attend_job, &run);
}
