/* SPDX-License-Identifier: LGPL-2.1-or-later */

#ifndef GST_VLM_CAPTION_H
#define GST_VLM_CAPTION_H

#include <gst/gst.h>

G_BEGIN_DECLS

#define GST_TYPE_VLM_CAPTION (gst_vlm_caption_get_type ())
G_DECLARE_FINAL_TYPE (GstVlmCaption, gst_vlm_caption, GST, VLM_CAPTION, GstElement)

GST_ELEMENT_REGISTER_DECLARE (vlmcaption);

G_END_DECLS

#endif
