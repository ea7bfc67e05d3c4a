/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* For how long nothing has moved, as somebody sees it who looks every now and then. */

#ifndef TOOLS_CAPTION_PATIENCE_H
#define TOOLS_CAPTION_PATIENCE_H

#include <glib.h>

typedef struct
{
  gint64 limit, looked, idle; /* us */
} VlmPatience;

/* now: us of a clock that only goes forward. */
void vlm_patience_begin (VlmPatience *patience, guint seconds, gint64 now);

/*
 * A look; moved: something has since the last one. FALSE: nothing has for so many seconds. What lies between
 * two looks counts as a second at most: if that was longer the process was stopped, or the machine had no time
 * for it, and then nothing else could move either.
 */
gboolean vlm_patience_look (VlmPatience *patience, gboolean moved, gint64 now);

#endif
