/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Loading a model, and finding it again: the registry holds one entry per path, files, options and
 * CPU level while anybody holds a reference. Whoever asks first loads; others wait for it.
 */

#include "level.h"
#include "model.h"

#include <glib/gstdio.h>
#include <string.h>

/* Waiting for another thread's load wakes up this often to look at the cancellable. */
#define LOAD_POLL_US (20 * G_TIME_SPAN_MILLISECOND)

static GMutex registry_lock;
static GCond registry_changed;
static GHashTable *registry; /* key -> VlmModel, or NULL while it is being loaded */

static void
model_free (VlmModel *model)
{
  if (model->weights != NULL)
    vlm_weights_free (model->weights, &model->config);
  g_clear_pointer (&model->tokenizer, vlm_tokenizer_unref);
  vlm_positions_clear (&model->positions);
  g_free (model->path);
  g_free (model->key);
  g_free (model);
}

VlmModel *
vlm_model_ref (VlmModel *model)
{
  g_mutex_lock (&registry_lock);
  model->ref_count++;
  g_mutex_unlock (&registry_lock);
  return model;
}

void
vlm_model_unref (VlmModel *model)
{
  gboolean last;

  g_mutex_lock (&registry_lock);
  last = --model->ref_count == 0;
  if (last)
    g_hash_table_remove (registry, model->key);
  g_mutex_unlock (&registry_lock);
  if (last)
    model_free (model);
}

static void
append_file_state (GString *key, const gchar *path)
{
  g_autofree gchar *canonical = g_canonicalize_filename (path, NULL);
  GStatBuf st;

  if (g_stat (path, &st) == 0)
    g_string_append_printf (key, "|%s:%" G_GINT64_FORMAT ":%" G_GINT64_FORMAT ".%09ld", canonical,
        (gint64) st.st_size, (gint64) st.st_mtim.tv_sec, (long) st.st_mtim.tv_nsec);
}

/* What makes two loads the same: canonical path, size and time of its files, precision, level. */
static gchar *
make_key (const VlmModelFiles *files, const VlmLoadOptions *options, VlmCpuLevel level)
{
  g_autoptr (GPtrArray) paths = vlm_model_files_list_paths (files);
  const gchar *path = vlm_model_files_get_path (files);
  GString *key = g_string_new (NULL);
  guint i;

  if (g_str_has_prefix (path, "resource://")) {
    g_string_append (key, path);
  } else {
    g_autofree gchar *canonical = g_canonicalize_filename (path, NULL);

    g_string_append (key, canonical);
  }
  for (i = 0; i < paths->len; i++)
    append_file_state (key, paths->pdata[i]);
  g_string_append_printf (key, "|%d|%s", options->precision, vlm_cpu_level_name (level));
  return g_string_free (key, FALSE);
}

static gsize
find_longest_token (const VlmTokenizer *tokenizer)
{
  gsize length, longest = 1;
  guint id;

  for (id = 0; id < vlm_tokenizer_get_size (tokenizer); id++) {
    if (vlm_tokenizer_get_bytes (tokenizer, (gint) id, &length) != NULL)
      longest = MAX (longest, length);
  }
  return longest;
}

static VlmModel *
model_load (VlmModelFiles *files, const VlmLoadOptions *options, VlmCpuLevel level,
    VlmProgressFunc progress, gpointer user_data, GCancellable *cancellable, GError **error)
{
  const gchar *path = vlm_model_files_get_path (files);
  VlmModel *model = g_new0 (VlmModel, 1);
  VlmCheckpoint *checkpoint = NULL;

  model->ref_count = 1;
  model->path = g_strdup (path);
  model->builtin = g_str_equal (path, vlm_builtin_model ());
  vlm_positions_init (&model->positions);
  if (vlm_kernels_init (&model->kernels, level) != 0) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_SETTINGS, "No kernels for CPU level %s",
        vlm_cpu_level_name (level));
    goto failed;
  }

  checkpoint = vlm_checkpoint_new (files, error);
  if (checkpoint == NULL || !vlm_checkpoint_find_chat (checkpoint, &model->chat_tokens, error)
      || g_cancellable_set_error_if_cancelled (cancellable, error))
    goto failed;
  model->weights = vlm_weights_load (checkpoint, &model->kernels, options->precision,
      options->n_threads, progress, user_data, cancellable, error);
  if (model->weights == NULL)
    goto failed;
  model->config = checkpoint->config;
  if (!vlm_tensor_source_verify_rest (checkpoint->tensors, cancellable, error))
    goto failed;

  model->processor = checkpoint->processor;
  model->generation = checkpoint->generation;
  model->tokenizer = vlm_tokenizer_ref (checkpoint->tokenizer);
  model->longest_token = find_longest_token (model->tokenizer);
  vlm_checkpoint_free (checkpoint);
  return model;

