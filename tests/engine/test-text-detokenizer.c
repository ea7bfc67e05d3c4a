/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Ids to text: whole, in a stream, and with bytes that are no UTF-8. */

#include <string.h>

#include "engine/text/detokenizer.h"
#include "test-text-toy.h"

#define REPLACEMENT "\357\277\275"

/*
 * How many bytes of p begin a character that other bytes could end, by trying: a prefix counts when
 * some choice of continuation bytes at the edges of their ranges makes it valid.
 */
static gboolean
can_become_character (const gchar *p, gsize length)
{
  static const gchar trail[] = { '\200', '\217', '\220', '\237', '\240', '\277' };
  gchar whole[4];
  guint i, n_missing, code, choices;

  for (n_missing = 0; length + n_missing <= 4; n_missing++) {
    choices = n_missing == 0 ? 1 : n_missing == 1 ? 6 : n_missing == 2 ? 36 : 216;
    memcpy (whole, p, length);
    for (code = 0; code < choices; code++) {
      for (i = 0; i < n_missing; i++)
        whole[length + i] = trail[i == 0 ? code % 6 : i == 1 ? code / 6 % 6 : code / 36];
      if (g_utf8_validate_len (whole, length + n_missing, NULL)
          && g_utf8_strlen (whole, length + n_missing) == 1)
        return TRUE;
    }
  }
  return FALSE;
}

/* The text of bytes by definition: a character, or the longest part of one, at a time. */
static gchar *
read_lossy (const gchar *bytes, gsize length)
{
  GString *text = g_string_new (NULL);
  gsize at = 0, n;

  while (at < length) {
    for (n = 1; n <= 4 && at + n <= length; n++) {
      if (bytes[at] != '\0' && g_utf8_validate_len (bytes + at, n, NULL))
        break;
    }
    if (n <= 4 && at + n <= length) {
      g_string_append_len (text, bytes + at, n);
    } else {
      for (n = 1; n < 4 && at + n < length && can_become_character (bytes + at, n + 1); n++)
        continue;
      g_string_append (text, REPLACEMENT);
    }
    at += n;
  }
  return g_string_free (text, FALSE);
}

static gchar *
decode_bytes (const VlmTokenizer *t, const gchar *bytes, gsize length)
{
  g_autofree gint32 *ids = g_new (gint32, length + 1);
  gsize i;

  for (i = 0; i < length; i++)
    ids[i] = (guint8) bytes[i];
  return vlm_tokenizer_decode (t, ids, length, FALSE);
}

static void
test_replacement (void)
{
  static const struct
  {
    const gchar *bytes, *text;
  } cases[] = {
    { "", "" },
    { "caf\303\251", "caf\303\251" },
    { "\377", REPLACEMENT },
    { "\300\200", REPLACEMENT REPLACEMENT },
    { "\355\240\200", REPLACEMENT REPLACEMENT REPLACEMENT },
    { "\364\220\200\200", REPLACEMENT REPLACEMENT REPLACEMENT REPLACEMENT },
    { "\360\237\230\200", "\360\237\230\200" },
    { "\360\237\230", REPLACEMENT },
    { "\360\237\230A", REPLACEMENT "A" },
    { "\360\237A\230", REPLACEMENT "A" REPLACEMENT },
    { "\303\303\251", REPLACEMENT "\303\251" },
    { "\342\202\360\237\230\200", REPLACEMENT "\360\237\230\200" },
    { "a\200\200b", "a" REPLACEMENT REPLACEMENT "b" },
    { "\340\200\200", REPLACEMENT REPLACEMENT REPLACEMENT },
    { "\370\210\200\200\200", REPLACEMENT REPLACEMENT REPLACEMENT REPLACEMENT REPLACEMENT },
  };
  VlmTokenizer *t = toy_finish (toy_new (TOY_REGEX));
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree gchar *text = decode_bytes (t, cases[i].bytes, strlen (cases[i].bytes));

    g_assert_cmpstr (text, ==, cases[i].text);
  }
  vlm_tokenizer_unref (t);
}

/* U+0000 would end the string for every reader of it. */
static void
test_nul (void)
{
  VlmTokenizer *t = toy_finish (toy_new (TOY_REGEX));
  g_autofree gchar *text = decode_bytes (t, "a\0b", 3);

  g_assert_cmpstr (text, ==, "a" REPLACEMENT "b");
  vlm_tokenizer_unref (t);
}

