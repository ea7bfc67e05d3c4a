/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Captions for tests, written as text. */

#ifndef TESTS_CAPTION_CUE_LIST_H
#define TESTS_CAPTION_CUE_LIST_H

#include "tools/caption/cue.h"

/* A caption of "stop" and "model", tokens being as many as there are already. */
VlmCaption *cue_list_add (
    GPtrArray *captions, const gchar *input, gint64 pts, gint64 end, const gchar *text);

/*
 * list is "start-end text|...", times in that many ns; an end that is not known is left out. All are
 * of the input "a". (transfer full)
 */
GPtrArray *cue_list_new (const gchar *list, gint64 unit);

#endif
