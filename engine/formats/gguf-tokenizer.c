/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * tokenizer.json of a GGUF model. It has hundreds of thousands of entries, which are written as
 * text right away, in time that is linear in their size.
 */

#include "gguf-settings-private.h"

#include <string.h>

#include "gguf-pieces.h"

#define PRE "tokenizer.ggml.pre"
#define TYPES "tokenizer.ggml.token_type"
#define MERGES "tokenizer.ggml.merges"

/* Values of tokenizer.ggml.token_type. */
enum
{
  TOKEN_NORMAL = 1,
  TOKEN_UNKNOWN = 2,
  TOKEN_CONTROL = 3,
  TOKEN_USER_DEFINED = 4,
  TOKEN_UNUSED = 5,
};

/*
 * What "lfm2" says of the steps before the merges. The vocabularies of 128k carry the same name; their
 * own regex is another spelling that cuts alike. A piece that is in the vocabulary as a whole is
 * taken before any merge, as the program that defines this name does.
 */
static const gchar pipeline[] =
    "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\""
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}"
    "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
    "\"},\"behavior\":\"Isolated\",\"invert\":false},"
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,"
    "\"use_regex\":false}]},\n"
    "\"post_processor\":null,\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,"
    "\"trim_offsets\":true,\"use_regex\":true},\n"
    "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
    "\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\"fuse_unk\":false,"
    "\"byte_fallback\":false,\"ignore_merges\":true,\n";

typedef struct
{
  const VlmGguf *gguf;
  const VlmGgufValue *tokens, *types, *merges;
  VlmPieces *pieces; /* all tokens */
  GString *added;    /* elements of added_tokens */
  GString *vocab;    /* members of model.vocab */
} Writer;

static void
append_number (GString *text, guint number)
{
  gchar digits[16];
  guint i = sizeof digits;

  do {
    digits[--i] = (gchar) ('0' + number % 10);
    number /= 10;
  } while (number);
  g_string_append_len (text, digits + i, sizeof digits - i);
}

/* bytes, UTF-8, as a JSON string. */
static void
append_string (GString *text, const gchar *bytes, gsize length)
{
  gsize i, from = 0;

  g_string_append_c (text, '"');
  for (i = 0; i < length; i++) {
    guint8 c = (guint8) bytes[i];

    if (c >= 0x20 && c != '"' && c != '\\')
      continue;
    g_string_append_len (text, bytes + from, i - from);
    from = i + 1;
    if (c < 0x20)
      g_string_append_printf (text, "\\u%04x", c);
    else
      g_string_append_printf (text, "\\%c", c);
  }
  g_string_append_len (text, bytes + from, length - from);
  g_string_append_c (text, '"');
}

/* For messages: some of a string that may be anything. (transfer full) */
static gchar *
excerpt (const gchar *bytes, gsize length)
{
  return g_utf8_make_valid (bytes, MIN (length, 80));
}

static gboolean
check_names (const VlmGguf *text, GError **error)
{
  return vlm_gguf_require_name (text, VLM_GGUF_MODEL, "gpt2", error)
      && vlm_gguf_require_name (text, PRE, "lfm2", error);
}

static gboolean
find_lists (Writer *w, GError **error)
{
  if (!vlm_gguf_require_tokens (w->gguf, &w->tokens, error)
      || !vlm_gguf_require (w->gguf, TYPES, "a number for each token", error)
      || !vlm_gguf_get_integers (w->gguf, TYPES, &w->types, error)
      || !vlm_gguf_require (w->gguf, MERGES, "pairs of tokens", error)
      || !vlm_gguf_get_strings (w->gguf, MERGES, &w->merges, error))
    return FALSE;
  return w->types->n == w->tokens->n
      || vlm_gguf_fail (error, VLM_ERROR_FORMAT, w->gguf,
          TYPES " has %" G_GUINT64_FORMAT " entries, expected %" G_GUINT64_FORMAT
                ", as " VLM_GGUF_TOKENS,
          w->types->n, w->tokens->n);
}

/*
 * Added tokens are spelled as they are, pieces in the byte alphabet. Only where that is the same can
 * an added token be a piece as well, for merges to lead to.
 */
