/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How readers of containers build a VlmTensorSource. */

#ifndef VLM_TENSORS_PRIVATE_H
#define VLM_TENSORS_PRIVATE_H

#include "file.h"
#include "tensors.h"

/*
 * How a container reads its tensors, where that is more than copying bytes. n is the number of the
 * tensor as vlm_tensor_source_get_nth () counts; the ranges have been checked against the tensor.
 */
typedef struct
{
  gboolean (*read) (gpointer data, guint n, guint64 offset, gpointer buffer, gsize length,
      GCancellable *cancellable, GError **error);
  gboolean (*read_rows) (gpointer data, guint n, guint64 first, gsize n_rows, VlmQuantRows *rows,
      GCancellable *cancellable, GError **error);
  /* Whether the whole tensor has been read and its checksum was right. */
  gboolean (*is_verified) (gpointer data, guint n);
  void (*free) (gpointer data);
} VlmTensorReader;

/* (transfer full) */
VlmTensorSource *vlm_tensor_source_new (void);

/* reader lives as long as the program, data until the source is freed. (transfer full) */
void vlm_tensor_source_set_reader (
    VlmTensorSource *source, const VlmTensorReader *reader, gpointer data);

/* Returns the file's number, for VlmTensorInfo.file. file: (transfer full) */
guint vlm_tensor_source_add_file (VlmTensorSource *source, VlmFile *file);

/* Copies the description; its name is taken over. Not after vlm_tensor_source_index (). */
void vlm_tensor_source_add (VlmTensorSource *source, const VlmTensorInfo *info);

/*
 * Ends the building: makes look-ups possible. VLM_ERROR_FORMAT when a name occurs twice, in one
 * file or in two.
 */
gboolean vlm_tensor_source_index (VlmTensorSource *source, GError **error);

/* What a reader keeps rows in on their way from the file. Zeros at first; data is freed with g_free (). */
typedef struct
{
  guint8 *data;
  gsize capacity;
} VlmRowBuffer;

/*
 * Makes the buffer hold n bytes; what was in it is lost. VLM_ERROR_MEMORY naming path and tensor.
 */
gboolean vlm_row_buffer_reserve (
    VlmRowBuffer *buffer, gsize n, const gchar *path, const gchar *tensor, GError **error);

#endif
