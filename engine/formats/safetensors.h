/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Weights in safetensors files, one or several with an index. */

#ifndef VLM_SAFETENSORS_H
#define VLM_SAFETENSORS_H

#include "tensors.h"

#define VLM_SAFETENSORS_FILE "model.safetensors"
#define VLM_SAFETENSORS_INDEX "model.safetensors.index.json"

/*
 * Opens the weights in directory: the single file when it exists, else the shards that the index
 * names. Every header is copied to private memory and judged as a whole: length, grammar, types,
 * shapes against byte ranges, and ranges that cover the data without gap or overlap.
 * Nothing of the data is read. (transfer full)
 *
 * VLM_ERROR_NOT_FOUND and VLM_ERROR_READ name the file, VLM_ERROR_FORMAT and
 * VLM_ERROR_UNSUPPORTED (a known type that weights cannot have) also the tensor.
 */
VlmTensorSource *vlm_safetensors_open (const gchar *directory, GError **error);

#endif
