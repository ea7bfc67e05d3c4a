/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The settings files of a model, as Hugging Face names them. */

#ifndef VLM_HF_H
#define VLM_HF_H

#include "engine/image/processor.h"
#include "engine/model/config.h"
#include "engine/text/tokenizer.h"
#include "json.h"

#define VLM_HF_CONFIG "config.json"
#define VLM_HF_TOKENIZER "tokenizer.json"
#define VLM_HF_TOKENIZER_CONFIG "tokenizer_config.json"
#define VLM_HF_CHAT_TEMPLATE "chat_template.jinja"
#define VLM_HF_PROCESSOR "processor_config.json"
#define VLM_HF_PREPROCESSOR "preprocessor_config.json"
#define VLM_HF_GENERATION "generation_config.json"

#define VLM_HF_MAX_SETTINGS (4u << 20)
#define VLM_HF_MAX_TOKENIZER (64u << 20)

/*
 * config.json, its root in json, with every spelling of a key and the defaults of the reference's
 * configuration classes. VLM_ERROR_FORMAT, VLM_ERROR_UNSUPPORTED.
 */
gboolean vlm_hf_read_config (const VlmJson *json, VlmConfig *config, GError **error);

/*
 * The image settings: the object image_processor of processor_config.json when there is one, else
 * preprocessor_config.json, else defaults; the files are not merged.
 */
gboolean vlm_hf_read_processor (
    const VlmModelFiles *files, VlmProcessor *processor, GError **error);

/*
 * End, begin and padding ids and sampling defaults: generation_config.json, for ids then
 * config.json (its root in json), then the token texts in tokenizer_config.json, then
 * <|im_end|>. VLM_ERROR_FORMAT when an id is not in the vocabulary or no end id is found.
 */
gboolean vlm_hf_read_generation (const VlmModelFiles *files, const VlmJson *json,
    const VlmTokenizer *tokenizer, guint vocab_size, VlmGeneration *generation, GError **error);

#endif
