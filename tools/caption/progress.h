/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How far a run is, on standard error: a line that is redrawn, or now and then a new one. */

#ifndef TOOLS_CAPTION_PROGRESS_H
#define TOOLS_CAPTION_PROGRESS_H

#include <glib.h>

typedef struct
{
  guint n_inputs;
  gdouble done;      /* of all inputs, 0 to 1 */
  gint64 played;     /* ns of video behind us */
  gdouble seconds;   /* since the start */
  gint n_captions;   /* made since then; -1: it is not captions that are made */
  const gchar *name; /* of the input that the last caption is of, or of what is made; or NULL */
  const gchar *text; /* the last caption, or NULL */
} VlmProgress;

/* (transfer full) the line, at most columns wide; with a bar if bar is not 0, which is its width. */
gchar *vlm_progress_to_text (const VlmProgress *progress, guint columns, guint bar);

/* The width of the terminal behind standard error; 0: there is none, or it cannot redraw lines. */
guint vlm_progress_get_columns (void);

/* (transfer full) text on one line: what controls terminals, line ends too, is made blank. */
gchar *vlm_make_line (const gchar *text);

#endif
