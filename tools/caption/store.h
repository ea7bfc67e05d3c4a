/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Where captions are kept as they come, so that a crash costs the one that is being made and no
 * other: a file of JSON Lines, a database, or both.
 */

#ifndef TOOLS_CAPTION_STORE_H
#define TOOLS_CAPTION_STORE_H

#include <gio/gio.h>

#include "cue.h"
#include "input.h"

typedef struct _VlmStore VlmStore;

typedef enum
{
  VLM_STORE_NEW,      /* files that are there already are an error (G_FILE_ERROR_EXIST) */
  VLM_STORE_RESUME,   /* they are gone on with */
  VLM_STORE_OVERWRITE /* they are emptied */
} VlmStoreMode;

/*
 * jsonl and db are paths, or NULL; jsonl may be "-", standard output, which cannot be gone on with.
 * With thumbnails they are stored too: in the database or, where there is none, in the JSON.
 */
VlmStore *vlm_store_open (
    const gchar *jsonl, const gchar *db, VlmStoreMode mode, gboolean thumbnails, GError **error);

/*
 * Gives the inputs the captions that are stored of them, and the state if it is known that nothing
 * is left to do. What one of two files has and the other has not is added to the other.
 */
gboolean vlm_store_resume (VlmStore *store, const GPtrArray *inputs, GError **error);

/* Both write at once. */
gboolean vlm_store_add (
    VlmStore *store, const VlmInput *input, const VlmCaption *caption, GError **error);
gboolean vlm_store_set_input (VlmStore *store, const VlmInput *input, GError **error);

gboolean vlm_store_close (VlmStore *store, GError **error);

#endif
