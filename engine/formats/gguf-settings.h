/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The settings in the keys of a GGUF model, as the files that a Hugging Face directory has for
 * them: made as text for the readers of those files, so that there is one reader of settings.
 */

#ifndef VLM_GGUF_SETTINGS_H
#define VLM_GGUF_SETTINGS_H

#include "gguf.h"

/*
 * Whether the model has a file of this name (hf.h): config.json, tokenizer.json,
 * tokenizer_config.json and generation_config.json always, chat_template.jinja where there is a
 * template, processor_config.json with a vision part. mmproj may be NULL.
 */
gboolean vlm_gguf_has_file (const VlmGguf *text, const VlmGguf *mmproj, const gchar *name);

/*
 * The content of the file called name, one that the model has; a zero byte follows it that is not
 * counted. mmproj is the vision part, NULL for a text model.
 * VLM_ERROR_FORMAT and VLM_ERROR_UNSUPPORTED name the GGUF file, the key or tensor, what was found
 * there and what may be. (transfer full)
 */
GBytes *vlm_gguf_make_file (
    const VlmGguf *text, const VlmGguf *mmproj, const gchar *name, GError **error);

#endif
