/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report.h"

#include <stdio.h>

#include "../caption.h"
#include "../output.h"
#include "times.h"

/* Without a terminal: from line to line, in seconds. */
#define LINE_INTERVAL 30

#define BAR_WIDTH 20

struct _VlmReport
{
  VlmReportSettings settings;
  gboolean drawn; /* the cursor's line shows the progress */
  gdouble
      last_line; /* the time, in seconds since the step's start, of the last line about the progress */
};

VlmReport *
vlm_report_new (const VlmReportSettings *settings)
{
  VlmReport *report = g_new0 (VlmReport, 1);

  report->settings = *settings;
  return report;
}

/* Takes the progress off the terminal, so that something else can be printed. */
static void
erase (VlmReport *report)
{
  if (report->drawn)
    fputs ("\r\033[K", stderr);
  report->drawn = FALSE;
}

void
vlm_report_free (VlmReport *report)
{
  erase (report);
  g_free (report);
}

gboolean
vlm_report_caption (VlmReport *report, const VlmCaption *caption)
{
  g_autofree gchar *name = vlm_make_line (caption->input);
  g_autofree gchar *text = vlm_make_line (caption->text);
  g_autofree gchar *time = caption->still ? NULL : vlm_time_to_text (caption->pts);
  g_autoptr (GError) error = NULL;

  if (!report->settings.captions)
    return TRUE;
  erase (report);
  if (report->settings.names)
    printf ("%s: ", name);
  if (time != NULL)
    printf ("%s  ", time);
  printf ("%s\n", text);
  if (output_flush (&error))
    return TRUE;
  vlm_report_failure (report, NULL, error->message);
  return FALSE;
}

void
vlm_report_failure (VlmReport *report, const gchar *name, const gchar *message)
{
  g_autofree gchar *line = name != NULL ? vlm_make_line (name) : NULL;

  erase (report);
  caption_fail (line, message);
}

void
vlm_report_input (VlmReport *report, const VlmInput *input)
{
  g_autofree gchar *until = NULL;
  g_autofree gchar *message = NULL;

  if (input->message == NULL)
    return;
  if (input->state == VLM_INPUT_CUT) {
    until = vlm_time_to_text (input->end);
    message = g_strdup_printf ("%s; captioned up to %s", input->message, until);
  }
  vlm_report_failure (report, input->name, message != NULL ? message : input->message);
}

void
vlm_report_note (VlmReport *report, const gchar *format, ...)
{
  va_list arguments;

  erase (report);
  va_start (arguments, format);
  vfprintf (stderr, format, arguments);
  va_end (arguments);
  fputc ('\n', stderr);
}

void
vlm_report_step (VlmReport *report, const gchar *what, const gchar *path)
{
  g_autofree gchar *line = vlm_make_line (path);

  if (report->settings.progress)
    vlm_report_note (report, "%s %s", what, line);
  report->last_line = 0;
}

void
vlm_report_progress (VlmReport *report, const VlmProgress *progress)
{
  guint columns = vlm_progress_get_columns ();
  g_autofree gchar *line = NULL;

  if (!report->settings.progress)
    return;
  if (columns > 0) {
    /* The last column stays free: some terminals go on to the next line behind it. */
    line = vlm_progress_to_text (progress, columns - 1, columns >= 60 ? BAR_WIDTH : 0);
    fprintf (stderr, "\r%s\033[K", line);
    fflush (stderr);
    report->drawn = TRUE;
  } else if (progress->seconds - report->last_line >= LINE_INTERVAL) {
    line = vlm_progress_to_text (progress, G_MAXUINT, 0);
    fprintf (stderr, "%s\n", line);
    report->last_line = progress->seconds;
  }
}
