/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A piece of the input. */

#include <glib/gstdio.h>

#include "graph.h"
#include "remux.h"
#include "write-file.h"

/*
 * The graph ends the streams in good order; how far beyond that the input may have to be read for it: to
 * the next key frame.
 */
#define MARGIN (30 * GST_SECOND)

typedef struct
{
  gint64 start, end;
} Range;

/* Streams stand still; what they had already sent is thrown away. */
static gboolean
seek_to_range (VlmGraph *graph, GError **error)
{
  const Range *range = graph->user_data;
  GstEvent *seek;
  gint64 duration;

  /* Demuxers would go to the last key frame. */
  if (gst_pad_query_duration (graph->video, GST_FORMAT_TIME, &duration)
      && graph->origin + range->start >= duration) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, "it has ended before %.3f s",
        range->start / 1e9);
    return FALSE;
  }
  seek = gst_event_new_seek (1.0, GST_FORMAT_TIME,
      GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_KEY_UNIT | GST_SEEK_FLAG_SNAP_BEFORE, GST_SEEK_TYPE_SET,
      graph->origin + range->start, GST_SEEK_TYPE_SET, graph->origin + range->end + MARGIN);
  if (gst_pad_send_event (graph->video, seek))
    return TRUE;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
      "nothing can be cut out of it: it can only be read from its beginning on");
  return FALSE;
}

gboolean
vlm_cut_clip (const gchar *uri, gint64 start, gint64 end, const gchar *path,
    GCancellable *cancellable, GError **error)
{
  Range range = { MAX (0, start), MIN (end, G_MAXINT64 / 4) };
  g_autofree gchar *temporary = NULL;
  g_autoptr (VlmGraph) graph = NULL;

  if (range.end <= range.start) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
        "%s: a clip from %.3f s to %.3f s has no length", uri, range.start / 1e9, range.end / 1e9);
    return FALSE;
  }
  temporary = vlm_temporary_new (path, error);
  if (temporary == NULL)
    return FALSE;
  graph = vlm_graph_new (uri, "matroskamux", temporary, error);
  if (graph != NULL) {
    graph->add_stream = vlm_graph_copy;
    graph->seek = seek_to_range;
    graph->user_data = &range;
    graph->end = range.end;
  }
  if (graph != NULL && vlm_graph_run (graph, cancellable, error))
    return vlm_temporary_commit (temporary, path, error);
  g_unlink (temporary);
  return FALSE;
}
