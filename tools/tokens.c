/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tokens.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "output.h"

/* One line of standard input. */
typedef struct
{
  char *text; /* of getline(), kept between lines */
  size_t room;
  gsize length;   /* without the newline */
  guint64 number; /* from 1 */
} Line;

/* FALSE at the end of the input, and with an error where it cannot be read. */
static gboolean
next_line (Line *line, GError **error)
{
  ssize_t n = getline (&line->text, &line->room, stdin);
  gint code = errno;

  /* A line cut off by a failure comes without complaint, and no memory is no end of the file. */
  if (ferror (stdin) || (n < 0 && !feof (stdin))) {
    g_set_error (
        error, G_IO_ERROR, g_io_error_from_errno (code), "standard input: %s", g_strerror (code));
    return FALSE;
  }
  if (n < 0)
    return FALSE;
  line->length = n > 0 && line->text[n - 1] == '\n' ? n - 1 : n;
  line->number++;
  return TRUE;
}

static gboolean
bad_line (GError **error, const Line *line, const gchar *message)
{
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "line %" G_GUINT64_FORMAT ": %s",
      line->number, message);
  return FALSE;
}

/* Passes on what ended the lines, unless that was their end. */
static gboolean
finish (GError **failure, GError **error)
{
  if (*failure == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (failure));
  return FALSE;
}

static gboolean
encode_json (const VlmTokenizer *tokenizer, const Line *line, GArray *ids, GError **error)
{
  json_error_t problem;
  json_t *value = json_loadb (line->text, line->length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &problem);

  if (!json_is_string (value)) {
    bad_line (error, line, value == NULL ? problem.text : "no JSON string");
    json_decref (value);
    return FALSE;
  }
  vlm_tokenizer_encode (
      tokenizer, json_string_value (value), json_string_length (value), TRUE, ids);
  json_decref (value);
  return TRUE;
}

gboolean
tokens_from_text (const VlmTokenizer *tokenizer, gboolean json, GError **error)
{
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (gint32));
  g_autoptr (GError) failure = NULL;
  Line line = { NULL, 0, 0, 0 };
  guint i;

  while (next_line (&line, &failure)) {
    g_array_set_size (ids, 0);
    if (!json)
      vlm_tokenizer_encode (tokenizer, line.text, line.length, TRUE, ids);
    else if (!encode_json (tokenizer, &line, ids, &failure))
      break;
    for (i = 0; i < ids->len; i++)
      printf (i == 0 ? "%d" : " %d", g_array_index (ids, gint32, i));
    putchar ('\n');
    if (!output_check (&failure))
      break;
  }
  free (line.text);
  return finish (&failure, error);
}

/* Reads space-separated ids, each below size. */
static gboolean
parse_ids (const Line *line, guint size, GArray *ids, GError **error)
{
  g_autofree gchar *text = g_strndup (line->text, line->length);
  const gchar *p = text;

  g_array_set_size (ids, 0);
  if (memchr (line->text, '\0', line->length) != NULL)
    return bad_line (error, line, "expected ids separated by spaces, found a NUL");
  for (;;) {
    gchar *end;
    gint64 value;
    gint32 id;

    p += strspn (p, " \t\r");
    if (*p == '\0')
      return TRUE;
    errno = 0;
    value = g_ascii_strtoll (p, &end, 10);
    if (end == p || errno != 0 || value < 0 || (*end != '\0' && strchr (" \t\r", *end) == NULL))
      return bad_line (error, line, "expected ids separated by spaces");
    if (value >= size) {
      g_autofree gchar *message = g_strdup_printf (
          "the id %" G_GINT64_FORMAT " is unknown, expected less than the %u ids of the vocabulary",
          value, size);

      return bad_line (error, line, message);
    }
    id = (gint32) value;
    g_array_append_val (ids, id);
    p = end;
  }
}

static void
print_json (const gchar *text)
{
  json_t *value = json_string (text);
  char *printed = json_dumps (value, JSON_ENCODE_ANY);

  puts (printed);
  free (printed);
  json_decref (value);
}

gboolean
tokens_to_text (const VlmTokenizer *tokenizer, gboolean json, GError **error)
{
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (gint32));
  g_autoptr (GError) failure = NULL;
  guint size = vlm_tokenizer_get_size (tokenizer);
  Line line = { NULL, 0, 0, 0 };

  while (next_line (&line, &failure)) {
    g_autofree gchar *text = NULL;

    if (!parse_ids (&line, size, ids, &failure))
      break;
    text = vlm_tokenizer_decode (tokenizer, (const gint32 *) ids->data, ids->len, FALSE);
    if (json)
      print_json (text);
    else
      puts (text);
    if (!output_check (&failure))
      break;
  }
  free (line.text);
  return finish (&failure, error);
}
