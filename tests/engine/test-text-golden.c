/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Several thousand strings against the ids that the reference's tokenizer library gives them, in
 * several settings of tokenizer.json, also after a detour through the keys of a GGUF file; ids
 * against the bytes they stand for; and whole chats.
 */

#include <string.h>

#include "engine/formats/gguf-settings.h"
#include "engine/formats/hf.h"
#include "engine/text/chat.h"
#include "engine/text/pattern.h"
#include "golden.h"
#include "tests/formats/gguf-tokenizer-fixture.h"
#include "test-text-toy.h"

static VlmTokenizer *
load (const gchar *name)
{
  g_autofree gchar *path = golden_path (name);
  g_autofree gchar *contents = NULL;
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GError) error = NULL;
  VlmTokenizer *tokenizer;
  gsize length;

  g_file_get_contents (path, &contents, &length, &error);
  g_assert_no_error (error);
  bytes = g_bytes_new (contents, length);
  tokenizer = vlm_tokenizer_new_from_json (bytes, name, &error);
  g_assert_no_error (error);
  return tokenizer;
}

/* The tokenizer that a GGUF file gives which a converter would make of that file. */
static VlmTokenizer *
load_from_gguf (const gchar *name)
{
  g_autoptr (GgufWriter) writer = gguf_writer_new ();
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *path = g_build_filename (directory, "text.gguf", NULL);
  g_autoptr (VlmGguf) gguf = NULL;
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GError) error = NULL;
  json_t *root = golden_json (name);
  VlmTokenizer *tokenizer;

  gguf_put_tokenizer (writer, root);
  gguf_writer_save (writer, directory, "text.gguf");
  gguf = vlm_gguf_open (path, &error);
  g_assert_no_error (error);
  bytes = vlm_gguf_make_file (gguf, NULL, VLM_HF_TOKENIZER, &error);
  g_assert_no_error (error);
  tokenizer = vlm_tokenizer_new_from_json (bytes, name, &error);
  g_assert_no_error (error);
  json_decref (root);
  fixture_directory_remove (directory);
  return tokenizer;
}

static GArray *
read_ids (const json_t *list)
{
  GArray *ids = g_array_new (FALSE, FALSE, sizeof (gint32));
  gsize i;

  g_assert_true (json_is_array (list));
  for (i = 0; i < json_array_size (list); i++) {
    gint32 id = json_integer_value (json_array_get (list, i));

    g_array_append_val (ids, id);
  }
  return ids;
}

static GString *
read_hex (const gchar *hex)
{
  GString *bytes = g_string_new (NULL);

  for (; hex[0] != '\0'; hex += 2)
    g_string_append_c (
        bytes, (gchar) (g_ascii_xdigit_value (hex[0]) * 16 + g_ascii_xdigit_value (hex[1])));
  return bytes;
}

static void
assert_equal_ids (const GArray *found, const GArray *expected, const gchar *what, const gchar *text)
{
  g_autofree gchar *left = NULL, *right = NULL, *shown = NULL;

  if (found->len == expected->len
      && (found->len == 0
          || memcmp (found->data, expected->data, found->len * sizeof (gint32)) == 0))
    return;
  left = toy_print_ids (found);
  right = toy_print_ids (expected);
  shown = g_strescape (text, NULL);
  g_error ("%s: \"%s\" gives %s, expected %s", what, shown, left, right);
}

static void
check_encode (const VlmTokenizer *t, json_t *entry)
{
  const json_t *hex = json_object_get (entry, "hex"), *special;
  g_autoptr (GString) text = NULL;
  g_autoptr (GArray) plain = read_ids (json_object_get (entry, "plain"));
  g_autoptr (GArray) obeyed = NULL, found = NULL, found_obeyed = NULL;

  text = hex != NULL ? read_hex (json_string_value (hex))
                     : g_string_new (golden_string (entry, "text"));
  special = json_object_get (entry, "special");
  obeyed = special != NULL ? read_ids (special) : g_array_ref (plain);
  found = toy_encode (t, text->str, text->len, FALSE);
  assert_equal_ids (found, plain, "plain", text->str);
  found_obeyed = toy_encode (t, text->str, text->len, TRUE);
  assert_equal_ids (found_obeyed, obeyed, "with added tokens", text->str);
}

/* The text of bytes as this engine hands it out: U+0000 becomes U+FFFD as well. */
static gchar *
text_of (const gchar *bytes, gsize length)
{
  GString *text = g_string_new (NULL);
  gsize i;

  for (i = 0; i < length; i++) {
    if (bytes[i] != '\0')
      g_string_append_c (text, bytes[i]);
    else
      g_string_append (text, "\357\277\275");
  }
  return g_string_free (text, FALSE);
}

/*
 * The reference does not know a special token again whose spelling the normalizer changed, and
 * leaves it in text that is to be without special tokens. That is not followed.
 */
