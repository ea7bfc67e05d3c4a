/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Whether the picture has changed: a coarse image of its brightness, of 16 x 16 cells with 16
 * samples each, that costs a few microseconds whatever the size of the frame.
 */

#ifndef GST_VLM_SCENE_H
#define GST_VLM_SCENE_H

#include <gst/video/gstvideosink.h>
#include <gst/video/video.h>

G_BEGIN_DECLS

#define GST_VLM_SCENE_SIDE 16

typedef struct
{
  gboolean known;
  guint16 cells[GST_VLM_SCENE_SIDE * GST_VLM_SCENE_SIDE]; /* 0 .. 4080: sums of 16 samples */
} GstVlmScene;

/*
 * Looks at the part of buffer, which has the layout of info; part must lie in the picture. If the
 * buffer cannot be read the scene is not known.
 */
void gst_vlm_scene_look (
    GstVlmScene *scene, GstBuffer *buffer, const GstVideoInfo *info, const GstVideoRectangle *part);

/*
 * The mean difference of the cells: 0 for equal pictures, 1 between black and white (for video
 * whose levels run from 16 to 235: 0.86). 1 if either is not known.
 */
gdouble gst_vlm_scene_distance (const GstVlmScene *a, const GstVlmScene *b);

G_END_DECLS

#endif
