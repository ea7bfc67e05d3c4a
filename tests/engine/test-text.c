/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The encoder: pieces, merges, added tokens, broken UTF-8, long words, threads. */

#include <string.h>
#include <time.h>

#include "engine/text/pattern.h"
#include "test-text-toy.h"

/* ---- Pieces ---- */

/* The pieces of text, each followed by a bar. */
static gchar *
split (const VlmPattern *pattern, const gchar *text)
{
  g_autoptr (GArray) pieces = g_array_new (FALSE, FALSE, sizeof (VlmPiece));
  VlmPiece whole = { 0, strlen (text) };
  GString *shown = g_string_new (NULL);
  guint i;

  vlm_pattern_split (pattern, text, &whole, 1, pieces);
  for (i = 0; i < pieces->len; i++) {
    const VlmPiece *piece = &g_array_index (pieces, VlmPiece, i);

    g_string_append_len (shown, text + piece->start, piece->length);
    g_string_append_c (shown, '|');
  }
  return g_string_free (shown, FALSE);
}

static VlmPattern *
new_pattern (const gchar *regex)
{
  g_autoptr (GError) error = NULL;
  VlmPattern *pattern = vlm_pattern_new (regex, "test", &error);

  g_assert_no_error (error);
  return pattern;
}

static void
check_pieces (const gchar *regex, const gchar *const cases[][2], guint n_cases)
{
  VlmPattern *pattern = new_pattern (regex);
  guint i;

  for (i = 0; i < n_cases; i++) {
    g_autofree gchar *pieces = split (pattern, cases[i][0]);

    g_assert_cmpstr (pieces, ==, cases[i][1]);
  }
  vlm_pattern_free (pattern);
}

static void
test_pieces (void)
{
  static const gchar *const cases[][2] = {
    { "", "" },
    { "a  b", "a| | b|" },
    { "trailing  ", "trailing|  |" },
    { "def f():\n    return  x", "def| f|():\n|   | return| | x|" },
    { "123456", "123|456|" },
    { " \n x", " \n| x|" },
    { "I'M DON'T don't we'Ll", "I|'M| DON|'T| don|'t| we|'Ll|" },
    { "it's'x", "it|'s|'x|" },
    { "a\r\n\r\n  b\r\n", "a|\r\n\r\n| | b|\r\n|" },
    { "!\r\n\n?", "!\r\n\n|?|" },
    { "\302\240a\343\200\200b", "\302\240a|\343\200\200b|" },
    /* U+180E is no white space any more: a sign like others. */
    { "a \341\240\216 b", "a| \341\240\216| b|" },
    { "a \342\200\250\342\200\251 b", "a| \342\200\250\342\200\251| b|" },
    /* U+0085 is white space, but no line end to this regex. */
    { "\302\205\302\205x", "\302\205|\302\205x|" },
    { "\346\227\245\346\234\254\357\274\214x", "\346\227\245\346\234\254|\357\274\214x|" },
    { "\331\241\331\242\331\243\331\244", "\331\241\331\242\331\243|\331\244|" },
    { "<|im_end|>", "<||im|_end||>|" },
  };

  check_pieces (TOY_REGEX, cases, G_N_ELEMENTS (cases));
}

static void
test_pieces_128k (void)
{
  static const gchar *const cases[][2] = {
    { "a  b", "a| | b|" },
    { "I'M we'LL'Ve", "I|'M| we|'LL|'Ve|" },
    { "a\n\n\nb", "a|\n\n\n|b|" },
    { "a \n \nb", "a| \n \n|b|" },
    { "1234 'sx", "123|4| '|sx|" },
  };

  check_pieces (TOY_REGEX_128K, cases, G_N_ELEMENTS (cases));
}

static void
test_pieces_of_empty_matches (void)
{
  static const gchar *const cases[][2] = {
    { "abc", "a|b|c|" },
    { "\303\251a", "\303\251|a|" },
  };
  static const gchar *const ahead[][2] = {
    { "xb", "x|b|" },
    { "bxxbb", "bxx|b|b|" },
  };

  check_pieces ("x*?", cases, G_N_ELEMENTS (cases));
  check_pieces ("(?=b)", ahead, G_N_ELEMENTS (ahead));
}

