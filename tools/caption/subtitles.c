/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* SubRip and WebVTT. */

#include "lines.h"
#include "write-file.h"
#include "write.h"

#define MS G_GINT64_CONSTANT (1000000)

/* One cue in ms. */
typedef struct
{
  gint64 start, end;
} Times;

/*
 * The cue's times, the one before it having ended at `before`. Rounding never brings times out of
 * order, but may leave a brief cue without any length; it gets 1 ms then, and what follows waits.
 */
static Times
round_times (const VlmCaption *cue, gint64 before)
{
  Times times = { MAX (0, cue->pts), MAX (0, cue->end) };

  times.start = MAX (before, (times.start + MS / 2) / MS);
  times.end = MAX (times.start + 1, (times.end + MS / 2) / MS);
  return times;
}

static void
append_time (GString *out, gint64 ms, gchar point)
{
  g_string_append_printf (out, "%02u:%02u:%02u%c%03u", (guint) (ms / 3600000),
      (guint) (ms / 60000 % 60), (guint) (ms / 1000 % 60), point, (guint) (ms % 1000));
}

static void
append_times (GString *out, const Times *times, gchar point)
{
  append_time (out, times->start, point);
  g_string_append (out, " --> ");
  append_time (out, times->end, point);
  g_string_append_c (out, '\n');
}

gboolean
vlm_write_srt (const GPtrArray *cues, const gchar *path, GError **error)
{
  g_autoptr (GString) out = g_string_new (NULL);
  Times times = { 0, 0 };
  guint number = 0;

  for (guint i = 0; i < cues->len; i++) {
    const VlmCaption *cue = g_ptr_array_index (cues, i);
    g_autofree gchar *lines = vlm_lines_srt (cue->text);

    if (*lines == '\0')
      continue;
    times = round_times (cue, times.end);
    g_string_append_printf (out, "%s%u\n", number > 0 ? "\n" : "", number + 1);
    append_times (out, &times, ',');
    g_string_append_printf (out, "%s\n", lines);
    number++;
  }
  return vlm_write_file (path, out->str, out->len, error);
}

static void
append_vtt_text (GString *out, const gchar *text)
{
  for (const gchar *at = text; *at != '\0'; at++) {
    switch (*at) {
      case '&':
        g_string_append (out, "&amp;");
        break;
      case '<':
        g_string_append (out, "&lt;");
        break;
      case '>':
        g_string_append (out, "&gt;");
        break;
      default:
        g_string_append_c (out, *at);
    }
  }
}

gboolean
vlm_write_vtt (const GPtrArray *cues, const gchar *path, GError **error)
{
  g_autoptr (GString) out = g_string_new ("WEBVTT\n");
  Times times = { 0, 0 };

  for (guint i = 0; i < cues->len; i++) {
    const VlmCaption *cue = g_ptr_array_index (cues, i);
    g_autofree gchar *lines = vlm_lines_wrap (cue->text, VLM_LINE_COLUMNS);

    if (*lines == '\0')
      continue;
    times = round_times (cue, times.end);
    g_string_append_c (out, '\n');
    append_times (out, &times, '.');
    append_vtt_text (out, lines);
    g_string_append_c (out, '\n');
  }
  return vlm_write_file (path, out->str, out->len, error);
}
