/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Times as people write them. */

#ifndef TOOLS_CAPTION_TIMES_H
#define TOOLS_CAPTION_TIMES_H

#include <glib.h>

/*
 * Reads 90, 1.5, 2s, 500ms, 1m30s, 1h, 1:30, 0:01:30.5 as ns. FALSE: it is none of these, or more
 * than a thousand hours.
 */
gboolean vlm_time_parse (const gchar *text, gint64 *time);

/* (transfer full) H:MM:SS.mmm, rounded. */
gchar *vlm_time_to_text (gint64 time);

/* (transfer full) H:MM:SS, or M:SS below an hour, rounded. */
gchar *vlm_time_to_short_text (gint64 time);

#endif
