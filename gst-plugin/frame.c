/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "frame.h"

struct _GstVlmFrame
{
  GstVideoInfo info; /* of buffer: rows without the source's padding */
  GstBuffer *buffer;
  GstVideoRectangle part;
  GstVideoOrientationMethod orientation;
};

struct _GstVlmFrameReader
{
  GstVideoInfo from; /* what converter reads */
  GstVideoInfo to;   /* RGB of the same size */
  gboolean have_layout;
  GstVideoConverter *converter; /* NULL: the bytes are picked out without arithmetic */
  GstBuffer *rgb;               /* has the layout of to */
  GstVideoFrame mapped;         /* rgb, for as long as have_layout */
  guint8 *turned;               /* the last view that had to be turned */
};

/* ---- The copy ----------------------------------------------------------------------------- */

void
gst_vlm_frame_pool_clear (GstBufferPool **pool)
{
  if (*pool == NULL)
    return;
  gst_buffer_pool_set_active (*pool, FALSE);
  gst_clear_object (pool);
}

/* Makes *pool one of buffers of this size; NULL if that cannot be. */
static void
prepare_pool (GstBufferPool **pool, gsize size)
{
  GstStructure *config;
  guint pool_size = 0;

  if (*pool != NULL) {
    config = gst_buffer_pool_get_config (*pool);
    gst_buffer_pool_config_get_params (config, NULL, &pool_size, NULL, NULL);
    gst_structure_free (config);
  }
  if (pool_size == size)
    return;

  gst_vlm_frame_pool_clear (pool);
  *pool = gst_buffer_pool_new ();
  config = gst_buffer_pool_get_config (*pool);
  gst_buffer_pool_config_set_params (config, NULL, size, 0, 0);
  if (!gst_buffer_pool_set_config (*pool, config) || !gst_buffer_pool_set_active (*pool, TRUE))
    gst_clear_object (pool);
}

static GstBuffer *
allocate (gsize size, GstBufferPool **pool)
{
  GstBuffer *buffer = NULL;

  if (pool != NULL)
    prepare_pool (pool, size);
  if (pool == NULL || *pool == NULL
      || gst_buffer_pool_acquire_buffer (*pool, &buffer, NULL) != GST_FLOW_OK)
    buffer = gst_buffer_new_allocate (NULL, size, NULL);

  return buffer;
}

GstVlmFrame *
gst_vlm_frame_new (GstBuffer *buffer, const GstVideoInfo *info)
{
  return gst_vlm_frame_new_pooled (buffer, info, NULL);
}

GstVlmFrame *
gst_vlm_frame_new_pooled (GstBuffer *buffer, const GstVideoInfo *info, GstBufferPool **pool)
{
  GstVlmFrame *frame = g_new0 (GstVlmFrame, 1);
  GstVideoFrame from, to;
  gboolean copied;

  gst_video_info_set_interlaced_format (&frame->info, GST_VIDEO_INFO_FORMAT (info),
      GST_VIDEO_INFO_INTERLACE_MODE (info), GST_VIDEO_INFO_WIDTH (info),
      GST_VIDEO_INFO_HEIGHT (info));
  frame->part.w = GST_VIDEO_INFO_WIDTH (info);
  frame->part.h = GST_VIDEO_INFO_HEIGHT (info);
  frame->info.colorimetry = info->colorimetry;
  frame->info.chroma_site = info->chroma_site;

  if (!gst_video_frame_map (&from, (GstVideoInfo *) info, buffer, GST_MAP_READ))
    goto no_frame;

  frame->buffer = allocate (GST_VIDEO_INFO_SIZE (&frame->info), pool);
  if (!gst_video_frame_map (&to, &frame->info, frame->buffer, GST_MAP_WRITE)) {
    gst_video_frame_unmap (&from);
    goto no_frame;
  }

  copied = gst_video_frame_copy (&to, &from);
  /* Interlaced content may be marked on the buffer only. */
  gst_buffer_set_flags (frame->buffer,
      GST_BUFFER_FLAGS (buffer) & (GST_VIDEO_BUFFER_FLAG_INTERLACED | GST_VIDEO_BUFFER_FLAG_TFF));
  gst_video_frame_unmap (&to);
  gst_video_frame_unmap (&from);
  if (!copied)
    goto no_frame;

  return frame;

no_frame:
  gst_vlm_frame_free (frame);
  return NULL;
}

