/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A small tokenizer.json made on the spot: what the tests of text share. */

#ifndef TEST_TEXT_TOY_H
#define TEST_TEXT_TOY_H

#include <jansson.h>

#include "engine/text/tokenizer.h"

/* The pre-tokenizer's regex of the LFM2 vocabulary with 65536 entries. */
#define TOY_REGEX                                                                                  \
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"                         \
  "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* And of the one with 128k. */
#define TOY_REGEX_128K                                                                             \
  "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"                                \
  "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"

/* The ids of bytes are their values; what is added afterwards counts on from here. */
#define TOY_FIRST_ID 256

/* A whole tokenizer.json: the pieces of the 256 bytes, no merges, no added tokens. */
json_t *toy_new (const gchar *regex);

/* A vocabulary entry spelled in the byte alphabet; returns its id. */
gint toy_add_piece (json_t *toy, const gchar *spelling);

/* A merge of two entries, and the entry it makes when there is none yet; returns that one's id. */
gint toy_add_merge (json_t *toy, const gchar *left, const gchar *right);

/* An added token without flags, special or not; returns its id. */
gint toy_add_token (json_t *toy, const gchar *content, gboolean special);

/* The object of the added token that came last. (transfer none) */
json_t *toy_last_token (json_t *toy);

/* length bytes in the byte alphabet */
gchar *toy_spell (const gchar *bytes, gsize length);

VlmTokenizer *toy_load (const json_t *toy, GError **error);

/* Loads and lets go of the file; any error is a failure of the test. */
VlmTokenizer *toy_finish (json_t *toy);

GArray *toy_encode (
    const VlmTokenizer *tokenizer, const gchar *text, gssize length, gboolean added_tokens);

/* The ids of text are those of expected, given as "1 2 3". */
void toy_assert_ids (const VlmTokenizer *tokenizer, const gchar *text, gssize length,
    gboolean added_tokens, const gchar *expected);

gchar *toy_print_ids (const GArray *ids);

#endif
