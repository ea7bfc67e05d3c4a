/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the readers of tokenizer.json's parts share. */

#ifndef VLM_TOKENIZER_JSON_H
#define VLM_TOKENIZER_JSON_H

#include <jansson.h>

#include "tokenizer-private.h"

typedef struct
{
  const gchar *name; /* of the file, for messages */
  VlmTokenizer *tokenizer;
  const json_t *vocabulary; /* model.vocab, borrowed; set by vlm_read_vocabulary () */
  GError **error;
} VlmReader;

/* Sets the error, "NAME: ...", and returns FALSE. */
gboolean vlm_reader_fail (VlmReader *reader, VlmError code, const gchar *format, ...)
    G_GNUC_PRINTF (3, 4);

/* The component field is of a type that is not implemented, or of none. */
gboolean vlm_reader_refuse_component (
    VlmReader *reader, const gchar *field, const json_t *component);

/* At most 40 characters of a string of the file, for messages. (transfer full) */
gchar *vlm_reader_excerpt (const gchar *text);

/* object's "type" equals type */
gboolean vlm_reader_is_type (const json_t *object, const gchar *type);

/* Reads a truth value that may be missing or null; then value stays as it is. */
gboolean vlm_reader_get_boolean (
    VlmReader *reader, const json_t *object, const gchar *field, const gchar *key, gboolean *value);

/* The id of a piece in model.vocab, or -1. */
gint vlm_reader_find_piece (const VlmReader *reader, const gchar *piece);

/* tokenizer-json-model.c: in this order */
gboolean vlm_read_vocabulary (VlmReader *reader, const json_t *root, const json_t *model);
gboolean vlm_read_added_tokens (VlmReader *reader, const json_t *root);
gboolean vlm_read_model (VlmReader *reader, const json_t *model);

/* tokenizer-json-pipeline.c */
gboolean vlm_read_normalizer (VlmReader *reader, const json_t *normalizer);
gboolean vlm_read_pre_tokenizer (VlmReader *reader, const json_t *pre_tokenizer);
gboolean vlm_read_post_processor (VlmReader *reader, const json_t *post_processor);
gboolean vlm_read_decoder (VlmReader *reader, const json_t *decoder);

#endif