/* U+322B is Common, though Han text uses it: a script is the script property and no more. */
static void
test_scripts (void)
{
  static const gchar *const han[][2] = {
    { "\346\227\245\343\210\253\346\234\254x", "\346\227\245|\343\210\253|\346\234\254|x|" },
  };
  static const gchar *const others[][2] = {
    { "\346\227\245\343\210\253xy\346\227\245", "\346\227\245|\343\210\253|x|y|\346\227\245|" },
  };

  check_pieces ("\\p{Han}", han, G_N_ELEMENTS (han));
  check_pieces ("\\P{Han}", others, G_N_ELEMENTS (others));
  check_pieces ("[^\\p{Han}\\p{^Lo}]|\\p{^Han}", others, G_N_ELEMENTS (others));
}

/* Every code point against the list of White_Space, in and out of classes, plain and negated. */
static void
test_white_space (void)
{
  static const gchar *const regexes[] = { "\\s", "[\\s]", "[^\\S]", "[x\\s-]" };
  static const gchar *const negated[] = { "\\S", "[\\S]", "[^\\s]", "[^\\sx]" };
  static const gunichar spaces[] = { 9, 10, 11, 12, 13, 0x20, 0x85, 0xa0, 0x1680, 0x2000, 0x2001,
    0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a, 0x2028, 0x2029, 0x202f,
    0x205f, 0x3000 };
  GString *text = g_string_new (NULL);
  g_autoptr (GArray) pieces = g_array_new (FALSE, FALSE, sizeof (VlmPiece));
  gunichar c;
  guint i, k, n_others = 0;

  /* Each space between two letters, then each other character between two spaces. */
  for (c = 1; c < 0x30000; c++) {
    gboolean space = FALSE;

    for (k = 0; k < G_N_ELEMENTS (spaces); k++)
      space |= spaces[k] == c;
    if ((c >= 0xd800 && c < 0xe000) || c == 'x' || c == '-')
      continue;
    if (space) {
      g_string_append_c (text, 'a');
      n_others++;
    }
    g_string_append_unichar (text, c);
    if (space) {
      g_string_append_c (text, 'a');
      n_others++;
    } else {
      n_others++;
    }
  }
  for (i = 0; i < G_N_ELEMENTS (regexes); i++) {
    VlmPattern *pattern = new_pattern (regexes[i]), *other = new_pattern (negated[i]);
    VlmPiece whole = { 0, text->len };

    /* One piece for each space, one for each stretch between two of them. */
    g_array_set_size (pieces, 0);
    vlm_pattern_split (pattern, text->str, &whole, 1, pieces);
    g_assert_cmpuint (pieces->len, ==, 2 * G_N_ELEMENTS (spaces) + 1);
    /* One for each other character, one for each space. */
    g_array_set_size (pieces, 0);
    vlm_pattern_split (other, text->str, &whole, 1, pieces);
    g_assert_cmpuint (pieces->len, ==, n_others + G_N_ELEMENTS (spaces));
    vlm_pattern_free (pattern);
    vlm_pattern_free (other);
  }
  g_string_free (text, TRUE);
}

static void
test_refused_regexes (void)
{
  static const gchar *const regexes[] = { "^a", "a$", "\\h", "\\w", "\\R", "\\Ka", "(a)\\1",
    "[[a]b]", "[a&&b]", "a{1,3}+", "a{1}?", "a{,3}", "(?m:a)", "(?i)a", "(*FAIL)", "(*UTF)a", "[a",
    "(a", "a)", "[a-\\s]", "[\\s-a]", "[[:alpha:]]", "\\p{Nonsense}", "\\p{Xan}", "\\p{sc:Han}",
    "\\pL", "a\\", "[a\\", "(?<n>a)", "(?#x)", "\\x41", "\\u12", "\\v", "\\Qa\\E", "*a", "[z-a]",
    "(?<=a*)b", "\\x{d800}", "\\x{110000}" };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (regexes); i++) {
    g_autoptr (GError) error = NULL;
    VlmPattern *pattern = vlm_pattern_new (regexes[i], "some field", &error);

    if (pattern != NULL)
      g_error ("not refused: %s", regexes[i]);
    g_assert_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED);
    g_assert_nonnull (strstr (error->message, "some field: "));
  }
}

