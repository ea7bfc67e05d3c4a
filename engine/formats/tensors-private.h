/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How readers of containers build a VlmTensorSource. */

#ifndef VLM_TENSORS_PRIVATE_H
#define VLM_TENSORS_PRIVATE_H

#include "file.h"
#include "tensors.h"

/* (transfer full) */
VlmTensorSource *vlm_tensor_source_new (void);

/* Returns the file's number, for VlmTensorInfo.file. file: (transfer full) */
guint vlm_tensor_source_add_file (VlmTensorSource *source, VlmFile *file);

/* Copies the description; its name is taken over. Not after vlm_tensor_source_index (). */
void vlm_tensor_source_add (VlmTensorSource *source, const VlmTensorInfo *info);

/*
 * Ends the building: makes look-ups possible. VLM_ERROR_FORMAT when a name occurs twice, in one
 * file or in two.
 */
gboolean vlm_tensor_source_index (VlmTensorSource *source, GError **error);

#endif
