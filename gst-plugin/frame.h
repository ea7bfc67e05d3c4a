/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A selected frame on its way to the model. The streaming thread takes a plain copy, so that the
 * buffer goes on at once and no pool of the source runs dry; the worker turns the copy into the
 * RGB bytes that the engine reads.
 */

#ifndef GST_VLM_FRAME_H
#define GST_VLM_FRAME_H

#include <gst/video/gstvideosink.h>
#include <gst/video/video.h>

#include "engine/vlm.h"

G_BEGIN_DECLS

/* The video formats that can be read, as a caps list without brackets' surroundings. */
#define GST_VLM_FRAME_FORMATS                                                                      \
  "{ I420, YV12, NV12, NV21, YUY2, UYVY, YVYU, VYUY, Y42B, Y444, "                                 \
  "Y41B, NV16, NV61, NV24, AYUV, VUYA, A420, v308, IYU1, IYU2, YUV9, YVU9, RGB, BGR, RGBx, "       \
  "BGRx, xRGB, xBGR, RGBA, BGRA, ARGB, ABGR, RGBP, BGRP, GBR, GBRA, RGB16, BGR16, RGB15, "         \
  "BGR15, GRAY8, P010_10LE, P010_10BE, P012_LE, P012_BE, P016_LE, P016_BE, I420_10LE, "            \
  "I420_10BE, I420_12LE, I420_12BE, I422_10LE, I422_10BE, I422_12LE, I422_12BE, Y444_10LE, "       \
  "Y444_10BE, Y444_12LE, Y444_12BE, Y444_16LE, Y444_16BE, GBR_10LE, GBR_10BE, GBR_12LE, "          \
  "GBR_12BE, GBRA_10LE, GBRA_10BE, GBRA_12LE, GBRA_12BE, A420_10LE, "                              \
  "A420_10BE, A422_10LE, A422_10BE, A444_10LE, A444_10BE, NV12_10LE32, NV16_10LE32, "              \
  "NV12_10LE40, v210, v216, UYVP, Y210, Y212_LE, Y212_BE, Y410, Y412_LE, Y412_BE, r210, "          \
  "BGR10A2_LE, RGB10A2_LE, ARGB64, ARGB64_LE, ARGB64_BE, RGBA64_LE, RGBA64_BE, BGRA64_LE, "        \
  "BGRA64_BE, ABGR64_LE, ABGR64_BE, AYUV64, GRAY16_LE, GRAY16_BE, GRAY10_LE32 }"

/* Whether each component of a pixel lies in a byte of its own. */
gboolean gst_vlm_format_has_bytes (const GstVideoFormatInfo *format);

typedef struct _GstVlmFrame GstVlmFrame;

/* Copies the pixels of buffer, which has the layout of info; NULL if it cannot be mapped or does
 * not hold such a frame. (transfer full) */
GstVlmFrame *gst_vlm_frame_new (GstBuffer *buffer, const GstVideoInfo *info);

/*
 * The same with memory that is used again and again: fresh memory would cost more time than the
 * copy does. *pool is NULL at first, made and replaced here as sizes change, and the caller's.
 */
GstVlmFrame *gst_vlm_frame_new_pooled (
    GstBuffer *buffer, const GstVideoInfo *info, GstBufferPool **pool);

/* Lets go of *pool; frames may still be about. NULL is fine. */
void gst_vlm_frame_pool_clear (GstBufferPool **pool);

void gst_vlm_frame_free (GstVlmFrame *frame);

/*
 * What is to be seen of the frame: part, which must lie in it, turned as orientation says. A new
 * frame shows all of itself as it is.
 */
void gst_vlm_frame_set_view (
    GstVlmFrame *frame, const GstVideoRectangle *part, GstVideoOrientationMethod orientation);

/* Turns frames into RGB; keeps its converter and memory from one frame to the next while their
 * layout stays the same. Belongs to one thread. */
typedef struct _GstVlmFrameReader GstVlmFrameReader;

GstVlmFrameReader *gst_vlm_frame_reader_new (void);
void gst_vlm_frame_reader_free (GstVlmFrameReader *reader);

/*
 * Formats that hold 8-bit red, green and blue give exactly these bytes (alpha is dropped), GRAY8
 * gives each byte three times unless its caps say that 16 is black, everything else is converted
 * as the caps' colorimetry says, down to 8 bits. Then the frame's view is cut out and turned.
 * image points into the reader until its next call. Errors: VLM_ERROR_IMAGE.
 */
gboolean gst_vlm_frame_reader_read (
    GstVlmFrameReader *reader, const GstVlmFrame *frame, VlmImage *image, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (GstVlmFrame, gst_vlm_frame_free)

G_END_DECLS

#endif
