/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A model on disk, judged and described, its weights not yet read. */

#ifndef VLM_CHECKPOINT_H
#define VLM_CHECKPOINT_H

#include "engine/image/processor.h"
#include "engine/model/config.h"
#include "engine/text/chat.h"
#include "tensors.h"

typedef struct
{
  gchar *path;
  VlmConfig config;
  VlmProcessor processor;
  VlmGeneration generation;
  VlmTokenizer *tokenizer;
  VlmTensorSource *tensors;
} VlmCheckpoint;

/*
 * Opens a model: a Hugging Face directory or a .slm file, as a local path or a resource:// URI.
 * Reads and checks every settings file and every tensor header; no weights. (transfer full)
 */
VlmCheckpoint *vlm_checkpoint_open (const gchar *path, GError **error);
void vlm_checkpoint_free (VlmCheckpoint *checkpoint);

/* The tokens that a chat is built of, as vlm_chat_tokens_init () and the image settings say. */
gboolean vlm_checkpoint_find_chat (
    const VlmCheckpoint *checkpoint, VlmChatTokens *tokens, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmCheckpoint, vlm_checkpoint_free)

#endif
