/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "lines.h"

#include <string.h>

#define WORD_JOINER "\xe2\x81\xa0"
#define WIDE_LEFT_BRACE "\xef\xbd\x9b"
#define WIDE_RIGHT_BRACE "\xef\xbd\x9d"

static gboolean
is_line_break (gunichar c)
{
  return c == '\n' || c == '\v' || c == '\f' || c == '\r' || c == 0x85 || c == 0x2028
      || c == 0x2029;
}

/* Spaces at which a line may be broken. */
static gboolean
is_space (gunichar c)
{
  return g_unichar_isspace (c) && !is_line_break (c) && c != 0xa0 && c != 0x2007 && c != 0x202f;
}

static guint
char_columns (gunichar c)
{
  if (g_unichar_iszerowidth (c))
    return 0;
  return g_unichar_iswide (c) ? 2 : 1;
}

/* Whether c is of a script that is written without spaces, and may begin a line. */
static gboolean
is_ideograph (gunichar c)
{
  GUnicodeScript script;

  if (g_unichar_type (c) != G_UNICODE_OTHER_LETTER || !g_unichar_iswide (c))
    return FALSE;
  script = g_unichar_get_script (c);
  return script == G_UNICODE_SCRIPT_HAN || script == G_UNICODE_SCRIPT_HIRAGANA
      || script == G_UNICODE_SCRIPT_KATAKANA;
}

/* Whether what follows `before` without a space may stand on the next line. */
static gboolean
may_part (gunichar before, gunichar c)
{
  return g_unichar_iswide (before) && g_unichar_type (before) != G_UNICODE_OPEN_PUNCTUATION
      && is_ideograph (c);
}

/* The end of the word at `word`, which is no space, and its width. */
static const gchar *
word_end (const gchar *word, guint *columns)
{
  const gchar *at = word;
  gunichar before = 0;

  *columns = 0;
  while (*at != '\0') {
    gunichar c = g_utf8_get_char (at);

    if (is_space (c) || (at > word && may_part (before, c)))
      break;
    *columns += char_columns (c);
    before = c;
    at = g_utf8_next_char (at);
  }
  return at;
}

/*
 * As much of a word as fits a line; at least one character, with what combines with it. width, the
 * word's, becomes that of the rest.
 */
static const gchar *
cut_word (const gchar *word, const gchar *end, guint columns, guint *width)
{
  const gchar *at = word;
  guint taken = 0;

  while (at < end) {
    guint more = char_columns (g_utf8_get_char (at));

    if (at > word && more > 0 && taken + more > columns)
      break;
    taken += more;
    at = g_utf8_next_char (at);
  }
  *width -= taken;
  return at;
}

/* Lines in the making. */
typedef struct
{
  GString *out;
  guint columns;
  guint used; /* columns of the last line */
  gboolean begun;
} Wrap;

static void
break_line (Wrap *wrap)
{
  g_string_append_c (wrap->out, '\n');
  wrap->used = 0;
  wrap->begun = FALSE;
}

/* Adds a word of that width, after a space if it is not the first of its line. */
static void
add_word (Wrap *wrap, const gchar *word, const gchar *end, guint width, gboolean space)
{
  if (wrap->begun && wrap->used + space + width > wrap->columns) {
    break_line (wrap);
  } else if (wrap->begun && space) {
    g_string_append_c (wrap->out, ' ');
    wrap->used++;
  }
  while (width > wrap->columns) {
    const gchar *cut = cut_word (word, end, wrap->columns, &width);

    g_string_append_len (wrap->out, word, cut - word);
    word = cut;
    if (word < end)
      break_line (wrap);
  }
  g_string_append_len (wrap->out, word, end - word);
  wrap->used += width;
  wrap->begun = TRUE;
}

static void
wrap_line (Wrap *wrap, const gchar *line)
{
  const gchar *at = line;

  while (*at != '\0') {
    const gchar *word = at, *end;
    guint width;

    while (is_space (g_utf8_get_char (word)))
      word = g_utf8_next_char (word);
    if (*word == '\0')
      return;
    if (at == line && wrap->out->len > 0)
      break_line (wrap);
    end = word_end (word, &width);
    add_word (wrap, word, end, width, word > at);
    at = end;
  }
}

/* Valid text whose only control characters are "\n", as line breaks. */
static gchar *
clean (const gchar *text)
{
  g_autofree gchar *valid = g_utf8_make_valid (text, -1);
  GString *out = g_string_new (NULL);

  for (const gchar *at = valid; *at != '\0'; at = g_utf8_next_char (at)) {
    gunichar c = g_utf8_get_char (at);

    if (is_line_break (c))
      g_string_append_c (out, '\n');
    else if (c == '\t')
      g_string_append_c (out, ' ');
    else if (!g_unichar_iscntrl (c))
      g_string_append_unichar (out, c);
  }
  return g_string_free (out, FALSE);
}

static gchar *
wrap_clean (const gchar *text, guint columns)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  Wrap wrap = { g_string_new (NULL), MAX (columns, 1), 0, FALSE };

  for (guint i = 0; lines[i] != NULL; i++)
    wrap_line (&wrap, lines[i]);
  return g_string_free (wrap.out, FALSE);
}

gchar *
vlm_lines_wrap (const gchar *text, guint columns)
{
  g_autofree gchar *cleaned = clean (text);

  return wrap_clean (cleaned, columns);
}

/* Whether the ampersand there begins what a player may take for an entity. */
static gboolean
is_entity (const gchar *at)
{
  gsize length = strspn (at + 1, "#0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

  return length > 0 && at[1 + length] == ';';
}

gchar *
vlm_lines_srt (const gchar *text)
{
  g_autofree gchar *cleaned = clean (text);
  g_autoptr (GString) out = g_string_new (NULL);

  for (const gchar *at = cleaned; *at != '\0'; at++) {
    if (*at == '{') {
      g_string_append (out, WIDE_LEFT_BRACE);
    } else if (*at == '}') {
      g_string_append (out, WIDE_RIGHT_BRACE);
    } else if (*at == '<' || *at == '\\' || (*at == '&' && is_entity (at))) {
      g_string_append_c (out, *at);
      g_string_append (out, WORD_JOINER);
    } else if (*at == '>' && at > cleaned && at[-1] == '-') {
      g_string_append (out, WORD_JOINER ">");
    } else {
      g_string_append_c (out, *at);
    }
  }
  return wrap_clean (out->str, VLM_LINE_COLUMNS);
}
