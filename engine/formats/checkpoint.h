/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A model on disk, judged and described, its weights not yet read. */

#ifndef VLM_CHECKPOINT_H
#define VLM_CHECKPOINT_H

#include "engine/image/processor.h"
#include "engine/model/config.h"
#include "engine/text/chat.h"
#include "model-files.h"
#include "tensors.h"

typedef struct
{
  VlmModelFiles *files;
  const gchar *path; /* of the files */
  VlmConfig config;
  VlmProcessor processor;
  VlmGeneration generation;
  VlmTokenizer *tokenizer;
  VlmTensorSource *tensors;
} VlmCheckpoint;

/*
 * vlm_model_files_open (), and a look whether all is there that no model can do without, and whether
 * VLM_CPU names a usable level. (transfer full)
 */
VlmModelFiles *vlm_checkpoint_open_files (const gchar *path, const gchar *mmproj, GError **error);

/*
 * Reads and checks every settings file and every tensor header of a model; no weights. The
 * checkpoint holds a reference on files. (transfer full)
 */
VlmCheckpoint *vlm_checkpoint_new (VlmModelFiles *files, GError **error);
/* Both at once. */
VlmCheckpoint *vlm_checkpoint_open (const gchar *path, const gchar *mmproj, GError **error);
void vlm_checkpoint_free (VlmCheckpoint *checkpoint);

/* The tokens that a chat is built of, as vlm_chat_tokens_init () and the image settings say. */
gboolean vlm_checkpoint_find_chat (
    const VlmCheckpoint *checkpoint, VlmChatTokens *tokens, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmCheckpoint, vlm_checkpoint_free)

#endif
