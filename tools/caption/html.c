/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A contact sheet of cues: one page that needs nothing but itself. */

#include <string.h>

#include "lines.h"
#include "sheet-resource.h"
#include "write-file.h"
#include "write.h"

#define SECOND G_GINT64_CONSTANT (1000000000)

/* The page may neither load nor send anything, whatever stands in a caption. */
#define POLICY                                                                                     \
  "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline';"      \
  " base-uri 'none'; form-action 'none'"

/* The text for between tags or quotes: valid, without control characters, nothing in it markup. */
static gchar *
escape (const gchar *text)
{
  g_autofree gchar *lines = vlm_lines_wrap (text, G_MAXINT);

  return g_markup_escape_text (lines, -1);
}

static void
append_resource (GString *out, const gchar *name)
{
  static gsize registered;
  g_autofree gchar *path = g_strconcat ("/org/gst-vlmcaption/sheet/", name, NULL);
  g_autoptr (GBytes) bytes = NULL;
  gconstpointer data;
  gsize size;

  if (g_once_init_enter (&registered)) {
    vlm_sheet_register_resource ();
    g_once_init_leave (&registered, 1);
  }
  bytes = g_resources_lookup_data (path, G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);
  data = g_bytes_get_data (bytes, &size);
  g_string_append_len (out, data, size);
}

/* "1:02:03", or "2:03" within the first hour. */
static gchar *
format_time (gint64 ns)
{
  gint64 s = MAX (0, ns) / SECOND;

  if (s >= 3600)
    return g_strdup_printf (
        "%" G_GINT64_FORMAT ":%02d:%02d", s / 3600, (gint) (s / 60 % 60), (gint) (s % 60));
  return g_strdup_printf ("%d:%02d", (gint) (s / 60), (gint) (s % 60));
}

/* The same with tenths, where two times would look alike. */
static gchar *
format_range (const VlmCaption *cue)
{
  g_autofree gchar *start = format_time (cue->pts);
  g_autofree gchar *end = format_time (cue->end);

  if (cue->end - cue->pts >= SECOND)
    return g_strdup_printf ("%s – %s", start, end);
  return g_strdup_printf ("%s.%d – %s.%d", start,
      (gint) (MAX (0, cue->pts) % SECOND / (SECOND / 10)), end,
      (gint) (MAX (0, cue->end) % SECOND / (SECOND / 10)));
}

/*
 * Where a browser finds the input, from the cue's time on; NULL: nowhere. Below the sheet's folder the
 * address is relative, so that both can be moved together.
 */
static gchar *
link_to (const VlmCaption *cue, GFile *folder)
{
  g_autofree gchar *scheme = cue->uri != NULL ? g_uri_parse_scheme (cue->uri) : NULL;
  g_autoptr (GFile) file = NULL;
  g_autofree gchar *relative = NULL;
  g_autofree gchar *address = NULL;
  gchar seconds[G_ASCII_DTOSTR_BUF_SIZE];

  if (scheme == NULL
      || !g_strv_contains ((const gchar *const[]){ "file", "http", "https", NULL }, scheme))
    return NULL;
  file = g_file_new_for_uri (cue->uri);
  relative = folder != NULL ? g_file_get_relative_path (folder, file) : NULL;
  if (relative != NULL) {
    g_autofree gchar *escaped = g_uri_escape_string (relative, "/", FALSE);

    address = g_strconcat ("./", escaped, NULL);
  } else {
    address = g_strdup (cue->uri);
  }
  if (cue->still || strchr (address, '#') != NULL)
    return g_steal_pointer (&address);
  g_ascii_formatd (seconds, sizeof (seconds), "%.3f", (gdouble) cue->pts / SECOND);
  return g_strdup_printf ("%s#t=%s", address, seconds);
}

static void
append_picture (GString *out, const VlmCaption *cue, const gchar *time, const gchar *name)
{
  g_autofree gchar *base64 = NULL;

  if (cue->thumbnail == NULL) {
    g_string_append (out, "no picture");
    return;
  }
  base64 = g_base64_encode (cue->thumbnail, cue->thumbnail_size);
  g_string_append (out, "<img loading=\"lazy\" decoding=\"async\" alt=\"");
  if (cue->still)
    g_string_append_printf (out, "Picture %s", name);
  else
    g_string_append_printf (out, "Frame of %s at %s", name, time);
  g_string_append_printf (out, "\" src=\"data:image/jpeg;base64,%s\">", base64);
}

static void
append_capture_time (GString *out, gint64 utc)
{
  g_autoptr (GDateTime) time = NULL;
  g_autofree gchar *machine = NULL;
  g_autofree gchar *human = NULL;

  if (utc < 0)
    return;
  time = g_date_time_new_from_unix_utc (utc / G_USEC_PER_SEC);
  if (time == NULL)
    return;
  machine = g_date_time_format (time, "%Y-%m-%dT%H:%M:%SZ");
  human = g_date_time_format (time, "%Y-%m-%d %H:%M:%S UTC");
  g_string_append_printf (out, "<time datetime=\"%s\">%s</time>", machine, human);
}

