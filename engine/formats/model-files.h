/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The named files of a model, wherever they lie: in a directory, or in one file of some container.
 * Containers that have settings of their own show them as the files of a Hugging Face directory
 * (hf.h), so that there is one reader of settings for all.
 */

#ifndef VLM_MODEL_FILES_H
#define VLM_MODEL_FILES_H

#include "engine/model/config.h"
#include "engine/text/tokenizer.h"
#include "tensors.h"

typedef struct _VlmModelFiles VlmModelFiles;

/* In place of mmproj, by its address: the text part of a GGUF model alone, whatever lies beside it.
 * Other formats take it as NULL. */
extern const gchar vlm_no_mmproj[];

/*
 * path is a directory or a file, local or a resource:// URI. What it is, is decided by what is
 * there, never by its name. mmproj names the vision part of a GGUF model; NULL: the one that lies
 * beside path. (transfer full)
 * VLM_ERROR_NOT_FOUND, VLM_ERROR_READ; VLM_ERROR_FORMAT (damaged); VLM_ERROR_UNSUPPORTED (of no
 * known format); VLM_ERROR_SETTINGS (mmproj for a model that is no GGUF file).
 */
VlmModelFiles *vlm_model_files_open (const gchar *path, const gchar *mmproj, GError **error);
VlmModelFiles *vlm_model_files_ref (VlmModelFiles *files);
void vlm_model_files_unref (VlmModelFiles *files);

/* As it was given. */
const gchar *vlm_model_files_get_path (const VlmModelFiles *files);

/* "safetensors", "slm", "gguf", "cellm" */
const gchar *vlm_model_files_get_format (const VlmModelFiles *files);
/* Of the format; 0 where it has none. */
guint vlm_model_files_get_version (const VlmModelFiles *files);

/* The files that the model may be read from, in a fixed order. Array of gchar * (transfer full) */
GPtrArray *vlm_model_files_list_paths (const VlmModelFiles *files);

/* Whether there is an entry called name, whatever it is. */
gboolean vlm_model_files_has (const VlmModelFiles *files, const gchar *name);

/* Path of the file called name, for messages: "DIR/NAME", or "FILE.slm: NAME". (transfer full) */
gchar *vlm_model_files_describe (const VlmModelFiles *files, const gchar *name);

/*
 * The whole content in private memory, which a zero byte follows that is not counted.
 * VLM_ERROR_NOT_FOUND, VLM_ERROR_READ, VLM_ERROR_FORMAT (larger than max_size; damaged).
 * (transfer full)
 */
GBytes *vlm_model_files_read (
    const VlmModelFiles *files, const gchar *name, gsize max_size, GError **error);

/* Looks whether the file called name could be read. */
gboolean vlm_model_files_check (const VlmModelFiles *files, const gchar *name, GError **error);

/* Looks whether there are weights. */
gboolean vlm_model_files_check_weights (const VlmModelFiles *files, GError **error);

/* Verifies all that has a checksum and is not part of the weights. */
gboolean vlm_model_files_verify (
    const VlmModelFiles *files, GCancellable *cancellable, GError **error);

/* Fails with VLM_ERROR_FORMAT unless the container says of the network what config says. */
gboolean vlm_model_files_check_config (
    const VlmModelFiles *files, const VlmConfig *config, GError **error);

/* Fails with VLM_ERROR_FORMAT unless tokenizer can be the one that the container was made with. */
gboolean vlm_model_files_check_tokenizer (
    const VlmModelFiles *files, const VlmTokenizer *tokenizer, GError **error);

/* The weights, under the names that a Hugging Face directory has for them. (transfer full) */
VlmTensorSource *vlm_model_files_open_tensors (const VlmModelFiles *files, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmModelFiles, vlm_model_files_unref)

#endif
