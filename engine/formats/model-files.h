/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The named files of a model, wherever they lie: in a directory, or in one .slm file. */

#ifndef VLM_MODEL_FILES_H
#define VLM_MODEL_FILES_H

#include "slm.h"

typedef struct _VlmModelFiles VlmModelFiles;

/*
 * path is a directory, or a .slm file, local or a resource:// URI; which of the two is decided by
 * what is there, never by its name. (transfer full)
 * Errors: those of vlm_directory_check () and vlm_slm_open ().
 */
VlmModelFiles *vlm_model_files_open (const gchar *path, GError **error);
/* The same where only a directory is wanted. */
VlmModelFiles *vlm_model_files_open_directory (const gchar *path, GError **error);
void vlm_model_files_free (VlmModelFiles *files);

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

/* NULL for a directory. (transfer none) */
VlmSlm *vlm_model_files_get_slm (const VlmModelFiles *files);

/* The weights: vlm_safetensors_open (), or those of the .slm. (transfer full) */
VlmTensorSource *vlm_model_files_open_tensors (const VlmModelFiles *files, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmModelFiles, vlm_model_files_free)

#endif
