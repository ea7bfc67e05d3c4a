/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Named tensors in files: what a reader of a container offers to the loader of weights. */

#ifndef VLM_TENSORS_H
#define VLM_TENSORS_H

#include <gio/gio.h>

#include "quant.h"

#define VLM_MAX_RANK 8

typedef enum
{
  VLM_DTYPE_F32,
  VLM_DTYPE_F16,
  VLM_DTYPE_BF16,
  VLM_DTYPE_QUANTISED /* integers with scales, see VlmTensorInfo.format */
} VlmDType;

/* Of one element; 0 for VLM_DTYPE_QUANTISED. */
gsize vlm_dtype_size (VlmDType dtype);
const gchar *vlm_dtype_name (VlmDType dtype);

typedef struct
{
  gchar *name;
  VlmDType dtype;
  guint rank;
  guint64 shape[VLM_MAX_RANK];
  guint64 n_bytes;     /* of the payload: the product of the shape times the element size; with
                    * VLM_DTYPE_QUANTISED what the file spends on the tensor, scales included */
  VlmIntFormat format; /* VLM_DTYPE_QUANTISED only; such a tensor has rank 2 */
  gboolean symmetric; /* integers that vlm_quant_round () could have made: none is the lowest of its
                        * bits, scales are halves of 0 or above. FALSE where that is not known. */
  guint64 offset;     /* of the payload, absolute in its file */
  guint file;         /* which of the source's files */
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

/*
 * Reads rows first .. first + n_rows - 1 of a tensor of VLM_DTYPE_QUANTISED to the start of rows,
 * which was made for its format and columns. One thread at a time; a tensor whose payload has a
 * checksum must be read from its first row to its last, and the read that ends it fails with
 * VLM_ERROR_FORMAT when the checksum is another (so does vlm_tensor_source_read ()).
 */
gboolean vlm_tensor_source_read_rows (VlmTensorSource *source, const VlmTensorInfo *info,
    guint64 first, gsize n_rows, VlmQuantRows *rows, GCancellable *cancellable, GError **error);

/*
 * Reads those tensors with a checksum that have not been read from end to end, for the checksum
 * alone: a file is believed as a whole or not at all. Nothing happens where there are none.
 */
gboolean vlm_tensor_source_verify_rest (
    VlmTensorSource *source, GCancellable *cancellable, GError **error);

/* The product of the shape. */
guint64 vlm_tensor_count_values (const VlmTensorInfo *info);

/* "[32, 8]" (transfer full) */
gchar *vlm_tensor_shape_to_string (const guint64 *shape, guint rank);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmTensorSource, vlm_tensor_source_free)

#endif
