/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The weights of one axis of a resample. */

#ifndef VLM_TAPS_H
#define VLM_TAPS_H

#include <gio/gio.h>

#include "processor.h"

/*
 * Output i is the weighted sum of inputs start[i] .. start[i] + count[i] - 1; its weights stand at
 * i * max_taps. start never falls, start[i] + count[i] <= input length, count[i] >= 1. Which of the
 * two weight arrays exists depends on the path.
 */
typedef struct
{
  guint n; /* outputs */
  gsize max_taps;
  gint32 *start, *count; /* [n] */
  gint16 *weights;       /* [n][max_taps], integer path: fractions of 2^bits */
  guint bits;
  gfloat *float_weights; /* [n][max_taps], float path */
} VlmTaps;

/* Fills taps for an axis of in samples made out samples long, both >= 1. Errors: IMAGE, MEMORY. */
gboolean vlm_taps_init (
    VlmTaps *taps, guint in, guint out, VlmFilter filter, VlmResamplePath path, GError **error);
void vlm_taps_clear (VlmTaps *taps);

#endif
