/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "checkpoint.h"

#include "engine/model/level.h"
#include "engine/vlm.h"
#include "file.h"
#include "hf.h"

#include <string.h>

#define IMAGE_TOKEN "<image>"

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmTokenizer, vlm_tokenizer_unref)

static VlmTokenizer *
make_tokenizer (const VlmModelFiles *files, GError **error)
{
  g_autoptr (GBytes) bytes =
      vlm_model_files_read (files, VLM_HF_TOKENIZER, VLM_HF_MAX_TOKENIZER, error);
  g_autofree gchar *path = vlm_model_files_describe (files, VLM_HF_TOKENIZER);

  return bytes ? vlm_tokenizer_new_from_json (bytes, path, error) : NULL;
}

/* tokenizer.json itself. */
static VlmTokenizer *
load_tokenizer_file (const gchar *path, GError **error)
{
  g_autoptr (VlmFile) file = vlm_file_open (path, NULL, error);
  g_autoptr (GBytes) bytes = file ? vlm_file_read_all (file, VLM_HF_MAX_TOKENIZER, error) : NULL;

  return bytes ? vlm_tokenizer_new_from_json (bytes, path, error) : NULL;
}

VlmTokenizer *
vlm_tokenizer_load (const gchar *path, GError **error)
{
  g_autoptr (VlmModelFiles) files = NULL;

  if (g_str_has_suffix (path, ".json") && !vlm_path_is_directory (path))
    return load_tokenizer_file (path, error);
  files = vlm_model_files_open (path, vlm_no_mmproj, error);
  return files ? make_tokenizer (files, error) : NULL;
}

VlmModelFiles *
vlm_checkpoint_open_files (const gchar *path, const gchar *mmproj, GError **error)
{
  g_autoptr (VlmModelFiles) files = NULL;
  VlmCpuLevel level;

  if (!vlm_cpu_level_choose (&level, error))
    return NULL;
  files = vlm_model_files_open (path, mmproj, error);
  if (!files || !vlm_model_files_check (files, VLM_HF_CONFIG, error)
      || !vlm_model_files_check (files, VLM_HF_TOKENIZER, error)
      || !vlm_model_files_check_weights (files, error))
    return NULL;
  return g_steal_pointer (&files);
}

gboolean
vlm_model_check_path (const gchar *path, const gchar *mmproj, GError **error)
{
  g_autoptr (VlmModelFiles) files = vlm_checkpoint_open_files (path, mmproj, error);

  return files != NULL;
}

/* The tower and the image settings must cut pictures alike. */
static gboolean
check_processor (const VlmCheckpoint *checkpoint, GError **error)
{
  const VlmConfig *config = &checkpoint->config;
  const VlmProcessor *processor = &checkpoint->processor;

  if (processor->patch_size != config->vision.patch_size) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: the image settings say encoder_patch_size %u, config.json vision_config.patch_size %u",
        checkpoint->path, processor->patch_size, config->vision.patch_size);
    return FALSE;
  }
  if (processor->downsample_factor != config->projector.downsample_factor) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: the image settings say downsample_factor %u, config.json %u", checkpoint->path,
        processor->downsample_factor, config->projector.downsample_factor);
    return FALSE;
  }
  return TRUE;
}

/* The vocabulary must fit the embedding, and know pictures when the model does. */
static gboolean
check_tokenizer (VlmCheckpoint *checkpoint, GError **error)
{
  VlmConfig *config = &checkpoint->config;
  guint size = vlm_tokenizer_get_size (checkpoint->tokenizer);
  gint id;

  if (size > config->text.vocab_size) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: tokenizer.json has %u ids, expected at most vocab_size %u of config.json",
        checkpoint->path, size, config->text.vocab_size);
    return FALSE;
  }
  if (!vlm_model_files_check_tokenizer (checkpoint->files, checkpoint->tokenizer, error))
    return FALSE;
  if (!config->has_vision)
    return TRUE;
  id = vlm_tokenizer_lookup (checkpoint->tokenizer, IMAGE_TOKEN);
  if (id < 0) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: tokenizer.json has no token " IMAGE_TOKEN ", which a vision model needs",
        checkpoint->path);
    return FALSE;
  }
  if (id != config->image_token_id)
    g_info ("%s: " IMAGE_TOKEN " is %d, not %d as config.json says", checkpoint->path, id,
        config->image_token_id);
  config->image_token_id = id;
  return TRUE;
}

static gboolean
read_settings (VlmCheckpoint *checkpoint, GError **error)
{
  const VlmModelFiles *files = checkpoint->files;
  g_autofree gchar *file = NULL;
  g_autoptr (VlmJsonDocument) root =
      vlm_json_load (files, VLM_HF_CONFIG, VLM_HF_MAX_SETTINGS, 0, &file, error);
  VlmJson json = { file, NULL, root };

  if (!root || !vlm_hf_read_config (&json, &checkpoint->config, error))
    return FALSE;
  checkpoint->tokenizer = make_tokenizer (files, error);
  if (!checkpoint->tokenizer || !check_tokenizer (checkpoint, error))
    return FALSE;
  vlm_processor_init_defaults (&checkpoint->processor);
  if (checkpoint->config.has_vision
      && (!vlm_hf_read_processor (files, &checkpoint->processor, error)
          || !check_processor (checkpoint, error)))
    return FALSE;
  return vlm_hf_read_generation (files, &json, checkpoint->tokenizer,
      checkpoint->config.text.vocab_size, &checkpoint->generation, error);
}

VlmCheckpoint *
vlm_checkpoint_new (VlmModelFiles *files, GError **error)
{
  g_autoptr (VlmCheckpoint) checkpoint = g_new0 (VlmCheckpoint, 1);

  checkpoint->files = vlm_model_files_ref (files);
  checkpoint->path = vlm_model_files_get_path (files);
  if (!vlm_model_files_verify (files, NULL, error) || !read_settings (checkpoint, error)
      || !vlm_model_files_check_config (files, &checkpoint->config, error))
    return NULL;
  checkpoint->tensors = vlm_model_files_open_tensors (files, error);
  return checkpoint->tensors ? g_steal_pointer (&checkpoint) : NULL;
}

VlmCheckpoint *
vlm_checkpoint_open (const gchar *path, const gchar *mmproj, GError **error)
{
  g_autoptr (VlmModelFiles) files = vlm_checkpoint_open_files (path, mmproj, error);

  return files ? vlm_checkpoint_new (files, error) : NULL;
}

gboolean
vlm_checkpoint_find_chat (const VlmCheckpoint *checkpoint, VlmChatTokens *tokens, GError **error)
{
  if (!vlm_chat_tokens_init (tokens, checkpoint->tokenizer, checkpoint->config.has_vision, error)) {
    g_prefix_error (error, "%s: ", checkpoint->path);
    return FALSE;
  }
  tokens->use_image_special_tokens = checkpoint->processor.use_image_special_tokens;
  return TRUE;
}

void
vlm_checkpoint_free (VlmCheckpoint *checkpoint)
{
  if (!checkpoint)
    return;
  vlm_tensor_source_free (checkpoint->tensors);
  g_clear_pointer (&checkpoint->tokenizer, vlm_tokenizer_unref);
  vlm_model_files_unref (checkpoint->files);
  g_free (checkpoint);
}
