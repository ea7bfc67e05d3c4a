/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How much memory a piece of code takes: malloc () and its kin are counted in the whole program. */

#ifndef TEST_FORMATS_HEAP_WATCH_H
#define TEST_FORMATS_HEAP_WATCH_H

#include <glib.h>

/* Counts from nothing. One thread at a time. */
void heap_watch_begin (void);

/* The most bytes that were in use at once since then, above those at that time. */
gsize heap_watch_end (void);

#endif
