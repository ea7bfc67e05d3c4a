/* SPDX-License-Identifier: LGPL-2.1-or-later */

#define PCRE2_CODE_UNIT_WIDTH 8

#include "pattern.h"

#include <pcre2.h>
#include <string.h>

#include "engine/vlm.h"

struct _VlmPattern
{
  pcre2_code *code;
};

/* Backtracking that a sane pattern never needs: a base, and some for each byte searched. */
#define MATCH_LIMIT_BASE 10000000
#define MATCH_LIMIT_PER_BYTE 16

static VlmPattern *
compile (const gchar *regex, guint32 options, const gchar *where, GError **error)
{
  pcre2_compile_context *context = pcre2_compile_context_create (NULL);
  pcre2_code *code;
  PCRE2_SIZE offset = 0;
  PCRE2_UCHAR message[128] = "";
  VlmPattern *pattern;
  int number = 0;

  if (context != NULL)
    pcre2_set_newline (context, PCRE2_NEWLINE_LF);
  code =
      pcre2_compile ((PCRE2_SPTR) regex, PCRE2_ZERO_TERMINATED, options, &number, &offset, context);
  pcre2_compile_context_free (context);
  if (code == NULL) {
    pcre2_get_error_message (number, message, sizeof message);
    g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED, "%s: the regex cannot be used: %s", where,
        (const gchar *) message);
    return NULL;
  }
  /* Fails where no memory may be executable; then patterns are interpreted. */
  pcre2_jit_compile (code, PCRE2_JIT_COMPLETE);
  pattern = g_new (VlmPattern, 1);
  pattern->code = code;
  return pattern;
}

VlmPattern *
vlm_pattern_new (const gchar *regex, const gchar *where, GError **error)
{
  g_autofree gchar *translated = vlm_pattern_translate (regex, where, error);

  if (translated == NULL)
    return NULL;
  return compile (translated, PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, where, error);
}

VlmPattern *
vlm_pattern_new_literal (const gchar *string, const gchar *where, GError **error)
{
  return compile (string, PCRE2_UTF | PCRE2_LITERAL, where, error);
}

void
vlm_pattern_free (VlmPattern *pattern)
{
  if (pattern == NULL)
    return;
  pcre2_code_free (pattern->code);
  g_free (pattern);
}

static gboolean
search (const VlmPattern *pattern, const gchar *text, gsize length, gsize from,
    pcre2_match_data *match, pcre2_match_context *context)
{
  int found = pcre2_match (
      pattern->code, (PCRE2_SPTR) text, length, from, PCRE2_NO_UTF_CHECK, match, context);

  /* Compiled code has a small fixed stack; the interpreter takes what it needs. */
  if (found == PCRE2_ERROR_JIT_STACKLIMIT)
    found = pcre2_match (pattern->code, (PCRE2_SPTR) text, length, from,
        PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match, context);
  return found >= 0;
}

static void
append_piece (GArray *out, gsize start, gsize end)
{
  VlmPiece piece = { start, end - start };

  if (end > start)
    g_array_append_val (out, piece);
}

static void
split_piece (const VlmPattern *pattern, const gchar *text, const VlmPiece *piece,
    pcre2_match_data *match, pcre2_match_context *context, GArray *out)
{
  const gchar *subject = text + piece->start;
  const PCRE2_SIZE *ends = pcre2_get_ovector_pointer (match);
  gsize done = 0, from = 0;

  while (from < piece->length && search (pattern, subject, piece->length, from, match, context)) {
    append_piece (out, piece->start + done, piece->start + ends[0]);
    append_piece (out, piece->start + ends[0], piece->start + ends[1]);
    done = from = ends[1];
    if (ends[0] == ends[1] && from < piece->length)
      from += g_utf8_skip[(guint8) subject[from]];
  }
  append_piece (out, piece->start + done, piece->start + piece->length);
}

void
vlm_pattern_split (const VlmPattern *pattern, const gchar *text, const VlmPiece *pieces,
    guint n_pieces, GArray *out)
{
  pcre2_match_data *match = pcre2_match_data_create (1, NULL);
  pcre2_match_context *context = pcre2_match_context_create (NULL);
  guint i;

  if (match == NULL || context == NULL)
    g_error ("out of memory");
  for (i = 0; i < n_pieces; i++) {
    pcre2_set_match_limit (
        context, MIN (MATCH_LIMIT_BASE + MATCH_LIMIT_PER_BYTE * pieces[i].length, G_MAXUINT32));
    split_piece (pattern, text, &pieces[i], match, context, out);
  }
  pcre2_match_context_free (context);
  pcre2_match_data_free (match);
}
