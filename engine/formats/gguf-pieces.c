/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A table with open addressing. Its hash has a seed of its own, so that no file can be made whose
 * tokens all meet in one place.
 */

#include "gguf-pieces.h"

#include <string.h>
#include <xxhash.h>

typedef struct
{
  const gchar *bytes;
  gsize length;
} Piece;

struct _VlmPieces
{
  guint64 seed;
  guint mask;
  guint n_pieces;
  Piece *pieces;
  guint32 *slots; /* id + 1; 0: free */
};

VlmPieces *
vlm_pieces_new (guint n)
{
  VlmPieces *pieces = g_new0 (VlmPieces, 1);
  guint64 n_slots = 16;

  while (n_slots < 2 * (guint64) n)
    n_slots *= 2;
  pieces->seed = ((guint64) g_random_int () << 32) | g_random_int ();
  pieces->mask = (guint) (n_slots - 1);
  pieces->pieces = g_try_new (Piece, MAX (n, 1));
  pieces->slots = g_try_new0 (guint32, n_slots);
  if (pieces->pieces && pieces->slots)
    return pieces;
  vlm_pieces_free (pieces);
  return NULL;
}

void
vlm_pieces_free (VlmPieces *pieces)
{
  if (!pieces)
    return;
  g_free (pieces->pieces);
  g_free (pieces->slots);
  g_free (pieces);
}

/* The slot that holds the piece, or the free one where it belongs. */
static guint32 *
find_slot (const VlmPieces *pieces, const gchar *bytes, gsize length)
{
  guint at = (guint) XXH3_64bits_withSeed (bytes, length, pieces->seed) & pieces->mask;

  while (pieces->slots[at]) {
    const Piece *piece = &pieces->pieces[pieces->slots[at] - 1];

    if (piece->length == length && memcmp (piece->bytes, bytes, length) == 0)
      break;
    at = (at + 1) & pieces->mask;
  }
  return &pieces->slots[at];
}

guint
vlm_pieces_add (VlmPieces *pieces, const gchar *bytes, gsize length)
{
  guint32 *slot = find_slot (pieces, bytes, length);

  if (!*slot) {
    pieces->pieces[pieces->n_pieces] = (Piece){ bytes, length };
    *slot = ++pieces->n_pieces;
  }
  return *slot - 1;
}

gint64
vlm_pieces_find (const VlmPieces *pieces, const gchar *bytes, gsize length)
{
  return (gint64) *find_slot (pieces, bytes, length) - 1;
}
