/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A caption's text as lines that can stand below a picture. */

#ifndef TOOLS_CAPTION_LINES_H
#define TOOLS_CAPTION_LINES_H

#include <glib.h>

/* Columns of a line of subtitles: what television's rules allow, and what fits on most screens. */
#define VLM_LINE_COLUMNS 42

/*
 * The text in lines of at most so many columns, parted by "\n": no line is empty, none begins or ends
 * with a space, and there are no control characters and nothing that is not UTF-8. The text's own
 * line breaks stay. Wide characters take two columns, combining ones none. Words are cut only where
 * one is longer than a line; Chinese and Japanese text may be broken between any two characters
 * that may part. The result may be empty. (transfer full)
 */
gchar *vlm_lines_wrap (const gchar *text, guint columns);

/*
 * The same with VLM_LINE_COLUMNS, and nothing in it is markup to a player of SubRip subtitles, which
 * has no escapes of its own: an invisible word joiner (U+2060) parts what would be a tag, an entity, an
 * arrow or a backslash code, and full-width braces replace the ones that some players take for
 * commands of another format. (transfer full)
 */
gchar *vlm_lines_srt (const gchar *text);

#endif
