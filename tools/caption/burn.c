/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A copy of the input with the cues drawn on its pictures.
 *
 *   video: decodebin ! videoconvert ! videoflip ! textoverlay ! videoconvert ! encoder ! parser ! muxer
 *   audio: as it is if the muxer takes it, else decodebin ! audioconvert ! audioresample ! encoder
 */

#include <glib/gstdio.h>

#include "cue-source.h"
#include "graph.h"
#include "lines.h"
#include "remux.h"
#include "write-file.h"

typedef struct
{
  const gchar *factory, *package;
} Element;

/* In order of preference; settings are in set_quality (). */
static const Element h264_encoders[] = {
  { "x264enc", "gstreamer1.0-plugins-ugly" },
  { "openh264enc", "gstreamer1.0-plugins-bad" },
};
static const Element vp8_encoders[] = { { "vp8enc", "gstreamer1.0-plugins-good" } };
/* For sound that MP4 has no place for. */
static const Element audio_encoders[] = {
  { "opusenc", "gstreamer1.0-plugins-base" },
  { "fdkaacenc", "gstreamer1.0-plugins-bad" },
  { "avenc_aac", "gstreamer1.0-libav" },
};

/* The first of the elements that is installed. (transfer none) NULL with an error that names all. */
static GstElement *
add_first (VlmGraph *graph, const Element *elements, guint n, const gchar *what, GError **error)
{
  g_autoptr (GString) names = g_string_new (NULL);

  for (guint i = 0; i < n; i++) {
    g_autoptr (GstElementFactory) factory = gst_element_factory_find (elements[i].factory);

    if (factory != NULL)
      return vlm_graph_add (graph, elements[i].factory, error);
    g_string_append_printf (names, "%s%s (Debian package %s)", i > 0 ? " or " : "",
        elements[i].factory, elements[i].package);
  }
  g_set_error (error, GST_CORE_ERROR, GST_CORE_ERROR_MISSING_PLUGIN,
      "there is no encoder for %s: install %s", what, names->str);
  return NULL;
}

static gboolean
is_a (GstElement *element, const gchar *factory)
{
  return g_str_equal (GST_OBJECT_NAME (gst_element_get_factory (element)), factory);
}

/* Quality first: the pictures have been compressed once already. */
static void
set_quality (GstElement *encoder)
{
  if (is_a (encoder, "x264enc")) {
    gst_util_set_object_arg (G_OBJECT (encoder), "pass", "qual");
    gst_util_set_object_arg (G_OBJECT (encoder), "speed-preset", "veryfast");
    g_object_set (encoder, "quantizer", 20, NULL);
  } else if (is_a (encoder, "openh264enc")) {
    g_object_set (encoder, "bitrate", 20000000, "qp-max", 26, NULL);
  } else if (is_a (encoder, "vp8enc")) {
    g_object_set (encoder, "deadline", G_GINT64_CONSTANT (1), "cpu-used", 4, "target-bitrate",
        8000000, "max-quantizer", 24, "keyframe-max-dist", 125, NULL);
  }
}

#define MAX_ELEMENTS 10

/* Elements one behind the other; the first one's sink and the last one's source are left open. */
typedef struct
{
  VlmGraph *graph;
  GstElement *elements[MAX_ELEMENTS];
  guint n;
} Chain;

static gboolean
append (Chain *chain, GstElement *element, GError **error)
{
  GstElement *last = chain->n > 0 ? chain->elements[chain->n - 1] : NULL;

  if (element == NULL)
    return FALSE;
  if (last != NULL && !gst_element_link_pads (last, "src", element, NULL)) {
    g_set_error (error, GST_CORE_ERROR, GST_CORE_ERROR_NEGOTIATION, "cannot link %s to %s",
        GST_OBJECT_NAME (last), GST_OBJECT_NAME (element));
    return FALSE;
  }
  g_assert (chain->n < MAX_ELEMENTS);
  chain->elements[chain->n++] = element;
  return TRUE;
}

static GstElement *
append_new (Chain *chain, const gchar *factory, GError **error)
{
  GstElement *element = vlm_graph_add (chain->graph, factory, error);

  return append (chain, element, error) ? element : NULL;
}

/* Links the end of the chain to a new pad of the muxer. */
static gboolean
append_muxer (Chain *chain, const gchar *pad_name, GError **error)
{
  g_autoptr (GstPad) source = gst_element_get_static_pad (chain->elements[chain->n - 1], "src");
  g_autoptr (GstPad) sink = gst_element_request_pad_simple (chain->graph->muxer, pad_name);

  if (pad_name[0] == 'v')
    vlm_graph_count_frames (chain->graph, sink);
  return vlm_graph_link (chain->graph, source, sink, error);
}

/* Puts a decoder of the stream before the chain, which reaches the muxer, and starts all. */
static gboolean
decode_into (Chain *chain, GstPad *stream, GError **error)
{
  GstElement *decoder = vlm_graph_add (chain->graph, "decodebin", error);

  if (decoder == NULL)
    return FALSE;
  g_signal_connect (decoder, "pad-added", G_CALLBACK (vlm_graph_link_first), chain->elements[0]);
  for (guint i = chain->n; i > 0; i--)
    gst_element_sync_state_with_parent (chain->elements[i - 1]);
  gst_element_sync_state_with_parent (decoder);
  return vlm_graph_link_element (chain->graph, stream, decoder, error);
}

