/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Vocabulary, added tokens and merges of tokenizer.json. */

#include "tokenizer-json.h"

#include <string.h>

#include "alphabet.h"

/* Ids are dense in every real file: these bound the table by what the file holds. */
#define MAX_ID (1 << 22)
#define IDS_PER_ENTRY 4
#define SPARE_IDS 65536

static gboolean
check_id (VlmReader *reader, const json_t *id, gsize n_entries, const gchar *text)
{
  json_int_t limit = MIN (MAX_ID, (json_int_t) n_entries * IDS_PER_ENTRY + SPARE_IDS);
  g_autofree gchar *excerpt = vlm_reader_excerpt (text);

  if (!json_is_integer (id))
    return vlm_reader_fail (
        reader, VLM_ERROR_FORMAT, "the id of \"%s\" is not an integer", excerpt);
  if (json_integer_value (id) < 0 || json_integer_value (id) >= limit)
    return vlm_reader_fail (reader, VLM_ERROR_FORMAT,
        "the id of \"%s\" is %" JSON_INTEGER_FORMAT ", expected 0..%" JSON_INTEGER_FORMAT
        " with %" G_GSIZE_FORMAT " tokens",
        excerpt, json_integer_value (id), limit - 1, n_entries);
  return TRUE;
}

/* The largest id + 1 decides the size of the table; every id is looked at first. */
static gboolean
measure_ids (VlmReader *reader, const json_t *added)
{
  gsize n_entries = json_object_size (reader->vocabulary) + json_array_size (added), i;
  json_int_t size = 0;
  const gchar *text;
  json_t *id;

  json_object_foreach ((json_t *) reader->vocabulary, text, id) {
    if (!check_id (reader, id, n_entries, text))
      return FALSE;
    size = MAX (size, json_integer_value (id) + 1);
  }
  for (i = 0; i < json_array_size (added); i++) {
    const json_t *token = json_array_get (added, i);
    const json_t *content = json_object_get (token, "content");

    if (!json_is_string (content) || json_string_length (content) == 0)
      return vlm_reader_fail (reader, VLM_ERROR_FORMAT,
          "added_tokens[%" G_GSIZE_FORMAT "].content is not a string, or empty", i);
    if (!check_id (reader, json_object_get (token, "id"), n_entries, json_string_value (content)))
      return FALSE;
    size = MAX (size, json_integer_value (json_object_get (token, "id")) + 1);
  }
  reader->tokenizer->size = size;
  reader->tokenizer->tokens = g_try_new0 (VlmToken, MAX (size, 1));
  if (reader->tokenizer->tokens == NULL)
    return vlm_reader_fail (
        reader, VLM_ERROR_MEMORY, "no memory for a table of %" JSON_INTEGER_FORMAT " tokens", size);
  return TRUE;
}

gboolean
vlm_read_vocabulary (VlmReader *reader, const json_t *root, const json_t *model)
{
  const json_t *added = json_object_get (root, "added_tokens");
  VlmTokenizer *t = reader->tokenizer;
  g_autoptr (GString) bytes = g_string_new (NULL);
  const gchar *piece;
  VlmToken *token;
  json_t *id;

  reader->vocabulary = json_object_get (model, "vocab");
  if (!json_is_object (reader->vocabulary))
    return vlm_reader_fail (reader, VLM_ERROR_FORMAT, "model.vocab is not an object");
  if (added != NULL && !json_is_null (added) && !json_is_array (added))
    return vlm_reader_fail (reader, VLM_ERROR_FORMAT, "added_tokens is not a list");
  if (!measure_ids (reader, added))
    return FALSE;
  json_object_foreach ((json_t *) reader->vocabulary, piece, id) {
    token = &t->tokens[json_integer_value (id)];
    if (token->bytes != NULL) {
      g_autofree gchar *excerpt = vlm_reader_excerpt (piece);

      return vlm_reader_fail (reader, VLM_ERROR_FORMAT,
          "id %" JSON_INTEGER_FORMAT " of \"%s\" is in model.vocab twice", json_integer_value (id),
          excerpt);
    }
    /* Like the reference: what is not spelled in the byte alphabet stands for itself. */
    if (!vlm_alphabet_read (bytes, piece))
      g_string_assign (bytes, piece);
    token->bytes = g_string_chunk_insert_len (t->strings, bytes->str, bytes->len);
    token->length = bytes->len;
    g_hash_table_insert (t->vocabulary, g_string_chunk_insert (t->strings, piece),
        GINT_TO_POINTER ((gint) json_integer_value (id)));
  }
  return TRUE;
}

