/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tokenizers from the keys of a GGUF file: kinds of tokens, and one that is as large as they come. */

#include <string.h>

#include "engine/formats/gguf-settings.h"
#include "engine/formats/hf.h"
#include "engine/vlm.h"
#include "gguf-tokenizer-fixture.h"
#include "tests/engine/test-text-toy.h"

#define N_TOKENS 200000
#define N_MERGES 100000

/* Processor time for the whole way from the file to a tokenizer that can be used. */
#define LIMIT (1 * G_TIME_SPAN_SECOND)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED TRUE
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED TRUE
#endif
#endif
#ifndef SANITIZED
#define SANITIZED FALSE
#endif

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmTokenizer, vlm_tokenizer_unref)

static VlmTokenizer *
load (const gchar *path)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmGguf) gguf = vlm_gguf_open (path, &error);
  g_autoptr (GBytes) bytes = NULL;
  VlmTokenizer *tokenizer;

  g_assert_no_error (error);
  bytes = vlm_gguf_make_file (gguf, NULL, VLM_HF_TOKENIZER, &error);
  g_assert_no_error (error);
  tokenizer = vlm_tokenizer_new_from_json (bytes, path, &error);
  g_assert_no_error (error);
  return tokenizer;
}

/* Writes a file with the tokenizer, changed by types or not, and loads it. */
static VlmTokenizer *
load_written (GgufWriter *writer)
{
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *path = g_build_filename (directory, "text.gguf", NULL);
  VlmTokenizer *tokenizer;

  gguf_writer_save (writer, directory, "text.gguf");
  tokenizer = load (path);
  fixture_directory_remove (directory);
  return tokenizer;
}

static void
assert_bytes (const VlmTokenizer *tokenizer, gint id, const gchar *expected)
{
  gsize length;
  const gchar *bytes = vlm_tokenizer_get_bytes (tokenizer, id, &length);

  g_assert_nonnull (bytes);
  g_assert_cmpmem (bytes, length, expected, strlen (expected));
}

static void
put_lists (GgufWriter *writer, const gchar *const *tokens, const gint32 *types, guint n_tokens,
    const gchar *const *merges, guint n_merges)
{
  gguf_put_string (writer, "tokenizer.ggml.model", "gpt2");
  gguf_put_string (writer, "tokenizer.ggml.pre", "lfm2");
  gguf_put_strings (writer, "tokenizer.ggml.tokens", tokens, n_tokens);
  gguf_put_i32s (writer, "tokenizer.ggml.token_type", types, n_tokens);
  gguf_put_strings (writer, "tokenizer.ggml.merges", merges, n_merges);
}

/* Of every kind one: normal, unknown, control, user-defined, unused. */
static void
test_kinds (void)
{
  static const gchar *const tokens[] = { "a", "b", "ab", "<unk>", "<|im_end|>", "<x>", "\303\251",
    "two words", "[PAD8]", "\"\\", "ba", "\t\037" };
  static const gint32 types[] = { 1, 1, 1, 2, 3, 4, 4, 4, 5, 1, 4, 4 };
  static const gchar *const merges[] = { "a b", "b a" };
  g_autoptr (GgufWriter) writer = gguf_writer_new ();
  g_autoptr (VlmTokenizer) t = NULL;

  G_STATIC_ASSERT (G_N_ELEMENTS (tokens) == G_N_ELEMENTS (types));
  put_lists (writer, tokens, types, G_N_ELEMENTS (tokens), merges, G_N_ELEMENTS (merges));
  t = load_written (writer);

  g_assert_cmpuint (vlm_tokenizer_get_size (t), ==, 12);
  g_assert_true (vlm_tokenizer_is_special (t, 3));
  g_assert_true (vlm_tokenizer_is_special (t, 4));
  g_assert_false (vlm_tokenizer_is_special (t, 5));
  g_assert_cmpint (vlm_tokenizer_lookup (t, "<|im_end|>"), ==, 4);
  g_assert_cmpint (vlm_tokenizer_lookup (t, "[PAD8]"), ==, -1);
  /* What a user defined is itself, and no spelling of bytes. */
  assert_bytes (t, 6, "\303\251");
  assert_bytes (t, 7, "two words");
  assert_bytes (t, 9, "\"\\");
  assert_bytes (t, 11, "\t\037");
  toy_assert_ids (t, "ab", -1, FALSE, "2");
  toy_assert_ids (t, "ba", -1, FALSE, "10");
  toy_assert_ids (t, "a<x>b\303\251two words<|im_end|>", -1, TRUE, "0 5 1 6 7 4");
}

