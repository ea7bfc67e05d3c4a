/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The weights of GGUF files, as those of a Hugging Face checkpoint. */

#ifndef VLM_GGUF_TENSORS_H
#define VLM_GGUF_TENSORS_H

#include "gguf.h"
#include "tensors.h"

/*
 * The tensors of the text file and of the vision file (NULL: a model without vision), with the
 * names, shapes and order of values that a checkpoint has. Integers stay as they are. Both files are
 * referenced. (transfer full)
 * VLM_ERROR_FORMAT for a name that the network has no place for, and for dimensions that say nothing;
 * VLM_ERROR_UNSUPPORTED for a type of values that is not read.
 */
VlmTensorSource *vlm_gguf_tensors_new (VlmGguf *text, VlmGguf *mmproj, GError **error);

#endif