/* Backtracking without end must end: the rest then stays uncut. */
static void
test_endless_regex (void)
{
  VlmPattern *pattern = new_pattern ("(?:a+a+)+b|c");
  g_autofree gchar *text = g_strnfill (4000, 'a');
  g_autofree gchar *longer = g_strconcat ("c", text, NULL);
  g_autofree gchar *pieces = split (pattern, longer);

  g_assert_true (g_str_has_prefix (pieces, "c|aaa"));
  g_assert_cmpuint (strlen (pieces), ==, 4003);
  vlm_pattern_free (pattern);
}

/* Each turn of the group is remembered: too much for the stack of compiled code, not a failure. */
static void
test_deep_match (void)
{
  VlmPattern *pattern = new_pattern ("(?:a|b|aa)+|c");
  g_autofree gchar *text = g_strnfill (100000, 'a');
  g_autofree gchar *longer = g_strconcat ("c", text, "c", NULL);
  g_autofree gchar *pieces = split (pattern, longer);
  g_autofree gchar *expected = g_strconcat ("c|", text, "|c|", NULL);

  g_assert_cmpstr (pieces, ==, expected);
  vlm_pattern_free (pattern);
}

/* ---- Merges ---- */

static void
test_merge_order (void)
{
  json_t *toy = toy_new (TOY_REGEX);
  VlmTokenizer *t;

  /* Ids: "bc" 256, "ab" 257, "cd" 258, "abcd" 259, "aa" 260. */
  toy_add_merge (toy, "b", "c");
  toy_add_merge (toy, "a", "b");
  toy_add_merge (toy, "c", "d");
  toy_add_merge (toy, "ab", "cd");
  toy_add_merge (toy, "a", "a");
  t = toy_finish (toy);
  toy_assert_ids (t, "abc", -1, FALSE, "97 256");
  toy_assert_ids (t, "abcd", -1, FALSE, "97 256 100");
  toy_assert_ids (t, "ab cd", -1, FALSE, "257 32 258");
  /* Equal ranks go from left to right. */
  toy_assert_ids (t, "aaaaa", -1, FALSE, "260 260 97");
  toy_assert_ids (t, "aab", -1, FALSE, "97 257");
  toy_assert_ids (t, "", -1, FALSE, "");
  vlm_tokenizer_unref (t);
}

/* Merges do not reach over the edges of pieces. */
static void
test_pieces_bound_merges (void)
{
  json_t *toy = toy_new (TOY_REGEX);
  VlmTokenizer *t;

  toy_add_merge (toy, "\304\240", "\304\240"); /* two spaces: 256 */
  toy_add_merge (toy, "\304\240", "b");        /* " b": 257 */
  toy_add_merge (toy, "3", "4");               /* 258 */
  toy_add_merge (toy, "n", "'");               /* 259 */
  t = toy_finish (toy);
  toy_assert_ids (t, "a  b", -1, FALSE, "97 32 257");
  toy_assert_ids (t, "  ", -1, FALSE, "256");
  toy_assert_ids (t, "a   ", -1, FALSE, "97 256 32");
  toy_assert_ids (t, "123456", -1, FALSE, "49 50 51 52 53 54");
  toy_assert_ids (t, "234", -1, FALSE, "50 258");
  toy_assert_ids (t, "don't", -1, FALSE, "100 111 110 39 116");
  vlm_tokenizer_unref (t);
}

