/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The dialect of tokenizer.json, Oniguruma's Ruby syntax, and PCRE2's differ in ways that would go
 * unnoticed: ^ and $ are about lines, \h is a hexadecimal digit, classes nest, {1,3}+ is not
 * possessive, \w has other members. So this is a list of what is let through, not of what is not.
 */

#include "pattern.h"

#include <string.h>

#include "engine/vlm.h"

/* White_Space. PCRE2's own \s has U+180E as well in the versions that need this. */
#define SPACE                                                                                      \
  "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}"               \
  "\\x{202f}\\x{205f}\\x{3000}"
#define NOT_SPACE                                                                                  \
  "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}"                     \
  "\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}"                   \
  "\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"

typedef struct
{
  const gchar *at; /* what comes next */
  GString *out;
} Translator;

static void
copy (Translator *t, gsize length)
{
  g_string_append_len (t->out, t->at, length);
  t->at += length;
}

/*
 * \p{Name}, \P{Name}, \p{^Name}: general categories, and scripts. Of the latter PCRE2 would also
 * take the characters that a script shares with others, unless told not to.
 */
static gboolean
translate_property (Translator *t)
{
  const gchar *p = t->at + 2, *name;
  gsize n;

  if (*p++ != '{')
    return FALSE;
  name = *p == '^' ? p + 1 : p;
  n = strspn (name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_");
  if (n == 0 || name[n] != '}')
    return FALSE;
  copy (t, name - t->at);
  if (n > 2)
    g_string_append (t->out, "sc:");
  copy (t, n + 1);
  return TRUE;
}

/* \x{H...} and \uHHHH */
static gboolean
translate_code_point (Translator *t)
{
  gboolean braces = t->at[1] == 'x';
  const gchar *digits = t->at + (braces ? 3 : 2);
  gsize n = strspn (digits, "0123456789abcdefABCDEF");

  if (braces ? t->at[2] != '{' || n < 1 || n > 6 || digits[n] != '}' : n < 4)
    return FALSE;
  if (!braces)
    n = 4;
  g_string_append_printf (t->out, "\\x{%.*s}", (int) n, digits);
  t->at = digits + n + (braces ? 1 : 0);
  return TRUE;
}

/* set tells whether the escape stood for more than one character. */
static gboolean
translate_escape (Translator *t, gboolean in_class, gboolean *set)
{
  gchar c = t->at[1];

  *set = c != '\0' && strchr ("sSdDpP", c) != NULL;
  switch (c) {
    case 's':
      g_string_append (t->out, in_class ? SPACE : "[" SPACE "]");
      t->at += 2;
      return TRUE;
    case 'S':
      g_string_append (t->out, in_class ? NOT_SPACE : "[^" SPACE "]");
      t->at += 2;
      return TRUE;
    case 'p':
    case 'P':
      return translate_property (t);
    case 'x':
    case 'u':
      return translate_code_point (t);
    case 'd':
    case 'D':
    case 'r':
    case 'n':
    case 't':
    case 'f':
      copy (t, 2);
      return TRUE;
    default:
      if (!g_ascii_ispunct (c))
        return FALSE;
      copy (t, 2);
      return TRUE;
  }
}

/* One hyphen within a class, after its first member: a range needs a character on both sides. */
static gboolean
translate_hyphen (Translator *t, gboolean after_set)
{
  const gchar *next = t->at + 1;
  gboolean before_set = next[0] == '\\' && next[1] != '\0' && strchr ("sSdDpP", next[1]);

  if (next[0] != ']' && (after_set || before_set))
    return FALSE;
  copy (t, 1);
  return TRUE;
}

static gboolean
translate_class (Translator *t)
{
  gboolean set = FALSE, first = TRUE;

  copy (t, t->at[1] == '^' ? 2 : 1);
  while (*t->at != ']' || first) {
    switch (*t->at) {
      case '\0':
      case '[':
      case ']':
        return FALSE;
      case '\\':
        if (!translate_escape (t, TRUE, &set))
          return FALSE;
        break;
      case '-':
        if (!first) {
          if (!translate_hyphen (t, set))
            return FALSE;
        } else {
          copy (t, 1);
        }
        set = FALSE;
        break;
      case '&':
        if (t->at[1] == '&')
          return FALSE;
        /* fall through */
      default:
        copy (t, g_utf8_skip[(guint8) *t->at]);
        set = FALSE;
        break;
    }
    first = FALSE;
  }
  copy (t, 1);
  return TRUE;
}

static gboolean
translate_group (Translator *t)
{
  static const gchar *const starts[] = { "(?:", "(?i:", "(?-i:", "(?=", "(?!", "(?<=", "(?<!",
    "(?>" };
  guint i;

  if (t->at[1] != '?' && t->at[1] != '*') {
    g_string_append (t->out, "(?:");
    t->at++;
    return TRUE;
  }
  for (i = 0; i < G_N_ELEMENTS (starts); i++) {
    if (g_str_has_prefix (t->at, starts[i])) {
      copy (t, strlen (starts[i]));
      return TRUE;
    }
  }
  return FALSE;
}

/* {n}, {n,} and {n,m}; what follows as ? or + would mean something else in PCRE2. */
static gboolean
translate_count (Translator *t)
{
  const gchar *p = t->at + 1;
  gsize n = strspn (p, "0123456789");

  if (n == 0)
    return FALSE;
  p += n;
  if (*p == ',') {
    p++;
    p += strspn (p, "0123456789");
  }
  if (*p != '}' || p[1] == '?' || p[1] == '+')
    return FALSE;
  copy (t, p + 1 - t->at);
  return TRUE;
}

static gboolean
translate_next (Translator *t)
{
  gboolean set;

  switch (*t->at) {
    case '\\':
      return translate_escape (t, FALSE, &set);
    case '[':
      return translate_class (t);
    case '(':
      return translate_group (t);
    case '{':
      return translate_count (t);
    case '^':
    case '$':
      return FALSE;
    default:
      copy (t, g_utf8_skip[(guint8) *t->at]);
      return TRUE;
  }
}

gchar *
vlm_pattern_translate (const gchar *regex, const gchar *where, GError **error)
{
  Translator t = { regex, g_string_new (NULL) };
  const gchar *start;

  while (*t.at != '\0') {
    start = t.at;
    if (!translate_next (&t)) {
      g_autofree gchar *rest = g_utf8_substring (start, 0, MIN (g_utf8_strlen (start, -1), 16));

      g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
          "%s: the regex construct at \"%s\" is not implemented", where, rest);
      g_string_free (t.out, TRUE);
      return NULL;
    }
  }
  return g_string_free (t.out, FALSE);
}
