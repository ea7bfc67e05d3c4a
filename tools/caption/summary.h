/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What is said when a run is over. */

#ifndef TOOLS_CAPTION_SUMMARY_H
#define TOOLS_CAPTION_SUMMARY_H

#include "input.h"
#include "report.h"
#include "run-options.h"

typedef struct
{
  guint n_new;     /* captions made */
  gint64 played;   /* ns of video */
  gdouble seconds; /* that it took */
} VlmSummary;

/* How many inputs went how, and which not well. Nothing about a single picture. */
void vlm_summary_print (const VlmSummary *summary, const VlmInputs *inputs, VlmReport *report);

/* Names the inputs that were not begun, because of an error that was reported before. */
void vlm_summary_name_left (const VlmInputs *inputs, VlmReport *report);

/* How to go on after an interruption; command is the whole command line. */
void vlm_summary_print_command (const VlmRunOptions *options, gchar **command, VlmReport *report);

#endif
