/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which times text has and in which pieces it is sent, settled by who takes it and what is asked. */

#ifndef GST_VLM_TEXT_RULES_H
#define GST_VLM_TEXT_RULES_H

#include "settings.h"
#include "textpeer.h"

G_BEGIN_DECLS

/*
 * CUES    for files and applications. A cue starts at the frame it describes and lasts to the next
 *         caption, to the end, or as long as is allowed; it is sent when its end is known.
 * SLICES  for peers that let video pass only as far as they have text: an overlay behind a queue
 *         or behind video that waits for its captions, and muxers. The caption of the frame that
 *         passes, in contiguous slices that never reach beyond the next selected frame. Such a peer
 *         blocks its text, so this needs a thread of its own. An overlay lets go of a slice at the first
 *         frame that ends with it or later; if the next frame starts before that end, a new slice
 *         starts there, too.
 * HELD    for those who show a caption when it arrives: one buffer for each, from the frame that
 *         passes then. An overlay shows it until STREAM_START before the next one makes it let go.
 */
typedef enum
{
  GST_VLM_TEXT_CUES,
  GST_VLM_TEXT_SLICES,
  GST_VLM_TEXT_HELD
} GstVlmTextStyle;

typedef struct
{
  gboolean sync;     /* video waits for captions */
  gboolean foreseen; /* the next caption comes with the next selected frame, whose time is known */
  GstVlmTextTiming timing;
  GstClockTime max_duration;
} GstVlmTextWishes;

typedef struct
{
  GstVlmTextStyle style;
  GstVlmTextPeer peer;
  GstClockTime longest; /* buffer */
  GstClockTime limit;   /* SLICES: text ends so long after the frame it describes; or NONE */
} GstVlmTextRules;

GstVlmTextRules gst_vlm_text_rules_choose (GstVlmTextPeer peer, const GstVlmTextWishes *wishes);

gboolean gst_vlm_text_rules_equal (const GstVlmTextRules *a, const GstVlmTextRules *b);

/* Whether the peer may hold video back for text that is not sent before its end is known. */
gboolean gst_vlm_text_rules_may_stall (const GstVlmTextRules *rules);

/* Whether text is given to an overlay that keeps it: it goes out ahead of the very frame. */
gboolean gst_vlm_text_rules_is_kept (const GstVlmTextRules *rules);

G_END_DECLS

#endif
