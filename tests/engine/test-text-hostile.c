/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Files that are no tokenizer, or none that this engine implements. */

#include <string.h>
#include <time.h>

#include "test-text-toy.h"

static VlmTokenizer *
load_text (const gchar *text, gsize length, GError **error)
{
  g_autoptr (GBytes) bytes = g_bytes_new (text, length);

  return vlm_tokenizer_new_from_json (bytes, "bad.json", error);
}

/* text is refused with code; the message begins with the file's name and has part in it. */
static void
refuse_text (const gchar *text, gsize length, VlmError code, const gchar *part)
{
  g_autoptr (GError) error = NULL;

  if (load_text (text, length, &error) != NULL)
    g_error ("accepted, expected \"%s\"", part);
  g_assert_error (error, VLM_ERROR, (gint) code);
  g_assert_true (g_str_has_prefix (error->message, "bad.json"));
  if (strstr (error->message, part) == NULL)
    g_error ("\"%s\" says nothing of \"%s\"", error->message, part);
}

/* The same for a toy, which is freed. */
static void
refuse (json_t *toy, VlmError code, const gchar *part)
{
  char *text = json_dumps (toy, JSON_COMPACT);

  refuse_text (text, strlen (text), code, part);
  free (text);
  json_decref (toy);
}

static json_t *
new_toy (void)
{
  json_t *toy = toy_new (TOY_REGEX);

  toy_add_merge (toy, "a", "b");
  toy_add_token (toy, "<|im_end|>", TRUE);
  return toy;
}

static json_t *
model_of (json_t *toy)
{
  return json_object_get (toy, "model");
}

/* A toy with one key of object path ("" for the top) set to value. */
static json_t *
with (const gchar *object, const gchar *key, json_t *value)
{
  json_t *toy = new_toy ();
  json_t *target = *object == '\0' ? toy : json_object_get (toy, object);

  json_object_set_new (target, key, value);
  return toy;
}

static json_t *
component (const gchar *type)
{
  return json_pack ("{s:s}", "type", type);
}

static void
test_components (void)
{
  static const gchar *const normalizers[] = { "NFC", "NFKC", "Lowercase", "Prepend",
    "BertNormalizer" };
  static const gchar *const pre_tokenizers[] = { "Digits", "Metaspace", "Whitespace",
    "BertPreTokenizer" };
  static const gchar *const models[] = { "WordPiece", "Unigram", "WordLevel" };
  static const gchar *const decoders[] = { "Metaspace", "BPEDecoder", "ByteFallback" };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (normalizers); i++) {
    refuse (
        with ("", "normalizer", component (normalizers[i])), VLM_ERROR_UNSUPPORTED, normalizers[i]);
    refuse (with ("", "normalizer",
                json_pack (
                    "{s:s, s:[o]}", "type", "Sequence", "normalizers", component (normalizers[i]))),
        VLM_ERROR_UNSUPPORTED, normalizers[i]);
  }
  for (i = 0; i < G_N_ELEMENTS (pre_tokenizers); i++) {
    refuse (with ("", "pre_tokenizer", component (pre_tokenizers[i])), VLM_ERROR_UNSUPPORTED,
        pre_tokenizers[i]);
    refuse (with ("", "pre_tokenizer",
                json_pack ("{s:s, s:[o]}", "type", "Sequence", "pretokenizers",
                    component (pre_tokenizers[i]))),
        VLM_ERROR_UNSUPPORTED, pre_tokenizers[i]);
  }
  for (i = 0; i < G_N_ELEMENTS (models); i++)
    refuse (with ("model", "type", json_string (models[i])), VLM_ERROR_UNSUPPORTED, models[i]);
  for (i = 0; i < G_N_ELEMENTS (decoders); i++)
    refuse (with ("", "decoder", component (decoders[i])), VLM_ERROR_UNSUPPORTED, decoders[i]);
  refuse (with ("", "decoder", json_null ()), VLM_ERROR_UNSUPPORTED, "decoder");
  refuse (with ("", "pre_tokenizer", json_null ()), VLM_ERROR_UNSUPPORTED, "pre_tokenizer");
  refuse (with ("", "post_processor", component ("BertProcessing")), VLM_ERROR_UNSUPPORTED,
      "BertProcessing");
  /* Only its member after ByteLevel is wrong. */
  refuse (with ("", "pre_tokenizer",
              json_pack ("{s:s, s:[{s:s, s:b}, {s:s}]}", "type", "Sequence", "pretokenizers",
                  "type", "ByteLevel", "add_prefix_space", FALSE, "type", "Digits")),
      VLM_ERROR_UNSUPPORTED, "ByteLevel");
}

