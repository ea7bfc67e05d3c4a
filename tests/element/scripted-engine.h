/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * An engine that does what a test says, behind the interface of engine/vlm.h: the element's
 * behaviour in time can then be tested without waiting for, or depending on, real arithmetic.
 *
 * A caption reads "<prompt> <first red byte of the picture>". Paths: "missing" is not found,
 * "unreadable" cannot be read, "unsettled" meets a wrong VLM_CPU, "damaged" fails while loading,
 * "blind" sees no pictures; any other loads, and vlm_builtin_model () is the built-in one.
 */

#ifndef SCRIPTED_ENGINE_H
#define SCRIPTED_ENGINE_H

#include "engine/vlm.h"

/* Everything open, no failures, counters at 0. No caption may be running. */
void scripted_reset (void);

/* While held, loading waits (or is cancelled). */
void scripted_hold_loading (gboolean hold);

/* From now on each caption waits for a permit (or is cancelled). */
void scripted_hold_captions (void);
void scripted_permit (guint n_captions);

/* The next n captions fail with VLM_ERROR_CONTEXT. */
void scripted_fail_next (guint n_captions);

/* From now on each caption takes this long; if busy, this much of a CPU. */
void scripted_take_time (gint64 us, gboolean busy);

/*
 * For how long, in us, the thread that makes captions has been ready and without a CPU, up to the end of its
 * last caption that was busy; 0 where the kernel does not count that.
 */
gint64 scripted_get_starved (void);

/*
 * From now on each caption grows by these words, one after the other, each with this time before
 * it, and ends for this reason. NULL: the usual text at once.
 */
void scripted_say (const gchar *const *words, gint64 pause_us, VlmFinishReason reason);

/* How many models were begun to be loaded, have been, and with how many threads the last one was to be. */
guint scripted_count_loads_begun (void);
guint scripted_count_loaded (void);
guint scripted_get_load_threads (void);

/* How many captions have been begun, have come out, and were cancelled. */
guint scripted_count_begun (void);
guint scripted_count_done (void);
guint scripted_count_cancelled (void);

/* Models and sessions that have not been freed. */
guint scripted_count_alive (void);

/* A test that begins with everything reset, and must leave nothing alive. */
void scripted_add_test (const gchar *path, void (*func) (void));

/* The last picture that was seen, without row padding. (transfer full) */
GBytes *scripted_get_picture (guint *width, guint *height);

/* The last request; its strings are copies that live until the next caption, no images. */
VlmRequest scripted_get_request (void);

#endif
