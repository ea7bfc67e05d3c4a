/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How a caption is shown that was cut before its end. */

#ifndef GST_VLM_WORDING_H
#define GST_VLM_WORDING_H

#include <glib.h>

G_BEGIN_DECLS

/*
 * A text that broke off: up to its last whole sentence, or, if there is none, up to its last whole
 * word with an ellipsis. A text in one word, or in a script without spaces, keeps all of it.
 * text must be UTF-8. (transfer full)
 */
gchar *gst_vlm_wording_round_off (const gchar *text);

G_END_DECLS

#endif
