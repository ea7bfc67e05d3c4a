/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What vlm-caption prints, and captions from the model itself. */

#ifndef TOOLS_CAPTION_H
#define TOOLS_CAPTION_H

#include "caption-options.h"

/*
 * Prints one caption; after the picture's name, unless that is NULL or there is only one. FALSE:
 * standard output does not take it, nor any other; that is reported.
 */
gboolean caption_print (const CaptionOptions *options, const gchar *picture, const gchar *text);

/* Reports a failure; picture may be NULL. */
void caption_fail (const gchar *picture, const gchar *message);

/* Whether everything went well; failures are reported as they happen. */
gboolean caption_direct (const CaptionOptions *options);

#endif
