/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Notices that an answer has got caught in a loop: small models end some answers by saying the
 * same words over and over.
 */

#ifndef VLM_REPETITION_H
#define VLM_REPETITION_H

#include <glib.h>

/* A loop is at least this many equal n-grams in a row ... */
#define VLM_REPETITION_TIMES 3
/* ... of at least this many tokens together: "3000" and "ha ha ha" are no loops. */
#define VLM_REPETITION_TOKENS 8
/* Longest n-gram that is looked for, in tokens. */
#define VLM_REPETITION_LONGEST 64

/*
 * Whether ids [n_ids] end with a loop. Then *n_kept is how many of them there are before the
 * second time round: what came before the loop, and one n-gram of it.
 */
gboolean vlm_repetition_find (const gint32 *ids, gsize n_ids, gsize *n_kept);

#endif