static gboolean
has_respelled_special (const VlmTokenizer *t, const GArray *ids)
{
  guint i;

  for (i = 0; i < ids->len; i++) {
    gint id = g_array_index (ids, gint32, i);
    gsize length;
    const gchar *bytes = vlm_tokenizer_get_bytes (t, id, &length);

    if (vlm_tokenizer_is_special (t, id) && vlm_tokenizer_lookup (t, bytes) != id)
      return TRUE;
  }
  return FALSE;
}

static void
check_decode (const VlmTokenizer *t, json_t *entry)
{
  g_autoptr (GArray) ids = read_ids (json_object_get (entry, "ids"));
  g_autoptr (GString) bytes = read_hex (golden_string (entry, "hex")), joined = NULL;
  const gint32 *list = (const gint32 *) (gconstpointer) ids->data;
  const json_t *skipped = json_object_get (entry, "skip_special");
  g_autofree gchar *text = vlm_tokenizer_decode (t, list, ids->len, FALSE);
  g_autofree gchar *short_text = vlm_tokenizer_decode (t, list, ids->len, TRUE);
  guint i;

  joined = g_string_new (NULL);
  for (i = 0; i < ids->len; i++) {
    gsize length;
    const gchar *piece = vlm_tokenizer_get_bytes (t, list[i], &length);

    g_assert_nonnull (piece);
    g_string_append_len (joined, piece, length);
  }
  g_assert_true (g_string_equal (joined, bytes));
  /* Where the bytes are text, so is the answer; test-text-detokenizer has the other cases. */
  if (g_utf8_validate_len (bytes->str, bytes->len, NULL)) {
    g_autofree gchar *expected = text_of (bytes->str, bytes->len);

    g_assert_cmpstr (text, ==, expected);
  }
  if (skipped != NULL && !has_respelled_special (t, ids))
    g_assert_cmpstr (short_text, ==, json_string_value (skipped));
}

typedef VlmTokenizer *(*Load) (const gchar *name);

static void
check_tokenizer (const gchar *setting, Load load_tokenizer)
{
  g_autofree gchar *name = g_strdup_printf ("tokenizer/%s.json", setting);
  g_autofree gchar *file = NULL;
  json_t *golden, *entries;
  VlmTokenizer *t;
  gsize i;

  if (!golden_exists (name)) {
    g_test_skip (name);
    return;
  }
  golden = golden_json (name);
  file = g_strconcat ("tokenizer/", golden_string (golden, "tokenizer"), NULL);
  t = load_tokenizer (file);
  g_assert_cmpuint (vlm_tokenizer_get_size (t), ==, golden_int (golden, "vocab_size"));
  entries = golden_array (golden, "encode");
  g_assert_cmpuint (json_array_size (entries), >, 100);
  for (i = 0; i < json_array_size (entries); i++)
    check_encode (t, json_array_get (entries, i));
  entries = golden_array (golden, "decode");
  g_assert_cmpuint (json_array_size (entries), >, 50);
  for (i = 0; i < json_array_size (entries); i++)
    check_decode (t, json_array_get (entries, i));
  vlm_tokenizer_unref (t);
  json_decref (golden);
}

static void
test_tokenizer (gconstpointer data)
{
  check_tokenizer (data, load);
}

static void
test_gguf (gconstpointer data)
{
  check_tokenizer (data, load_from_gguf);
}

static GArray *
split (const gchar *regex, const gchar *text, gsize length)
{
  g_autoptr (GError) error = NULL;
  VlmPattern *pattern = vlm_pattern_new (regex, "test", &error);
  GArray *pieces = g_array_new (FALSE, FALSE, sizeof (VlmPiece));
  VlmPiece whole = { 0, length };

  g_assert_no_error (error);
  vlm_pattern_split (pattern, text, &whole, 1, pieces);
  vlm_pattern_free (pattern);
  return pieces;
}

/*
 * GGUF files have one name for the vocabularies of 65k and of 128k, whose tokenizer.json have regexes
 * that are spelled differently. Both cut every text alike.
 */
static void
test_regexes (void)
{
  json_t *golden = golden_json ("tokenizer/base.json");
  json_t *entries = golden_array (golden, "encode"), *entry;
  gsize i;

  json_array_foreach (entries, i, entry) {
    const json_t *hex = json_object_get (entry, "hex");
    g_autoptr (GString) text = hex != NULL ? read_hex (json_string_value (hex))
                                           : g_string_new (golden_string (entry, "text"));
    g_autoptr (GArray) pieces = split (TOY_REGEX, text->str, text->len);
    g_autoptr (GArray) other = split (TOY_REGEX_128K, text->str, text->len);

    g_assert_cmpmem (
        pieces->data, pieces->len * sizeof (VlmPiece), other->data, other->len * sizeof (VlmPiece));
  }
  json_decref (golden);
}

