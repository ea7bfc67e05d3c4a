/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What mode=auto means in a given pipeline, and whether the source is live.
 */

#ifndef GST_VLM_MODE_H
#define GST_VLM_MODE_H

#include "settings.h"

G_BEGIN_DECLS

/* Asks upstream of the sink pad; FALSE also if nobody answers. */
gboolean gst_vlm_mode_is_live (GstPad *sink);

/*
 * Sync if the source is not live and nothing in the whole pipeline waits for the clock: no sink
 * whose "sync" property is true, no clocksync, no identity sync=true. Then nobody watches in real
 * time and every selected frame can have its caption. Else async. Never GST_VLM_MODE_AUTO.
 */
GstVlmMode gst_vlm_mode_choose (GstElement *element, gboolean live);

G_END_DECLS

#endif
