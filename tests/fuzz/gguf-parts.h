/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A GGUF file taken apart into its keys, descriptions of tensors, and data. */

#ifndef TEST_FUZZ_GGUF_PARTS_H
#define TEST_FUZZ_GGUF_PARTS_H

#include <glib.h>

typedef struct
{
  guint32 version;
  GPtrArray *keys, *tensors; /* of GByteArray, each as it is in the file */
  GByteArray *data;
} GgufParts;

/* NULL for what cannot be taken apart. (transfer full) */
GgufParts *gguf_parts_new (const guint8 *bytes, gsize size);
void gguf_parts_free (GgufParts *parts);

/* One change: to a value, a string or its length, a name, a dimension, a type, or to what there is. */
void gguf_parts_mutate (GgufParts *parts, unsigned int *state);

/*
 * The file, counts right. With offsets, every tensor begins where the one before it ends by type and
 * dims, and there is as much data as they need, if that is not absurd. (transfer full)
 */
GByteArray *gguf_parts_print (const GgufParts *parts, gboolean offsets);

#endif
