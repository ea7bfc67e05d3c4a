/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a run prints: captions on standard output, all else on standard error. To be used by one
 * thread at a time.
 */

#ifndef TOOLS_CAPTION_REPORT_H
#define TOOLS_CAPTION_REPORT_H

#include "cue.h"
#include "input.h"
#include "progress.h"

typedef struct _VlmReport VlmReport;

typedef struct
{
  gboolean captions; /* are printed */
  gboolean names;    /* each after its input's name */
  gboolean progress; /* is shown */
} VlmReportSettings;

VlmReport *vlm_report_new (const VlmReportSettings *settings);
void vlm_report_free (VlmReport *report);

/* FALSE: standard output does not take it, which is reported. */
gboolean vlm_report_caption (VlmReport *report, const VlmCaption *caption);

/* What went wrong; name may be NULL. */
void vlm_report_failure (VlmReport *report, const gchar *name, const gchar *message);

/* How an input went, if there is something to say. */
void vlm_report_input (VlmReport *report, const VlmInput *input);

/* A line of its own on standard error. */
void vlm_report_note (VlmReport *report, const gchar *format, ...) G_GNUC_PRINTF (2, 3);

/* Says what is done to path next, where progress is shown. */
void vlm_report_step (VlmReport *report, const gchar *what, const gchar *path);

/* Shows the progress, if it is time to. */
void vlm_report_progress (VlmReport *report, const VlmProgress *progress);

#endif
