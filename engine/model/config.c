/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config.h"

#include "engine/vlm.h"

#include <math.h>

/* Of the attention kernel. */
#define HEAD_DIM_STEP 8
#define MAX_HEAD_DIM 256

const gchar *const vlm_layer_kind_names[] = {
  [VLM_LAYER_CONV] = "conv",
  [VLM_LAYER_ATTENTION] = "full_attention",
};

const gchar *const vlm_family_names[] = { "lfm2", "lfm2_vl" };

guint
vlm_config_adjust_feed_forward (guint plain, gdouble multiplier, guint multiple_of)
{
  /* In double and cut off, as the reference computes it. */
  gdouble rows = trunc (2.0 * plain / 3.0);

  if (!isnan (multiplier)) {
    rows = trunc (multiplier * rows);
    rows = multiple_of * ceil (rows / multiple_of);
  }
  return rows >= 1 && rows <= VLM_MAX_FEED_FORWARD ? (guint) rows : 0;
}

static gboolean
check_head_dim (const gchar *what, guint head_dim, GError **error)
{
  if (head_dim % HEAD_DIM_STEP == 0 && head_dim > 0 && head_dim <= MAX_HEAD_DIM)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
      "%s is %u, expected a multiple of %d up to %d", what, head_dim, HEAD_DIM_STEP, MAX_HEAD_DIM);
  return FALSE;
}

static gboolean
validate_text (const VlmTextConfig *text, GError **error)
{
  if (text->n_heads % text->n_kv_heads) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "num_attention_heads is %u, expected a multiple of num_key_value_heads, which is %u",
        text->n_heads, text->n_kv_heads);
    return FALSE;
  }
  return check_head_dim ("head_dim", text->head_dim, error);
}

static gboolean
validate_vision (const VlmVisionConfig *vision, GError **error)
{
  guint side = (guint) sqrt (vision->n_positions);

  if (side * side != vision->n_positions) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "vision_config.num_patches is %u, expected a square number", vision->n_positions);
    return FALSE;
  }
  if (vision->hidden_size % vision->n_heads) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "vision_config.hidden_size is %u, expected a multiple of num_attention_heads, which is %u",
        vision->hidden_size, vision->n_heads);
    return FALSE;
  }
  return check_head_dim (
      "vision_config.hidden_size / num_attention_heads", vision->head_dim, error);
}

gboolean
vlm_config_validate (const VlmConfig *config, GError **error)
{
  return validate_text (&config->text, error)
      && (!config->has_vision || validate_vision (&config->vision, error));
}
