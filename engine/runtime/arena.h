/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Scratch memory of a session: one block that only grows, handed out from the front.
 * A stage adds up what it needs, reserves it once, takes its arrays and leaves them behind; the
 * next stage resets and starts over. Nothing is allocated per token once the largest size was seen.
 */

#ifndef VLM_ARENA_H
#define VLM_ARENA_H

#include <gio/gio.h>

typedef struct
{
  guint8 *base;
  gsize size, used;
} VlmArena;

/* Adds the bytes that n floats take in the arena to *total. */
void vlm_arena_measure (gsize *total, gsize n_floats);

/*
 * Makes room for total bytes and forgets what was taken before (its contents too).
 * VLM_ERROR_MEMORY when it cannot be had.
 */
gboolean vlm_arena_reserve (VlmArena *arena, gsize total, GError **error);

/* The next n floats, 64-byte aligned, contents undefined. They must have been reserved. */
gfloat *vlm_arena_take (VlmArena *arena, gsize n_floats);

void vlm_arena_clear (VlmArena *arena);

#endif