static gboolean
is_same_in_alphabet (const gchar *bytes, gsize length)
{
  gsize i;

  for (i = 0; i < length; i++) {
    if (bytes[i] <= ' ' || bytes[i] > '~')
      return FALSE;
  }
  return TRUE;
}

/* Whether the token is in model.vocab. */
static gboolean
is_piece (const Writer *w, guint id, const gchar *bytes, gsize length)
{
  gint64 type = vlm_gguf_value_get_integer (w->types, id);

  return type == TOKEN_NORMAL || (type != TOKEN_UNUSED && is_same_in_alphabet (bytes, length));
}

static void
write_token (Writer *w, guint id, const gchar *bytes, gsize length)
{
  gint64 type = vlm_gguf_value_get_integer (w->types, id);

  if (type != TOKEN_NORMAL && type != TOKEN_UNUSED) {
    g_string_append (w->added, w->added->len ? ",\n{\"id\":" : "{\"id\":");
    append_number (w->added, id);
    g_string_append (w->added, ",\"content\":");
    append_string (w->added, bytes, length);
    g_string_append_printf (w->added,
        ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
        "\"special\":%s}",
        type == TOKEN_USER_DEFINED ? "false" : "true");
  }
  if (is_piece (w, id, bytes, length)) {
    if (w->vocab->len)
      g_string_append_c (w->vocab, ',');
    append_string (w->vocab, bytes, length);
    g_string_append_c (w->vocab, ':');
    append_number (w->vocab, id);
  }
}

static gboolean
check_token (Writer *w, guint id, const gchar *bytes, gsize length, GError **error)
{
  gint64 type = vlm_gguf_value_get_integer (w->types, id);
  g_autofree gchar *shown = NULL;
  guint first;

  if (type < TOKEN_NORMAL || type > TOKEN_UNUSED)
    return vlm_gguf_fail (error, VLM_ERROR_UNSUPPORTED, w->gguf,
        TYPES "[%u] is %" G_GINT64_FORMAT ", expected %d..%d", id, type, TOKEN_NORMAL,
        TOKEN_UNUSED);
  if (!length || !g_utf8_validate_len (bytes, length, NULL)) {
    shown = excerpt (bytes, length);
    return vlm_gguf_fail (error, VLM_ERROR_FORMAT, w->gguf,
        VLM_GGUF_TOKENS "[%u] is \"%s\", expected UTF-8 without zero bytes, and not empty", id,
        shown);
  }
  first = vlm_pieces_add (w->pieces, bytes, length);
  if (first == id)
    return TRUE;
  shown = excerpt (bytes, length);
  return vlm_gguf_fail (error, VLM_ERROR_FORMAT, w->gguf,
      VLM_GGUF_TOKENS "[%u] is \"%s\", as [%u] is, expected each once", id, shown, first);
}

static gboolean
write_tokens (Writer *w, GError **error)
{
  const gchar *bytes;
  gsize length, position = 0;
  guint id;

  w->pieces = vlm_pieces_new ((guint) w->tokens->n);
  if (!w->pieces)
    return vlm_gguf_fail (error, VLM_ERROR_MEMORY, w->gguf,
        "no memory for %" G_GUINT64_FORMAT " tokens", w->tokens->n);
  for (id = 0; vlm_gguf_value_next_string (w->tokens, &position, &bytes, &length); id++) {
    if (!check_token (w, id, bytes, length, error))
      return FALSE;
    write_token (w, id, bytes, length);
  }
  return TRUE;
}

/* Part of a merge must be a piece. */
static gboolean
check_part (const Writer *w, const gchar *bytes, gsize length)
{
  gint64 id = vlm_pieces_find (w->pieces, bytes, length);

  return id >= 0 && is_piece (w, (guint) id, bytes, length);
}

