/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "share.h"

/* What is known of videos, to guess how long others are. */
typedef struct
{
  gdouble duration;             /* ns, of all whose duration is known */
  guint n;                      /* so many */
  gdouble sized_duration, size; /* of those whose size is known too */
} Known;

static Known
gather (const VlmShare *shares, guint n)
{
  Known known = { 0 };

  for (guint i = 0; i < n; i++) {
    if (shares[i].still || shares[i].duration < 0)
      continue;
    known.duration += (gdouble) shares[i].duration;
    known.n++;
    if (shares[i].size > 0) {
      known.sized_duration += (gdouble) shares[i].duration;
      known.size += (gdouble) shares[i].size;
    }
  }
  return known;
}

static gdouble
weigh (const VlmShare *share, const Known *known)
{
  if (share->duration >= 0)
    return (gdouble) share->duration;
  if (known->n == 0)
    return G_TIME_SPAN_MINUTE * 1000.0;
  if (share->size > 0 && known->size > 0)
    return (gdouble) share->size * known->sized_duration / known->size;
  return known->duration / known->n;
}

gdouble
vlm_shares_get_done (const VlmShare *shares, guint n)
{
  const Known known = gather (shares, n);
  gdouble all = 0, done = 0;

  for (guint i = 0; i < n; i++) {
    gdouble weight = shares[i].wanted ? weigh (&shares[i], &known) : 0;

    all += weight;
    done += weight * CLAMP (shares[i].done, 0, 1);
  }
  return all > 0 ? done / all : 0;
}
