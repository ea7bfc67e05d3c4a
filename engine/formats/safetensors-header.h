/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The JSON header of a safetensors file. */

#ifndef VLM_SAFETENSORS_HEADER_H
#define VLM_SAFETENSORS_HEADER_H

#include "tensors.h"

/* The types that this program has a use for; the first three are those of weights. */
typedef enum
{
  VLM_SAFETENSORS_F32,
  VLM_SAFETENSORS_F16,
  VLM_SAFETENSORS_BF16,
  VLM_SAFETENSORS_U8,
  VLM_SAFETENSORS_I8
} VlmSafetensorsType;

typedef struct
{
  gchar *name;
  VlmSafetensorsType type;
  guint rank;
  guint64 shape[VLM_MAX_RANK];
  guint64 offset, n_bytes; /* relative to the data */
} VlmSafetensorsEntry;

/* "F32" */
const gchar *vlm_safetensors_type_name (VlmSafetensorsType type);
gsize vlm_safetensors_type_size (VlmSafetensorsType type);

/* An empty array of VlmSafetensorsEntry that frees the names. (transfer full) */
GArray *vlm_safetensors_entries_new (void);

/*
 * Parses a header into entries. Only what the format allows is accepted; the span of each tensor
 * equals its shape times the size of its type. Types beyond last are refused. Whether spans fit the
 * file and each other is left to the caller, and so are duplicate names. Keys and values of
 * __metadata__ are appended to metadata (of gchar *, in turns, owned by it) unless that is NULL.
 * Time is linear, and memory a small multiple of length: a general JSON tree would need far more
 * than the header itself.
 * path is used in messages. VLM_ERROR_FORMAT, VLM_ERROR_UNSUPPORTED.
 */
gboolean vlm_safetensors_parse_header (const gchar *header, gsize length, const gchar *path,
    VlmSafetensorsType last, GArray *entries, GPtrArray *metadata, GError **error);

#endif