/* Merging by the definition: of all neighbours the lowest rank, leftmost, again and again. */
static void
merge_plainly (GPtrArray *word, GHashTable *ranks)
{
  for (;;) {
    g_autofree gchar *whole = NULL;
    guint best = G_MAXUINT, at = 0, i;

    for (i = 0; i + 1 < word->len; i++) {
      g_autofree gchar *pair = g_strconcat (word->pdata[i], " ", word->pdata[i + 1], NULL);
      guint rank = GPOINTER_TO_UINT (g_hash_table_lookup (ranks, pair));

      if (rank > 0 && rank < best) {
        best = rank;
        at = i;
      }
    }
    if (best == G_MAXUINT)
      return;
    whole = g_strconcat (word->pdata[at], word->pdata[at + 1], NULL);
    word->pdata[at] = (gpointer) g_intern_string (whole);
    g_ptr_array_remove_index (word, at + 1);
  }
}

/* Random tables of merges over three letters, random words. */
static void
test_merges_against_definition (void)
{
  GRand *rand = g_rand_new_with_seed (7);
  guint round, i, n;

  for (round = 0; round < 20; round++) {
    json_t *toy = toy_new (TOY_REGEX);
    g_autoptr (GHashTable) ranks = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr (GPtrArray) known = g_ptr_array_new_with_free_func (g_free);
    VlmTokenizer *t;

    g_ptr_array_add (known, g_strdup ("a"));
    g_ptr_array_add (known, g_strdup ("b"));
    g_ptr_array_add (known, g_strdup ("c"));
    while (known->len < 30) {
      const gchar *left = known->pdata[g_rand_int_range (rand, 0, known->len)];
      const gchar *right = known->pdata[g_rand_int_range (rand, 0, known->len)];
      gchar *whole = g_strconcat (left, right, NULL);

      /* One way to make each piece: what two ways do is the reference's own affair. */
      if (g_ptr_array_find_with_equal_func (known, whole, g_str_equal, NULL)) {
        g_free (whole);
        continue;
      }
      toy_add_merge (toy, left, right);
      g_ptr_array_add (known, whole);
      g_hash_table_insert (
          ranks, g_strconcat (left, " ", right, NULL), GUINT_TO_POINTER (known->len));
    }
    t = toy_finish (toy);
    for (n = 0; n < 50; n++) {
      g_autoptr (GPtrArray) word = g_ptr_array_new ();
      g_autoptr (GString) text = g_string_new (NULL);
      g_autoptr (GArray) ids = NULL;

      for (i = g_rand_int_range (rand, 1, 40); i > 0; i--) {
        g_string_append_c (text, "abc"[g_rand_int_range (rand, 0, 3)]);
        g_ptr_array_add (word, (gpointer) g_intern_string (text->str + text->len - 1));
      }
      merge_plainly (word, ranks);
      ids = toy_encode (t, text->str, -1, FALSE);
      g_assert_cmpuint (ids->len, ==, word->len);
      for (i = 0; i < word->len; i++)
        g_assert_cmpint (
            g_array_index (ids, gint32, i), ==, vlm_tokenizer_lookup (t, word->pdata[i]));
    }
    vlm_tokenizer_unref (t);
  }
  g_rand_free (rand);
}

static void
test_ignore_merges (void)
{
  json_t *toy = toy_new (TOY_REGEX);
  VlmTokenizer *t;

  toy_add_merge (toy, "x", "y");      /* 256 */
  toy_add_piece (toy, "xyz");         /* 257, out of reach of the merges */
  toy_add_piece (toy, "\304\240xyz"); /* 258 */
  t = toy_load (toy, NULL);
  toy_assert_ids (t, "xyz xyz", -1, FALSE, "256 122 32 256 122");
  vlm_tokenizer_unref (t);
  json_object_set_new (json_object_get (toy, "model"), "ignore_merges", json_true ());
  t = toy_finish (toy);
  toy_assert_ids (t, "xyz xyz xyzx", -1, FALSE, "257 258 32 256 122 120");
  vlm_tokenizer_unref (t);
}

