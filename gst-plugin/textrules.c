/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "textrules.h"

/* An overlay shows news at most this late when the interval is shortened. */
#define OVERLAY_SLICE (250 * GST_MSECOND)
/* A muxer writes a caption of unknown end in pieces: as long as a viewer may wait for news. */
#define MUXER_SLICE GST_SECOND
/* Ten years: longer than any stream, and far below what overflows in running time. */
#define FOR_EVER (10 * 365 * 24 * 3600 * GST_SECOND)

static GstVlmTextRules
make_rules (GstVlmTextStyle style, GstVlmTextPeer peer, GstClockTime longest, GstClockTime limit)
{
  return (GstVlmTextRules){ style, peer, longest, limit };
}

GstVlmTextRules
gst_vlm_text_rules_choose (GstVlmTextPeer peer, const GstVlmTextWishes *wishes)
{
  GstClockTime most = wishes->max_duration;
  gboolean overlay = gst_vlm_text_peer_draws (peer);
  gboolean muxer = peer == GST_VLM_TEXT_PEER_MUXER || peer == GST_VLM_TEXT_PEER_OTHER;
  gboolean display = wishes->timing == GST_VLM_TEXT_TIMING_DISPLAY
      || (wishes->timing == GST_VLM_TEXT_TIMING_AUTO && overlay);

  /* Where video waits for its caption, it is shown from its own frame on in any case. Behind a
   * queue, to replace a caption would take the old one from the frames that are on the way. */
  if (overlay && (wishes->sync || (display && peer != GST_VLM_TEXT_PEER_BESIDE)))
    return make_rules (GST_VLM_TEXT_SLICES, peer, OVERLAY_SLICE, GST_CLOCK_TIME_NONE);
  if (display && muxer)
    return make_rules (GST_VLM_TEXT_SLICES, peer, MIN (most, MUXER_SLICE), GST_CLOCK_TIME_NONE);
  if (display)
    return make_rules (GST_VLM_TEXT_HELD, peer, overlay ? FOR_EVER : most, GST_CLOCK_TIME_NONE);
  /* The end is known at once. */
  if (muxer && wishes->sync && wishes->foreseen)
    return make_rules (GST_VLM_TEXT_SLICES, peer, most, most);

  return make_rules (GST_VLM_TEXT_CUES, peer, most, GST_CLOCK_TIME_NONE);
}

gboolean
gst_vlm_text_rules_equal (const GstVlmTextRules *a, const GstVlmTextRules *b)
{
  return a->style == b->style && a->peer == b->peer && a->longest == b->longest
      && a->limit == b->limit;
}

gboolean
gst_vlm_text_rules_may_stall (const GstVlmTextRules *rules)
{
  return rules->style == GST_VLM_TEXT_CUES && rules->peer != GST_VLM_TEXT_PEER_SINK;
}

gboolean
gst_vlm_text_rules_is_kept (const GstVlmTextRules *rules)
{
  return rules->style == GST_VLM_TEXT_HELD && gst_vlm_text_peer_draws (rules->peer);
}
