/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* IEEE halves, for the few that readers and writers of files turn themselves. */

#ifndef VLM_HALF_H
#define VLM_HALF_H

#include <glib.h>

/*
 * The half nearest to value, ties to even, subnormals included. What rounds beyond 65504 becomes an
 * infinity, NaN a quiet NaN.
 */
guint16 vlm_half_from_float (gfloat value);

/* Exact. */
gfloat vlm_half_to_float (guint16 half);

/*
 * Rounds n values. Returns n, or the index of the first value that is no finite half.
 */
gsize vlm_halves_from_floats (guint16 *halves, const gfloat *values, gsize n);

#endif