static void
test_unknown (void)
{
  json_t *toy = toy_new (TOY_REGEX), *model = json_object_get (toy, "model");
  VlmTokenizer *t;

  json_object_del (json_object_get (model, "vocab"), "q");
  json_object_set_new (json_object_get (model, "vocab"), "<unk>", json_integer (300));
  t = toy_load (toy, NULL);
  toy_assert_ids (t, "aqqb", -1, FALSE, "97 98");
  vlm_tokenizer_unref (t);
  json_object_set_new (model, "unk_token", json_string ("<unk>"));
  t = toy_load (toy, NULL);
  toy_assert_ids (t, "aqqbq", -1, FALSE, "97 300 300 98 300");
  vlm_tokenizer_unref (t);
  json_object_set_new (model, "fuse_unk", json_true ());
  t = toy_finish (toy);
  toy_assert_ids (t, "aqqbq", -1, FALSE, "97 300 98 300");
  vlm_tokenizer_unref (t);
}

/* An unbroken word: time must not grow with the square of its length. */
static void
test_long_word (void)
{
  json_t *toy = toy_new (TOY_REGEX);
  gsize n = 300000, i;
  g_autofree gchar *text = g_malloc (n + 1);
  GRand *rand = g_rand_new_with_seed (3);
  VlmTokenizer *t;
  clock_t start;

  toy_add_merge (toy, "a", "b");
  toy_add_merge (toy, "b", "a");
  toy_add_merge (toy, "ab", "ab");
  toy_add_merge (toy, "abab", "abab");
  toy_add_merge (toy, "a", "a");
  t = toy_finish (toy);
  for (i = 0; i < n; i++)
    text[i] = 'a' + g_rand_int_range (rand, 0, 2);
  text[n] = '\0';
  start = clock ();
  g_array_unref (toy_encode (t, text, n, TRUE));
  memset (text, 'a', n);
  g_array_unref (toy_encode (t, text, n, FALSE));
  memset (text, ' ', n);
  g_array_unref (toy_encode (t, text, n, FALSE));
  text[n - 1] = 'x';
  g_array_unref (toy_encode (t, text, n, FALSE));
  g_test_message ("%.3f s", (gdouble) (clock () - start) / CLOCKS_PER_SEC);
  g_assert_cmpfloat ((gdouble) (clock () - start) / CLOCKS_PER_SEC, <, 20.0);
  g_rand_free (rand);
  vlm_tokenizer_unref (t);
}

/* ---- Broken UTF-8 ---- */

static void
test_invalid_utf8 (void)
{
  static const gchar *const cases[][2] = {
    { "\377", "\357\277\275" },
    { "a\300\200b", "a\357\277\275\357\277\275b" },
    { "\355\240\200", "\357\277\275\357\277\275\357\277\275" },
    { "\364\220\200\200", "\357\277\275\357\277\275\357\277\275\357\277\275" },
    { "caf\303", "caf\357\277\275" },
    { "\360\237\230", "\357\277\275" },
    { "\360\237\230x", "\357\277\275x" },
    { "\342\202\342\202\254", "\357\277\275\342\202\254" },
    { "\200\200", "\357\277\275\357\277\275" },
  };
  VlmTokenizer *t = toy_finish (toy_new (TOY_REGEX));
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GArray) expected = toy_encode (t, cases[i][1], -1, FALSE);
    g_autofree gchar *printed = toy_print_ids (expected);

    toy_assert_ids (t, cases[i][0], -1, FALSE, printed);
    toy_assert_ids (t, cases[i][0], -1, TRUE, printed);
  }
  /* A length may cut a character, and U+0000 is a character. */
  toy_assert_ids (t, "\303\251", 1, FALSE, "239 191 189");
  toy_assert_ids (t, "a\0b", 3, FALSE, "97 0 98");
  vlm_tokenizer_unref (t);
}

/* ---- Added tokens ---- */

