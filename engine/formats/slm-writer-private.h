/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What laying out a .slm file and putting rows into it share. */

#ifndef VLM_SLM_WRITER_PRIVATE_H
#define VLM_SLM_WRITER_PRIVATE_H

#include "atomic-file.h"
#include "slm-manifest.h"
#include "slm.h"

struct _VlmSlmWriter
{
  gchar *path;
  VlmAtomicFile *file; /* from begin on */
  VlmSlmManifest manifest;
  GPtrArray *contents; /* GBytes of the first entries, which are the settings files */
  GArray *layout;      /* of VlmSafetensorsEntry, from begin on */
  guint64 data_start, size;

  guint current;                          /* the first entry of what is being written */
  guint64 row;                            /* its next */
  XXH3_state_t *hashes[VLM_SLM_N_FIELDS]; /* of its entries */
  guint8 *buffer;                         /* VLM_SLM_CHUNK bytes, or a row when that is more */
};

/* Bytes that are turned into what the file holds at a time. */
#define VLM_SLM_CHUNK (256u << 10)

/* Makes ready for the entry whose rows come next. VLM_ERROR_MEMORY. */
gboolean vlm_slm_writer_open_tensor (VlmSlmWriter *writer, GError **error);

/* A whole entry that has no other fields. */
gboolean vlm_slm_writer_put_entry (
    VlmSlmWriter *writer, gconstpointer data, gsize n, GError **error);

#endif
