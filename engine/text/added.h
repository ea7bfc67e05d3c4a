/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Added tokens: spellings that are cut out of a text before anything else reads it. */

#ifndef VLM_ADDED_H
#define VLM_ADDED_H

#include <glib.h>

typedef struct _VlmAdded VlmAdded;

typedef struct
{
  gint id;
  gboolean single_word;    /* only where no word character touches it */
  gboolean lstrip, rstrip; /* takes the white space on that side with it */
} VlmAddedToken;

VlmAdded *vlm_added_new (void);
void vlm_added_free (VlmAdded *added);

/* Of equal spellings the one inserted first counts. spelling must not be empty. */
void vlm_added_insert (VlmAdded *added, const gchar *spelling, const VlmAddedToken *token);

/* To be called once between the last insertion and the first search. */
void vlm_added_finish (VlmAdded *added);

/* A stretch of text: plain when id is -1, else an added token. */
typedef struct
{
  gsize start, length;
  gint id;
} VlmSegment;

/*
 * Cuts text (valid UTF-8) at its added tokens, the leftmost and of these the longest first, and
 * appends the segments (VlmSegment) to out. Empty plain segments are left out.
 */
void vlm_added_split (const VlmAdded *added, const gchar *text, gsize length, GArray *out);

#endif