/* "left right", both of them and what they make together being pieces. whole is scratch memory. */
static gboolean
check_merge (
    const Writer *w, guint i, const gchar *bytes, gsize length, GString *whole, GError **error)
{
  const gchar *space = memchr (bytes, ' ', length);
  gsize left = space ? (gsize) (space - bytes) : 0, right = space ? length - left - 1 : 0;
  g_autofree gchar *shown = NULL, *missing = NULL;

  if (!left || !right || memchr (space + 1, ' ', right)) {
    shown = excerpt (bytes, length);
    return vlm_gguf_fail (error, VLM_ERROR_FORMAT, w->gguf,
        MERGES "[%u] is \"%s\", expected two tokens with a space between", i, shown);
  }
  g_string_truncate (whole, 0);
  g_string_append_len (whole, bytes, left);
  g_string_append_len (whole, space + 1, right);
  if (!check_part (w, bytes, left))
    missing = excerpt (bytes, left);
  else if (!check_part (w, space + 1, right))
    missing = excerpt (space + 1, right);
  else if (!check_part (w, whole->str, whole->len))
    missing = excerpt (whole->str, whole->len);
  if (!missing)
    return TRUE;
  shown = excerpt (bytes, length);
  return vlm_gguf_fail (error, VLM_ERROR_FORMAT, w->gguf,
      MERGES "[%u] is \"%s\", but \"%s\" is no token of text in " VLM_GGUF_TOKENS, i, shown,
      missing);
}

static gboolean
append_merges (Writer *w, GString *json, GError **error)
{
  g_autoptr (GString) whole = g_string_new (NULL);
  const gchar *bytes;
  gsize length, position = 0;
  guint i;

  for (i = 0; vlm_gguf_value_next_string (w->merges, &position, &bytes, &length); i++) {
    if (!check_merge (w, i, bytes, length, whole, error))
      return FALSE;
    if (i)
      g_string_append_c (json, ',');
    append_string (json, bytes, length);
  }
  return TRUE;
}

static GString *
write_tokenizer (Writer *w, GError **error)
{
  g_autoptr (GString) json = NULL;

  if (!check_names (w->gguf, error) || !find_lists (w, error) || !write_tokens (w, error))
    return NULL;
  json = g_string_sized_new (w->added->len + w->vocab->len + w->merges->n_bytes + 4096);
  g_string_append (
      json, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n\"added_tokens\":[");
  g_string_append_len (json, w->added->str, w->added->len);
  g_string_append (json, "],\n");
  g_string_append (json, pipeline);
  g_string_append (json, "\"vocab\":{");
  g_string_append_len (json, w->vocab->str, w->vocab->len);
  g_string_append (json, "},\n\"merges\":[");
  if (!append_merges (w, json, error))
    return NULL;
  g_string_append (json, "]}}\n");
  return g_steal_pointer (&json);
}

GString *
vlm_gguf_make_tokenizer (const VlmGguf *text, GError **error)
{
  g_autoptr (GString) added = g_string_new (NULL), vocab = g_string_new (NULL);
  Writer writer = { .gguf = text, .added = added, .vocab = vocab };
  GString *json = write_tokenizer (&writer, error);

  vlm_pieces_free (writer.pieces);
  return json;
}

gint64
vlm_gguf_find_token (const VlmGguf *text, const gchar *spelling)
{
  const VlmGgufValue *tokens = NULL;
  const gchar *bytes;
  gsize length, position = 0, wanted = strlen (spelling);
  gint64 id;

  if (!vlm_gguf_require_tokens (text, &tokens, NULL))
    return -1;
  for (id = 0; vlm_gguf_value_next_string (tokens, &position, &bytes, &length); id++) {
    if (length == wanted && memcmp (bytes, spelling, length) == 0)
      return id;
  }
  return -1;
}

gchar *
vlm_gguf_get_token (const VlmGguf *text, guint id, GError **error)
{
  const VlmGgufValue *tokens = NULL;
  const gchar *bytes = NULL;
  gsize length = 0, position = 0;
  guint i;

  if (!vlm_gguf_require_tokens (text, &tokens, error))
    return NULL;
  for (i = 0; i <= id; i++) {
    if (!vlm_gguf_value_next_string (tokens, &position, &bytes, &length))
      break;
  }
  if (i > id && g_utf8_validate_len (bytes, length, NULL))
    return g_strndup (bytes, length);
  vlm_gguf_fail (error, VLM_ERROR_FORMAT, text, VLM_GGUF_TOKENS "[%u] is not valid UTF-8", id);
  return NULL;
}
