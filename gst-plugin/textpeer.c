/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include <gst/base/gstbasetransform.h>
#include <string.h>

#include "downstream.h"
#include "textpeer.h"

/* The element that is reached through the pad, and the pad to go on from; either may be NULL. */
static GstElement *
step (GstPad **src)
{
  GstPad *peer = gst_vlm_downstream_get_peer (*src);
  GstElement *element = peer != NULL ? gst_pad_get_parent_element (peer) : NULL;

  gst_clear_object (&peer);
  gst_object_unref (*src);
  *src = element != NULL ? gst_vlm_downstream_get_way_on (element) : NULL;

  return element;
}

/* Passes each buffer on from the thread that brings it, before the next comes. */
static gboolean
passes_at_once (GstElement *element)
{
  GstElementFactory *factory = gst_element_get_factory (element);

  /* This transform keeps the last frame until it has seen the next one. */
  if (factory != NULL && g_str_equal (GST_OBJECT_NAME (factory), "videorate"))
    return FALSE;
  return GST_IS_BASE_TRANSFORM (element);
}

/*
 * Whether each frame is at the overlay before its push returns: what lies between are transforms.
 */
static gboolean
is_beside (GstPad *video, GstElement *overlay)
{
  GstPad *src = gst_object_ref (video);
  gboolean beside = FALSE;
  guint hops;

  for (hops = 0; src != NULL && hops < GST_VLM_MOST_HOPS; hops++) {
    GstElement *element = step (&src);

    beside = element == overlay;
    if (element == NULL || beside || !passes_at_once (element))
      gst_clear_object (&src);
    gst_clear_object (&element);
  }
  gst_clear_object (&src);

  return beside;
}

static gboolean
is_sink (GstElement *element)
{
  return GST_OBJECT_FLAG_IS_SET (element, GST_ELEMENT_FLAG_SINK) && element->numsinkpads == 1;
}

static gboolean
is_muxer (GstElement *element)
{
  const gchar *klass = gst_element_get_metadata (element, GST_ELEMENT_METADATA_KLASS);

  return klass != NULL && strstr (klass, "Muxer") != NULL;
}

GstVlmTextPeer
gst_vlm_text_peer_find (GstPad *text, GstPad *video)
{
  GstPad *src = gst_object_ref (text);
  GstVlmTextPeer kind = GST_VLM_TEXT_PEER_OTHER;
  guint hops;

  for (hops = 0; src != NULL && hops < GST_VLM_MOST_HOPS; hops++) {
    GstElement *element = step (&src);

    if (element == NULL)
      break;
    if (gst_vlm_downstream_is_overlay (element))
      kind = is_beside (video, element) ? GST_VLM_TEXT_PEER_BESIDE : GST_VLM_TEXT_PEER_OVERLAY;
    else if (is_sink (element))
      kind = GST_VLM_TEXT_PEER_SINK;
    else if (is_muxer (element))
      kind = GST_VLM_TEXT_PEER_MUXER;
    if (kind != GST_VLM_TEXT_PEER_OTHER)
      gst_clear_object (&src);
    gst_object_unref (element);
  }
  gst_clear_object (&src);

  return kind;
}

gboolean
gst_vlm_text_peer_stops (GstPad *text)
{
  GstPad *peer = gst_vlm_downstream_get_peer (text);
  GstElement *element = peer != NULL ? gst_pad_get_parent_element (peer) : NULL;
  GstState state = GST_STATE_PLAYING;

  if (element != NULL) {
    GST_OBJECT_LOCK (element);
    state = GST_STATE_NEXT (element);
    if (state == GST_STATE_VOID_PENDING)
      state = GST_STATE (element);
    GST_OBJECT_UNLOCK (element);
  }
  gst_clear_object (&element);
  gst_clear_object (&peer);

  return state <= GST_STATE_READY;
}
