/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The tokens of a vocabulary by their bytes, whatever somebody has put into the file. */

#ifndef VLM_GGUF_PIECES_H
#define VLM_GGUF_PIECES_H

#include <glib.h>

typedef struct _VlmPieces VlmPieces;

/* Room for n pieces, the ids 0 .. n - 1; NULL when there is not the memory. (transfer full) */
VlmPieces *vlm_pieces_new (guint n);
void vlm_pieces_free (VlmPieces *pieces);

/*
 * Adds the piece of the next id; bytes, which are not copied, must stay. Returns that id, or the one
 * that has the same bytes: then nothing is added.
 */
guint vlm_pieces_add (VlmPieces *pieces, const gchar *bytes, gsize length);

/* Its id, or -1. */
gint64 vlm_pieces_find (const VlmPieces *pieces, const gchar *bytes, gsize length);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmPieces, vlm_pieces_free)

#endif
