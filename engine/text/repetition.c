/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "repetition.h"

/* The least number of tokens that a loop of n-grams of this length has. */
static gsize
least_length (gsize period)
{
  gsize times = (VLM_REPETITION_TOKENS + period - 1) / period;

  return period * MAX (times, VLM_REPETITION_TIMES);
}

/* From where on ids repeat what stood period tokens before. */
static gsize
find_start (const gint32 *ids, gsize n_ids, gsize period)
{
  gsize start = n_ids - period;

  while (start > 0 && ids[start - 1] == ids[start - 1 + period])
    start--;
  return start;
}

gboolean
vlm_repetition_find (const gint32 *ids, gsize n_ids, gsize *n_kept)
{
  gsize period;

  /* The shortest period first: a loop of one is also a loop of two. */
  for (period = 1; period <= VLM_REPETITION_LONGEST; period++) {
    gsize start;

    if (n_ids < least_length (period))
      continue;
    start = find_start (ids, n_ids, period);
    if (n_ids - start >= least_length (period)) {
      *n_kept = start + period;
      return TRUE;
    }
  }
  return FALSE;
}
