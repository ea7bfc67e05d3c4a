/* SPDX-License-Identifier: LGPL-2.1-or-later */

#ifndef GST_VLM_TEXT_PEER_H
#define GST_VLM_TEXT_PEER_H

#include <gst/gst.h>

G_BEGIN_DECLS

typedef enum
{
  GST_VLM_TEXT_PEER_SINK,    /* takes text as it comes: a file, an application */
  GST_VLM_TEXT_PEER_BESIDE,  /* an overlay that draws a frame before its push returns */
  GST_VLM_TEXT_PEER_OVERLAY, /* one that video reaches later, behind a queue */
  GST_VLM_TEXT_PEER_MUXER,   /* holds video back until it knows which text comes next */
  GST_VLM_TEXT_PEER_OTHER    /* something that may do so */
} GstVlmTextPeer;

/*
 * Where text from the pad goes in the end, seen through queues, other elements with one input and
 * one output, and bins. video is the pad that the frames leave from.
 */
GstVlmTextPeer gst_vlm_text_peer_find (GstPad *text, GstPad *video);

/* Whether the element that text is pushed into is stopped, or about to be. */
gboolean gst_vlm_text_peer_stops (GstPad *text);

static inline gboolean
gst_vlm_text_peer_draws (GstVlmTextPeer peer)
{
  return peer == GST_VLM_TEXT_PEER_BESIDE || peer == GST_VLM_TEXT_PEER_OVERLAY;
}

G_END_DECLS

#endif
