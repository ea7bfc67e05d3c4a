/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A tokenizer.json with the pipeline and the special tokens of LFM2. The merges are not learned but
 * enumerated: pairs and triples of letters, with and without a blank before, digits, the first two
 * bytes of UTF-8 characters, then whatever byte pairs are left.
 */

#include "synth-private.h"

#define N_SPECIAL 510
#define N_BYTES 256

#define SPLIT_REGEX                                                                                \
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}"             \
  "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"

#define PIPELINE                                                                                   \
  "  \"normalizer\": null,\n"                                                                      \
  "  \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [\n"                           \
  "    {\"type\": \"Split\", \"pattern\": {\"Regex\": \"" SPLIT_REGEX "\"}, "                      \
  "\"behavior\": \"Isolated\", \"invert\": false},\n"                                              \
  "    {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "            \
  "\"use_regex\": false}]},\n"                                                                     \
  "  \"post_processor\": {\"type\": \"Sequence\", \"processors\": [\n"                             \
  "    {\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": false, "            \
  "\"use_regex\": true},\n"                                                                        \
  "    {\"type\": \"TemplateProcessing\",\n"                                                       \
  "     \"single\": [{\"SpecialToken\": {\"id\": \"<|startoftext|>\", \"type_id\": 0}}, "          \
  "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}],\n"                                            \
  "     \"pair\": [{\"SpecialToken\": {\"id\": \"<|startoftext|>\", \"type_id\": 0}}, "            \
  "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"B\", "               \
  "\"type_id\": 1}}],\n"                                                                           \
  "     \"special_tokens\": {\"<|startoftext|>\": {\"id\": \"<|startoftext|>\", \"ids\": [1], "    \
  "\"tokens\": [\"<|startoftext|>\"]}}}]},\n"                                                      \
  "  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": true, "  \
  "\"use_regex\": true},\n"

typedef struct
{
  GPtrArray *tokens; /* owned texts, by id */
  GHashTable *known; /* of those texts */
  GString *merges;
  guint size;            /* tokens there are to be */
  gchar *bytes[N_BYTES]; /* borrowed: the token of each byte */
} Vocabulary;

static const gchar *const first_specials[] = {
  "<|pad|>",
  "<|startoftext|>",
  "<|endoftext|>",
  "<|fim_pre|>",
  "<|fim_mid|>",
  "<|fim_suf|>",
  "<|im_start|>",
  "<|im_end|>",
  "<|tool_list_start|>",
  "<|tool_list_end|>",
  "<|tool_call_start|>",
  "<|tool_call_end|>",
  "<|tool_response_start|>",
  "<|tool_response_end|>",
};

/* Takes over text. */
static void
add_token (Vocabulary *vocabulary, gchar *text)
{
  g_ptr_array_add (vocabulary->tokens, text);
  g_hash_table_add (vocabulary->known, text);
}

static void
add_specials (Vocabulary *vocabulary)
{
  guint id;

  for (id = 0; id < N_SPECIAL; id++) {
    if (id < G_N_ELEMENTS (first_specials))
      add_token (vocabulary, g_strdup (first_specials[id]));
    else if (id == SYNTH_IMAGE)
      add_token (vocabulary, g_strdup ("<image>"));
    else if (id > SYNTH_IMAGE && id <= SYNTH_IMAGE + 100)
      add_token (vocabulary,
          g_strdup_printf ("<|img_row_%u_col_%u|>", (id - SYNTH_IMAGE - 1) / 10 + 1,
              (id - SYNTH_IMAGE - 1) % 10 + 1));
    else if (id == SYNTH_IMAGE + 101)
      add_token (vocabulary, g_strdup ("<|img_thumbnail|>"));
    else if (id == SYNTH_IMAGE + 102)
      add_token (vocabulary, g_strdup ("<|image_start|>"));
    else if (id == SYNTH_IMAGE + 103)
      add_token (vocabulary, g_strdup ("<|image_end|>"));
    else
      add_token (vocabulary, g_strdup_printf ("<|reserved_%u|>", id - 10));
  }
}

