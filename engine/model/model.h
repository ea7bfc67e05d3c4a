/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A loaded model, as the engine's own files see it. */

#ifndef VLM_MODEL_H
#define VLM_MODEL_H

#include "engine/image/processor.h"
#include "engine/text/chat.h"
#include "engine/vlm.h"
#include "kernels/kernels.h"
#include "positions.h"
#include "weights.h"

struct _VlmModel
{
  gint ref_count; /* under the registry's lock in model.c */
  gchar *key;     /* what the registry finds it by */

  gchar *path;
  gboolean builtin;
  VlmKernels kernels;
  VlmConfig config;
  VlmProcessor processor;
  VlmGeneration generation;
  VlmTokenizer *tokenizer;
  VlmChatTokens chat_tokens;
  gsize longest_token; /* bytes, at least 1 */
  VlmWeights *weights;
  VlmPositions positions;
};

#endif