void
gst_vlm_frame_free (GstVlmFrame *frame)
{
  gst_clear_buffer (&frame->buffer);
  g_free (frame);
}

void
gst_vlm_frame_set_view (
    GstVlmFrame *frame, const GstVideoRectangle *part, GstVideoOrientationMethod orientation)
{
  frame->part = *part;
  frame->orientation = orientation;
}

/* ---- RGB ---------------------------------------------------------------------------------- */

GstVlmFrameReader *
gst_vlm_frame_reader_new (void)
{
  return g_new0 (GstVlmFrameReader, 1);
}

static void
forget_layout (GstVlmFrameReader *reader)
{
  if (reader->have_layout)
    gst_video_frame_unmap (&reader->mapped);
  reader->have_layout = FALSE;
  g_clear_pointer (&reader->converter, gst_video_converter_free);
  gst_clear_buffer (&reader->rgb);
}

void
gst_vlm_frame_reader_free (GstVlmFrameReader *reader)
{
  forget_layout (reader);
  g_free (reader->turned);
  g_free (reader);
}

gboolean
gst_vlm_format_has_bytes (const GstVideoFormatInfo *format)
{
  guint i;

  if (GST_VIDEO_FORMAT_INFO_IS_COMPLEX (format) || GST_VIDEO_FORMAT_INFO_HAS_PALETTE (format)
      || GST_VIDEO_FORMAT_INFO_IS_TILED (format))
    return FALSE;
  for (i = 0; i < GST_VIDEO_FORMAT_INFO_N_COMPONENTS (format); i++) {
    if (GST_VIDEO_FORMAT_INFO_DEPTH (format, i) != 8
        || GST_VIDEO_FORMAT_INFO_SHIFT (format, i) != 0)
      return FALSE;
  }
  return TRUE;
}

/* Whether the bytes of a format are the model's bytes already, in whatever order or planes. */
static gboolean
holds_plain_bytes (const GstVideoInfo *info)
{
  const GstVideoFormatInfo *format = info->finfo;

  if (!GST_VIDEO_FORMAT_INFO_IS_RGB (format) && !GST_VIDEO_FORMAT_INFO_IS_GRAY (format))
    return FALSE;
  if (GST_VIDEO_FORMAT_INFO_IS_GRAY (format)
      && info->colorimetry.range == GST_VIDEO_COLOR_RANGE_16_235)
    return FALSE;
  return gst_vlm_format_has_bytes (format);
}

static gboolean
learn_layout (GstVlmFrameReader *reader, const GstVideoInfo *info, GError **error)
{
  if (reader->have_layout && gst_video_info_is_equal (&reader->from, info))
    return TRUE;

  forget_layout (reader);
  reader->from = *info;
  gst_video_info_set_format (
      &reader->to, GST_VIDEO_FORMAT_RGB, GST_VIDEO_INFO_WIDTH (info), GST_VIDEO_INFO_HEIGHT (info));
  /* The converter wants both sides to be interlaced alike. */
  reader->to.interlace_mode = info->interlace_mode;

  if (!holds_plain_bytes (info)) {
    reader->converter = gst_video_converter_new (&reader->from, &reader->to, NULL);
    if (reader->converter == NULL)
      goto no_converter;
  }

  reader->rgb = gst_buffer_new_allocate (NULL, GST_VIDEO_INFO_SIZE (&reader->to), NULL);
  if (!gst_video_frame_map (&reader->mapped, &reader->to, reader->rgb, GST_MAP_READWRITE))
    goto no_converter;
  reader->have_layout = TRUE;

  return TRUE;

no_converter:
  forget_layout (reader);
  g_set_error (error, VLM_ERROR, VLM_ERROR_IMAGE, "no conversion from %s %dx%d to RGB",
      GST_VIDEO_INFO_NAME (info), GST_VIDEO_INFO_WIDTH (info), GST_VIDEO_INFO_HEIGHT (info));
  return FALSE;
}

/* Component c of an RGB format is red, green or blue; gray has its one component for all three. */
static void
pick_bytes (const GstVideoFrame *from, GstVideoFrame *to)
{
  gboolean gray = GST_VIDEO_FORMAT_INFO_IS_GRAY (from->info.finfo);
  gint width = GST_VIDEO_FRAME_WIDTH (from);
  gint height = GST_VIDEO_FRAME_HEIGHT (from);
  gint channel, x, y;

  for (channel = 0; channel < 3; channel++) {
    gint c = gray ? 0 : channel;
    gint step = GST_VIDEO_FRAME_COMP_PSTRIDE (from, c);
    const guint8 *in = GST_VIDEO_FRAME_COMP_DATA (from, c);
    guint8 *out = (guint8 *) GST_VIDEO_FRAME_PLANE_DATA (to, 0) + channel;

    for (y = 0; y < height; y++) {
      for (x = 0; x < width; x++)
        out[3 * x] = in[step * x];
      in += GST_VIDEO_FRAME_COMP_STRIDE (from, c);
      out += GST_VIDEO_FRAME_PLANE_STRIDE (to, 0);
    }
  }
}

