/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Looking at what follows a pad: through the walls of bins, and along plain chains of elements. */

#ifndef GST_VLM_DOWNSTREAM_H
#define GST_VLM_DOWNSTREAM_H

#include <gst/gst.h>

G_BEGIN_DECLS

/* Longest chain that is looked at: it also ends where links go in a circle. */
#define GST_VLM_MOST_HOPS 32

/* The pad of an element that data pushed from src reaches first, or NULL. (transfer full) */
GstPad *gst_vlm_downstream_get_peer (GstPad *src);

/* The source pad of an element that has one sink and one source pad, else NULL. (transfer full) */
GstPad *gst_vlm_downstream_get_way_on (GstElement *element);

/* Whether the element draws text on video: it is known by its property "wait-text". */
gboolean gst_vlm_downstream_is_overlay (GstElement *element);

G_END_DECLS

#endif
