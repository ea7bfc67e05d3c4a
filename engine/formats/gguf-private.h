/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the parts of the GGUF reader share. */

#ifndef VLM_GGUF_PRIVATE_H
#define VLM_GGUF_PRIVATE_H

#include "gguf.h"

/* Of one header. */
#define VLM_GGUF_MAX_HEADER (256u << 20)
#define VLM_GGUF_MAX_KEYS 16384
#define VLM_GGUF_MAX_TENSORS 16384
#define VLM_GGUF_MAX_FILES 256

/* Bytes of a key, and of a tensor's name. */
#define VLM_GGUF_MAX_KEY 1024
#define VLM_GGUF_MAX_NAME 63

typedef struct
{
  const gchar *name;
  gsize at; /* of the value, in the header */
  VlmGgufValue value;
} VlmGgufKey;

/* The header of one file. */
typedef struct
{
  VlmFile *file;
  guint version;
  guint8 *bytes; /* a private copy, which the values point into */
  GStringChunk *names;
  GArray *keys;    /* of VlmGgufKey, sorted by name */
  GArray *tensors; /* of VlmGgufTensor, in the order of the file */
} VlmGgufHeader;

struct _VlmGguf
{
  gatomicrefcount references;
  GPtrArray *headers;   /* of VlmGgufHeader, in the order of the files */
  VlmGgufHeader *first; /* of them */
  GArray *tensors;      /* of VlmGgufTensor: those of all headers */
  GPtrArray *by_name;   /* elements of tensors, sorted by name */
};

/* Reads and judges the header of one file, whatever its keys say. (transfer full) */
VlmGgufHeader *vlm_gguf_header_open (const gchar *path, GError **error);
void vlm_gguf_header_free (VlmGgufHeader *header);

/* NULL when there is none of that name. */
const VlmGgufValue *vlm_gguf_header_find (const VlmGgufHeader *header, const gchar *key);

/* As vlm_gguf_get_uint (). */
gboolean vlm_gguf_header_get_uint (const VlmGgufHeader *header, const gchar *key, guint64 min,
    guint64 max, guint64 *value, GError **error);

/* Bytes of one value; 0 for strings and arrays, whose lengths differ. */
gsize vlm_gguf_value_size (VlmGgufType type);

/* Of tensors: values and bytes of a block. FALSE for a number that is not known. */
gboolean vlm_gguf_type_block (guint type, guint *n_values, guint *n_bytes);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmGgufHeader, vlm_gguf_header_free)

#endif