static gboolean
read_flags (VlmReader *reader, const json_t *object, VlmAddedToken *token, gboolean *normalized,
    gboolean *special)
{
  static const gchar field[] = "added_tokens";

  token->single_word = token->lstrip = token->rstrip = *special = FALSE;
  if (!vlm_reader_get_boolean (reader, object, field, "special", special))
    return FALSE;
  *normalized = !*special;
  return vlm_reader_get_boolean (reader, object, field, "normalized", normalized)
      && vlm_reader_get_boolean (reader, object, field, "single_word", &token->single_word)
      && vlm_reader_get_boolean (reader, object, field, "lstrip", &token->lstrip)
      && vlm_reader_get_boolean (reader, object, field, "rstrip", &token->rstrip);
}

/* An added token may repeat an entry of the vocabulary, id and all, but contradict none. */
static gboolean
check_added (VlmReader *reader, const gchar *content, gint id)
{
  gint piece_id = vlm_reader_find_piece (reader, content);
  g_autofree gchar *excerpt = vlm_reader_excerpt (content);

  if (g_hash_table_contains (reader->tokenizer->added_ids, content))
    return vlm_reader_fail (reader, VLM_ERROR_FORMAT, "\"%s\" is in added_tokens twice", excerpt);
  if (piece_id >= 0 && piece_id != id)
    return vlm_reader_fail (reader, VLM_ERROR_FORMAT,
        "\"%s\" has id %d in added_tokens and %d in model.vocab", excerpt, id, piece_id);
  if (piece_id < 0 && reader->tokenizer->tokens[id].bytes != NULL)
    return vlm_reader_fail (reader, VLM_ERROR_FORMAT,
        "id %d of \"%s\" in added_tokens belongs to another token", id, excerpt);
  return TRUE;
}

static gboolean
read_added_token (VlmReader *reader, const json_t *object)
{
  VlmTokenizer *t = reader->tokenizer;
  const gchar *content = json_string_value (json_object_get (object, "content"));
  g_autofree gchar *normal = NULL;
  VlmAddedToken token;
  gboolean normalized, special;
  gsize length;

  token.id = json_integer_value (json_object_get (object, "id"));
  if (!check_added (reader, content, token.id)
      || !read_flags (reader, object, &token, &normalized, &special))
    return FALSE;
  normal = normalized ? vlm_tokenizer_normalize (t, content, strlen (content), &length) : NULL;
  if (normal == NULL)
    normal = g_strdup (content);
  /* An entry of the vocabulary stays what it is; else the spelling that is looked for is it. */
  if (vlm_reader_find_piece (reader, content) < 0 || strcmp (normal, content) != 0) {
    t->tokens[token.id].bytes = g_string_chunk_insert (t->strings, normal);
    t->tokens[token.id].length = strlen (normal);
  }
  t->tokens[token.id].special = special;
  g_hash_table_insert (
      t->added_ids, g_string_chunk_insert (t->strings, content), GINT_TO_POINTER (token.id));
  if (*normal != '\0')
    vlm_added_insert (normalized ? t->added_normalized : t->added, normal, &token);
  return TRUE;
}

/* Special tokens go first: of two normalized ones that are spelled alike, the first counts. */
gboolean
vlm_read_added_tokens (VlmReader *reader, const json_t *root)
{
  const json_t *added = json_object_get (root, "added_tokens"), *token;
  gboolean special;
  gint pass;
  gsize i;

  for (pass = 0; pass < 2; pass++) {
    for (i = 0; i < json_array_size (added); i++) {
      token = json_array_get (added, i);
      special = FALSE;
      if (!vlm_reader_get_boolean (reader, token, "added_tokens", "special", &special))
        return FALSE;
      if (special == (pass == 0) && !read_added_token (reader, token))
        return FALSE;
    }
  }
  vlm_added_finish (reader->tokenizer->added);
  vlm_added_finish (reader->tokenizer->added_normalized);
  return TRUE;
}

static gboolean
read_byte_ids (VlmReader *reader)
{
  gchar spelling[8];
  gint byte, id;

  for (byte = 0; byte < 256; byte++) {
    spelling[g_unichar_to_utf8 (vlm_alphabet_character (byte), spelling)] = '\0';
    id = vlm_reader_find_piece (reader, spelling);
    if (vlm_tokenizer_is_special (reader->tokenizer, id))
      return vlm_reader_fail (reader, VLM_ERROR_UNSUPPORTED,
          "the special token \"%s\" is the piece of byte %d as well", spelling, byte);
    reader->tokenizer->byte_ids[byte] = id;
  }
  return TRUE;
}