static void
test_added_tokens (void)
{
  json_t *toy = toy_new (TOY_REGEX);
  VlmTokenizer *t;

  toy_add_merge (toy, "b", "a");        /* 256 */
  toy_add_merge (toy, "\304\240", "b"); /* 257 */
  toy_add_token (toy, "<a>", TRUE);     /* 258 */
  toy_add_token (toy, "<a><b>", TRUE);  /* 259 */
  toy_add_token (toy, "a>", FALSE);     /* 260 */
  toy_add_token (toy, "<a><", FALSE);   /* 261 */
  t = toy_finish (toy);
  toy_assert_ids (t, "<a>", -1, TRUE, "258");
  toy_assert_ids (t, "<a>", -1, FALSE, "60 97 62");
  toy_assert_ids (t, "<a><b>", -1, TRUE, "259");
  toy_assert_ids (t, "<a><a>", -1, TRUE, "261 260");
  toy_assert_ids (t, "ba>ba", -1, TRUE, "98 260 256");
  toy_assert_ids (t, "<a> b", -1, TRUE, "258 257");
  toy_assert_ids (t, "<a>  b<a>  ", -1, TRUE, "258 32 257 258 32 32");
  toy_assert_ids (t, "<", -1, TRUE, "60");
  g_assert_cmpint (vlm_tokenizer_lookup (t, "<a>"), ==, 258);
  g_assert_cmpint (vlm_tokenizer_lookup (t, "ba"), ==, 256);
  g_assert_cmpint (vlm_tokenizer_lookup (t, "nowhere"), ==, -1);
  g_assert_true (vlm_tokenizer_is_special (t, 258));
  g_assert_false (vlm_tokenizer_is_special (t, 260));
  g_assert_false (vlm_tokenizer_is_special (t, -1));
  g_assert_false (vlm_tokenizer_is_special (t, G_MAXINT));
  g_assert_cmpuint (vlm_tokenizer_get_size (t), ==, 262);
  vlm_tokenizer_unref (t);
}

static void
set_flag (json_t *toy, const gchar *flag)
{
  json_object_set_new (toy_last_token (toy), flag, json_true ());
}

static void
test_added_flags (void)
{
  json_t *toy = toy_new (TOY_REGEX);
  VlmTokenizer *t;

  toy_add_token (toy, "<l>", TRUE); /* 256 */
  set_flag (toy, "lstrip");
  toy_add_token (toy, "<r>", TRUE); /* 257 */
  set_flag (toy, "rstrip");
  toy_add_token (toy, "wo", FALSE); /* 258 */
  set_flag (toy, "single_word");
  toy_add_token (toy, "\n\n", FALSE); /* 259; nothing is left of it where <r> was before it */
  set_flag (toy, "lstrip");
  t = toy_finish (toy);
  toy_assert_ids (t, "a \n<l> b", -1, TRUE, "97 256 32 98");
  toy_assert_ids (t, "a <r>\302\240\n b", -1, TRUE, "97 32 257 98");
  toy_assert_ids (t, "<r> <l>", -1, TRUE, "257 256");
  toy_assert_ids (t, "a<r> \n\nb", -1, TRUE, "97 257 98");
  toy_assert_ids (t, "a\n\nb", -1, TRUE, "97 259 98");
  toy_assert_ids (t, "wo awo woa wo1 wo_ wo.", -1, TRUE,
      "258 32 97 119 111 32 119 111 97 32 119 111 49 32 119 111 95 32 258 46");
  toy_assert_ids (t, "\303\251wo wo\303\251", -1, TRUE, "195 169 119 111 32 119 111 195 169");
  vlm_tokenizer_unref (t);
}