failed:
  g_clear_pointer (&checkpoint, vlm_checkpoint_free);
  model_free (model);
  return NULL;
}

/*
 * Call with the lock held. Returns a new reference, or NULL with *mine set when the caller is to
 * load it, or NULL with an error when cancelled while another thread was loading.
 */
static VlmModel *
find_or_claim (const gchar *key, gboolean *mine, GCancellable *cancellable, GError **error)
{
  gpointer value;

  if (registry == NULL)
    registry = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  while (g_hash_table_lookup_extended (registry, key, NULL, &value)) {
    VlmModel *model = value;

    if (model != NULL) {
      model->ref_count++;
      return model;
    }
    if (g_cancellable_set_error_if_cancelled (cancellable, error))
      return NULL;
    g_cond_wait_until (&registry_changed, &registry_lock, g_get_monotonic_time () + LOAD_POLL_US);
  }
  g_hash_table_insert (registry, g_strdup (key), NULL);
  *mine = TRUE;
  return NULL;
}

VlmModel *
vlm_model_load (const gchar *path, const VlmLoadOptions *options, VlmProgressFunc progress,
    gpointer user_data, GCancellable *cancellable, GError **error)
{
  static const VlmLoadOptions defaults = { 0 };
  g_autoptr (VlmModelFiles) files = NULL;
  g_autofree gchar *key = NULL;
  VlmCpuLevel level;
  VlmModel *model;
  gboolean mine = FALSE;

  if (options == NULL)
    options = &defaults;

  if (!vlm_cpu_level_choose (&level, error))
    return NULL;
  files = vlm_checkpoint_open_files (path, options->mmproj, error);
  if (files == NULL)
    return NULL;
  key = make_key (files, options, level);

  g_mutex_lock (&registry_lock);
  model = find_or_claim (key, &mine, cancellable, error);
  g_mutex_unlock (&registry_lock);
  if (!mine)
    return model;

  model = model_load (files, options, level, progress, user_data, cancellable, error);

  g_mutex_lock (&registry_lock);
  if (model != NULL) {
    model->key = g_strdup (key);
    g_hash_table_insert (registry, g_strdup (key), model);
  } else {
    g_hash_table_remove (registry, key);
  }
  g_cond_broadcast (&registry_changed);
  g_mutex_unlock (&registry_lock);
  return model;
}

void
vlm_model_get_info (const VlmModel *model, VlmModelInfo *info)
{
  const VlmConfig *config = &model->config;

  memset (info, 0, sizeof (*info));
  info->path = model->path;
  info->builtin = model->builtin;
  info->has_vision = config->has_vision;
  info->family = vlm_family_names[config->has_vision];
  info->n_parameters = model->weights->n_parameters;
  info->weight_bytes = model->weights->n_bytes;
  info->token_bytes = model->weights->token_bytes;
  info->head_bytes = model->weights->head_bytes;
  info->crop_bytes = model->weights->crop_bytes;
  info->level = model->kernels.name;
  info->fast = vlm_matrix_has_integers (model->weights->layers[0].down);
  info->hidden_size = config->text.hidden_size;
  info->n_layers = config->text.n_layers;
  info->vocab_size = config->text.vocab_size;
  info->max_context = config->text.max_context;
  if (config->has_vision) {
    info->vision_hidden_size = config->vision.hidden_size;
    info->n_vision_layers = config->vision.n_layers;
    info->fast_vision = vlm_matrix_has_integers (model->weights->vision_layers[0].fc1.matrix);
  }
}

const VlmTokenizer *
vlm_model_get_tokenizer (const VlmModel *model)
{
  return model->tokenizer;
}
