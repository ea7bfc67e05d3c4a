/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Video files with captions in them, and pieces of video files.
 *
 * uri is the input, cues those of that input. All write under a temporary name beside path, which gets
 * its name, replacing what was there, only when everything is in it. GStreamer must be initialised. All
 * may be called from any thread, and several at a time.
 *
 * Errors name the uri or the path: those of GStreamer for a broken or unreadable input;
 * GST_CORE_ERROR_MISSING_PLUGIN, naming the package, if something is not installed;
 * G_IO_ERROR_NOT_SUPPORTED for a stream that such a file cannot hold, naming its kind;
 * G_IO_ERROR_INVALID_DATA if there is no video; G_IO_ERROR_TIMED_OUT if the input gives nothing for 30
 * seconds; G_IO_ERROR_CANCELLED; those of vlm_write_file () for path.
 */

#ifndef TOOLS_CAPTION_REMUX_H
#define TOOLS_CAPTION_REMUX_H

#include <gio/gio.h>

#include "cue.h"

/*
 * Told a few times a second, and at the end, in the thread that makes the output: ns of the input's video
 * that are in it, and ns that there are, -1 if nobody knows.
 */
typedef void (*VlmRemuxProgress) (gint64 position, gint64 duration, gpointer data);

/*
 * The input's video and audio as they are, and the cues as a track of subtitles, in a Matroska file.
 * Nothing is decoded. Other streams are kept if Matroska has a place for them. Without any cue that
 * has text there is no such track. progress may be NULL.
 */
gboolean vlm_mux_mkv (const gchar *uri, const GPtrArray *cues, const gchar *path,
    GCancellable *cancellable, VlmRemuxProgress progress, gpointer data, GError **error);

/*
 * The input's first video with the cues drawn on it, upright and not interlaced, encoded anew as H.264;
 * sound as it is, or encoded as Opus if the file has no place for it; no other streams. An MP4 file,
 * or Matroska if path ends with ".mkv", and only there VP8 if no encoder of H.264 is installed.
 * progress may be NULL.
 */
gboolean vlm_burn (const gchar *uri, const GPtrArray *cues, const gchar *path,
    GCancellable *cancellable, VlmRemuxProgress progress, gpointer data, GError **error);

/*
 * What lies between start and end (ns, counted like those of captions), in a Matroska file, as it is:
 * video can only be cut at a key frame, so the clip begins at the last one that is not after start.
 */
gboolean vlm_cut_clip (const gchar *uri, gint64 start, gint64 end, const gchar *path,
    GCancellable *cancellable, GError **error);

#endif
