/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Finished captions, and the cues that subtitles and contact sheets are made of. */

#ifndef TOOLS_CAPTION_CUE_H
#define TOOLS_CAPTION_CUE_H

#include <glib.h>

/* One caption of one input, and the cues made of them. */
typedef struct
{
  gchar *input; /* as named on the command line or found in a folder; UTF-8 for display */
  gchar *uri;   /* what was played */
  gint64 pts;   /* ns of stream time that the described frame has: 0 = the input's first frame */
  gint64 end;   /* ns, of what is described: next caption, or the input's end. -1: not known */
  gint64 utc;   /* us since 1970 of capture, -1: not known */
  gchar *text;  /* UTF-8, never NULL */
  guint tokens;
  gdouble latency;      /* seconds from frame to caption */
  gchar *finish_reason; /* "stop", ... */
  gchar *model;         /* id of the model */
  gchar *settings;      /* that it was made with, as of vlm_settings_new (), or NULL */
  gboolean still;       /* the input is a picture: pts 0, end 0 */
  guint8 *thumbnail;    /* JPEG of the described frame, at most 320 wide, or NULL */
  gsize thumbnail_size;
} VlmCaption;

/* caption may be NULL. */
void vlm_caption_free (VlmCaption *caption);

/*
 * The cues of captions (of VlmCaption; each input's in order of pts, inputs may be mixed), input by
 * input in the order in which they first come up. Every cue is a copy of its first caption, texts
 * unchanged, with end set: from pts to end it stands, cues of one input never overlap, and no length
 * is zero but a picture's.
 *
 * Equal captions that follow each other without a gap become one cue. No cue is shorter than
 * min_length: a cue that is grows into the gap behind it; if that does not help, brief cues that
 * follow each other become one with the text of the first, and a single one is left out and the cue
 * before it stays in its place. The only cue of an input stays however short it is. A cue longer
 * than max_length ends there. Lengths in ns; 0: none. Where the last caption's end is not known, its
 * cue stands for two seconds, or for min_length if that is more.
 *
 * (transfer full), of VlmCaption, freed with the array.
 */
GPtrArray *vlm_cues_new (const GPtrArray *captions, gint64 min_length, gint64 max_length);

#endif