static void
test_settings (void)
{
  static const gchar split[] = "{s:s, s:[{s:s, s:o, s:s, s:b}, {s:s, s:b, s:b}]}";
  guint i;

  refuse (with ("model", "byte_fallback", json_true ()), VLM_ERROR_UNSUPPORTED, "byte_fallback");
  refuse (with ("model", "dropout", json_real (0.1)), VLM_ERROR_UNSUPPORTED, "dropout");
  refuse (with ("model", "unk_token", json_string ("<unk>")), VLM_ERROR_FORMAT, "<unk>");
  refuse (with ("model", "continuing_subword_prefix", json_string ("##")), VLM_ERROR_UNSUPPORTED,
      "continuing_subword_prefix");
  refuse (with ("model", "end_of_word_suffix", json_string ("</w>")), VLM_ERROR_UNSUPPORTED,
      "end_of_word_suffix");
  for (i = 0; i < 2; i++) {
    refuse (with ("", "pre_tokenizer",
                json_pack (split, "type", "Sequence", "pretokenizers", "type", "Split", "pattern",
                    json_pack ("{s:s}", "Regex", "a"), "behavior",
                    i == 0 ? "Isolated" : "MergedWithNext", "invert", i == 0, "type", "ByteLevel",
                    "add_prefix_space", FALSE, "use_regex", FALSE)),
        VLM_ERROR_UNSUPPORTED, i == 0 ? "invert" : "MergedWithNext");
  }
  refuse (with ("", "pre_tokenizer",
              json_pack (split, "type", "Sequence", "pretokenizers", "type", "Split", "pattern",
                  json_pack ("{s:s}", "Regex", "[[a]]"), "behavior", "Isolated", "invert", FALSE,
                  "type", "ByteLevel", "add_prefix_space", FALSE, "use_regex", FALSE)),
      VLM_ERROR_UNSUPPORTED, "[[a]]");
  refuse (with ("", "pre_tokenizer", component ("ByteLevel")), VLM_ERROR_UNSUPPORTED,
      "add_prefix_space");
  refuse (with ("", "normalizer",
              json_pack ("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern", "Regex", "a",
                  "content", "b")),
      VLM_ERROR_UNSUPPORTED, "Regex");
  refuse (with ("", "normalizer",
              json_pack ("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern", "String", "a",
                  "content", "123456789")),
      VLM_ERROR_UNSUPPORTED, "longer");
}

/* ids and names that contradict one another */
static void
test_vocabulary (void)
{
  json_t *toy;

  toy = new_toy ();
  json_object_set_new (json_object_get (model_of (toy), "vocab"), "zz", json_integer (97));
  refuse (toy, VLM_ERROR_FORMAT, "97");
  toy = new_toy ();
  json_object_set_new (toy_last_token (toy), "id", json_integer (97));
  refuse (toy, VLM_ERROR_FORMAT, "<|im_end|>");
  toy = new_toy ();
  json_object_set_new (json_object_get (model_of (toy), "vocab"), "<|im_end|>", json_integer (500));
  refuse (toy, VLM_ERROR_FORMAT, "500");
  toy = new_toy ();
  json_array_append (json_object_get (toy, "added_tokens"), toy_last_token (toy));
  refuse (toy, VLM_ERROR_FORMAT, "twice");
  toy = new_toy ();
  json_object_set_new (toy_last_token (toy), "content", json_string (""));
  refuse (toy, VLM_ERROR_FORMAT, "content");
  toy = new_toy ();
  json_array_append_new (json_object_get (toy, "added_tokens"),
      json_pack ("{s:i, s:s, s:b}", "id", 97, "content", "a", "special", TRUE));
  refuse (toy, VLM_ERROR_UNSUPPORTED, "\"a\"");
}

/* No memory is taken for an id that is only claimed. */
static void
test_ids_out_of_range (void)
{
  static const gint64 ids[] = { -1, 70000, 1 << 22, G_MAXINT32, G_MAXINT64, G_MININT64,
    G_GINT64_CONSTANT (1) << 32 };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (ids); i++) {
    json_t *toy = new_toy ();

    json_object_set_new (json_object_get (model_of (toy), "vocab"), "zz", json_integer (ids[i]));
    refuse (toy, VLM_ERROR_FORMAT, "zz");
    toy = new_toy ();
    json_object_set_new (toy_last_token (toy), "id", json_integer (ids[i]));
    refuse (toy, VLM_ERROR_FORMAT, "<|im_end|>");
  }
}

