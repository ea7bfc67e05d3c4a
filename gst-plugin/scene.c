/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "scene.h"

#include "frame.h"

#define SIDE GST_VLM_SCENE_SIDE
/* Samples in a cell, along each side. */
#define SAMPLES 4
#define MOST 255

/* What a format needs for its samples to be read; a row is read at a time. */
typedef struct
{
  const GstVideoFrame *frame;
  guint32 columns[SIDE * SAMPLES];
  guint8 luma[SIDE * SAMPLES]; /* of the row */
  guint8 *line;                /* NULL: bytes are read in place */
  gboolean deep;               /* line has 16 bits a component */
} Reader;

static const guint8 *
find_row (const GstVideoFrame *frame, guint component, guint row)
{
  return (const guint8 *) GST_VIDEO_FRAME_COMP_DATA (frame, component)
      + (gsize) row * GST_VIDEO_FRAME_COMP_STRIDE (frame, component);
}

static void
read_bytes (Reader *reader, guint row)
{
  const GstVideoFrame *frame = reader->frame;
  const guint8 *first = find_row (frame, 0, row);
  gint step = GST_VIDEO_FRAME_COMP_PSTRIDE (frame, 0);
  const guint8 *second, *third;
  guint i;

  if (!GST_VIDEO_FORMAT_INFO_IS_RGB (frame->info.finfo)) {
    for (i = 0; i < SIDE * SAMPLES; i++)
      reader->luma[i] = first[reader->columns[i] * step];
    return;
  }

  second = find_row (frame, 1, row);
  third = find_row (frame, 2, row);
  for (i = 0; i < SIDE * SAMPLES; i++) {
    guint32 at = reader->columns[i] * step;

    reader->luma[i] = (first[at] + 2 * second[at] + third[at]) / 4;
  }
}

/* The general way: GStreamer unpacks the whole row to four components a pixel, alpha first. */
static void
read_unpacked (Reader *reader, guint row)
{
  const GstVideoFrame *frame = reader->frame;
  const GstVideoFormatInfo *format = frame->info.finfo;
  const GstVideoFormatInfo *unpacked = gst_video_format_get_info (format->unpack_format);
  gboolean rgb = GST_VIDEO_FORMAT_INFO_IS_RGB (unpacked);
  guint i;

  format->unpack_func (format, GST_VIDEO_PACK_FLAG_NONE, reader->line, frame->data,
      frame->info.stride, 0, row, GST_VIDEO_FRAME_WIDTH (frame));
  for (i = 0; i < SIDE * SAMPLES; i++) {
    const guint8 *pixel = reader->line + (gsize) reader->columns[i] * (reader->deep ? 8 : 4);
    const guint16 *deep = (const guint16 *) pixel;
    guint one = reader->deep ? deep[1] >> 8 : pixel[1];
    guint two = reader->deep ? deep[2] >> 8 : pixel[2];
    guint three = reader->deep ? deep[3] >> 8 : pixel[3];

    reader->luma[i] = rgb ? (one + 2 * two + three) / 4 : one;
  }
}

/* The middle of sample i of n in length pixels. */
static guint
spread (guint i, gint length)
{
  return (guint) (((guint64) i * 2 + 1) * length / (2 * SIDE * SAMPLES));
}

static void
look_at_frame (GstVlmScene *scene, const GstVideoFrame *frame, const GstVideoRectangle *part)
{
  const GstVideoFormatInfo *format = frame->info.finfo;
  g_autofree guint8 *line = NULL;
  Reader reader = { .frame = frame };
  guint x, y;

  if (!gst_vlm_format_has_bytes (format)) {
    reader.deep =
        GST_VIDEO_FORMAT_INFO_DEPTH (gst_video_format_get_info (format->unpack_format), 0) > 8;
    /* Formats that are unpacked by groups of pixels write a whole last group. */
    line = g_malloc ((gsize) (GST_VIDEO_FRAME_WIDTH (frame) + 64) * 8);
    reader.line = line;
  }
  for (x = 0; x < SIDE * SAMPLES; x++)
    reader.columns[x] = part->x + spread (x, part->w);

  memset (scene->cells, 0, sizeof scene->cells);
  for (y = 0; y < SIDE * SAMPLES; y++) {
    guint16 *cells = scene->cells + y / SAMPLES * SIDE;

    if (line != NULL)
      read_unpacked (&reader, part->y + spread (y, part->h));
    else
      read_bytes (&reader, part->y + spread (y, part->h));
    for (x = 0; x < SIDE * SAMPLES; x++)
      cells[x / SAMPLES] += reader.luma[x];
  }
  scene->known = TRUE;
}

void
gst_vlm_scene_look (
    GstVlmScene *scene, GstBuffer *buffer, const GstVideoInfo *info, const GstVideoRectangle *part)
{
  GstVideoFrame frame;

  scene->known = FALSE;
  if (!gst_video_frame_map (&frame, (GstVideoInfo *) info, buffer, GST_MAP_READ))
    return;
  look_at_frame (scene, &frame, part);
  gst_video_frame_unmap (&frame);
}

gdouble
gst_vlm_scene_distance (const GstVlmScene *a, const GstVlmScene *b)
{
  guint sum = 0;
  guint i;

  if (!a->known || !b->known)
    return 1;
  for (i = 0; i < G_N_ELEMENTS (a->cells); i++)
    sum += ABS ((gint) a->cells[i] - (gint) b->cells[i]);

  return sum / (gdouble) (G_N_ELEMENTS (a->cells) * SAMPLES * SAMPLES * MOST);
}