static void
read_picture (VlmLayout *layout, json_t *picture)
{
  guint whole = golden_int (picture, "whole_tokens");

  memset (layout, 0, sizeof *layout);
  layout->grid_rows = golden_int (picture, "grid_rows");
  layout->grid_columns = golden_int (picture, "grid_cols");
  layout->tiled = layout->grid_rows * layout->grid_columns > 1;
  layout->has_thumbnail = layout->tiled;
  layout->n_crops = layout->grid_rows * layout->grid_columns + (layout->tiled ? 1 : 0);
  layout->tile_tokens = layout->tiled ? golden_int (picture, "tile_tokens") : whole;
  layout->thumbnail_tokens = layout->tiled ? whole : 0;
}

/*
 * The text of a message into text, and its number of pictures. FALSE when a picture follows text:
 * this engine puts pictures first.
 */
static gboolean
read_content (json_t *message, GString *text, guint *n_pictures)
{
  json_t *content = json_object_get (message, "content");
  gsize i;

  *n_pictures = 0;
  if (json_is_string (content)) {
    g_string_append (text, json_string_value (content));
    return TRUE;
  }
  for (i = 0; i < json_array_size (content); i++) {
    json_t *part = json_array_get (content, i);

    if (strcmp (golden_string (part, "type"), "text") == 0)
      g_string_append (text, golden_string (part, "text"));
    else if (text->len > 0)
      return FALSE;
    else
      (*n_pictures)++;
  }
  return TRUE;
}

/* Whether the conversation is one that this engine's layout has. */
static gboolean
check_chat (const VlmTokenizer *t, const VlmChatTokens *tokens, json_t *entry)
{
  json_t *messages = golden_array (entry, "messages");
  json_t *pictures = json_object_get (entry, "pictures"), *user;
  g_autoptr (GString) system = g_string_new (NULL), prompt = g_string_new (NULL);
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (gint32)), expected = NULL;
  g_autoptr (GError) error = NULL;
  VlmLayout layouts[4];
  guint n_pictures = 0, i;

  user = json_array_get (messages, json_array_size (messages) - 1);
  if (json_array_size (messages) > 2)
    return FALSE;
  if (json_array_size (messages) == 2)
    read_content (json_array_get (messages, 0), system, &n_pictures);
  if (!read_content (user, prompt, &n_pictures))
    return FALSE;
  g_assert_cmpuint (n_pictures, ==, json_array_size (pictures));
  g_assert_cmpuint (n_pictures, <=, G_N_ELEMENTS (layouts));
  for (i = 0; i < n_pictures; i++)
    read_picture (&layouts[i], json_array_get (pictures, i));
  vlm_chat_build (t, tokens, system->str, prompt->str, layouts, n_pictures, ids, &error);
  g_assert_no_error (error);
  expected = read_ids (json_object_get (entry, "ids"));
  assert_equal_ids (ids, expected, "chat", prompt->str);
  return TRUE;
}

static void
test_chat (void)
{
  g_autoptr (GError) error = NULL;
  VlmChatTokens tokens;
  json_t *golden, *entries;
  VlmTokenizer *t;
  guint n_checked = 0;
  gsize i;

  if (!golden_exists ("chat.json")) {
    g_test_skip ("chat.json");
    return;
  }
  golden = golden_json ("chat.json");
  t = load (golden_string (golden, "tokenizer"));
  vlm_chat_tokens_init (&tokens, t, TRUE, &error);
  g_assert_no_error (error);
  entries = golden_array (golden, "entries");
  for (i = 0; i < json_array_size (entries); i++)
    n_checked += check_chat (t, &tokens, json_array_get (entries, i));
  g_test_message ("%u of %u conversations", n_checked, (guint) json_array_size (entries));
  g_assert_cmpuint (n_checked, >, 80);
  vlm_tokenizer_unref (t);
  json_decref (golden);
}

int
main (int argc, char **argv)
{
  static const gchar *const settings[] = { "base", "merges-as-strings", "ignore-merges", "replace",
    "added-flags", "moved" };
  /* Those that the keys of a GGUF file can express. */
  static const gchar *const gguf[] = { "base", "merges-as-strings", "ignore-merges", "moved" };
  guint i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < G_N_ELEMENTS (settings); i++) {
    g_autofree gchar *path = g_strconcat ("/text-golden/", settings[i], NULL);

    g_test_add_data_func (path, settings[i], test_tokenizer);
  }
  for (i = 0; i < G_N_ELEMENTS (gguf); i++) {
    g_autofree gchar *path = g_strconcat ("/text-golden/gguf/", gguf[i], NULL);

    g_test_add_data_func (path, gguf[i], test_gguf);
  }
  g_test_add_func ("/text-golden/regexes", test_regexes);
  g_test_add_func ("/text-golden/chat", test_chat);
  return g_test_run ();
}
