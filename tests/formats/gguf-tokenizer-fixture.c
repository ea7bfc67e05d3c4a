/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "gguf-tokenizer-fixture.h"

enum
{
  NORMAL = 1,
  CONTROL = 3,
  USER_DEFINED = 4,
  UNUSED = 5,
};

static void
set_token (GPtrArray *tokens, GArray *types, gsize id, const gchar *text, gint32 type)
{
  while (tokens->len <= id) {
    gint32 unused = UNUSED;

    g_ptr_array_add (tokens, g_strdup_printf ("[UNUSED%u]", tokens->len));
    g_array_append_val (types, unused);
  }
  g_free (g_ptr_array_index (tokens, id));
  g_ptr_array_index (tokens, id) = g_strdup (text);
  g_array_index (types, gint32, id) = type;
}

static void
put_tokens (GgufWriter *writer, const json_t *tokenizer)
{
  json_t *vocab = json_object_get (json_object_get (tokenizer, "model"), "vocab");
  json_t *added = json_object_get (tokenizer, "added_tokens");
  GPtrArray *tokens = g_ptr_array_new_with_free_func (g_free);
  GArray *types = g_array_new (FALSE, FALSE, sizeof (gint32));
  const gchar *text;
  json_t *token;
  gsize i;

  json_object_foreach (vocab, text, token)
    set_token (tokens, types, json_integer_value (token), text, NORMAL);
  json_array_foreach (added, i, token) {
    set_token (tokens, types, json_integer_value (json_object_get (token, "id")),
        json_string_value (json_object_get (token, "content")),
        json_is_true (json_object_get (token, "special")) ? CONTROL : USER_DEFINED);
  }
  gguf_put_strings (
      writer, "tokenizer.ggml.tokens", (const gchar *const *) tokens->pdata, tokens->len);
  gguf_put_i32s (
      writer, "tokenizer.ggml.token_type", (const gint32 *) (gpointer) types->data, types->len);
  g_ptr_array_unref (tokens);
  g_array_unref (types);
}

static void
put_merges (GgufWriter *writer, const json_t *tokenizer)
{
  json_t *list = json_object_get (json_object_get (tokenizer, "model"), "merges"), *merge;
  GPtrArray *merges = g_ptr_array_new_with_free_func (g_free);
  gsize i;

  json_array_foreach (list, i, merge) {
    g_ptr_array_add (merges,
        json_is_string (merge)
            ? g_strdup (json_string_value (merge))
            : g_strdup_printf ("%s %s", json_string_value (json_array_get (merge, 0)),
                json_string_value (json_array_get (merge, 1))));
  }
  gguf_put_strings (
      writer, "tokenizer.ggml.merges", (const gchar *const *) merges->pdata, merges->len);
  g_ptr_array_unref (merges);
}

void
gguf_put_tokenizer (GgufWriter *writer, const json_t *tokenizer)
{
  gguf_put_string (writer, "tokenizer.ggml.model", "gpt2");
  gguf_put_string (writer, "tokenizer.ggml.pre", "lfm2");
  put_tokens (writer, tokenizer);
  put_merges (writer, tokenizer);
}
