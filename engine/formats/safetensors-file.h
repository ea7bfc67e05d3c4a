/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One safetensors file: its header, read and judged against the file. */

#ifndef VLM_SAFETENSORS_FILE_H
#define VLM_SAFETENSORS_FILE_H

#include "file.h"
#include "safetensors-header.h"

/* Bytes of the header's length, which stand before it. */
#define VLM_SAFETENSORS_PREFIX 8
/* The format's own limit of a header. */
#define VLM_SAFETENSORS_MAX_HEADER 100000000

/*
 * Copies the header to private memory and judges it as a whole: length, grammar, types, shapes
 * against byte ranges, and ranges that cover the data without gap or overlap. entries (see
 * vlm_safetensors_entries_new ()) are put in the order of the data, which begin at data_start.
 * Types beyond last are refused; metadata may be NULL, see vlm_safetensors_parse_header ().
 * VLM_ERROR_READ, VLM_ERROR_FORMAT, VLM_ERROR_UNSUPPORTED, VLM_ERROR_MEMORY.
 */
gboolean vlm_safetensors_read_header (const VlmFile *file, guint64 max_length,
    VlmSafetensorsType last, GArray *entries, GPtrArray *metadata, guint64 *data_start,
    GError **error);

#endif
