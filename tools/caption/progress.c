/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "progress.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "times.h"

guint
vlm_progress_get_columns (void)
{
  struct winsize size;
  const gchar *terminal = g_getenv ("TERM");

  if (!isatty (STDERR_FILENO) || terminal == NULL || strcmp (terminal, "dumb") == 0)
    return 0;
  if (ioctl (STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20)
    return 80;
  return size.ws_col;
}

gchar *
vlm_make_line (const gchar *text)
{
  GString *line = g_string_new (NULL);

  for (; *text != '\0'; text = g_utf8_next_char (text)) {
    gunichar c = g_utf8_get_char (text);

    g_string_append_unichar (line, g_unichar_iscntrl (c) ? ' ' : c);
  }
  return g_string_free (line, FALSE);
}

/* Cuts the line after columns of the terminal. */
static void
cut (GString *line, guint columns)
{
  const gchar *p = line->str;
  guint width = 0;

  while (*p != '\0') {
    gunichar c = g_utf8_get_char (p);

    width += g_unichar_iszerowidth (c) ? 0 : g_unichar_iswide (c) ? 2 : 1;
    if (width > columns)
      break;
    p = g_utf8_next_char (p);
  }
  g_string_truncate (line, (gsize) (p - line->str));
}

static void
append_bar (GString *line, gdouble done, guint width)
{
  guint i;

  g_string_append_c (line, '[');
  for (i = 0; i < width; i++)
    g_string_append_c (line, i < done * width ? '#' : '.');
  g_string_append (line, "] ");
}

gchar *
vlm_progress_to_text (const VlmProgress *progress, guint columns, guint bar)
{
  GString *line = g_string_new (NULL);
  gdouble seconds = MAX (progress->seconds, 1e-3), done = CLAMP (progress->done, 0, 1);

  if (bar > 0)
    append_bar (line, done, bar);
  g_string_append_printf (line, "%3d %%", (gint) (done * 100));
  if (progress->played > 0)
    g_string_append_printf (line, "  %.1f x real time", progress->played / 1e9 / seconds);
  /* Of the first second nothing can be foretold. */
  if (done > 0 && done < 1 && seconds > 1) {
    g_autofree gchar *left = vlm_time_to_short_text ((gint64) (seconds / done * (1 - done) * 1e9));

    g_string_append_printf (line, "  ETA %s", left);
  }
  if (progress->n_captions >= 0)
    g_string_append_printf (line, "  %.1f captions/s", progress->n_captions / seconds);
  if (progress->name != NULL) {
    g_autofree gchar *name = vlm_make_line (progress->name);

    g_string_append_printf (line, "  %s", name);
  }
  if (progress->text != NULL) {
    g_autofree gchar *text = vlm_make_line (progress->text);

    g_string_append_printf (line, "  %s", text);
  }
  cut (line, columns);
  return g_string_free (line, FALSE);
}
