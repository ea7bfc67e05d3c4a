/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The signals that ask a program to end. */

#ifndef TOOLS_CAPTION_SIGNALS_H
#define TOOLS_CAPTION_SIGNALS_H

#include <glib.h>

typedef struct _VlmSignals VlmSignals;

typedef void (*VlmSignalFunc) (gint number, gpointer user_data);

/*
 * From now on the default main loop calls func with the number of each signal that comes: INT, TERM or
 * HUP. After the first of each kind there is no handler any more, so that a second one ends the
 * program. Never NULL.
 */
VlmSignals *vlm_signals_new (VlmSignalFunc func, gpointer user_data);

/* In the thread of that loop. Signals end the program again. */
void vlm_signals_free (VlmSignals *signals);

#endif
