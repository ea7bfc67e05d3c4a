/* SPDX-License-Identifier: LGPL-2.1-or-later */

#ifndef GST_VLM_TEXT_PEER_H
#define GST_VLM_TEXT_PEER_H

#include <gst/gst.h>

G_BEGIN_DECLS

typedef enum
{
  GST_VLM_TEXT_PEER_SINK,    /* takes text as it comes: a file, an application */
  GST_VLM_TEXT_PEER_OVERLAY, /* draws it on video */
  GST_VLM_TEXT_PEER_OTHER    /* a muxer, or something that may lead to one */
} GstVlmTextPeer;

/*
 * Where text from this pad goes in the end, seen through queues, other elements with one input and
 * one output, and bins. An overlay is known by its property "wait-text".
 */
GstVlmTextPeer gst_vlm_text_peer_find (GstPad *pad);

G_END_DECLS

#endif
