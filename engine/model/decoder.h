/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The LFM2 decoder: short convolutions and grouped-query attention over a cache. */

#ifndef VLM_DECODER_H
#define VLM_DECODER_H

#include "cache.h"
#include "engine/runtime/arena.h"
#include "model.h"

/*
 * Tokens that go through the layers at once unless the caller asks for another number: a picture of
 * 256 tokens and a short question. A chunk reads and unpacks all weights.
 */
#define VLM_PREFILL_CHUNK 288

/*
 * Takes n_tokens embeddings x [n_tokens][hidden] through all layers, in place, after what the cache
 * holds already; the cache grows by n_tokens (its capacity must have room). Call within a turn.
 * FALSE with G_IO_ERROR_CANCELLED or VLM_ERROR_MEMORY; the cache is then only good for a reset.
 * Only the last n_wanted rows, 1 to n_tokens, are what comes out of the last layer: what neither
 * these nor the cache depend on is left out of the last layers, and other rows may hold anything.
 * Cutting the same tokens into other chunks, or asking for more, gives the same bits.
 */
gboolean vlm_decoder_forward (VlmModel *model, VlmTeam *team, VlmArena *arena, VlmCache *cache,
    gfloat *x, gsize n_tokens, gsize n_wanted, GError **error);

/*
 * The same for one token of an answer, whose attention is in floats, and whose products are never in
 * tiles of many rows, since there are no others to share what is read.
 */
gboolean vlm_decoder_step (
    VlmModel *model, VlmTeam *team, VlmArena *arena, VlmCache *cache, gfloat *x, GError **error);

/* Final norm and head for one row of forward's output: logits [vocab_size]. Within a turn. */
gboolean vlm_decoder_logits (VlmModel *model, VlmTeam *team, VlmArena *arena, const gfloat *x,
    gfloat *logits, GError **error);

/* Sets the error of a stage whose team was cancelled; returns FALSE. */
gboolean vlm_set_cancelled (GError **error);

#endif
