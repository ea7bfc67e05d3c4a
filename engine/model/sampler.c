/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "sampler.h"

#include <math.h>
#include <string.h>

#include "engine/runtime/alloc.h"

/* In nats: exp (-40) is far below one step of single precision, even times a whole vocabulary. */
#define NEGLIGIBLE 40.0f

/* splitmix64: spreads a small seed over all bits. */
static guint64
spread_seed (guint64 *x)
{
  guint64 z = (*x += G_GUINT64_CONSTANT (0x9e3779b97f4a7c15));

  z = (z ^ (z >> 30)) * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * G_GUINT64_CONSTANT (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* xorshift128+, the upper 53 bits as a number in [0, 1). */
static gdouble
next_random (VlmSampler *sampler)
{
  guint64 s1 = sampler->state[0];
  guint64 s0 = sampler->state[1];
  guint64 sum = s0 + s1;

  sampler->state[0] = s0;
  s1 ^= s1 << 23;
  sampler->state[1] = s1 ^ s0 ^ (s1 >> 18) ^ (s0 >> 5);
  return (gdouble) (sum >> 11) * 0x1p-53;
}

gboolean
vlm_sampler_init (VlmSampler *sampler, const VlmSampling *sampling, guint vocab_size, guint64 seed,
    GError **error)
{
  const gchar *what = "the sampler";

  memset (sampler, 0, sizeof (*sampler));
  sampler->sampling = *sampling;
  sampler->vocab_size = vocab_size;
  sampler->state[0] = spread_seed (&seed);
  sampler->state[1] = spread_seed (&seed);
  return (sampler->seen = vlm_alloc0 (vocab_size, sizeof (guint8), what, error)) != NULL
      && (sampler->order = vlm_alloc (vocab_size, sizeof (gint32), what, error)) != NULL
      && (sampler->scores = vlm_alloc (vocab_size, sizeof (gfloat), what, error)) != NULL
      && (sampler->raw = vlm_alloc (vocab_size, sizeof (gfloat), what, error)) != NULL;
}

void
vlm_sampler_clear (VlmSampler *sampler)
{
  g_clear_pointer (&sampler->seen, g_free);
  g_clear_pointer (&sampler->order, g_free);
  g_clear_pointer (&sampler->scores, g_free);
  g_clear_pointer (&sampler->raw, g_free);
}

void
vlm_sampler_accept (VlmSampler *sampler, const gint32 *ids, gsize n_ids)
{
  gsize i;

  for (i = 0; i < n_ids; i++) {
    if (ids[i] >= 0 && (guint) ids[i] < sampler->vocab_size)
      sampler->seen[ids[i]] = TRUE;
  }
}

/* Divides positive logits and multiplies negative ones, so that a penalty never raises a token. */
static gfloat
penalise (const VlmSampler *sampler, guint id, gfloat logit)
{
  gfloat penalty = (gfloat) sampler->sampling.repetition_penalty;

  if (!sampler->seen[id])
    return logit;
  return logit < 0 ? logit * penalty : logit / penalty;
}

static gint32
pick_greedy (const VlmSampler *sampler, const gfloat *logits)
{
  /* Then what is no better than the best without its penalty is not with it, and that is nearly all. */
  const gboolean only_lowers = sampler->sampling.repetition_penalty >= 1;
  gfloat best = -INFINITY;
  gint32 pick = 0;
  guint i;

  for (i = 0; i < sampler->vocab_size; i++) {
    gfloat score;

    if (only_lowers && !(logits[i] > best))
      continue;
    score = penalise (sampler, i, logits[i]);
    if (score > best) {
      best = score;
      pick = (gint32) i;
    }
  }
  return pick;
}

static gint
compare_scores (gconstpointer a, gconstpointer b, gpointer user_data)
{
  const gfloat *scores = user_data;
  gint32 i = *(const gint32 *) a;
  gint32 j = *(const gint32 *) b;

  if (scores[i] != scores[j])
    return scores[i] > scores[j] ? -1 : 1;
  return i < j ? -1 : i > j;
}

/* Softmax over the first n of scores, which are in falling order. */
static void
softmax (gfloat *scores, guint n)
{
  gdouble sum = 0;
  guint i;

  for (i = 1; i < n; i++)
    sum += exp ((gdouble) scores[i] - scores[0]);
  sum += 1;
  for (i = n; i-- > 0;)
    scores[i] = (gfloat) (exp ((gdouble) scores[i] - scores[0]) / sum);
}

/* Keeps the k best, and with them whoever equals the last of these. */
static guint
cut_top_k (const gfloat *scores, guint n, guint k)
{
  guint kept = MIN (n, k);

  while (kept < n && scores[kept] == scores[kept - 1])
    kept++;
  return kept;
}

/* The candidates that top-p keeps: the smallest head whose probabilities reach top_p. */
static guint
cut_top_p (const gfloat *probabilities, guint n, gdouble top_p)
{
  gdouble sum = 0;
  guint i;

  for (i = 0; i < n; i++) {
    if (i > 0 && sum >= top_p)
      return i;
    sum += probabilities[i];
  }
  return n;
}

static guint
cut_min_p (const gfloat *probabilities, guint n, gdouble min_p)
{
  guint i;

  for (i = 1; i < n; i++) {
    if (probabilities[i] < min_p * probabilities[0])
      return i;
  }
  return n;
}

static void
renormalise (gfloat *probabilities, guint n)
{
  gdouble sum = 0;
  guint i;

  for (i = 0; i < n; i++)
    sum += probabilities[i];
  for (i = 0; i < n; i++)
    probabilities[i] = (gfloat) (probabilities[i] / sum);
}

/*
 * Lists the ids worth sorting, most probable first, and returns their number. What lies further
 * below the best than NEGLIGIBLE cannot change a probability that is printed in single precision.
 */
static guint
sort_candidates (VlmSampler *sampler)
{
  guint i, n = 0;

  for (i = 0; i < sampler->vocab_size; i++) {
    if (sampler->raw[i] >= -NEGLIGIBLE)
      sampler->order[n++] = (gint32) i;
  }
  g_qsort_with_data (sampler->order, (gint) n, sizeof (gint32), compare_scores, sampler->raw);
  for (i = 0; i < n; i++)
    sampler->scores[i] = sampler->raw[sampler->order[i]];
  return n;
}

guint
vlm_sampler_candidates (VlmSampler *sampler, const gfloat *logits)
{
  const VlmSampling *sampling = &sampler->sampling;
  gfloat best = -INFINITY;
  guint i, n;

  for (i = 0; i < sampler->vocab_size; i++) {
    sampler->raw[i] = penalise (sampler, i, logits[i]);
    if (sampler->raw[i] > best) /* not MAX: that would take a NaN */
      best = sampler->raw[i];
  }
  /* Relative to the best, so that the smallest temperature gives no worse than minus infinity. */
  for (i = 0; i < sampler->vocab_size; i++)
    sampler->raw[i] = (gfloat) ((sampler->raw[i] - best) / sampling->temperature);
  n = sort_candidates (sampler);
  if (n == 0) { /* infinite or no numbers at all: greedy has an answer to that as well */
    sampler->order[0] = pick_greedy (sampler, logits);
    sampler->scores[0] = 1;
    return 1;
  }

  if (sampling->top_k > 0)
    n = cut_top_k (sampler->scores, n, (guint) sampling->top_k);
  softmax (sampler->scores, n);
  if (sampling->top_p < 1)
    n = cut_top_p (sampler->scores, n, sampling->top_p);
  if (sampling->min_p > 0)
    n = cut_min_p (sampler->scores, n, sampling->min_p);
  renormalise (sampler->scores, n);
  return n;
}

gint32
vlm_sampler_pick (VlmSampler *sampler, const gfloat *logits)
{
  gdouble left;
  guint i, n;

  if (sampler->sampling.temperature <= 0)
    return pick_greedy (sampler, logits);

  n = vlm_sampler_candidates (sampler, logits);
  left = next_random (sampler);
  for (i = 0; i + 1 < n; i++) {
    left -= sampler->scores[i];
    if (left < 0)
      break;
  }
  return sampler->order[i];
}
