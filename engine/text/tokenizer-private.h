/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a tokenizer is made of: filled by the readers of files, used by the encoder. */

#ifndef VLM_TOKENIZER_PRIVATE_H
#define VLM_TOKENIZER_PRIVATE_H

#include "added.h"
#include "merges.h"
#include "tokenizer.h"

typedef struct
{
  const gchar *bytes; /* what the id stands for in text; NULL: unused. In strings */
  gsize length;
  gboolean special;
} VlmToken;

/* A literal replacement of the normalizer. */
typedef struct
{
  gchar *from, *to;
} VlmReplacement;

struct _VlmTokenizer
{
  gatomicrefcount references;
  GStringChunk *strings;  /* keys of both tables, bytes of the tokens */
  GHashTable *vocabulary; /* text in the byte alphabet -> id */
  GHashTable *added_ids;  /* text of added tokens -> id */
  VlmToken *tokens;
  guint size;

  gint byte_ids[256];     /* of the pieces of one byte; -1: none */
  gint unknown_id;        /* stands for bytes without a piece; -1: they vanish */
  gboolean fuse_unknown;  /* one unknown_id for neighbouring bytes */
  gboolean ignore_merges; /* a piece that is in the vocabulary is not taken apart */
  VlmMerges *merges;

  GArray *replacements;       /* VlmReplacement, applied one after the other */
  GPtrArray *patterns;        /* VlmPattern of the pre-tokenizer, in order */
  VlmAdded *added;            /* looked for in the text as it came */
  VlmAdded *added_normalized; /* looked for once the text is normalised */
};

/* An empty tokenizer; the reader fills it before anybody else sees it. */
VlmTokenizer *vlm_tokenizer_new (void);

/* text with the replacements of the normalizer made; NULL when there are none to make. */
gchar *vlm_tokenizer_normalize (
    const VlmTokenizer *tokenizer, const gchar *text, gsize length, gsize *new_length);

#endif
