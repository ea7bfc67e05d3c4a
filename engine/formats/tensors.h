/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Named tensors in files: what a reader of a container offers to the loader of weights. */

#ifndef VLM_TENSORS_H
#define VLM_TENSORS_H

#include <gio/gio.h>

#define VLM_MAX_RANK 8

typedef enum
{
  VLM_DTYPE_F32,
  VLM_DTYPE_F16,
  VLM_DTYPE_BF16
} VlmDType;

gsize vlm_dtype_size (VlmDType dtype);
const gchar *vlm_dtype_name (VlmDType dtype);

typedef struct
{
  gchar *name;
  VlmDType dtype;
  guint rank;
  guint64 shape[VLM_MAX_RANK];
  guint64 n_bytes; /* equals the product of the shape times the element size */
  guint64 offset;  /* of the payload, absolute in its file */
  guint file;      /* which of the source's files */
} VlmTensorInfo;

typedef struct _VlmTensorSource VlmTensorSource;

void vlm_tensor_source_free (VlmTensorSource *source);

guint vlm_tensor_source_get_count (const VlmTensorSource *source);
/* In the order of the files. */
const VlmTensorInfo *vlm_tensor_source_get_nth (const VlmTensorSource *source, guint n);
/* NULL when there is none of that name. */
const VlmTensorInfo *vlm_tensor_source_lookup (const VlmTensorSource *source, const gchar *name);

/* The file that holds the tensor, for messages. */
const gchar *vlm_tensor_source_get_path (const VlmTensorSource *source, const VlmTensorInfo *info);

/*
 * Copies bytes offset .. offset + length - 1 of the tensor's payload to buffer (the file is not
 * mapped, so that a file changed underneath gives an error or other numbers, never a SIGBUS).
 * One thread at a time.
 */
gboolean vlm_tensor_source_read (VlmTensorSource *source, const VlmTensorInfo *info, guint64 offset,
    gpointer buffer, gsize length, GCancellable *cancellable, GError **error);

/* "[32, 8]" (transfer full) */
gchar *vlm_tensor_shape_to_string (const guint64 *shape, guint rank);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmTensorSource, vlm_tensor_source_free)

#endif
