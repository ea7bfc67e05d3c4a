/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The JSON header of a safetensors file. */

#ifndef VLM_SAFETENSORS_HEADER_H
#define VLM_SAFETENSORS_HEADER_H

#include "tensors.h"

/*
 * Parses a header into descriptions appended to infos (of VlmTensorInfo, names owned by them, file
 * left zero, offset relative to the data). Only what the format allows is accepted; the span of
 * each tensor equals its shape times the size of its type. Whether spans fit the file and each
 * other is left to the caller, and so are duplicate names. Time is linear, and memory a small
 * multiple of length: a general JSON tree would need far more than the header itself.
 * path is used in messages. VLM_ERROR_FORMAT, VLM_ERROR_UNSUPPORTED.
 */
gboolean vlm_safetensors_parse_header (
    const gchar *header, gsize length, const gchar *path, GArray *infos, GError **error);

#endif
