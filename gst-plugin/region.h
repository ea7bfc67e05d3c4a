/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The part of a picture that is described: "x,y,width,height" in pixels or in fractions. */

#ifndef GST_VLM_REGION_H
#define GST_VLM_REGION_H

#include <gst/video/gstvideosink.h>

G_BEGIN_DECLS

typedef struct
{
  gdouble x, y, width, height;
  gboolean fractions; /* of the picture's size; else pixels */
} GstVlmRegion;

/*
 * Reads four numbers with commas between them: fractions if none is above 1, else pixels. NULL or
 * an empty text is the whole picture. FALSE, and *refused says why, for anything else.
 */
gboolean gst_vlm_region_parse (GstVlmRegion *region, const gchar *text, const gchar **refused);

/*
 * The whole pixels of picture that region covers, cut to the picture; FALSE if there are none.
 * Where region and its fractions are counted from: the picture's upper left corner.
 */
gboolean gst_vlm_region_resolve (
    const GstVlmRegion *region, const GstVideoRectangle *picture, GstVideoRectangle *covered);

G_END_DECLS

#endif
