/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How much of all inputs is done, when some are longer than others and not all have been opened yet. */

#ifndef TOOLS_CAPTION_SHARE_H
#define TOOLS_CAPTION_SHARE_H

#include <glib.h>

typedef struct
{
  gboolean wanted; /* there was something to do for it when the run began; others do not count */
  gboolean still;  /* a picture: tells nothing of how long videos are */
  gint64
      duration; /* ns of what is to be captioned of it, for a picture what one counts; -1: not known */
  guint64 size; /* bytes of its file; 0: not known */
  gdouble done; /* 0 to 1 */
} VlmShare;

/*
 * 0 to 1. A video that has not been opened yet is taken to be as long as its size lets expect after those
 * that have been, or as long as their mean if its size is not known; as long as all others while none has been.
 */
gdouble vlm_shares_get_done (const VlmShare *shares, guint n);

#endif
