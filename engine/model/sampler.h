/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* From logits to the next token. */

#ifndef VLM_SAMPLER_H
#define VLM_SAMPLER_H

#include <gio/gio.h>

typedef struct
{
  gdouble temperature;        /* 0: greedy */
  gint top_k;                 /* 0: off */
  gdouble top_p;              /* 1: off */
  gdouble min_p;              /* 0: off */
  gdouble repetition_penalty; /* 1: off */
} VlmSampling;

typedef struct
{
  VlmSampling sampling;
  guint vocab_size;
  guint64 state[2]; /* of the random numbers */
  guint8 *seen;     /* [vocab_size] ids in prompt or answer */
  gint32 *order;    /* [vocab_size] scratch: candidate ids */
  gfloat *scores;   /* [vocab_size] scratch: their scores, later probabilities */
  gfloat *raw;      /* [vocab_size] scratch: scores by id */
} VlmSampler;

/* VLM_ERROR_MEMORY; the sampler may be cleared then, too. */
gboolean vlm_sampler_init (VlmSampler *sampler, const VlmSampling *sampling, guint vocab_size,
    guint64 seed, GError **error);
void vlm_sampler_clear (VlmSampler *sampler);

/* Counts ids as seen by the repetition penalty. Ids outside the vocabulary are passed over. */
void vlm_sampler_accept (VlmSampler *sampler, const gint32 *ids, gsize n_ids);

/*
 * Applies penalty, temperature, top-k, top-p and min-p, in this order, to logits [vocab_size] and
 * fills scores with the probabilities of the candidates left, order with their ids, most probable
 * first. Returns their number (>= 1). logits are not changed. Not for greedy settings.
 */
guint vlm_sampler_candidates (VlmSampler *sampler, const gfloat *logits);

/* Picks the next id. Greedy takes the largest penalised logit, the lowest id among equals. */
gint32 vlm_sampler_pick (VlmSampler *sampler, const gfloat *logits);

#endif