static void
test_merges (void)
{
  static const gchar *const bad[][2] = {
    { "[\"a\", \"zz\"]", "zz" },
    { "[\"zz\", \"a\"]", "zz" },
    { "[\"a\", \"c\"]", "ac" },
    { "\"a c\"", "ac" },
    { "\"ac\"", "merges[1]" },
    { "\"a b c\"", "merges[1]" },
    { "[\"a\"]", "merges[1]" },
    { "[\"a\", \"b\", \"c\"]", "merges[1]" },
    { "[\"a\", 1]", "merges[1]" },
    { "1", "merges[1]" },
    { "null", "merges[1]" },
    { "[\"a\", \"<|im_end|>\"]", "<|im_end|>" },
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (bad); i++) {
    json_t *toy = new_toy ();

    json_array_append_new (
        json_object_get (model_of (toy), "merges"), json_loads (bad[i][0], JSON_DECODE_ANY, NULL));
    refuse (toy, VLM_ERROR_FORMAT, bad[i][1]);
  }
}

/* Both spellings of merges are one thing. */
static void
test_merges_as_strings (void)
{
  json_t *toy = new_toy ();
  VlmTokenizer *t;

  json_array_append_new (json_object_get (model_of (toy), "merges"), json_string ("ab ab"));
  toy_add_piece (toy, "abab");
  t = toy_finish (toy);
  toy_assert_ids (t, "ababab", -1, FALSE, "258 256");
  vlm_tokenizer_unref (t);
}

static void
test_no_json (void)
{
  static const gchar nul_key[] = "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"\\u0000\": 1}}}";
  static const gchar twice[] = "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 1, \"a\": 2}}}";
  g_autofree gchar *deep = g_strnfill (100000, '[');

  refuse_text ("", 0, VLM_ERROR_FORMAT, "line");
  refuse_text ("{", 1, VLM_ERROR_FORMAT, "line 1");
  refuse_text ("[]", 2, VLM_ERROR_FORMAT, "model");
  refuse_text ("{}", 2, VLM_ERROR_FORMAT, "model");
  refuse_text ("{\"model\": 1}", 12, VLM_ERROR_FORMAT, "model");
  refuse_text ("\377\376{\000", 4, VLM_ERROR_FORMAT, "line");
  refuse_text (deep, strlen (deep), VLM_ERROR_FORMAT, "line");
  refuse_text (nul_key, strlen (nul_key), VLM_ERROR_FORMAT, "line");
  refuse_text (twice, strlen (twice), VLM_ERROR_FORMAT, "duplicate");
}

/* No beginning of a good file is a good file. */
static void
test_prefixes (void)
{
  json_t *toy = new_toy ();
  char *text = json_dumps (toy, JSON_COMPACT);
  gsize length = strlen (text), i;

  for (i = 0; i < length; i++)
    refuse_text (text, i, VLM_ERROR_FORMAT, "bad.json");
  free (text);
  json_decref (toy);
}

/* Loads, and lets the tokenizer do some work when that went well. */
static void
try_out (const json_t *toy)
{
  static const gchar text[] = "ab <|im_end|> \303\251 1234\n\377 abab";
  g_autoptr (GError) error = NULL;
  VlmTokenizer *t = toy_load (toy, &error);
  g_autoptr (GArray) ids = NULL;
  g_autofree gchar *back = NULL;
  guint i;

  if (t == NULL) {
    g_assert_nonnull (error);
    g_assert_true (error->domain == VLM_ERROR);
    g_assert_true (g_utf8_validate (error->message, -1, NULL));
    return;
  }
  g_assert_no_error (error);
  ids = toy_encode (t, text, -1, TRUE);
  vlm_tokenizer_encode (t, text, -1, FALSE, ids);
  for (i = 0; i < ids->len; i++) {
    gsize length;

    g_assert_nonnull (vlm_tokenizer_get_bytes (t, g_array_index (ids, gint32, i), &length));
  }
  back = vlm_tokenizer_decode (t, (const gint32 *) (gconstpointer) ids->data, ids->len, FALSE);
  g_assert_true (g_utf8_validate (back, -1, NULL));
  vlm_tokenizer_unref (t);
}

static json_t *
wrong_value (guint kind)
{
  switch (kind) {
    case 0:
      return json_null ();
    case 1:
      return json_true ();
    case 2:
      return json_integer (-1);
    case 3:
      return json_integer (3);
    case 4:
      return json_real (1e300);
    case 5:
      return json_string ("x");
    case 6:
      return json_string ("");
    case 7:
      return json_array ();
    case 8:
      return json_pack ("[[], {}]");
    default:
      return json_object ();
  }
}

#define N_WRONG_VALUES 10