static void
test_special (void)
{
  json_t *toy = toy_new (TOY_REGEX);
  VlmTokenizer *t;
  gint32 ids[] = { 'a', 0, 0xc3, 0, 0xa9, -1, 100000, 0, G_MAXINT, G_MININT };
  g_autofree gchar *with = NULL, *without = NULL;

  ids[1] = ids[3] = toy_add_token (toy, "<|im_end|>", TRUE);
  ids[7] = toy_add_token (toy, "\303\251!", FALSE);
  t = toy_finish (toy);
  with = vlm_tokenizer_decode (t, ids, G_N_ELEMENTS (ids), FALSE);
  g_assert_cmpstr (with, ==, "a<|im_end|>" REPLACEMENT "<|im_end|>" REPLACEMENT "\303\251!");
  without = vlm_tokenizer_decode (t, ids, G_N_ELEMENTS (ids), TRUE);
  g_assert_cmpstr (without, ==, "a\303\251\303\251!");
  vlm_tokenizer_unref (t);
}

/* An entry that is not in the byte alphabet stands for its own spelling. */
static void
test_foreign_entry (void)
{
  json_t *toy = toy_new (TOY_REGEX);
  gint32 id = toy_add_piece (toy, "\346\227\245 x");
  VlmTokenizer *t = toy_finish (toy);
  g_autofree gchar *text = vlm_tokenizer_decode (t, &id, 1, TRUE);

  g_assert_cmpstr (text, ==, "\346\227\245 x");
  vlm_tokenizer_unref (t);
}

/* An added token stands for its content, but one that is an entry as well stays that entry. */
static void
test_added_entry (void)
{
  json_t *toy = toy_new (TOY_REGEX);
  gint32 ids[] = { 0xe9, 0 };
  g_autofree gchar *text = NULL;
  VlmTokenizer *t;

  json_array_append_new (json_object_get (toy, "added_tokens"),
      json_pack ("{s:i, s:s, s:b}", "id", 0xe9, "content", "\303\251", "special", FALSE));
  ids[1] = toy_add_token (toy, "\303\251\303\251", FALSE);
  t = toy_finish (toy);
  toy_assert_ids (t, "\303\251x", -1, TRUE, "233 120");
  text = vlm_tokenizer_decode (t, ids, G_N_ELEMENTS (ids), FALSE);
  g_assert_cmpstr (text, ==, REPLACEMENT "\303\251\303\251");
  vlm_tokenizer_unref (t);
}

/* A toy whose extra pieces are random strings of bytes, few of them UTF-8. */
static VlmTokenizer *
new_random_toy (GRand *rand, guint n_pieces)
{
  static const guint8 likely[] = { 'a', 0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80, 0xed,
    0xa0, 0xf4, 0x8f, 0x90, 0xe0, 0xff, 0xc0, 0xef, 0xbf };
  json_t *toy = toy_new (TOY_REGEX);
  json_t *vocab = json_object_get (json_object_get (toy, "model"), "vocab");
  guint length, i;

  while (json_object_size (vocab) < TOY_FIRST_ID + n_pieces) {
    g_autofree gchar *spelling = NULL;
    g_autoptr (GString) bytes = g_string_new (NULL);

    length = g_rand_int_range (rand, 2, 8);
    for (i = 0; i < length; i++)
      g_string_append_c (bytes, (gchar) likely[g_rand_int_range (rand, 0, G_N_ELEMENTS (likely))]);
    spelling = toy_spell (bytes->str, bytes->len);
    if (json_object_get (vocab, spelling) == NULL)
      toy_add_piece (toy, spelling);
  }
  return toy_finish (toy);
}

/*
 * Random ids: the stream's pieces put together, the whole at once and the definition give one text,
 * and no piece of the stream is anything but whole characters.
 */
