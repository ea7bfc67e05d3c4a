/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* memmem () */
#define _GNU_SOURCE

#include "tokenizer.h"

#include <string.h>
#include <xxhash.h>

#include "alphabet.h"
#include "detokenizer.h"
#include "pattern.h"
#include "tokenizer-private.h"
#include "utf8.h"

/* One call of the encoder. */
typedef struct
{
  const VlmTokenizer *tokenizer;
  VlmWord word;
  GString *spelling;      /* of one piece, in the byte alphabet */
  GArray *pieces, *finer; /* VlmPiece */
  GArray *ids;            /* where the result goes */
} Encoder;

static void
clear_replacement (gpointer data)
{
  VlmReplacement *replacement = data;

  g_free (replacement->from);
  g_free (replacement->to);
}

/* With a seed of this process, which keeps a file from choosing words that all meet in one place. */
static guint
hash_text (gconstpointer text)
{
  static gsize seed = 0;

  if (g_once_init_enter (&seed))
    g_once_init_leave (&seed, g_random_int () | 1);
  return (guint) XXH3_64bits_withSeed (text, strlen (text), seed);
}

VlmTokenizer *
vlm_tokenizer_new (void)
{
  VlmTokenizer *tokenizer = g_new0 (VlmTokenizer, 1);

  g_atomic_ref_count_init (&tokenizer->references);
  tokenizer->strings = g_string_chunk_new (4096);
  tokenizer->vocabulary = g_hash_table_new (hash_text, g_str_equal);
  tokenizer->added_ids = g_hash_table_new (hash_text, g_str_equal);
  tokenizer->replacements = g_array_new (FALSE, FALSE, sizeof (VlmReplacement));
  g_array_set_clear_func (tokenizer->replacements, clear_replacement);
  tokenizer->patterns = g_ptr_array_new_with_free_func ((GDestroyNotify) vlm_pattern_free);
  tokenizer->added = vlm_added_new ();
  tokenizer->added_normalized = vlm_added_new ();
  tokenizer->unknown_id = -1;
  return tokenizer;
}

VlmTokenizer *
vlm_tokenizer_ref (VlmTokenizer *tokenizer)
{
  g_atomic_ref_count_inc (&tokenizer->references);
  return tokenizer;
}

void
vlm_tokenizer_unref (VlmTokenizer *tokenizer)
{
  if (tokenizer == NULL || !g_atomic_ref_count_dec (&tokenizer->references))
    return;
  g_hash_table_unref (tokenizer->vocabulary);
  g_hash_table_unref (tokenizer->added_ids);
  g_string_chunk_free (tokenizer->strings);
  g_free (tokenizer->tokens);
  vlm_merges_free (tokenizer->merges);
  g_array_unref (tokenizer->replacements);
  g_ptr_array_unref (tokenizer->patterns);
  vlm_added_free (tokenizer->added);
  vlm_added_free (tokenizer->added_normalized);
  g_free (tokenizer);
}

guint
vlm_tokenizer_get_size (const VlmTokenizer *tokenizer)
{
  return tokenizer->size;
}

gint
vlm_tokenizer_lookup (const VlmTokenizer *tokenizer, const gchar *text)
{
  gpointer id;

  if (g_hash_table_lookup_extended (tokenizer->added_ids, text, NULL, &id)
      || g_hash_table_lookup_extended (tokenizer->vocabulary, text, NULL, &id))
    return GPOINTER_TO_INT (id);
  return -1;
}

const gchar *
vlm_tokenizer_get_bytes (const VlmTokenizer *tokenizer, gint id, gsize *length)
{
  if (id < 0 || (guint) id >= tokenizer->size || tokenizer->tokens[id].bytes == NULL) {
    *length = 0;
    return NULL;
  }
  *length = tokenizer->tokens[id].length;
  return tokenizer->tokens[id].bytes;
}

gboolean
vlm_tokenizer_is_special (const VlmTokenizer *tokenizer, gint id)
{
  return id >= 0 && (guint) id < tokenizer->size && tokenizer->tokens[id].special;
}

gchar *
vlm_tokenizer_normalize (
    const VlmTokenizer *tokenizer, const gchar *text, gsize length, gsize *new_length)
{
  GString *from, *to;
  guint i;

  if (tokenizer->replacements->len == 0)
    return NULL;
  from = g_string_new_len (text, length);
  to = g_string_sized_new (length);
  for (i = 0; i < tokenizer->replacements->len; i++) {
    const VlmReplacement *r = &g_array_index (tokenizer->replacements, VlmReplacement, i);
    gsize n = strlen (r->from), done = 0;
    const gchar *found;
    GString *old = from;

    g_string_truncate (to, 0);
    while ((found = memmem (from->str + done, from->len - done, r->from, n)) != NULL) {
      g_string_append_len (to, from->str + done, found - from->str - done);
      g_string_append (to, r->to);
      done = found - from->str + n;
    }
    g_string_append_len (to, from->str + done, from->len - done);
    from = to;
    to = old;
  }
  *new_length = from->len;
  g_string_free (to, TRUE);
  return g_string_free (from, FALSE);
}

