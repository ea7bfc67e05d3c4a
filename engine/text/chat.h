/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The chat layout of LFM2 and LFM2-VL, built as ids. */

#ifndef VLM_CHAT_H
#define VLM_CHAT_H

#include "engine/image/layout.h"
#include "tokenizer.h"

typedef struct
{
  gint bos, im_start, im_end; /* -1 when the vocabulary has none */
  gint image, image_start, image_end, thumbnail;
  gboolean use_image_special_tokens;
} VlmChatTokens;

/*
 * Looks every id up by its text and sets use_image_special_tokens to TRUE, which the model's files
 * may then undo. VLM_ERROR_FORMAT names the first token that a chat cannot do without; that is also
 * <image> with need_image. Markers around pictures are missed when a layout asks for them.
 */
gboolean vlm_chat_tokens_init (
    VlmChatTokens *tokens, const VlmTokenizer *tokenizer, gboolean need_image, GError **error);

/*
 * Appends the ids of
 *   BOS [<|im_start|>system\n SYSTEM <|im_end|>\n] <|im_start|>user\n IMAGES PROMPT <|im_end|>\n
 *   <|im_start|>assistant\n
 * to ids (gint32), images expanded by their layouts. Text of the user stays text: it never yields
 * control tokens. Each maximal run of text between control tokens is tokenised as one string.
 * system and prompt may be NULL or empty; invalid UTF-8 becomes U+FFFD.
 * VLM_ERROR_FORMAT when a marker is not in the vocabulary; ids is as before then.
 */
gboolean vlm_chat_build (const VlmTokenizer *tokenizer, const VlmChatTokens *tokens,
    const gchar *system, const gchar *prompt, const VlmLayout *images, guint n_images, GArray *ids,
    GError **error);

#endif
