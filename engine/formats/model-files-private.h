/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How a format offers the files of a model. */

#ifndef VLM_MODEL_FILES_PRIVATE_H
#define VLM_MODEL_FILES_PRIVATE_H

#include "model-files.h"

/* What the functions of model-files.h do in one format; those that may be NULL have nothing to do
 * there. */
typedef struct
{
  const gchar *format;
  guint version;                        /* of the format; 0: it has none, or get_version tells it */
  guint (*get_version) (gpointer data); /* or NULL */
  void (*list_paths) (gpointer data, GPtrArray *paths);
  gboolean (*has) (gpointer data, const gchar *name);
  gchar *(*describe) (gpointer data, const gchar *name);
  GBytes *(*read) (gpointer data, const gchar *name, gsize max_size, GError **error);
  gboolean (*check) (gpointer data, const gchar *name, GError **error);
  gboolean (*check_weights) (gpointer data, GError **error);                         /* or NULL */
  gboolean (*verify) (gpointer data, GCancellable *cancellable, GError **error);     /* or NULL */
  gboolean (*check_config) (gpointer data, const VlmConfig *config, GError **error); /* or NULL */
  gboolean (*check_tokenizer) (
      gpointer data, const VlmTokenizer *tokenizer, GError **error); /* or NULL */
  VlmTensorSource *(*open_tensors) (gpointer data, GError **error);
  void (*free) (gpointer data);
} VlmModelFilesClass;

/* class lives as long as the program; data belongs to the files. (transfer full) */
VlmModelFiles *vlm_model_files_new (
    const VlmModelFilesClass *class, const gchar *path, gpointer data);

/* A Hugging Face directory. Only the directory itself is looked at. (transfer full) */
VlmModelFiles *vlm_hf_files_open (const gchar *path, GError **error);

/* A .slm file; see vlm_slm_open () for errors. (transfer full) */
VlmModelFiles *vlm_slm_files_open (const gchar *path, GError **error);

/*
 * A GGUF text file, and the vision part: mmproj, or else the only one beside it, or none. path: as
 * the model was given. (transfer full)
 * VLM_ERROR_FORMAT also when a part is given as the other one; VLM_ERROR_SETTINGS when there are
 * several vision parts to choose from.
 */
VlmModelFiles *vlm_gguf_files_open (
    const gchar *path, const gchar *text, const gchar *mmproj, GError **error);

/*
 * The GGUF text file in a directory, in *text; NULL when there is none. (transfer full)
 * VLM_ERROR_SETTINGS when there are several, VLM_ERROR_NOT_FOUND when only a vision part is there.
 */
gboolean vlm_gguf_files_find (const gchar *directory, gchar **text, GError **error);

/* A .cellm file; see vlm_cellm_open () for errors. (transfer full) */
VlmModelFiles *vlm_cellm_files_open (const gchar *path, GError **error);

#endif
