/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Captions in a SQLite database with full text search:
 *
 *   inputs (id, file, uri, still, "end", state, message)
 *   captions (id, input, pts, utc, text, tokens, latency, finish_reason, model, thumbnail)
 *   captions_fts (text), an FTS5 index of captions
 *
 * pts and "end" are ns, utc us since 1970, latency seconds; state is a VlmInputState. Each change is
 * a transaction of its own.
 */

#ifndef TOOLS_CAPTION_DB_H
#define TOOLS_CAPTION_DB_H

#include <gio/gio.h>

#include "cue.h"
#include "input.h"

typedef struct _VlmDb VlmDb;

/* Opens the database at path; with create it is made if need be. Error: it is none of captions. */
VlmDb *vlm_db_open (const gchar *path, gboolean create, GError **error);
void vlm_db_close (VlmDb *db);

/* Adds the captions of the input in order of pts; their end is the input's. */
gboolean vlm_db_load (VlmDb *db, const gchar *uri, GPtrArray *captions, GError **error);

/* Sets state, message and end of the input to what the database says, if it knows it. */
gboolean vlm_db_load_input (VlmDb *db, VlmInput *input, GError **error);

/* Writes what is to be known of an input besides its captions. */
gboolean vlm_db_set_input (VlmDb *db, const VlmInput *input, GError **error);

/* The caption's input must be there, and have none of the same time. */
gboolean vlm_db_add (VlmDb *db, const VlmCaption *caption, gboolean thumbnail, GError **error);

/*
 * (transfer full) the captions that hold all words of query, best first; they have pts, end of the
 * input where it is known, and no thumbnails. Several words count more where they stand together; a
 * word that ends in * stands for all that begin so.
 */
GPtrArray *vlm_db_search (VlmDb *db, const gchar *query, GError **error);

#endif