static void
test_stream (void)
{
  GRand *rand = g_rand_new_with_seed (11);
  VlmTokenizer *t = new_random_toy (rand, 300);
  VlmDetokenizer *stream = vlm_detokenizer_new (t, FALSE);
  guint round, n, i;

  for (round = 0; round < 3000; round++) {
    g_autoptr (GString) streamed = g_string_new (NULL), bytes = g_string_new (NULL);
    g_autofree gchar *whole = NULL, *defined = NULL;
    gint32 ids[24];

    n = g_rand_int_range (rand, 0, G_N_ELEMENTS (ids) + 1);
    for (i = 0; i < n; i++) {
      const gchar *piece;
      gsize length, before = streamed->len;

      ids[i] = g_rand_int_range (rand, 0x7f, TOY_FIRST_ID + 300);
      piece = vlm_tokenizer_get_bytes (t, ids[i], &length);
      g_string_append_len (bytes, piece, length);
      vlm_detokenizer_push (stream, ids[i], streamed);
      g_assert_true (g_utf8_validate (streamed->str + before, -1, NULL));
    }
    vlm_detokenizer_finish (stream, streamed);
    whole = vlm_tokenizer_decode (t, ids, n, FALSE);
    defined = read_lossy (bytes->str, bytes->len);
    g_assert_cmpstr (streamed->str, ==, whole);
    g_assert_cmpstr (streamed->str, ==, defined);
  }
  vlm_detokenizer_free (stream);
  vlm_tokenizer_unref (t);
  g_rand_free (rand);
}

/* Every character comes out as soon as its last byte is there. */
static void
test_stream_is_prompt (void)
{
  VlmTokenizer *t = toy_finish (toy_new (TOY_REGEX));
  VlmDetokenizer *stream = vlm_detokenizer_new (t, TRUE);
  g_autoptr (GString) text = g_string_new (NULL);

  vlm_tokenizer_unref (t);
  vlm_detokenizer_push (stream, 0xf0, text);
  vlm_detokenizer_push (stream, 0x9f, text);
  vlm_detokenizer_push (stream, 0x98, text);
  g_assert_cmpstr (text->str, ==, "");
  vlm_detokenizer_push (stream, 0x80, text);
  g_assert_cmpstr (text->str, ==, "\360\237\230\200");
  vlm_detokenizer_push (stream, 0xe2, text);
  vlm_detokenizer_push (stream, 'a', text);
  g_assert_cmpstr (text->str, ==, "\360\237\230\200" REPLACEMENT "a");
  vlm_detokenizer_push (stream, 0xe2, text);
  vlm_detokenizer_push (stream, 0x82, text);
  vlm_detokenizer_finish (stream, text);
  g_assert_cmpstr (text->str, ==, "\360\237\230\200" REPLACEMENT "a" REPLACEMENT);
  vlm_detokenizer_finish (stream, text);
  vlm_detokenizer_push (stream, 0xac, text);
  vlm_detokenizer_finish (stream, text);
  g_assert_cmpstr (text->str, ==, "\360\237\230\200" REPLACEMENT "a" REPLACEMENT REPLACEMENT);
  vlm_detokenizer_free (stream);
}

/* Encoding and decoding give back any valid text. */
static void
test_round_trip (void)
{
  GRand *rand = g_rand_new_with_seed (5);
  json_t *toy = toy_new (TOY_REGEX);
  VlmTokenizer *t;
  guint round, i;

  toy_add_merge (toy, "\303\203", "\302\251");
  toy_add_merge (toy, "\304\240", "\304\240");
  toy_add_merge (toy, "a", "b");
  t = toy_finish (toy);
  for (round = 0; round < 500; round++) {
    g_autoptr (GString) text = g_string_new (NULL);
    g_autoptr (GArray) ids = NULL;
    g_autofree gchar *back = NULL;

    for (i = g_rand_int_range (rand, 0, 60); i > 0; i--) {
      gunichar c = g_rand_int_range (rand, 1, 0x110000 >> g_rand_int_range (rand, 0, 15));

      if (c < 0xd800 || c > 0xdfff)
        g_string_append_unichar (text, c);
    }
    ids = toy_encode (t, text->str, -1, TRUE);
    back = vlm_tokenizer_decode (t, (const gint32 *) (gconstpointer) ids->data, ids->len, FALSE);
    g_assert_cmpstr (back, ==, text->str);
  }
  vlm_tokenizer_unref (t);
  g_rand_free (rand);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/detokenizer/replacement", test_replacement);
  g_test_add_func ("/detokenizer/nul", test_nul);
  g_test_add_func ("/detokenizer/special", test_special);
  g_test_add_func ("/detokenizer/foreign-entry", test_foreign_entry);
  g_test_add_func ("/detokenizer/added-entry", test_added_entry);
  g_test_add_func ("/detokenizer/stream", test_stream);
  g_test_add_func ("/detokenizer/stream-is-prompt", test_stream_is_prompt);
  g_test_add_func ("/detokenizer/round-trip", test_round_trip);
  return g_test_run ();
}
