/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The two ways in which vlm-caption makes captions. */

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

/* Both return whether everything went well; failures are reported as they happen. */
gboolean caption_direct (const CaptionOptions *options);
gboolean caption_by_element (const CaptionOptions *options);

#endif
