/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Byte-level BPE as tokenizer.json describes it. Immutable once made; safe from any thread. */

#ifndef VLM_TOKENIZER_H
#define VLM_TOKENIZER_H

#include "engine/vlm.h"

/*
 * Makes a tokenizer from the bytes of tokenizer.json. name is used in messages.
 * VLM_ERROR_FORMAT for damaged files, VLM_ERROR_UNSUPPORTED naming a component that is not
 * implemented. A merge that would make a special token is left out, so that plain text can never
 * become one.
 */
VlmTokenizer *vlm_tokenizer_new_from_json (GBytes *json, const gchar *name, GError **error);

/* The id of a token by its text (an added token's content, or a vocabulary entry), or -1. */
gint vlm_tokenizer_lookup (const VlmTokenizer *tokenizer, const gchar *text);

/*
 * Raw bytes that id stands for (added tokens that are not in the vocabulary: their content,
 * normalised where their flag says so); NULL for an unused id.
 */
const gchar *vlm_tokenizer_get_bytes (const VlmTokenizer *tokenizer, gint id, gsize *length);

/* Whether id is an added token marked special. */
gboolean vlm_tokenizer_is_special (const VlmTokenizer *tokenizer, gint id);

#endif
