/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The request pad "text": captions as text/x-raw. It has a stream of its own (derived stream id,
 * the video's group and segment) and a thread of its own, so that a peer that blocks on text never
 * blocks video; only text that an overlay keeps (GST_VLM_TEXT_HELD) goes out from the streaming
 * thread, which makes it exact to the frame and cannot block.
 */

#ifndef GST_VLM_TEXT_PAD_H
#define GST_VLM_TEXT_PAD_H

#include "textplan.h"

G_BEGIN_DECLS

#define GST_TYPE_VLM_TEXT_PAD (gst_vlm_text_pad_get_type ())
G_DECLARE_FINAL_TYPE (GstVlmTextPad, gst_vlm_text_pad, GST, VLM_TEXT_PAD, GstPad)

/*
 * Whether no caption of this part of the stream is still to come. Asked at the end of the stream
 * from the pad's thread, with the pad's lock: it must not call back into the pad.
 */
typedef gboolean (*GstVlmTextIdleFunc) (guint serial, gpointer user_data);

/* video is the pad that the described frames leave from. (transfer floating) */
GstVlmTextPad *gst_vlm_text_pad_new (const gchar *name, GstPadTemplate *template, GstPad *video,
    GstVlmTextIdleFunc idle, gpointer user_data);

/* What decides the way of sending, together with the peer. */
void gst_vlm_text_pad_set_wishes (GstVlmTextPad *pad, const GstVlmTextWishes *wishes);

/*
 * Whether there is anybody to send to. Settles on the way how that peer wants its text: call it
 * before a frame is handed to the worker, whose answer may come sooner than the frame.
 */
gboolean gst_vlm_text_pad_prepare (GstVlmTextPad *pad);

/* What arrived on the video pad. serial names the part of the stream that the segment begins. */
void gst_vlm_text_pad_stream_start (GstVlmTextPad *pad, GstEvent *stream_start);
void gst_vlm_text_pad_segment (GstVlmTextPad *pad, GstEvent *segment, guint serial);
void gst_vlm_text_pad_frame (GstVlmTextPad *pad, const GstVlmTextFrame *frame);
/* A frame without a timestamp: it has no place in the text, but a sink can preroll. */
void gst_vlm_text_pad_untimed_frame (GstVlmTextPad *pad);

/* While video is paused, a frame that is not taken does not mean that a muxer waits for text. */
void gst_vlm_text_pad_set_paused (GstVlmTextPad *pad, gboolean paused);

/*
 * Downstream has answered the frame with flow, so that it was not waiting for text. What both
 * streams together tell upstream: a failure of either, and that there is no more to do or nobody to
 * do it for only if that is so for both.
 */
GstFlowReturn gst_vlm_text_pad_frame_taken (GstVlmTextPad *pad, GstFlowReturn flow);
void gst_vlm_text_pad_eos (GstVlmTextPad *pad);
void gst_vlm_text_pad_flush_start (GstVlmTextPad *pad, GstEvent *flush_start);
void gst_vlm_text_pad_flush_stop (GstVlmTextPad *pad, GstEvent *flush_stop);

/* A caption was made; from any thread. Those of an earlier serial are ignored. */
void gst_vlm_text_pad_answer (GstVlmTextPad *pad, GstVlmAnswer *answer);

/*
 * Before the pad stops, or is taken away for good: nothing more is sent, and an overlay that blocks lets go. FALSE if
 * the peer still holds the pad's thread: to deactivate the pad then waits for the peer, which in
 * PAUSED may take for ever.
 */
gboolean gst_vlm_text_pad_release_peer (GstVlmTextPad *pad, gboolean for_good);

G_END_DECLS

#endif
