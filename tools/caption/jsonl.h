/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Captions as JSON Lines: one object a line, each written at once and whole.
 *
 *   {"file": "a.mp4", "uri": "file:///...", "pts": 2.04, "utc": "2026-01-31T12:00:00.000000Z",
 *    "text": "...", "tokens": 9, "latency": 0.8, "finish-reason": "stop", "model": "...",
 *    "still": false, "options": {"prompt": "..."}}
 *
 * pts and latency are seconds; utc is null where it is not known. A sheet's picture is "thumbnail", a
 * JPEG in base64. options are those of settings.h; they may be missing.
 */

#ifndef TOOLS_CAPTION_JSONL_H
#define TOOLS_CAPTION_JSONL_H

#include <gio/gio.h>

#include "cue.h"

typedef struct _VlmJsonl VlmJsonl;

/*
 * Opens the file at path for appending, and makes it if need be; "-" is standard output. A last line
 * that has no end was torn when it was written, and is cut off.
 */
VlmJsonl *vlm_jsonl_open (const gchar *path, GError **error);

/* Adds what is in the file to captions. Error: which line is no caption. */
gboolean vlm_jsonl_load (VlmJsonl *jsonl, GPtrArray *captions, GError **error);

gboolean vlm_jsonl_add (
    VlmJsonl *jsonl, const VlmCaption *caption, gboolean thumbnail, GError **error);

/* FALSE: what was written may not have reached the disk. */
gboolean vlm_jsonl_close (VlmJsonl *jsonl, GError **error);

/* (transfer full) the time in us since 1970 as ISO 8601 in UTC. */
gchar *vlm_utc_to_text (gint64 utc);

#endif