/* ---- The view ----------------------------------------------------------------------------- */

/* How a turned picture is read: the first pixel, and the steps along a row and from row to row. */
typedef struct
{
  gint x, y;
  gint x_of_column, y_of_column;
  gint x_of_row, y_of_row;
} Walk;

/* Indexed by GstVideoOrientationMethod, up to the last that turns. x and y: 1 is the far edge. */
static const Walk walks[] = {
  [GST_VIDEO_ORIENTATION_IDENTITY] = { 0, 0, 1, 0, 0, 1 },
  [GST_VIDEO_ORIENTATION_90R] = { 0, 1, 0, -1, 1, 0 },
  [GST_VIDEO_ORIENTATION_180] = { 1, 1, -1, 0, 0, -1 },
  [GST_VIDEO_ORIENTATION_90L] = { 1, 0, 0, 1, -1, 0 },
  [GST_VIDEO_ORIENTATION_HORIZ] = { 1, 0, -1, 0, 0, 1 },
  [GST_VIDEO_ORIENTATION_VERT] = { 0, 1, 1, 0, 0, -1 },
  [GST_VIDEO_ORIENTATION_UL_LR] = { 0, 0, 0, 1, 1, 0 },
  [GST_VIDEO_ORIENTATION_UR_LL] = { 1, 1, 0, -1, -1, 0 },
};

/* Replaces image by its turned copy. */
static void
turn (GstVlmFrameReader *reader, const Walk *walk, VlmImage *image)
{
  gint width = image->width, height = image->height;
  gssize stride = image->stride;
  gssize step = 3 * walk->x_of_column + stride * walk->y_of_column;
  gssize row_step = 3 * walk->x_of_row + stride * walk->y_of_row;
  const guint8 *row = image->pixels + 3 * walk->x * (width - 1) + stride * walk->y * (height - 1);
  guint8 *out;
  guint x, y;

  reader->turned = g_realloc (reader->turned, (gsize) 3 * width * height);
  out = reader->turned;
  image->width = walk->x_of_column != 0 ? width : height;
  image->height = walk->x_of_column != 0 ? height : width;
  for (y = 0; y < image->height; y++, row += row_step) {
    const guint8 *in = row;

    for (x = 0; x < image->width; x++, in += step, out += 3)
      memcpy (out, in, 3);
  }
  image->pixels = reader->turned;
  image->stride = (gsize) 3 * image->width;
}

gboolean
gst_vlm_frame_reader_read (
    GstVlmFrameReader *reader, const GstVlmFrame *frame, VlmImage *image, GError **error)
{
  GstVideoFrame from;

  if (!learn_layout (reader, &frame->info, error))
    return FALSE;

  if (!gst_video_frame_map (&from, (GstVideoInfo *) &frame->info, frame->buffer, GST_MAP_READ)) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_IMAGE, "a %s frame of %dx%d cannot be mapped",
        GST_VIDEO_INFO_NAME (&frame->info), GST_VIDEO_INFO_WIDTH (&frame->info),
        GST_VIDEO_INFO_HEIGHT (&frame->info));
    return FALSE;
  }

  if (reader->converter != NULL)
    gst_video_converter_frame (reader->converter, &from, &reader->mapped);
  else
    pick_bytes (&from, &reader->mapped);
  gst_video_frame_unmap (&from);

  image->pixels = GST_VIDEO_FRAME_PLANE_DATA (&reader->mapped, 0);
  image->stride = GST_VIDEO_FRAME_PLANE_STRIDE (&reader->mapped, 0);
  image->pixels += image->stride * frame->part.y + 3 * frame->part.x;
  image->width = frame->part.w;
  image->height = frame->part.h;
  if (frame->orientation > GST_VIDEO_ORIENTATION_IDENTITY
      && frame->orientation < G_N_ELEMENTS (walks))
    turn (reader, &walks[frame->orientation], image);

  return TRUE;
}
