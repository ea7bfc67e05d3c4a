/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A copy of the input with the cues as a track of subtitles. */

#include <glib/gstdio.h>

#include "cue-source.h"
#include "graph.h"
#include "lines.h"
#include "remux.h"
#include "write-file.h"

/* Adds the track when the others are there, so that it comes after them. */
static gboolean
add_track (VlmGraph *graph, GError **error)
{
  g_autoptr (GstPad) pad = gst_element_request_pad_simple (graph->muxer, "subtitle_%u");

  return vlm_cue_source_add (graph, graph->user_data, vlm_lines_srt, pad, error);
}

static gboolean
have_text (const GPtrArray *cues)
{
  for (guint i = 0; i < cues->len; i++) {
    const VlmCaption *cue = g_ptr_array_index (cues, i);
    g_autofree gchar *lines = vlm_lines_srt (cue->text);

    if (*lines != '\0')
      return TRUE;
  }
  return FALSE;
}

gboolean
vlm_mux_mkv (const gchar *uri, const GPtrArray *cues, const gchar *path, GCancellable *cancellable,
    VlmRemuxProgress progress, gpointer data, GError **error)
{
  g_autofree gchar *temporary = vlm_temporary_new (path, error);
  g_autoptr (VlmGraph) graph = NULL;

  if (temporary == NULL)
    return FALSE;
  graph = vlm_graph_new (uri, "matroskamux", temporary, error);
  if (graph != NULL) {
    graph->add_stream = vlm_graph_copy;
    graph->prepare = have_text (cues) ? add_track : NULL;
    graph->user_data = (gpointer) cues;
    graph->progress = progress;
    graph->progress_data = data;
  }
  if (graph != NULL && vlm_graph_run (graph, cancellable, error))
    return vlm_temporary_commit (temporary, path, error);
  g_unlink (temporary);
  return FALSE;
}