/* Settings of model that may only have the value they have when missing. */
static gboolean
check_settings (VlmReader *reader, const json_t *model)
{
  static const gchar *const affixes[] = { "continuing_subword_prefix", "end_of_word_suffix" };
  const json_t *dropout = json_object_get (model, "dropout");
  gboolean byte_fallback = FALSE;
  guint i;

  if (!vlm_reader_get_boolean (reader, model, "model", "byte_fallback", &byte_fallback))
    return FALSE;
  if (byte_fallback)
    return vlm_reader_fail (
        reader, VLM_ERROR_UNSUPPORTED, "model.byte_fallback is not implemented");
  if (dropout != NULL && !json_is_null (dropout)
      && !(json_is_number (dropout) && json_number_value (dropout) == 0))
    return vlm_reader_fail (reader, VLM_ERROR_UNSUPPORTED, "model.dropout is not implemented");
  for (i = 0; i < G_N_ELEMENTS (affixes); i++) {
    const json_t *affix = json_object_get (model, affixes[i]);

    if (affix != NULL && !json_is_null (affix)
        && !(json_is_string (affix) && json_string_length (affix) == 0))
      return vlm_reader_fail (
          reader, VLM_ERROR_UNSUPPORTED, "model.%s is not implemented", affixes[i]);
  }
  return TRUE;
}

static gboolean
read_unknown (VlmReader *reader, const json_t *model)
{
  const json_t *token = json_object_get (model, "unk_token");
  g_autofree gchar *excerpt = NULL;

  if (token == NULL || json_is_null (token))
    return TRUE;
  if (!json_is_string (token))
    return vlm_reader_fail (reader, VLM_ERROR_FORMAT, "model.unk_token is not a string");
  reader->tokenizer->unknown_id = vlm_reader_find_piece (reader, json_string_value (token));
  if (reader->tokenizer->unknown_id >= 0)
    return TRUE;
  excerpt = vlm_reader_excerpt (json_string_value (token));
  return vlm_reader_fail (
      reader, VLM_ERROR_FORMAT, "model.unk_token \"%s\" is not in model.vocab", excerpt);
}

/* Both forms of a merge: ["a", "b"] and "a b". */
static gboolean
split_merge (const json_t *merge, gchar **left, gchar **right)
{
  const gchar *text = json_string_value (merge), *space;

  if (json_is_array (merge)) {
    const json_t *first = json_array_get (merge, 0), *second = json_array_get (merge, 1);

    if (json_array_size (merge) != 2 || !json_is_string (first) || !json_is_string (second))
      return FALSE;
    *left = g_strdup (json_string_value (first));
    *right = g_strdup (json_string_value (second));
    return TRUE;
  }
  space = text != NULL ? strchr (text, ' ') : NULL;
  if (space == NULL || strchr (space + 1, ' ') != NULL)
    return FALSE;
  *left = g_strndup (text, space - text);
  *right = g_strdup (space + 1);
  return TRUE;
}

static gboolean
read_merge (VlmReader *reader, const json_t *merge, guint rank)
{
  g_autofree gchar *left = NULL, *right = NULL, *whole = NULL, *excerpt = NULL;
  const gchar *missing = NULL;
  gint left_id, right_id, id;

  if (!split_merge (merge, &left, &right))
    return vlm_reader_fail (
        reader, VLM_ERROR_FORMAT, "model.merges[%u] is no pair of pieces", rank);
  whole = g_strconcat (left, right, NULL);
  left_id = vlm_reader_find_piece (reader, left);
  right_id = vlm_reader_find_piece (reader, right);
  id = vlm_reader_find_piece (reader, whole);
  if (left_id < 0)
    missing = left;
  else if (right_id < 0)
    missing = right;
  else if (id < 0)
    missing = whole;
  if (missing != NULL) {
    excerpt = vlm_reader_excerpt (missing);
    return vlm_reader_fail (
        reader, VLM_ERROR_FORMAT, "model.merges[%u]: \"%s\" is not in model.vocab", rank, excerpt);
  }
  /* Plain text must not grow into a control token, whatever the merges say. */
  if (!vlm_tokenizer_is_special (reader->tokenizer, id))
    vlm_merges_add (reader->tokenizer->merges, left_id, right_id, rank, id);
  return TRUE;
}

gboolean
vlm_read_model (VlmReader *reader, const json_t *model)
{
  const json_t *merges = json_object_get (model, "merges");
  VlmTokenizer *t = reader->tokenizer;
  gsize i;

  if (!check_settings (reader, model) || !read_unknown (reader, model)
      || !vlm_reader_get_boolean (reader, model, "model", "fuse_unk", &t->fuse_unknown)
      || !vlm_reader_get_boolean (reader, model, "model", "ignore_merges", &t->ignore_merges)
      || !read_byte_ids (reader))
    return FALSE;
  if (!json_is_array (merges))
    return vlm_reader_fail (reader, VLM_ERROR_FORMAT, "model.merges is not a list");
  t->merges = vlm_merges_new (json_array_size (merges));
  if (t->merges == NULL)
    return vlm_reader_fail (reader, VLM_ERROR_MEMORY, "no memory for %" G_GSIZE_FORMAT " merges",
        json_array_size (merges));
  for (i = 0; i < json_array_size (merges); i++) {
    if (!read_merge (reader, json_array_get (merges, i), i))
      return FALSE;
  }
  return TRUE;
}
