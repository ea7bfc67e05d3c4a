/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "detokenizer.h"

#include <string.h>

#include "utf8.h"

struct _VlmDetokenizer
{
  VlmTokenizer *tokenizer;
  gboolean skip_special;
  gchar pending[4]; /* the beginning of a character, at most three bytes */
  gsize n_pending;
};

VlmDetokenizer *
vlm_detokenizer_new (VlmTokenizer *tokenizer, gboolean skip_special)
{
  VlmDetokenizer *detokenizer = g_new0 (VlmDetokenizer, 1);

  detokenizer->tokenizer = vlm_tokenizer_ref (tokenizer);
  detokenizer->skip_special = skip_special;
  return detokenizer;
}

void
vlm_detokenizer_free (VlmDetokenizer *detokenizer)
{
  if (detokenizer == NULL)
    return;
  vlm_tokenizer_unref (detokenizer->tokenizer);
  g_free (detokenizer);
}

/* One byte more; a byte that breaks the pending character may itself begin the next one. */
static void
push_byte (VlmDetokenizer *d, gchar byte, GString *text)
{
  gsize size;

  d->pending[d->n_pending++] = byte;
  while (d->n_pending > 0) {
    switch (vlm_utf8_step (d->pending, d->n_pending, &size)) {
      case VLM_UTF8_CUT:
        return;
      case VLM_UTF8_CHARACTER:
        /* Text is handed on as C strings, which U+0000 would end. */
        if (d->pending[0] != '\0') {
          g_string_append_len (text, d->pending, size);
          break;
        }
        /* fall through */
      case VLM_UTF8_INVALID:
        g_string_append (text, VLM_UTF8_REPLACEMENT);
        break;
    }
    d->n_pending -= size;
    memmove (d->pending, d->pending + size, d->n_pending);
  }
}

void
vlm_detokenizer_push (VlmDetokenizer *detokenizer, gint id, GString *text)
{
  const gchar *bytes;
  gsize length, i;

  if (detokenizer->skip_special && vlm_tokenizer_is_special (detokenizer->tokenizer, id))
    return;
  bytes = vlm_tokenizer_get_bytes (detokenizer->tokenizer, id, &length);
  for (i = 0; i < length; i++)
    push_byte (detokenizer, bytes[i], text);
}

void
vlm_detokenizer_finish (VlmDetokenizer *detokenizer, GString *text)
{
  if (detokenizer->n_pending > 0)
    g_string_append (text, VLM_UTF8_REPLACEMENT);
  detokenizer->n_pending = 0;
}
