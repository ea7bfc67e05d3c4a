/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "wording.h"

#define ELLIPSIS "\xe2\x80\xa6"

static gboolean
ends_sentence (gunichar c)
{
  return c == '.' || c == '!' || c == '?' || c == 0x2026 || c == 0x3002 || c == 0xff01
      || c == 0xff1f;
}

/* Full-width marks stand without a blank after them. */
static gboolean
needs_blank (gunichar c)
{
  return c < 0x3000;
}

static gboolean
closes (gunichar c)
{
  return c == '"' || c == '\'' || c == ')' || c == 0x201d || c == 0x2019 || c == 0xbb
      || c == 0x300d;
}

/*
 * The end of the sentence whose last mark is at mark, with the quotes that close after it; NULL if
 * it is none: "3.5", "J. Smith", or a full stop after a digit at the cut, which may be "3.5", too.
 */
static const gchar *
get_sentence_end (const gchar *text, const gchar *mark)
{
  const gchar *before = mark > text ? g_utf8_prev_char (mark) : NULL;
  const gchar *end = g_utf8_next_char (mark);
  gunichar c = g_utf8_get_char (mark);
  gunichar last = before != NULL ? g_utf8_get_char (before) : 0;
  gboolean initial;

  if (before == NULL || g_unichar_isspace (last))
    return NULL;
  while (*end != '\0' && closes (g_utf8_get_char (end)))
    end = g_utf8_next_char (end);
  if (!needs_blank (c))
    return end;

  if (*end != '\0' && !g_unichar_isspace (g_utf8_get_char (end)))
    return NULL;
  if (*end == '\0' && c == '.' && g_unichar_isdigit (last))
    return NULL;
  initial = c == '.' && g_unichar_isupper (last)
      && (before == text || !g_unichar_isalpha (g_utf8_get_char (g_utf8_prev_char (before))));

  return initial ? NULL : end;
}

static const gchar *
find_last_sentence (const gchar *text)
{
  const gchar *found = NULL;
  const gchar *p;

  for (p = text; *p != '\0'; p = g_utf8_next_char (p)) {
    const gchar *end = ends_sentence (g_utf8_get_char (p)) ? get_sentence_end (text, p) : NULL;

    if (end != NULL)
      found = end;
  }
  return found;
}

/* Where the last word begins, blanks before it included; NULL if there is only one. */
static const gchar *
find_last_word (const gchar *text)
{
  const gchar *p = text + strlen (text);

  while (p > text) {
    p = g_utf8_prev_char (p);
    if (g_unichar_isspace (g_utf8_get_char (p)))
      return p > text ? p : NULL;
  }
  return NULL;
}

/* Takes away blanks and marks that an ellipsis does not go with. */
static void
trim_end (GString *text)
{
  while (text->len > 0) {
    const gchar *last = g_utf8_prev_char (text->str + text->len);
    gunichar c = g_utf8_get_char (last);

    if (!g_unichar_isspace (c) && strchr (",;:-.", (gint) MIN (c, 127)) == NULL)
      return;
    g_string_truncate (text, last - text->str);
  }
}

gchar *
gst_vlm_wording_round_off (const gchar *text)
{
  const gchar *end = find_last_sentence (text);
  GString *shown;

  if (end != NULL || *text == '\0')
    return g_strndup (text, end != NULL ? (gsize) (end - text) : 0);

  end = find_last_word (text);
  shown = g_string_new_len (text, end != NULL ? end - text : (gssize) strlen (text));
  trim_end (shown);
  g_string_append (shown, ELLIPSIS);

  return g_string_free (shown, FALSE);
}
