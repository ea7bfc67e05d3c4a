/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Ids to text while they arrive: only whole UTF-8 characters come out. */

#ifndef VLM_DETOKENIZER_H
#define VLM_DETOKENIZER_H

#include "tokenizer.h"

typedef struct _VlmDetokenizer VlmDetokenizer;

/* skip_special: special tokens give no text. Holds a reference on the tokenizer. */
VlmDetokenizer *vlm_detokenizer_new (VlmTokenizer *tokenizer, gboolean skip_special);
void vlm_detokenizer_free (VlmDetokenizer *detokenizer);

/*
 * Appends to text what id completes; bytes that cannot become UTF-8 any more are U+FFFD, and so is
 * U+0000: text is always good as a C string. Unknown ids give nothing.
 */
void vlm_detokenizer_push (VlmDetokenizer *detokenizer, gint id, GString *text);

/* Ends the stream: a character cut in its middle becomes U+FFFD. Ready for the next text then. */
void vlm_detokenizer_finish (VlmDetokenizer *detokenizer, GString *text);

#endif
