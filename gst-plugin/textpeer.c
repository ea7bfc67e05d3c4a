/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "textpeer.h"

#define MOST_HOPS 32

/* The pad that data pushed from src reaches first, seen through the walls of bins. (transfer full) */
static GstPad *
get_real_peer (GstPad *src)
{
  GstPad *peer = gst_pad_get_peer (src);
  guint hops;

  for (hops = 0; peer != NULL && hops < MOST_HOPS; hops++) {
    GstPad *next;

    if (GST_IS_GHOST_PAD (peer)) {
      /* Into a bin. */
      next = gst_ghost_pad_get_target (GST_GHOST_PAD (peer));
    } else if (GST_IS_PROXY_PAD (peer)) {
      /* Out of a bin: the inner side of its ghost pad. */
      GstProxyPad *ghost = gst_proxy_pad_get_internal (GST_PROXY_PAD (peer));

      next = ghost != NULL ? gst_pad_get_peer (GST_PAD (ghost)) : NULL;
      gst_clear_object (&ghost);
    } else {
      break;
    }
    gst_object_unref (peer);
    peer = next;
  }
  return peer;
}

/* The only source pad of an element that has one sink and one source pad. (transfer full) */
static GstPad *
get_way_on (GstElement *element)
{
  GstPad *src = NULL;

  GST_OBJECT_LOCK (element);
  if (element->numsinkpads == 1 && element->numsrcpads == 1)
    src = gst_object_ref (element->srcpads->data);
  GST_OBJECT_UNLOCK (element);

  return src;
}

static GstVlmTextPeer
classify (GstElement *element)
{
  if (g_object_class_find_property (G_OBJECT_GET_CLASS (element), "wait-text") != NULL)
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

  for (hops = 0; src != NULL && hops < MOST_HOPS; hops++) {
    GstPad *peer = get_real_peer (src);
    GstElement *element = peer != NULL ? gst_pad_get_parent_element (peer) : NULL;

    gst_clear_object (&src);
    if (element != NULL) {
      kind = classify (element);
      if (kind == GST_VLM_TEXT_PEER_OTHER)
        src = get_way_on (element);
    }
    gst_clear_object (&element);
    gst_clear_object (&peer);
  }
  gst_clear_object (&src);

  return kind;
}