/* Printable bytes stand for themselves; the others, in ascending order, for U+0100 onward. */
static gboolean
stands_for_itself (guint byte)
{
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

static void
add_bytes (Vocabulary *vocabulary)
{
  guint pass, byte, n_moved = 0;

  for (pass = 0; pass < 2; pass++) {
    for (byte = 0; byte < N_BYTES; byte++) {
      gchar text[7] = { 0 };

      if (stands_for_itself (byte) != (pass == 0))
        continue;
      g_unichar_to_utf8 (pass == 0 ? byte : 0x100 + n_moved++, text);
      vocabulary->bytes[byte] = g_strdup (text);
      add_token (vocabulary, vocabulary->bytes[byte]);
    }
  }
}

static void
append_quoted (GString *json, const gchar *text)
{
  g_string_append_c (json, '"');
  for (; *text != '\0'; text++) {
    if (*text == '"' || *text == '\\')
      g_string_append_c (json, '\\');
    g_string_append_c (json, *text);
  }
  g_string_append_c (json, '"');
}

/* Makes two tokens mergeable, unless the vocabulary is full or has their text already. */
static void
merge (Vocabulary *vocabulary, const gchar *left, const gchar *right)
{
  gchar *both;

  if (vocabulary->tokens->len == vocabulary->size)
    return;
  both = g_strconcat (left, right, NULL);
  if (g_hash_table_contains (vocabulary->known, both)) {
    g_free (both);
    return;
  }
  add_token (vocabulary, both);
  if (vocabulary->merges->len > 0)
    g_string_append (vocabulary->merges, ", ");
  g_string_append_c (vocabulary->merges, '[');
  append_quoted (vocabulary->merges, left);
  g_string_append (vocabulary->merges, ", ");
  append_quoted (vocabulary->merges, right);
  g_string_append_c (vocabulary->merges, ']');
}

static void
merge_bytes (Vocabulary *vocabulary, guint from_1, guint to_1, guint from_2, guint to_2)
{
  guint a, b;

  for (a = from_1; a <= to_1; a++) {
    for (b = from_2; b <= to_2; b++)
      merge (vocabulary, vocabulary->bytes[a], vocabulary->bytes[b]);
  }
}

/* first + pair of small letters, for all pairs. */
static void
merge_pairs (Vocabulary *vocabulary, const gchar *first)
{
  guint a, b;

  for (a = 'a'; a <= 'z'; a++) {
    for (b = 'a'; b <= 'z'; b++) {
      g_autofree gchar *pair = g_strconcat (vocabulary->bytes[a], vocabulary->bytes[b], NULL);

      merge (vocabulary, first, pair);
    }
  }
}

static void
add_merges (Vocabulary *vocabulary)
{
  guint c;

  merge_bytes (vocabulary, 'a', 'z', 'a', 'z');
  merge_bytes (vocabulary, ' ', ' ', 'A', 'Z');
  merge_bytes (vocabulary, ' ', ' ', 'a', 'z');
  merge_bytes (vocabulary, 'A', 'Z', 'a', 'z');
  merge_bytes (vocabulary, '0', '9', '0', '9');
  merge_bytes (vocabulary, 0xC3, 0xF4, 0x80, 0xBF);
  for (c = 'a'; c <= 'z'; c++)
    merge_pairs (vocabulary, vocabulary->bytes[c]);
  for (c = 'a'; c <= 'z'; c++) {
    g_autofree gchar *first = g_strconcat (vocabulary->bytes[' '], vocabulary->bytes[c], NULL);

    merge_pairs (vocabulary, first);
  }
  for (c = 'A'; c <= 'Z'; c++)
    merge_pairs (vocabulary, vocabulary->bytes[c]);
  merge_bytes (vocabulary, 0, 255, 0, 255);
}

static void
append_added_tokens (GString *json, const Vocabulary *vocabulary)
{
  guint id;

  g_string_append (json, "  \"added_tokens\": [\n");
  for (id = 0; id < N_SPECIAL; id++) {
    g_string_append_printf (json, "    {\"id\": %u, \"content\": ", id);
    append_quoted (json, vocabulary->tokens->pdata[id]);
    g_string_append_printf (json,
        ", \"single_word\": false, \"lstrip\": false, "
        "\"rstrip\": false, \"normalized\": false, \"special\": true}%s\n",
        id + 1 < N_SPECIAL ? "," : "");
  }
  g_string_append (json, "  ],\n");
}

static void
append_model (GString *json, const Vocabulary *vocabulary)
{
  guint id;

  g_string_append (json,
      "  \"model\": {\"type\": \"BPE\", \"dropout\": null, "
      "\"unk_token\": null, \"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, "
      "\"fuse_unk\": false, \"byte_fallback\": false, \"ignore_merges\": false,\n"
      "  \"vocab\": {");
  for (id = 0; id < vocabulary->tokens->len; id++) {
    if (id > 0)
      g_string_append (json, ", ");
    append_quoted (json, vocabulary->tokens->pdata[id]);
    g_string_append_printf (json, ": %u", id);
  }
  g_string_append (json, "},\n  \"merges\": [");
  g_string_append_len (json, vocabulary->merges->str, vocabulary->merges->len);
  g_string_append (json, "]}\n}\n");
}

gboolean
synth_write_tokenizer (const SynthPreset *preset, const gchar *folder, GError **error)
{
  Vocabulary vocabulary = { g_ptr_array_new_with_free_func (g_free),
    g_hash_table_new (g_str_hash, g_str_equal), g_string_new (NULL), preset->vocab, { NULL } };
  g_autoptr (GString) json = g_string_new ("{\n  \"version\": \"1.0\",\n"
                                           "  \"truncation\": null,\n  \"padding\": null,\n");
  gboolean written;

  add_specials (&vocabulary);
  add_bytes (&vocabulary);
  add_merges (&vocabulary);
  append_added_tokens (json, &vocabulary);
  g_string_append (json, PIPELINE);
  append_model (json, &vocabulary);
  written = synth_put_file (folder, "tokenizer.json", json, error);
  g_hash_table_destroy (vocabulary.known);
  g_ptr_array_unref (vocabulary.tokens);
  g_string_free (vocabulary.merges, TRUE);
  return written;
}
