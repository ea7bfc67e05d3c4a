/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The merges of byte pair encoding, and their use on one word. */

#ifndef VLM_MERGES_H
#define VLM_MERGES_H

#include <glib.h>

typedef struct _VlmMerges VlmMerges;

/* Room for n merges; NULL when there is not the memory. */
VlmMerges *vlm_merges_new (gsize n);
void vlm_merges_free (VlmMerges *merges);

/* left and right, neighbours, become id; lower ranks go first. A repeated pair is set anew. */
void vlm_merges_add (VlmMerges *merges, gint left, gint right, guint rank, gint id);

/* The ids of a word while it is merged; kept from word to word, so that memory is reused. */
typedef struct
{
  GArray *symbols;
  GArray *queue;
} VlmWord;

void vlm_word_init (VlmWord *word);
void vlm_word_clear (VlmWord *word);

/* The word starts anew; then its ids follow. At most G_MAXINT of them. */
void vlm_word_reset (VlmWord *word);
void vlm_word_append (VlmWord *word, gint id);

/* Merges what can be merged and appends the ids (gint32) that are left. n log n in the length. */
void vlm_word_merge (VlmWord *word, const VlmMerges *merges, GArray *ids);

#endif
