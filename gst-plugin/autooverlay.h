/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Makes plain "vlmcaption ! textoverlay" show captions: links a text pad of the element's to the
 * first overlay downstream that nobody feeds, and takes the link away again. Nothing else in the
 * pipeline is changed.
 */

#ifndef GST_VLM_AUTO_OVERLAY_H
#define GST_VLM_AUTO_OVERLAY_H

#include <gst/gst.h>

G_BEGIN_DECLS

typedef struct _GstVlmAutoOverlay GstVlmAutoOverlay;

/*
 * Walks from the video pad src over elements with one input and one output, in and out of bins, to
 * an overlay whose pad "text_sink" is free and that has no text of the user's. The pad to link to,
 * which may be a ghost pad that shows the overlay's; NULL: there is none. (transfer full)
 */
GstPad *gst_vlm_auto_overlay_find (GstPad *src);

/*
 * Links text, a request pad of element's, to the pad that was found, with ghost pads where bins
 * stand between. NULL if that fails; then all is as it was and text has been released.
 */
GstVlmAutoOverlay *gst_vlm_auto_overlay_new (GstElement *element, GstPad *text, GstPad *target);

/* Takes link, ghost pads and text pad away, as far as others have not done so. */
void gst_vlm_auto_overlay_free (GstVlmAutoOverlay *overlay);

G_END_DECLS

#endif
