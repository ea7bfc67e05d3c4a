/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Texts to ids and back, line by line from standard input to standard output. */

#ifndef TOOLS_TOKENS_H
#define TOOLS_TOKENS_H

#include "engine/vlm.h"

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmTokenizer, vlm_tokenizer_unref)

/*
 * Both stop at the first line that is no text or no list of the tokenizer's ids; the error names
 * its number. Other errors are those of reading and writing. With json, texts are JSON strings.
 * Standard output may hold lines back.
 */
gboolean tokens_from_text (const VlmTokenizer *tokenizer, gboolean json, GError **error);
gboolean tokens_to_text (const VlmTokenizer *tokenizer, gboolean json, GError **error);

#endif
