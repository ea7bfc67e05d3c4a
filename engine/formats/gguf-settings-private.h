/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the makers of settings share. */

#ifndef VLM_GGUF_SETTINGS_PRIVATE_H
#define VLM_GGUF_SETTINGS_PRIVATE_H

#include <jansson.h>

#include "engine/vlm.h"
#include "gguf-settings.h"

#define VLM_GGUF_ARCHITECTURE "general.architecture"
#define VLM_GGUF_WIDTH "lfm2.embedding_length"
#define VLM_GGUF_LAYERS "lfm2.block_count"
#define VLM_GGUF_MODEL "tokenizer.ggml.model"
#define VLM_GGUF_TOKENS "tokenizer.ggml.tokens"
#define VLM_GGUF_TEMPLATE "tokenizer.chat_template"
#define VLM_GGUF_EMBEDDING "token_embd.weight"

/* Sets the error, "PATH: ...", and returns FALSE. */
gboolean vlm_gguf_fail (GError **error, VlmError code, const VlmGguf *gguf, const gchar *format,
    ...) G_GNUC_PRINTF (4, 5);

/* The getters of gguf.h for keys that must be there; expected, for messages, says what that is. */
gboolean vlm_gguf_require (
    const VlmGguf *gguf, const gchar *key, const gchar *expected, GError **error);
gboolean vlm_gguf_require_uint (
    const VlmGguf *gguf, const gchar *key, guint min, guint max, guint *value, GError **error);
gboolean vlm_gguf_require_double (const VlmGguf *gguf, const gchar *key, gdouble min, gdouble max,
    gdouble *value, GError **error);
/* Must be this string, or one that there is no support for. */
gboolean vlm_gguf_require_name (
    const VlmGguf *gguf, const gchar *key, const gchar *name, GError **error);

/* An integer that may be absent. */
gboolean vlm_gguf_get_small (
    const VlmGguf *gguf, const gchar *key, guint min, guint max, guint *value, GError **error);

/* The vocabulary, of at least one token. */
gboolean vlm_gguf_require_tokens (const VlmGguf *gguf, const VlmGgufValue **tokens, GError **error);

/* A tensor that must be there, with n sides of at least 1; sides that it does not state are 1. */
gboolean vlm_gguf_require_dims (
    const VlmGguf *gguf, const gchar *name, guint n, guint64 *dims, GError **error);

/*
 * A number that was a float, as the decimal number that somebody wrote: the shortest that is this
 * float again. 0.1, and not 0.10000000149011612.
 */
gdouble vlm_gguf_shorten (gdouble value);

/* The objects; NULL with an error. (transfer full) */
json_t *vlm_gguf_make_config (const VlmGguf *text, const VlmGguf *mmproj, GError **error);
json_t *vlm_gguf_make_generation (const VlmGguf *text, GError **error);
json_t *vlm_gguf_make_tokenizer_config (const VlmGguf *text, GError **error);
json_t *vlm_gguf_make_processor (const VlmGguf *text, const VlmGguf *mmproj, GError **error);
/* Adds vision_config and what concerns the projector to config. */
gboolean vlm_gguf_add_vision (
    json_t *config, const VlmGguf *text, const VlmGguf *mmproj, GError **error);

/* tokenizer.json as text; NULL with an error. (transfer full) */
GString *vlm_gguf_make_tokenizer (const VlmGguf *text, GError **error);

/* The id of the token that is spelled so, or -1. */
gint64 vlm_gguf_find_token (const VlmGguf *text, const gchar *spelling);
/* The text of a token, (transfer full); NULL with an error when it is not valid. */
gchar *vlm_gguf_get_token (const VlmGguf *text, guint id, GError **error);

#endif
