/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Cues as files of text. */

#ifndef TOOLS_CAPTION_WRITE_H
#define TOOLS_CAPTION_WRITE_H

#include <gio/gio.h>

#include "cue.h"

/*
 * All take cues of VlmCaption as vlm_cues_new () makes them, and replace the file at path by a whole new
 * one, or leave it as it was. Files are UTF-8 without a byte order mark, lines end with "\n". Errors
 * are those of vlm_write_file ().
 */

/*
 * Subtitles of one input: in lines of at most VLM_LINE_COLUMNS, times rounded to milliseconds such
 * that cues neither overlap nor have no length. Cues without text are left out.
 */
gboolean vlm_write_srt (const GPtrArray *cues, const gchar *path, GError **error);
gboolean vlm_write_vtt (const GPtrArray *cues, const gchar *path, GError **error);

/*
 * A contact sheet: one page with a section for each input, whose cues must stand together; thumbnails,
 * captions, times, and a box to search them. It needs no other file and no network. A picture leads
 * to its input, where that is a file or on the web.
 */
gboolean vlm_write_html (const GPtrArray *cues, const gchar *path, GError **error);

#endif
