/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "checkpoint.h"

#include "engine/model/level.h"
#include "engine/vlm.h"
#include "file.h"
#include "hf.h"
#include "safetensors.h"

#include <string.h>

#define IMAGE_TOKEN "<image>"

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmTokenizer, vlm_tokenizer_unref)

static VlmTokenizer *
make_tokenizer (VlmFile *file, GError **error)
{
  g_autoptr (GBytes) bytes = vlm_file_read_all (file, VLM_HF_MAX_TOKENIZER, error);

  return bytes ? vlm_tokenizer_new_from_json (bytes, vlm_file_get_path (file), error) : NULL;
}

VlmTokenizer *
vlm_tokenizer_load (const gchar *path, GError **error)
{
  g_autoptr (VlmFile) file = NULL;

  if (vlm_directory_check (path, NULL) || !g_str_has_suffix (path, ".json")) {
    if (!vlm_directory_check (path, error))
      return NULL;
    file = vlm_file_open (path, VLM_HF_TOKENIZER, error);
  } else {
    file = vlm_file_open (path, NULL, error);
  }
  return file ? make_tokenizer (file, error) : NULL;
}

gboolean
vlm_model_check_path (const gchar *path, GError **error)
{
  static const gchar *const needed[] = { VLM_HF_CONFIG, VLM_HF_TOKENIZER, VLM_SAFETENSORS_FILE };
  VlmCpuLevel level;
  guint i;

  if (!vlm_cpu_level_choose (&level, error) || !vlm_directory_check (path, error))
    return FALSE;
  for (i = 0; i < G_N_ELEMENTS (needed); i++) {
    const gchar *name = needed[i];
    g_autoptr (VlmFile) file = NULL;

    if (name == needed[2] && !vlm_file_exists (path, name)
        && vlm_file_exists (path, VLM_SAFETENSORS_INDEX))
      name = VLM_SAFETENSORS_INDEX;
    file = vlm_file_open (path, name, error);
    if (!file)
      return FALSE;
  }
  return TRUE;
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
  const gchar *path = checkpoint->path;
  g_autofree gchar *file = NULL;
  g_autoptr (VlmJsonDocument) root =
      vlm_json_load (path, VLM_HF_CONFIG, VLM_HF_MAX_SETTINGS, 0, &file, error);
  VlmJson json = { file, NULL, root };

  if (!root || !vlm_hf_read_config (&json, &checkpoint->config, error))
    return FALSE;
  checkpoint->tokenizer = vlm_tokenizer_load (path, error);
  if (!checkpoint->tokenizer || !check_tokenizer (checkpoint, error))
    return FALSE;
  vlm_processor_init_defaults (&checkpoint->processor);
  if (checkpoint->config.has_vision
      && (!vlm_hf_read_processor (path, &checkpoint->processor, error)
          || !check_processor (checkpoint, error)))
    return FALSE;
  return vlm_hf_read_generation (path, &json, checkpoint->tokenizer,
      checkpoint->config.text.vocab_size, &checkpoint->generation, error);
}

VlmCheckpoint *
vlm_checkpoint_open (const gchar *path, GError **error)
{
  g_autoptr (VlmCheckpoint) checkpoint = NULL;

  if (!vlm_model_check_path (path, error))
    return NULL;
  checkpoint = g_new0 (VlmCheckpoint, 1);
  checkpoint->path = g_strdup (path);
  if (!read_settings (checkpoint, error))
    return NULL;
  checkpoint->tensors = vlm_safetensors_open (path, error);
  return checkpoint->tensors ? g_steal_pointer (&checkpoint) : NULL;
}

void
vlm_checkpoint_free (VlmCheckpoint *checkpoint)
{
  if (!checkpoint)
    return;
  vlm_tensor_source_free (checkpoint->tensors);
  g_clear_pointer (&checkpoint->tokenizer, vlm_tokenizer_unref);
  g_free (checkpoint->path);
  g_free (checkpoint);
}
