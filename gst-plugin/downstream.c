/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "downstream.h"

GstPad *
gst_vlm_downstream_get_peer (GstPad *src)
{
  GstPad *peer = gst_pad_get_peer (src);
  guint hops;

  for (hops = 0; peer != NULL && hops < GST_VLM_MOST_HOPS; hops++) {
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

GstPad *
gst_vlm_downstream_get_way_on (GstElement *element)
{
  GstPad *src = NULL;

  GST_OBJECT_LOCK (element);
  if (element->numsinkpads == 1 && element->numsrcpads == 1)
    src = gst_object_ref (element->srcpads->data);
  GST_OBJECT_UNLOCK (element);

  return src;
}

gboolean
gst_vlm_downstream_is_overlay (GstElement *element)
{
  return g_object_class_find_property (G_OBJECT_GET_CLASS (element), "wait-text") != NULL;
}
