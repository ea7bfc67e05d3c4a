/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The regular expressions of pre-tokenizers: text cut into pieces at every match. */

#ifndef VLM_PATTERN_H
#define VLM_PATTERN_H

#include <glib.h>

typedef struct _VlmPattern VlmPattern;

/* Bytes of a text, counted from its start. */
typedef struct
{
  gsize start, length;
} VlmPiece;

/*
 * Rewrites a regex of tokenizer.json, whose dialect is Oniguruma's, for PCRE2. Only what means the
 * same in both is let through; \s and \S become explicit classes. NULL with VLM_ERROR_UNSUPPORTED
 * quoting what is not implemented; where names the file and field in messages.
 */
gchar *vlm_pattern_translate (const gchar *regex, const gchar *where, GError **error);

/* regex in tokenizer.json's dialect, valid UTF-8. VLM_ERROR_UNSUPPORTED as above. */
VlmPattern *vlm_pattern_new (const gchar *regex, const gchar *where, GError **error);

/* Matches string itself. */
VlmPattern *vlm_pattern_new_literal (const gchar *string, const gchar *where, GError **error);

void vlm_pattern_free (VlmPattern *pattern);

/*
 * Cuts each of the n_pieces pieces of text (valid UTF-8) into its matches and what lies between
 * them, and appends all that is not empty to out (VlmPiece), in order. Each piece is searched as a
 * text of its own. Safe from any thread. A search that gives up, which takes a regex that
 * backtracks beyond all measure, leaves the rest of its piece uncut.
 */
void vlm_pattern_split (const VlmPattern *pattern, const gchar *text, const VlmPiece *pieces,
    guint n_pieces, GArray *out);

#endif
