/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "test-text-toy.h"

#include <string.h>

/*
 * Written from the description of the alphabet, not with the engine's table: printable bytes keep
 * their value, the others follow one another from U+0100.
 */
static gunichar
spell_byte (guint8 byte)
{
  gunichar next = 0x100;
  guint b;

  for (b = 0; b < 256; b++) {
    gboolean printable = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xff && b != 0xad);

    if (b == byte)
      return printable ? b : next;
    if (!printable)
      next++;
  }
  g_assert_not_reached ();
}

gchar *
toy_spell (const gchar *bytes, gsize length)
{
  GString *text = g_string_new (NULL);
  gsize i;

  for (i = 0; i < length; i++)
    g_string_append_unichar (text, spell_byte ((guint8) bytes[i]));
  return g_string_free (text, FALSE);
}

json_t *
toy_new (const gchar *regex)
{
  json_t *vocab = json_object ();
  guint b;

  for (b = 0; b < 256; b++) {
    gchar byte = (gchar) b;
    g_autofree gchar *spelling = toy_spell (&byte, 1);

    json_object_set_new (vocab, spelling, json_integer (b));
  }
  return json_pack (
      "{s:s, s:n, s:n, s:[], s:n, s:{s:s, s:[{s:s, s:{s:s}, s:s, s:b},"
      " {s:s, s:b, s:b, s:b}]}, s:n, s:{s:s}, s:{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o,"
      " s:[]}}",
      "version", "1.0", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
      "type", "Sequence", "pretokenizers", "type", "Split", "pattern", "Regex", regex, "behavior",
      "Isolated", "invert", FALSE, "type", "ByteLevel", "add_prefix_space", FALSE, "trim_offsets",
      TRUE, "use_regex", FALSE, "post_processor", "decoder", "type", "ByteLevel", "model", "type",
      "BPE", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
      FALSE, "byte_fallback", FALSE, "ignore_merges", FALSE, "vocab", vocab, "merges");
}

static json_t *
vocab_of (json_t *toy)
{
  return json_object_get (json_object_get (toy, "model"), "vocab");
}

static gint
next_id (json_t *toy)
{
  return json_object_size (vocab_of (toy))
      + json_array_size (json_object_get (toy, "added_tokens"));
}

gint
toy_add_piece (json_t *toy, const gchar *spelling)
{
  gint id = next_id (toy);

  g_assert_null (json_object_get (vocab_of (toy), spelling));
  json_object_set_new (vocab_of (toy), spelling, json_integer (id));
  return id;
}

gint
toy_add_merge (json_t *toy, const gchar *left, const gchar *right)
{
  json_t *merges = json_object_get (json_object_get (toy, "model"), "merges");
  g_autofree gchar *whole = g_strconcat (left, right, NULL);
  const json_t *known = json_object_get (vocab_of (toy), whole);

  json_array_append_new (merges, json_pack ("[s, s]", left, right));
  return known != NULL ? (gint) json_integer_value (known) : toy_add_piece (toy, whole);
}

gint
toy_add_token (json_t *toy, const gchar *content, gboolean special)
{
  gint id = next_id (toy);

  json_array_append_new (json_object_get (toy, "added_tokens"),
      json_pack ("{s:i, s:s, s:b, s:b, s:b, s:b, s:b}", "id", id, "content", content, "single_word",
          FALSE, "lstrip", FALSE, "rstrip", FALSE, "normalized", FALSE, "special", special));
  return id;
}

json_t *
toy_last_token (json_t *toy)
{
  json_t *added = json_object_get (toy, "added_tokens");

  return json_array_get (added, json_array_size (added) - 1);
}

VlmTokenizer *
toy_load (const json_t *toy, GError **error)
{
  char *text = json_dumps (toy, JSON_COMPACT);
  g_autoptr (GBytes) bytes = g_bytes_new (text, strlen (text));
  VlmTokenizer *tokenizer = vlm_tokenizer_new_from_json (bytes, "toy.json", error);

  free (text);
  return tokenizer;
}

VlmTokenizer *
toy_finish (json_t *toy)
{
  g_autoptr (GError) error = NULL;
  VlmTokenizer *tokenizer = toy_load (toy, &error);

  g_assert_no_error (error);
  g_assert_nonnull (tokenizer);
  json_decref (toy);
  return tokenizer;
}

GArray *
toy_encode (const VlmTokenizer *tokenizer, const gchar *text, gssize length, gboolean added_tokens)
{
  GArray *ids = g_array_new (FALSE, FALSE, sizeof (gint32));

  vlm_tokenizer_encode (tokenizer, text, length, added_tokens, ids);
  return ids;
}

gchar *
toy_print_ids (const GArray *ids)
{
  GString *text = g_string_new (NULL);
  guint i;

  for (i = 0; i < ids->len; i++)
    g_string_append_printf (text, "%s%d", i > 0 ? " " : "", g_array_index (ids, gint32, i));
  return g_string_free (text, FALSE);
}

void
toy_assert_ids (const VlmTokenizer *tokenizer, const gchar *text, gssize length,
    gboolean added_tokens, const gchar *expected)
{
  g_autoptr (GArray) ids = toy_encode (tokenizer, text, length, added_tokens);
  g_autofree gchar *printed = toy_print_ids (ids);

  g_assert_cmpstr (printed, ==, expected);
}
