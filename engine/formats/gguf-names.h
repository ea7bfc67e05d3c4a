/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What tensors of GGUF files are called in a Hugging Face checkpoint. */

#ifndef VLM_GGUF_NAMES_H
#define VLM_GGUF_NAMES_H

#include <glib.h>

#define VLM_GGUF_CONV_KERNEL "shortconv.conv.weight"
#define VLM_GGUF_FUSED_QKV "attn_qkv.weight"
#define VLM_GGUF_PATCH_EMBEDDING "v.patch_embd.weight"
#define VLM_GGUF_FINAL_NORM "token_embd_norm.weight"
#define VLM_GGUF_FINAL_NORM_ALIAS "output_norm.weight"

/* "blk.12." is 12, and *rest what stands behind it; -1 for a name that begins otherwise. */
gint vlm_gguf_name_layer (const gchar *name, const gchar **rest);

/* Of a tensor of a text file; prefix is what the names of the text part begin with. NULL for a name
 * that no lfm2 model has. (transfer full) */
gchar *vlm_gguf_name_text (const gchar *name, const gchar *prefix);

/* Of a tensor of a vision file. (transfer full) */
gchar *vlm_gguf_name_vision (const gchar *name);

#endif
