/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "downstream.h"
#include "textpeer.h"

static GstVlmTextPeer
classify (GstElement *element)
{
  if (gst_vlm_downstream_is_overlay (element))
    return GST_VLM_TEXT_PEER_OVERLAY;
  if (GST_OBJECT_FLAG_IS_SET (element, GST_ELEMENT_FLAG_SINK) && element->numsinkpads == 1)
    return GST_VLM_TEXT_PEER_SINK;
  return GST_VLM_TEXT_PEER_OTHER;
}

GstVlmTextPeer
gst_vlm_text_peer_find (GstPad *pad)
{
  GstPad *src = gst_object_ref (pad);
  GstVlmTextPeer kind = GST_VLM_TEXT_PEER_OTHER;
  guint hops;

  for (hops = 0; src != NULL && hops < GST_VLM_MOST_HOPS; hops++) {
    GstPad *peer = gst_vlm_downstream_get_peer (src);
    GstElement *element = peer != NULL ? gst_pad_get_parent_element (peer) : NULL;

    gst_clear_object (&src);
    if (element != NULL) {
      kind = classify (element);
      if (kind == GST_VLM_TEXT_PEER_OTHER)
        src = gst_vlm_downstream_get_way_on (element);
    }
    gst_clear_object (&element);
    gst_clear_object (&peer);
  }
  gst_clear_object (&src);

  return kind;
}
