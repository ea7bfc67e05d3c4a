/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "added.h"

#include <string.h>

#include "utf8.h"

typedef struct
{
  gchar *spelling;
  gsize length;
  guint order; /* of insertion */
  VlmAddedToken token;
} Entry;

struct _VlmAdded
{
  GArray *entries;      /* sorted by spelling once finished: a prefix precedes the longer */
  gboolean starts[256]; /* bytes that begin a spelling */
};

static void
clear_entry (gpointer data)
{
  g_free (((Entry *) data)->spelling);
}

VlmAdded *
vlm_added_new (void)
{
  VlmAdded *added = g_new0 (VlmAdded, 1);

  added->entries = g_array_new (FALSE, FALSE, sizeof (Entry));
  g_array_set_clear_func (added->entries, clear_entry);
  return added;
}

void
vlm_added_free (VlmAdded *added)
{
  if (added == NULL)
    return;
  g_array_unref (added->entries);
  g_free (added);
}

void
vlm_added_insert (VlmAdded *added, const gchar *spelling, const VlmAddedToken *token)
{
  Entry entry = { g_strdup (spelling), strlen (spelling), added->entries->len, *token };

  added->starts[(guint8) spelling[0]] = TRUE;
  g_array_append_val (added->entries, entry);
}

static gint
compare_entries (gconstpointer a, gconstpointer b)
{
  const Entry *left = a, *right = b;
  gint order = strcmp (left->spelling, right->spelling);

  if (order != 0)
    return order;
  return left->order < right->order ? -1 : left->order > right->order;
}

void
vlm_added_finish (VlmAdded *added)
{
  g_array_sort (added->entries, compare_entries);
}

/* The first of entries low..high-1, all equal in their first depth bytes, with next >= byte. */
static guint
lower_bound (const Entry *entries, guint low, guint high, gsize depth, guint byte)
{
  while (low < high) {
    guint middle = low + (high - low) / 2;

    if ((guint8) entries[middle].spelling[depth] < byte)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The longest spelling at the start of text, or NULL. */
static const Entry *
match_here (const VlmAdded *added, const gchar *text, gsize length)
{
  const Entry *entries = (const Entry *) (gconstpointer) added->entries->data;
  const Entry *best = NULL;
  guint low = 0, high = added->entries->len;
  gsize depth;

  if (!added->starts[(guint8) text[0]])
    return NULL;
  for (depth = 0; depth < length && text[depth] != '\0'; depth++) {
    low = lower_bound (entries, low, high, depth, (guint8) text[depth]);
    high = lower_bound (entries, low, high, depth, (guint8) text[depth] + 1u);
    if (low == high)
      break;
    if (entries[low].length == depth + 1)
      best = &entries[low];
  }
  return best;
}

/* What \w means to the reference. */
static gboolean
is_word (gunichar c)
{
  switch (g_unichar_type (c)) {
    case G_UNICODE_LOWERCASE_LETTER:
    case G_UNICODE_MODIFIER_LETTER:
    case G_UNICODE_OTHER_LETTER:
    case G_UNICODE_TITLECASE_LETTER:
    case G_UNICODE_UPPERCASE_LETTER:
    case G_UNICODE_SPACING_MARK:
    case G_UNICODE_ENCLOSING_MARK:
    case G_UNICODE_NON_SPACING_MARK:
    case G_UNICODE_DECIMAL_NUMBER:
    case G_UNICODE_LETTER_NUMBER:
    case G_UNICODE_CONNECT_PUNCTUATION:
      return TRUE;
    default:
      /* Joiners, and the circled and squared letters that are symbols by category. */
      return c == 0x200c || c == 0x200d || (c >= 0x24b6 && c <= 0x24e9)
          || (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169)
          || (c >= 0x1f170 && c <= 0x1f189);
  }
}

static gboolean
stands_alone (const gchar *text, gsize length, gsize start, gsize end)
{
  if (start > 0 && is_word (g_utf8_get_char (g_utf8_prev_char (text + start))))
    return FALSE;
  return end == length || !is_word (g_utf8_get_char (text + end));
}

static gsize
skip_space_back (const gchar *text, gsize from)
{
  const gchar *p = text + from, *before;

  while (p > text) {
    before = g_utf8_prev_char (p);
    if (!vlm_utf8_is_space (g_utf8_get_char (before)))
      break;
    p = before;
  }
  return p - text;
}

static gsize
skip_space (const gchar *text, gsize from, gsize length)
{
  while (from < length && vlm_utf8_is_space (g_utf8_get_char (text + from)))
    from += g_utf8_skip[(guint8) text[from]];
  return from;
}

static void
append_segment (GArray *out, gsize start, gsize end, gint id)
{
  VlmSegment segment = { start, end - start, id };

  g_array_append_val (out, segment);
}

void
vlm_added_split (const VlmAdded *added, const gchar *text, gsize length, GArray *out)
{
  const Entry *entry;
  gsize at = 0, done = 0, start, end;

  while (at < length) {
    entry = match_here (added, text + at, length - at);
    if (entry == NULL) {
      at++;
      continue;
    }
    start = at;
    at = end = at + entry->length;
    if (entry->token.single_word && !stands_alone (text, length, start, end))
      continue;
    /* Space that the token before took with it is gone, even if it is all that is spelled here. */
    if (entry->token.lstrip)
      start = MAX (skip_space_back (text, start), done);
    if (entry->token.rstrip)
      end = skip_space (text, end, length);
    if (start >= end)
      continue;
    if (done < start)
      append_segment (out, done, start, -1);
    append_segment (out, start, end, entry->token.id);
    done = end;
  }
  if (done < length)
    append_segment (out, done, length, -1);
}
