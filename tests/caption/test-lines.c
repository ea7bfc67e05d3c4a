/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Captions as lines of subtitles. */

#include <string.h>

#include "tools/caption/lines.h"

#define WJ "\xe2\x81\xa0"

static void
check_wrap (const gchar *text, guint columns, const gchar *expected)
{
  g_autofree gchar *lines = vlm_lines_wrap (text, columns);

  g_assert_cmpstr (lines, ==, expected);
}

static void
test_wrap (void)
{
  check_wrap ("", 10, "");
  check_wrap ("   ", 10, "");
  check_wrap ("0123456789", 10, "0123456789");
  check_wrap ("01234 6789", 10, "01234 6789");
  check_wrap ("01234 67890", 10, "01234\n67890");
  check_wrap ("a b c d e f", 3, "a b\nc d\ne f");
  check_wrap ("  a   b  ", 10, "a b");
  /* Only words longer than a line are cut, and begin on a line of their own. */
  check_wrap ("a 01234567890123456789012 b", 10, "a\n0123456789\n0123456789\n012 b");
  check_wrap ("01234567890", 10, "0123456789\n0");
  check_wrap ("abc", 0, "a\nb\nc");
  /* No break at spaces that forbid one. */
  check_wrap ("aaa bbb\xc2\xa0"
              "ccc",
      8,
      "aaa\nbbb\xc2\xa0"
      "ccc");
}

static void
test_breaks (void)
{
  check_wrap ("a\nb", 10, "a\nb");
  check_wrap ("a\n\n \n\t\nb\n", 10, "a\nb");
  check_wrap ("\r\na\r\nb\rc\vd\fe\xc2\x85"
              "f\xe2\x80\xa8g\xe2\x80\xa9h",
      10, "a\nb\nc\nd\ne\nf\ng\nh");
  check_wrap ("aaa bbb\nccc ddd", 5, "aaa\nbbb\nccc\nddd");
}

static void
test_wide (void)
{
  /* Two columns each: 世界世界, one after the other. */
  check_wrap ("世界世界", 4, "世界\n世界");
  check_wrap ("世界世界", 5, "世界\n世界");
  check_wrap ("ab世界世", 6, "ab世界\n世");
  /* Neither full stop nor sound mark begins a line. */
  check_wrap ("世界世。界", 6, "世界\n世。界");
  check_wrap ("カカー", 4, "カ\nカー");
  check_wrap ("「世」界", 4, "「世\n」界");
  /* Hangul has words, and is wide too. */
  check_wrap ("한국 한국", 6, "한국\n한국");
  check_wrap ("한국어한국어", 6, "한국어\n한국어");
  /* Combining characters take no column and are never parted from their letter. */
  check_wrap ("e\xcc\x81"
              "e\xcc\x81"
              "e\xcc\x81"
              "e\xcc\x81",
      2,
      "e\xcc\x81"
      "e\xcc\x81\ne\xcc\x81"
      "e\xcc\x81");
}

static void
test_clean (void)
{
  check_wrap ("a\x01\x1b[1mb\x7f"
              "\xc2\x9f"
              "c",
      20, "a[1mbc");
  check_wrap ("a\tb", 20, "a b");
  check_wrap ("a\xff"
              "b",
      20,
      "a\xef\xbf\xbd"
      "b");
  check_wrap ("\x01\n\x02", 20, "");
}

static void
check_srt (const gchar *text, const gchar *expected)
{
  g_autofree gchar *lines = vlm_lines_srt (text);

  g_assert_cmpstr (lines, ==, expected);
}

static void
test_srt (void)
{
  check_srt ("plain & simple, 1 > 0; R&B", "plain & simple, 1 > 0; R&B");
  check_srt ("<i>x</i>", "<" WJ "i>x<" WJ "/i>");
  check_srt ("{\\an8}x", "｛\\" WJ "an8｝x");
  check_srt ("a --> b", "a --" WJ "> b");
  check_srt ("&lt;b&gt; &#60;", "&" WJ "lt;b&" WJ "gt; &" WJ "#60;");
  check_srt ("C:\\new", "C:\\" WJ "new");
  check_srt ("a\n\nb", "a\nb");
}

/* The width of a line, counted once more. */
static guint
count_columns (const gchar *line)
{
  guint columns = 0;

  for (; *line != '\0'; line = g_utf8_next_char (line)) {
    gunichar c = g_utf8_get_char (line);

    columns += g_unichar_iszerowidth (c) ? 0 : g_unichar_iswide (c) ? 2 : 1;
  }
  return columns;
}

static gchar *
without (const gchar *text, const gchar *characters)
{
  g_auto (GStrv) pieces = g_strsplit_set (text, characters, -1);

  return g_strjoinv ("", pieces);
}

/* Whatever comes in, lines are not too wide, not empty, and lose no character that is seen. */
static void
test_random (void)
{
  static const gchar *const pieces[] = { "a", "word", " ", "  ", "\n", "世", "。", "e\xcc\x81",
    "\x01", "<", "{", "longerword", "-" };

  for (guint run = 0; run < 2000; run++) {
    g_autoptr (GString) text = g_string_new (NULL);
    g_autofree gchar *lines = NULL, *seen = NULL, *expected = NULL;
    g_auto (GStrv) split = NULL;
    guint columns = g_test_rand_int_range (2, 20), n = g_test_rand_int_range (0, 40);

    for (guint i = 0; i < n; i++)
      g_string_append (text, pieces[g_test_rand_int_range (0, G_N_ELEMENTS (pieces))]);
    lines = vlm_lines_wrap (text->str, columns);
    split = g_strsplit (lines, "\n", -1);
    for (guint i = 0; split[i] != NULL; i++) {
      g_assert_cmpuint (count_columns (split[i]), <=, columns);
      g_assert_cmpuint (strlen (split[i]), >, 0);
      g_assert_false (g_str_has_prefix (split[i], " ") || g_str_has_suffix (split[i], " "));
    }
    seen = without (lines, " \n");
    expected = without (text->str, " \n\x01");
    g_assert_cmpstr (seen, ==, expected);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/caption/lines/wrap", test_wrap);
  g_test_add_func ("/caption/lines/breaks", test_breaks);
  g_test_add_func ("/caption/lines/wide", test_wide);
  g_test_add_func ("/caption/lines/clean", test_clean);
  g_test_add_func ("/caption/lines/srt", test_srt);
  g_test_add_func ("/caption/lines/random", test_random);
  return g_test_run ();
}
