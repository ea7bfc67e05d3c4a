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
  guint version;
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

/* A .cellm file; see vlm_cellm_open () for errors. (transfer full) */
VlmModelFiles *vlm_cellm_files_open (const gchar *path, GError **error);

#endif
