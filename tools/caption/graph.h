/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What copies, clips and burnt captions have in common: an input that is taken apart into its streams,
 * a muxer that puts some of them into a new file, and running that to its end.
 *
 *   urisourcebin ! typefind ! demuxer ! multiqueue ! (what a stream needs) ! muxer ! filesink
 *
 * Not parsebin, which packs streams anew: copies are to be copies. Behind the multiqueue streams wait
 * until all of them are known, because the muxer has to know them when it begins.
 */

#ifndef TOOLS_CAPTION_GRAPH_H
#define TOOLS_CAPTION_GRAPH_H

#include <gio/gio.h>
#include <gst/gst.h>

#include "remux.h"

typedef struct _VlmGraph VlmGraph;

/*
 * Links one stream of the input, which comes out of the pad `stream` (of the multiqueue, where it
 * waits), to where it is to go; in a streaming thread. FALSE with an error ends the run.
 */
typedef gboolean (*VlmGraphStreamFunc) (
    VlmGraph *graph, GstPad *stream, const GstCaps *caps, GError **error);
typedef gboolean (*VlmGraphFunc) (VlmGraph *graph, GError **error);

struct _VlmGraph
{
  /* To be set between making the graph and running it. */
  VlmGraphStreamFunc add_stream;
  VlmGraphFunc prepare; /* when all streams are there, like add_stream; or NULL */
  VlmGraphFunc seek;    /* after that, once origin is known, in the thread that runs; or NULL */
  gpointer user_data;   /* for the three */
  VlmRemuxProgress progress; /* in the thread that runs; or NULL */
  gpointer progress_data;
  gint64 end;    /* where the streams are to end, in ns from origin; 0: at their own ends */
  gint patience; /* seconds in which something must move; 30 at first */

  /* To be read. */
  GstElement *pipeline, *muxer;
  GstPad *video; /* the pad of the first video stream, once it is there */
  gint64 origin; /* stream time of its first frame, the 0 of captions */

  /* For graph*.c alone. */
  gchar *uri;
  GstElement *queue;  /* the multiqueue */
  gint passed;        /* atomic: what came by, to see that something moves */
  gint frames;        /* atomic: frames of video that the muxer got */
  gint position;      /* atomic: ms of the last of these, from origin */
  gint64 told;        /* when progress was told last, in us */
  gint begun;         /* atomic: origin is known */
  gint sought;        /* atomic: seek has been called */
  gint failed;        /* atomic: an error is on its way */
  gchar *missing;     /* what a plugin is missing for; NULL: nothing */
  gint pending;       /* atomic: demuxers that may have more streams */
  gint ready;         /* atomic: all streams are there */
  GRecMutex lock;     /* of what follows, and of changes in streaming threads */
  gint stopping;      /* atomic, set with the lock: nothing may be added any more */
  GPtrArray *waiting; /* pads of streams that wait */
};

/*
 * From uri through a muxer of that kind into the file at location, which is there already. NULL with
 * an error if an element is not installed.
 */
VlmGraph *vlm_graph_new (
    const gchar *uri, const gchar *muxer, const gchar *location, GError **error);
void vlm_graph_free (VlmGraph *graph);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmGraph, vlm_graph_free)

/*
 * Runs to the end of the streams. Errors name the uri: those of the pipeline and of the functions;
 * G_IO_ERROR_INVALID_DATA without any frame of video; G_IO_ERROR_CANCELLED; G_IO_ERROR_TIMED_OUT if nothing moves
 * for so long.
 */
gboolean vlm_graph_run (VlmGraph *graph, GCancellable *cancellable, GError **error);

/*
 * A new element in the pipeline, to be linked and then started with
 * gst_element_sync_state_with_parent (). (transfer none) NULL with an error.
 */
GstElement *vlm_graph_add (VlmGraph *graph, const gchar *factory, GError **error);

/* Links a pad to another, or to the sink pad of an element. */
gboolean vlm_graph_link (VlmGraph *graph, GstPad *from, GstPad *to, GError **error);
gboolean vlm_graph_link_element (VlmGraph *graph, GstPad *from, GstElement *to, GError **error);

/* For the signal "pad-added": links the first new pad of from to the element `to`. */
void vlm_graph_link_first (GstElement *from, GstPad *pad, gpointer to);

/*
 * Links a pad with such caps to a new pad of the muxer, through a parser if the muxer takes the
 * stream only in another packing (MPEG-TS has start codes where MP4 has lengths).
 * G_IO_ERROR_NOT_SUPPORTED, naming the kind of stream, if it does not take it at all.
 */
gboolean vlm_graph_mux (VlmGraph *graph, GstPad *from, const GstCaps *caps, GError **error);

/*
 * Counts frames at a pad of the muxer, and fails at those without a time, which it would leave out
 * without a word. vlm_graph_mux () does that by itself.
 */
void vlm_graph_count_frames (VlmGraph *graph, GstPad *sink);

/* Whether vlm_graph_mux () knows a way. */
gboolean vlm_graph_can_mux (VlmGraph *graph, const GstCaps *caps);

/* Throws a stream away. */
gboolean vlm_graph_discard (VlmGraph *graph, GstPad *from, GError **error);

/* An add_stream: video and audio to the muxer as they are, other streams if it takes them. */
gboolean vlm_graph_copy (VlmGraph *graph, GstPad *stream, const GstCaps *caps, GError **error);

gboolean vlm_caps_are_video (const GstCaps *caps);
gboolean vlm_caps_are_audio (const GstCaps *caps);

/*
 * When a buffer at that pad is to be seen: in running time, which muxers go by, or in stream time, which
 * seeks go by; when it is to be decoded, in stream time. 0 if nobody knows.
 */
GstClockTime vlm_buffer_running_time (GstPad *pad, GstBuffer *buffer);
GstClockTime vlm_buffer_stream_time (GstPad *pad, GstBuffer *buffer);
GstClockTime vlm_buffer_decode_time (GstPad *pad, GstBuffer *buffer);

/* Whether the run is over, and its threads are waited for: what they wait for may never come. */
gboolean vlm_graph_is_stopping (VlmGraph *graph);

/*
 * Of graph.c, for graph-demux.c: to be called around whatever a streaming thread adds to the graph or
 * starts in it. Stopping waits for the end of that, and FALSE says that it is too late to begin.
 */
gboolean vlm_graph_begin_change (VlmGraph *graph);
void vlm_graph_end_change (VlmGraph *graph);
/* The same: lets what passes at the pad count as a sign of life. */
void vlm_graph_watch (VlmGraph *graph, GstPad *pad);
/* The same: ends the run; from any thread. (transfer full) of error */
void vlm_graph_fail (VlmGraph *graph, GError *error);
/* The same: there are no more streams. */
void vlm_graph_all_there (VlmGraph *graph);
/* Of graph-demux.c: a typefind that takes the streams apart behind it. NULL with an error. */
GstElement *vlm_graph_add_demuxers (VlmGraph *graph, GError **error);

#endif
