/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "resolve.h"

#include "engine/vlm.h"

#include <string.h>

#define TEXT_IN_VISION_MODEL "model.language_model."
#define TEXT_ALONE "model."
#define VISION_WITH_LEVEL "model.vision_tower.vision_model."
#define VISION_WITHOUT_LEVEL "model.vision_tower."
#define PROJECTOR_NORM "model.multi_modal_projector.layer_norm.weight"
#define HEAD "lm_head.weight"

/* Bytes of two tensors compared at a time. */
#define COMPARE_CHUNK (1u << 20)

/* The tower's prefix is the one that most of its tensors have; the rest will be surplus. */
static void
resolve_prefixes (const VlmCheckpoint *checkpoint, VlmTensorNames *names)
{
  guint i, with_level = 0, without_level = 0;

  for (i = 0; i < vlm_tensor_source_get_count (checkpoint->tensors); i++) {
    const VlmTensorInfo *info = vlm_tensor_source_get_nth (checkpoint->tensors, i);

    if (g_str_has_prefix (info->name, VISION_WITH_LEVEL))
      with_level++;
    else if (g_str_has_prefix (info->name, VISION_WITHOUT_LEVEL))
      without_level++;
  }
  names->text = checkpoint->config.has_vision ? TEXT_IN_VISION_MODEL : TEXT_ALONE;
  names->vision = with_level > without_level ? VISION_WITH_LEVEL : VISION_WITHOUT_LEVEL;
}

/* The rows of the first layer's gate decide; all other shapes are checked against them later. */
static gboolean
resolve_feed_forward (VlmCheckpoint *checkpoint, const VlmTensorNames *names, GError **error)
{
  VlmTextConfig *text = &checkpoint->config.text;
  g_autofree gchar *name = g_strconcat (names->text, "layers.0.feed_forward.w1.weight", NULL);
  const VlmTensorInfo *info = vlm_tensor_source_lookup (checkpoint->tensors, name);
  g_autofree gchar *found = NULL;

  if (!info || info->rank != 2 || info->shape[0] == text->ff_size)
    return TRUE;
  if (info->shape[0] == text->ff_size_other) {
    g_info ("%s: tensor %s has %u rows, though config.json says %u: block_auto_adjust_ff_dim is "
            "taken the other way",
        checkpoint->path, name, text->ff_size_other, text->ff_size);
    text->ff_size = text->ff_size_other;
    return TRUE;
  }
  found = vlm_tensor_shape_to_string (info->shape, info->rank);
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: tensor %s has shape %s, expected [%u, %u] (or [%u, %u] with block_auto_adjust_ff_dim "
      "the other way) by config.json",
      vlm_tensor_source_get_path (checkpoint->tensors, info), name, found, text->ff_size,
      text->hidden_size, text->ff_size_other, text->hidden_size);
  return FALSE;
}

static gboolean
check_projector_norm (const VlmCheckpoint *checkpoint, GError **error)
{
  gboolean wanted = checkpoint->config.projector.layer_norm;
  gboolean present = vlm_tensor_source_lookup (checkpoint->tensors, PROJECTOR_NORM) != NULL;

  if (wanted == present)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: config.json's projector_use_layernorm is %s, but tensor " PROJECTOR_NORM " is %s",
      checkpoint->path, wanted ? "true (or absent, which means true)" : "false",
      present ? "present" : "missing");
  return FALSE;
}

static gboolean
same_shape (const VlmTensorInfo *a, const VlmTensorInfo *b)
{
  /* Whoever quantises a model leaves the copy out: integers are not compared. */
  return a->dtype == b->dtype && a->dtype != VLM_DTYPE_QUANTISED && a->rank == b->rank
      && !memcmp (a->shape, b->shape, a->rank * sizeof (*a->shape));
}

/* Whether the payloads are equal. FALSE also on errors; those are set. */
static gboolean
same_bytes (VlmTensorSource *source, const VlmTensorInfo *a, const VlmTensorInfo *b,
    GCancellable *cancellable, GError **error)
{
  g_autofree guint8 *buffer = g_malloc (2 * COMPARE_CHUNK);
  guint64 offset = 0;

  while (offset < a->n_bytes) {
    gsize n = MIN (COMPARE_CHUNK, a->n_bytes - offset);

    if (!vlm_tensor_source_read (source, a, offset, buffer, n, cancellable, error)
        || !vlm_tensor_source_read (
            source, b, offset, buffer + COMPARE_CHUNK, n, cancellable, error)
        || memcmp (buffer, buffer + COMPARE_CHUNK, n))
      return FALSE;
    offset += n;
  }
  return TRUE;
}

static gboolean
resolve_head (const VlmCheckpoint *checkpoint, VlmTensorNames *names, GCancellable *cancellable,
    GError **error)
{
  g_autofree gchar *embedding = g_strconcat (names->text, "embed_tokens.weight", NULL);
  const VlmTensorInfo *embed = vlm_tensor_source_lookup (checkpoint->tensors, embedding);
  const VlmTensorInfo *head = vlm_tensor_source_lookup (checkpoint->tensors, HEAD);
  g_autoptr (GError) fault = NULL;

  names->repeated_head = NULL;
  if (!head && !checkpoint->config.text.tied_head) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: config.json's tie_word_embeddings is false, but tensor " HEAD
        " is missing, expected shape [%u, %u]",
        checkpoint->path, checkpoint->config.text.vocab_size, checkpoint->config.text.hidden_size);
    return FALSE;
  }
  if (!head || !embed || !checkpoint->config.text.tied_head)
    return TRUE;
  if (same_shape (head, embed)
      && same_bytes (checkpoint->tensors, head, embed, cancellable, &fault)) {
    names->repeated_head = head;
    return TRUE;
  }
  if (fault)
    g_propagate_error (error, g_steal_pointer (&fault));
  else
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: config.json's tie_word_embeddings is true (or absent, which means true), but "
        "tensor " HEAD " is present and differs from %s",
        checkpoint->path, embedding);
  return FALSE;
}

gboolean
vlm_resolve_tensors (
    VlmCheckpoint *checkpoint, VlmTensorNames *names, GCancellable *cancellable, GError **error)
{
  resolve_prefixes (checkpoint, names);
  return resolve_feed_forward (checkpoint, names, error)
      && (!checkpoint->config.has_vision || check_projector_norm (checkpoint, error))
      && resolve_head (checkpoint, names, cancellable, error);
}
