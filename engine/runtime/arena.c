/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "arena.h"

#include "alloc.h"
#include "engine/vlm.h"

#define ALIGNMENT 64

static gsize
bytes_of (gsize n_floats)
{
  return (n_floats * sizeof (gfloat) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void
vlm_arena_measure (gsize *total, gsize n_floats)
{
  /* Saturates, so that an absurd size fails in reserve instead of wrapping here. */
  if (n_floats > G_MAXSIZE / 2 / sizeof (gfloat) || *total > G_MAXSIZE / 2)
    *total = G_MAXSIZE;
  else
    *total += bytes_of (n_floats);
}

gboolean
vlm_arena_reserve (VlmArena *arena, gsize total, GError **error)
{
  arena->used = 0;
  if (total <= arena->size)
    return TRUE;

  vlm_arena_clear (arena);
  if (total < G_MAXSIZE / 2)
    arena->base = vlm_alloc_block (total + ALIGNMENT);
  if (arena->base == NULL) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
        "No memory for %" G_GSIZE_FORMAT " bytes of scratch space", total);
    return FALSE;
  }
  arena->size = total;
  return TRUE;
}

gfloat *
vlm_arena_take (VlmArena *arena, gsize n_floats)
{
  guintptr first = ((guintptr) arena->base + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  gfloat *taken = (gfloat *) (first + arena->used);

  arena->used += bytes_of (n_floats);
  g_assert (arena->used <= arena->size);
  return taken;
}

void
vlm_arena_clear (VlmArena *arena)
{
  g_free (arena->base);
  arena->base = NULL;
  arena->size = arena->used = 0;
}