static void
append_card (GString *out, const VlmCaption *cue, GFile *folder, const gchar *name)
{
  g_autofree gchar *time = format_time (cue->pts);
  g_autofree gchar *range = cue->still ? NULL : format_range (cue);
  g_autofree gchar *link = link_to (cue, folder);
  g_autofree gchar *href = link != NULL ? escape (link) : NULL;
  g_autofree gchar *text = escape (cue->text);
  const gchar *tag = href != NULL ? "a" : "span";

  g_string_append_printf (
      out, "<li><figure><%s class=\"frame%s\"", tag, cue->thumbnail == NULL ? " none" : "");
  if (href != NULL)
    g_string_append_printf (out, " href=\"%s\"", href);
  g_string_append_c (out, '>');
  append_picture (out, cue, time, name);
  g_string_append_printf (out, "</%s>\n<figcaption><p class=\"times\">", tag);
  if (range != NULL)
    g_string_append_printf (out, "<span>%s</span>", range);
  append_capture_time (out, cue->utc);
  g_string_append_printf (
      out, "</p><p class=\"text\" dir=\"auto\">%s</p></figcaption></figure></li>\n", text);
}

static const VlmCaption *
get_cue (const GPtrArray *cues, guint i)
{
  return g_ptr_array_index (cues, i);
}

/* The index after the last cue of the same input as cue i. */
static guint
section_end (const GPtrArray *cues, guint i)
{
  guint end = i;

  while (end < cues->len && strcmp (get_cue (cues, end)->input, get_cue (cues, i)->input) == 0)
    end++;
  return end;
}

static guint
count_sections (const GPtrArray *cues)
{
  guint n = 0;

  for (guint i = 0; i < cues->len; i = section_end (cues, i))
    n++;
  return n;
}

static const gchar *
plural (guint n)
{
  return n == 1 ? "" : "s";
}

static void
append_sections (GString *out, const GPtrArray *cues, GFile *folder)
{
  guint number = 1;

  for (guint i = 0, end; i < cues->len; i = end, number++) {
    g_autofree gchar *name = escape (get_cue (cues, i)->input);

    end = section_end (cues, i);
    g_string_append_printf (out,
        "<section id=\"file-%u\"><h2><bdi>%s</bdi> <small>%u caption%s</small></h2>\n<ol "
        "class=\"cues\">\n",
        number, name, end - i, plural (end - i));
    for (; i < end; i++)
      append_card (out, get_cue (cues, i), folder, name);
    g_string_append (out, "</ol></section>\n");
  }
}

static void
append_contents (GString *out, const GPtrArray *cues, guint n_sections)
{
  guint number = 1;

  if (n_sections < 2)
    return;
  g_string_append_printf (
      out, "<nav aria-label=\"Files\"><details><summary>%u files</summary><ol>\n", n_sections);
  for (guint i = 0; i < cues->len; i = section_end (cues, i), number++) {
    g_autofree gchar *name = escape (get_cue (cues, i)->input);

    g_string_append_printf (out, "<li><a href=\"#file-%u\"><bdi>%s</bdi></a></li>\n", number, name);
  }
  g_string_append (out, "</ol></details></nav>\n");
}

/* The models that the captions are of, each once. */
static gchar *
list_models (const GPtrArray *cues)
{
  g_autoptr (GPtrArray) models = g_ptr_array_new ();
  g_autofree gchar *joined = NULL;

  for (guint i = 0; i < cues->len; i++) {
    gchar *model = get_cue (cues, i)->model;

    if (model != NULL && !g_ptr_array_find_with_equal_func (models, model, g_str_equal, NULL))
      g_ptr_array_add (models, model);
  }
  g_ptr_array_add (models, NULL);
  joined = g_strjoinv (", ", (gchar **) models->pdata);
  return escape (joined);
}

static void
append_header (GString *out, const GPtrArray *cues, guint n_sections)
{
  g_autofree gchar *models = list_models (cues);

  g_string_append_printf (out, "<header><h1>Captions</h1><p>%u caption%s in %u file%s%s%s</p>\n",
      cues->len, plural (cues->len), n_sections, plural (n_sections),
      *models != '\0' ? ", by " : "", models);
  g_string_append (out,
      "<search role=\"search\" hidden><output id=\"count\" for=\"query\" "
      "aria-live=\"polite\"></output>"
      "<input type=\"search\" id=\"query\" placeholder=\"Search (press /)\" aria-label=\"Search "
      "captions\""
      " aria-keyshortcuts=\"/\" autocomplete=\"off\" spellcheck=\"false\"></search></header>\n");
}

gboolean
vlm_write_html (const GPtrArray *cues, const gchar *path, GError **error)
{
  g_autoptr (GString) out = g_string_new (NULL);
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GFile) folder = g_file_get_parent (file);
  guint n_sections = count_sections (cues);

  g_string_append (out,
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"" POLICY "\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>Captions</title>\n<style>\n");
  append_resource (out, "sheet.css");
  g_string_append (out, "</style>\n</head>\n<body>\n");
  append_header (out, cues, n_sections);
  append_contents (out, cues, n_sections);
  g_string_append (out, "<main>\n");
  append_sections (out, cues, folder);
  g_string_append_printf (out, "<p id=\"nothing\"%s>%s</p>\n</main>\n<script>\n",
      cues->len > 0 ? " hidden" : "",
      cues->len > 0 ? "No caption has all these words." : "There are no captions.");
  append_resource (out, "sheet.js");
  g_string_append (out, "</script>\n</body>\n</html>\n");
  return vlm_write_file (path, out->str, out->len, error);
}