/* Every member of node, and every one within, in turn replaced by something else. */
static void
spoil (const json_t *toy, json_t *node)
{
  const gchar *key;
  json_t *value;
  void *next;
  guint kind, n_keys = 0;
  gsize i;

  json_object_foreach_safe (node, next, key, value)
  {
    g_autofree gchar *name = g_strdup (key);

    /* Of the 256 bytes a few are enough. */
    if (n_keys++ > 20)
      break;
    json_incref (value);
    for (kind = 0; kind < N_WRONG_VALUES; kind++) {
      json_object_set_new (node, name, wrong_value (kind));
      try_out (toy);
    }
    json_object_set (node, name, value);
    spoil (toy, value);
    json_decref (value);
  }
  for (i = 0; i < json_array_size (node); i++) {
    value = json_incref (json_array_get (node, i));
    for (kind = 0; kind < N_WRONG_VALUES; kind++) {
      json_array_set_new (node, i, wrong_value (kind));
      try_out (toy);
    }
    json_array_set (node, i, value);
    spoil (toy, value);
    json_decref (value);
  }
}

static void
test_wrong_types (void)
{
  json_t *toy = new_toy ();

  json_object_set_new (toy, "normalizer",
      json_pack ("{s:s, s:[{s:s, s:{s:s}, s:s}]}", "type", "Sequence", "normalizers", "type",
          "Replace", "pattern", "String", "...", "content", "-"));
  try_out (toy);
  spoil (toy, toy);
  try_out (toy);
  json_decref (toy);
}

/* Every member of node, and every one within, in turn left out. */
static void
remove_members (const json_t *toy, json_t *node)
{
  g_autoptr (GPtrArray) keys = g_ptr_array_new_with_free_func (g_free);
  const gchar *key;
  json_t *value;
  guint i;

  /* A member that comes back stands last, so an iterator would meet it again. */
  json_object_foreach (node, key, value)
    g_ptr_array_add (keys, g_strdup (key));
  for (i = 0; i < keys->len; i++) {
    key = keys->pdata[i];
    if (strcmp (key, "vocab") == 0)
      continue;
    value = json_incref (json_object_get (node, key));
    json_object_del (node, key);
    try_out (toy);
    json_object_set_new (node, key, value);
    remove_members (toy, value);
  }
}

static void
test_missing_members (void)
{
  json_t *toy = new_toy ();

  remove_members (toy, toy);
  json_object_del (json_object_get (toy, "model"), "vocab");
  refuse (toy, VLM_ERROR_FORMAT, "vocab");
}

/* Processor time for a vocabulary of 2^15 words, each made of 15 halves of this or that kind. */
static gdouble
time_load (const gchar *this, const gchar *that)
{
  json_t *toy = toy_new (TOY_REGEX);
  VlmTokenizer *tokenizer;
  clock_t start;
  guint i, half;

  for (i = 0; i < 1 << 15; i++) {
    g_autoptr (GString) word = g_string_new (NULL);

    for (half = 0; half < 15; half++)
      g_string_append (word, i & 1 << half ? this : that);
    toy_add_piece (toy, word->str);
  }
  start = clock ();
  tokenizer = toy_load (toy, NULL);
  start = clock () - start;
  g_assert_nonnull (tokenizer);
  g_assert_cmpint (vlm_tokenizer_lookup (tokenizer, "no such word"), ==, -1);
  vlm_tokenizer_unref (tokenizer);
  json_decref (toy);
  return (gdouble) start / CLOCKS_PER_SEC;
}

/* Words that a plain hash of strings, such as GLib's, takes for one: 33 * 'A' + 'z' = 33 * 'B' + 'Y'. */
static void
test_colliding_words (void)
{
  gdouble plain = time_load ("Az", "Bz"), colliding = time_load ("Az", "BY");

  g_test_message ("%.0f ms, %.0f ms with words that collide", plain * 1e3, colliding * 1e3);
  g_assert_cmpfloat (colliding, <, 10 * plain + 0.1);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/text-hostile/components", test_components);
  g_test_add_func ("/text-hostile/settings", test_settings);
  g_test_add_func ("/text-hostile/vocabulary", test_vocabulary);
  g_test_add_func ("/text-hostile/ids-out-of-range", test_ids_out_of_range);
  g_test_add_func ("/text-hostile/colliding-words", test_colliding_words);
  g_test_add_func ("/text-hostile/merges", test_merges);
  g_test_add_func ("/text-hostile/merges-as-strings", test_merges_as_strings);
  g_test_add_func ("/text-hostile/no-json", test_no_json);
  g_test_add_func ("/text-hostile/prefixes", test_prefixes);
  g_test_add_func ("/text-hostile/wrong-types", test_wrong_types);
  g_test_add_func ("/text-hostile/missing-members", test_missing_members);
  return g_test_run ();
}