static void
test_normalizer (void)
{
  json_t *toy = toy_new (TOY_REGEX);
  VlmTokenizer *t;

  json_object_set_new (toy, "normalizer",
      json_pack ("{s:s, s:[{s:s, s:{s:s}, s:s}, {s:s, s:{s:s}, s:s}]}", "type", "Sequence",
          "normalizers", "type", "Replace", "pattern", "String", "\342\200\246", "content", "...",
          "type", "Replace", "pattern", "String", "aa", "content", "a"));
  toy_add_token (toy, "<raw\342\200\246>", TRUE);    /* 256 */
  toy_add_token (toy, "<normal\342\200\246>", TRUE); /* 257 */
  set_flag (toy, "normalized");
  t = toy_finish (toy);
  toy_assert_ids (t, "x\342\200\246", -1, FALSE, "120 46 46 46");
  toy_assert_ids (t, "aaaaa", -1, FALSE, "97 97 97");
  toy_assert_ids (t, "<raw\342\200\246>", -1, TRUE, "256");
  toy_assert_ids (t, "<raw...>", -1, TRUE, "60 114 97 119 46 46 46 62");
  toy_assert_ids (t, "<normal\342\200\246>", -1, TRUE, "257");
  toy_assert_ids (t, "<normal...>aa", -1, TRUE, "257 97");
  g_assert_cmpint (vlm_tokenizer_lookup (t, "<normal\342\200\246>"), ==, 257);
  vlm_tokenizer_unref (t);
}

/* Plain text never gives a special id, even when vocabulary and merges lead to one. */
static void
test_plain_text_stays_plain (void)
{
  json_t *toy = toy_new (TOY_REGEX);
  json_t *model = json_object_get (toy, "model");
  VlmTokenizer *t;
  gint end, ignore;

  toy_add_merge (toy, "e", "n");        /* 256 */
  end = toy_add_merge (toy, "en", "d"); /* 257 */
  json_array_append_new (json_object_get (toy, "added_tokens"),
      json_pack ("{s:i, s:s, s:b}", "id", end, "content", "end", "special", TRUE));
  for (ignore = 0; ignore < 2; ignore++) {
    json_object_set_new (model, "ignore_merges", json_boolean (ignore));
    t = toy_load (toy, NULL);
    toy_assert_ids (t, "end", -1, TRUE, "257");
    toy_assert_ids (t, "end", -1, FALSE, "256 100");
    vlm_tokenizer_unref (t);
  }
  json_decref (toy);
}

/* ---- Threads ---- */

static gpointer
encode_often (gpointer data)
{
  VlmTokenizer *t = data;
  guint i;

  for (i = 0; i < 300; i++)
    toy_assert_ids (t, "ab <a>ba b", -1, TRUE, "256 32 258 257 32 98");
  vlm_tokenizer_unref (t);
  return NULL;
}

static void
test_threads (void)
{
  json_t *toy = toy_new (TOY_REGEX);
  GThread *threads[4];
  VlmTokenizer *t;
  guint i;

  toy_add_merge (toy, "a", "b");
  toy_add_merge (toy, "b", "a");
  toy_add_token (toy, "<a>", TRUE);
  t = toy_finish (toy);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("encode", encode_often, vlm_tokenizer_ref (t));
  vlm_tokenizer_unref (t);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/text/pieces", test_pieces);
  g_test_add_func ("/text/pieces-128k", test_pieces_128k);
  g_test_add_func ("/text/pieces-of-empty-matches", test_pieces_of_empty_matches);
  g_test_add_func ("/text/scripts", test_scripts);
  g_test_add_func ("/text/white-space", test_white_space);
  g_test_add_func ("/text/refused-regexes", test_refused_regexes);
  g_test_add_func ("/text/endless-regex", test_endless_regex);
  g_test_add_func ("/text/deep-match", test_deep_match);
  g_test_add_func ("/text/merge-order", test_merge_order);
  g_test_add_func ("/text/pieces-bound-merges", test_pieces_bound_merges);
  g_test_add_func ("/text/merges-against-definition", test_merges_against_definition);
  g_test_add_func ("/text/ignore-merges", test_ignore_merges);
  g_test_add_func ("/text/unknown", test_unknown);
  g_test_add_func ("/text/long-word", test_long_word);
  g_test_add_func ("/text/invalid-utf8", test_invalid_utf8);
  g_test_add_func ("/text/added-tokens", test_added_tokens);
  g_test_add_func ("/text/added-flags", test_added_flags);
  g_test_add_func ("/text/normalizer", test_normalizer);
  g_test_add_func ("/text/plain-text-stays-plain", test_plain_text_stays_plain);
  g_test_add_func ("/text/threads", test_threads);
  return g_test_run ();
}