/* Fills the word with the pieces of single bytes. */
static void
start_word (Encoder *e, const gchar *bytes, gsize length)
{
  const VlmTokenizer *t = e->tokenizer;
  gboolean after_unknown = FALSE;
  gsize i;
  gint id;

  vlm_word_reset (&e->word);
  for (i = 0; i < length; i++) {
    id = t->byte_ids[(guint8) bytes[i]];
    if (id >= 0)
      vlm_word_append (&e->word, id);
    else if (t->unknown_id >= 0 && !(t->fuse_unknown && after_unknown))
      vlm_word_append (&e->word, t->unknown_id);
    after_unknown = id < 0;
  }
}

static void
encode_piece (Encoder *e, const gchar *bytes, gsize length)
{
  gpointer found;
  gint id;

  if (e->tokenizer->ignore_merges) {
    g_string_truncate (e->spelling, 0);
    vlm_alphabet_spell (e->spelling, bytes, length);
    if (g_hash_table_lookup_extended (e->tokenizer->vocabulary, e->spelling->str, NULL, &found)) {
      id = GPOINTER_TO_INT (found);
      if (!vlm_tokenizer_is_special (e->tokenizer, id)) {
        g_array_append_val (e->ids, id);
        return;
      }
    }
  }
  start_word (e, bytes, length);
  vlm_word_merge (&e->word, e->tokenizer->merges, e->ids);
}

/* Text that is normalised and holds no added tokens. */
static void
encode_plain (Encoder *e, const gchar *text, gsize length)
{
  VlmPiece whole = { 0, length };
  GArray *swap;
  guint i;

  g_array_set_size (e->pieces, 0);
  g_array_append_val (e->pieces, whole);
  for (i = 0; i < e->tokenizer->patterns->len; i++) {
    g_array_set_size (e->finer, 0);
    vlm_pattern_split (g_ptr_array_index (e->tokenizer->patterns, i), text,
        (const VlmPiece *) (gconstpointer) e->pieces->data, e->pieces->len, e->finer);
    swap = e->pieces;
    e->pieces = e->finer;
    e->finer = swap;
  }
  for (i = 0; i < e->pieces->len; i++) {
    const VlmPiece *piece = &g_array_index (e->pieces, VlmPiece, i);

    encode_piece (e, text + piece->start, piece->length);
  }
}

/* Text between added tokens that were found before normalising; added as in the public call. */
static void
encode_raw (Encoder *e, const gchar *text, gsize length, gboolean added)
{
  gsize new_length = length;
  g_autofree gchar *normalized = vlm_tokenizer_normalize (e->tokenizer, text, length, &new_length);
  g_autoptr (GArray) segments = NULL;
  guint i;

  if (normalized != NULL)
    text = normalized;
  if (!added) {
    encode_plain (e, text, new_length);
    return;
  }
  segments = g_array_new (FALSE, FALSE, sizeof (VlmSegment));
  vlm_added_split (e->tokenizer->added_normalized, text, new_length, segments);
  for (i = 0; i < segments->len; i++) {
    const VlmSegment *segment = &g_array_index (segments, VlmSegment, i);

    if (segment->id >= 0)
      g_array_append_val (e->ids, segment->id);
    else
      encode_plain (e, text + segment->start, segment->length);
  }
}

static void
encode_segments (Encoder *e, const gchar *text, gsize length)
{
  g_autoptr (GArray) segments = g_array_new (FALSE, FALSE, sizeof (VlmSegment));
  guint i;

  vlm_added_split (e->tokenizer->added, text, length, segments);
  for (i = 0; i < segments->len; i++) {
    const VlmSegment *segment = &g_array_index (segments, VlmSegment, i);

    if (segment->id >= 0)
      g_array_append_val (e->ids, segment->id);
    else
      encode_raw (e, text + segment->start, segment->length, TRUE);
  }
}

void
vlm_tokenizer_encode (const VlmTokenizer *tokenizer, const gchar *text, gssize length,
    gboolean added_tokens, GArray *ids)
{
  Encoder e = { .tokenizer = tokenizer };
  GString *valid;

  g_return_if_fail (text != NULL || length == 0);
  if (length < 0)
    length = strlen (text);
  if (length == 0)
    return;
  /* Positions within a word are 32 bits wide; U+FFFD and replacements may make text longer. */
  g_return_if_fail (length <= G_MAXINT / 32);

  valid = g_string_sized_new (length);
  vlm_utf8_append_lossy (valid, text, length);
  vlm_word_init (&e.word);
  e.spelling = g_string_new (NULL);
  e.pieces = g_array_new (FALSE, FALSE, sizeof (VlmPiece));
  e.finer = g_array_new (FALSE, FALSE, sizeof (VlmPiece));
  e.ids = ids;
  if (added_tokens)
    encode_segments (&e, valid->str, valid->len);
  else
    encode_raw (&e, valid->str, valid->len, FALSE);
  vlm_word_clear (&e.word);
  g_string_free (e.spelling, TRUE);
  g_array_unref (e.pieces);
  g_array_unref (e.finer);
  g_string_free (valid, TRUE);
}

gchar *
vlm_tokenizer_decode (
    const VlmTokenizer *tokenizer, const gint32 *ids, gsize n_ids, gboolean skip_special)
{
  /* Only the count of references changes. */
  VlmDetokenizer *detokenizer = vlm_detokenizer_new ((VlmTokenizer *) tokenizer, skip_special);
  GString *text = g_string_new (NULL);
  gsize i;

  for (i = 0; i < n_ids; i++)
    vlm_detokenizer_push (detokenizer, ids[i], text);
  vlm_detokenizer_finish (detokenizer, text);
  vlm_detokenizer_free (detokenizer);
  return g_string_free (text, FALSE);
}