/* What is to be burnt, and where its text goes in. */
typedef struct
{
  const GPtrArray *cues;
  GstElement *overlay;
  gboolean mkv;
} Burn;

/* Makes whole pictures of any that a decoder may put out, upright ones, and writes on them. */
static gboolean
append_drawing (Chain *chain, Burn *burn, GError **error)
{
  GstElement *deinterlace, *flip;

  if (append_new (chain, "videoconvert", error) == NULL
      || (deinterlace = append_new (chain, "deinterlace", error)) == NULL
      || (flip = append_new (chain, "videoflip", error)) == NULL
      || (burn->overlay = append_new (chain, "textoverlay", error)) == NULL)
    return FALSE;
  gst_util_set_object_arg (G_OBJECT (deinterlace), "fields", "top");
  gst_util_set_object_arg (G_OBJECT (flip), "video-direction", "auto");
  /* Of a picture that is 640 wide; for others the overlay scales it. */
  g_object_set (burn->overlay, "font-desc", "Sans 22", "shaded-background", TRUE, NULL);
  return TRUE;
}

/* Encoders of 4:2:0 take no odd sizes; one row or column more or less is not seen. */
static gboolean
append_encoder (Chain *chain, const Burn *burn, GError **error)
{
  g_autoptr (GstCaps) caps =
      gst_caps_from_string ("video/x-raw, format=I420, width=[2, 32766, 2], height=[2, 32766, 2]");
  GstElement *filter, *encoder;

  if (append_new (chain, "videoconvert", error) == NULL
      || append_new (chain, "videoscale", error) == NULL
      || (filter = append_new (chain, "capsfilter", error)) == NULL)
    return FALSE;
  g_object_set (filter, "caps", caps, NULL);
  encoder = add_first (
      chain->graph, h264_encoders, G_N_ELEMENTS (h264_encoders), "H.264", burn->mkv ? NULL : error);
  if (encoder == NULL && burn->mkv)
    encoder = add_first (chain->graph, vp8_encoders, G_N_ELEMENTS (vp8_encoders), "video", error);
  if (!append (chain, encoder, error))
    return FALSE;
  set_quality (encoder);
  /* This one knows start codes only. */
  return !is_a (encoder, "openh264enc") || append_new (chain, "h264parse", error) != NULL;
}

static gboolean
burn_video (VlmGraph *graph, GstPad *stream, Burn *burn, GError **error)
{
  Chain chain = { .graph = graph };

  return append_drawing (&chain, burn, error) && append_encoder (&chain, burn, error)
      && append_muxer (&chain, "video_%u", error) && decode_into (&chain, stream, error);
}

static gboolean
encode_audio (VlmGraph *graph, GstPad *stream, GError **error)
{
  Chain chain = { .graph = graph };
  GstElement *encoder;

  if (append_new (&chain, "audioconvert", error) == NULL
      || append_new (&chain, "audioresample", error) == NULL)
    return FALSE;
  encoder = add_first (graph, audio_encoders, G_N_ELEMENTS (audio_encoders), "sound", error);
  return append (&chain, encoder, error) && append_muxer (&chain, "audio_%u", error)
      && decode_into (&chain, stream, error);
}

/* The first video is drawn on, sound is kept, anything else is left out. */
static gboolean
add_stream (VlmGraph *graph, GstPad *stream, const GstCaps *caps, GError **error)
{
  if (stream == graph->video)
    return burn_video (graph, stream, graph->user_data, error);
  if (!vlm_caps_are_audio (caps))
    return vlm_graph_discard (graph, stream, error);
  if (vlm_graph_can_mux (graph, caps))
    return vlm_graph_mux (graph, stream, caps, error);
  return encode_audio (graph, stream, error);
}

/* The overlay breaks lines itself: it knows how wide the picture is. */
static gchar *
unbroken (const gchar *text)
{
  return vlm_lines_wrap (text, G_MAXINT);
}

static gboolean
add_text (VlmGraph *graph, GError **error)
{
  Burn *burn = graph->user_data;
  g_autoptr (GstPad) pad = gst_element_get_static_pad (burn->overlay, "text_sink");

  return vlm_cue_source_add (graph, burn->cues, unbroken, pad, error);
}

gboolean
vlm_burn (const gchar *uri, const GPtrArray *cues, const gchar *path, GCancellable *cancellable,
    VlmRemuxProgress progress, gpointer data, GError **error)
{
  Burn burn = { cues, NULL, g_str_has_suffix (path, ".mkv") };
  g_autofree gchar *temporary = vlm_temporary_new (path, error);
  g_autoptr (VlmGraph) graph = NULL;

  if (temporary == NULL)
    return FALSE;
  graph = vlm_graph_new (uri, burn.mkv ? "matroskamux" : "mp4mux", temporary, error);
  if (graph != NULL) {
    graph->add_stream = add_stream;
    graph->prepare = add_text;
    graph->user_data = &burn;
    graph->progress = progress;
    graph->progress_data = data;
  }
  if (graph != NULL && vlm_graph_run (graph, cancellable, error))
    return vlm_temporary_commit (temporary, path, error);
  g_unlink (temporary);
  return FALSE;
}