static void
refuse_written (GgufWriter *writer, const gchar *part)
{
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *path = g_build_filename (directory, "text.gguf", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmGguf) gguf = NULL;

  gguf_writer_save (writer, directory, "text.gguf");
  gguf = vlm_gguf_open (path, &error);
  g_assert_no_error (error);
  g_assert_null (vlm_gguf_make_file (gguf, NULL, VLM_HF_TOKENIZER, &error));
  fixture_assert_message (error, VLM_ERROR_FORMAT, part);
  fixture_directory_remove (directory);
}

/* Control characters take six times their length in JSON: a few megabytes of them are too many. */
static void
test_too_long (void)
{
  static const gint32 types[] = { 1, 1, 1 };
  g_autofree gchar *huge = g_strnfill (12 << 20, '\001');
  g_autofree gchar *half = g_strnfill (1 << 20, '\001'), *whole = g_strconcat ("\001", half, NULL);
  g_autofree gchar *merge = g_strconcat ("\001 ", half, NULL);
  const gchar *const token[] = { huge };
  const gchar *const tokens[] = { "\001", half, whole };
  const gchar *merges[12];
  g_autoptr (GgufWriter) first = gguf_writer_new (), second = gguf_writer_new ();
  guint i;

  put_lists (first, token, types, 1, merges, 0);
  refuse_written (first, "tokenizer.ggml.tokens makes a tokenizer.json of more than 67108864");
  for (i = 0; i < G_N_ELEMENTS (merges); i++)
    merges[i] = merge;
  put_lists (second, tokens, types, 3, merges, G_N_ELEMENTS (merges));
  refuse_written (second, "tokenizer.ggml.merges makes a tokenizer.json of more than 67108864");
}

/* 500 control tokens, words that merges lead to letter by letter, and words that none leads to. */
static json_t *
make_large (void)
{
  json_t *toy = toy_new (TOY_REGEX);
  GPtrArray *words = g_ptr_array_new_with_free_func (g_free);
  guint n_tokens = 256, i;

  for (i = 0; i < 500; i++, n_tokens++) {
    g_autofree gchar *content = g_strdup_printf ("<|special_%u|>", i);

    toy_add_token (toy, content, TRUE);
  }
  for (i = 0; i < 26; i++)
    g_ptr_array_add (words, g_strdup_printf ("%c", 'a' + i));
  for (i = 0; i < N_MERGES; i++, n_tokens++) {
    gchar letter[] = { (gchar) ('a' + i % 26), '\0' };
    const gchar *word = g_ptr_array_index (words, i / 26);

    toy_add_merge (toy, word, letter);
    g_ptr_array_add (words, g_strconcat (word, letter, NULL));
  }
  for (i = 0; n_tokens < N_TOKENS; i++, n_tokens++) {
    g_autofree gchar *piece = g_strconcat ("\304\240", g_ptr_array_index (words, i), NULL);

    toy_add_piece (toy, piece);
  }
  g_ptr_array_unref (words);
  return toy;
}

static void
test_large (void)
{
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *path = g_build_filename (directory, "text.gguf", NULL);
  g_autoptr (GgufWriter) writer = gguf_writer_new ();
  g_autoptr (VlmTokenizer) t = NULL;
  g_autoptr (GError) error = NULL;
  json_t *large = make_large ();
  gint64 time;

  gguf_put_string (writer, "general.architecture", "lfm2");
  gguf_put_string (writer, "general.type", "model");
  gguf_put_tokenizer (writer, large);
  json_decref (large);
  gguf_writer_save (writer, directory, "text.gguf");
  time = fixture_get_time ();
  t = vlm_tokenizer_load (path, &error);
  time = fixture_get_time () - time;
  g_assert_no_error (error);
  g_test_message ("%d tokens, %d merges: %.0f ms", N_TOKENS, N_MERGES, time / 1e3);
  if (!SANITIZED)
    g_assert_cmpint (time, <, LIMIT);

  g_assert_cmpuint (vlm_tokenizer_get_size (t), ==, N_TOKENS);
  /* Word number i is made by merge i - 26: "aaaa" comes after all of one, two and three letters. */
  toy_assert_ids (t, "a", -1, FALSE, "97");
  toy_assert_ids (t, "aaaa", -1, FALSE, "19008");
  toy_assert_ids (t, " ab", -1, FALSE, "100783");
  fixture_directory_remove (directory);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/gguf-tokenizer/kinds", test_kinds);
  g_test_add_func ("/gguf-tokenizer/too-long", test_too_long);
  g_test_add_func ("/gguf-tokenizer/large", test_large);
  return g_test_run ();
}
