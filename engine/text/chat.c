/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "chat.h"

static gboolean
look_up (
    gint *id, const VlmTokenizer *tokenizer, const gchar *text, gboolean needed, GError **error)
{
  *id = vlm_tokenizer_lookup (tokenizer, text);
  if (*id >= 0 || !needed)
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "the tokenizer has no token \"%s\", which the chat layout needs", text);
  return FALSE;
}

gboolean
vlm_chat_tokens_init (
    VlmChatTokens *tokens, const VlmTokenizer *tokenizer, gboolean need_image, GError **error)
{
  VlmChatTokens found = { .use_image_special_tokens = TRUE };

  if (!look_up (&found.bos, tokenizer, "<|startoftext|>", TRUE, error)
      || !look_up (&found.im_start, tokenizer, "<|im_start|>", TRUE, error)
      || !look_up (&found.im_end, tokenizer, "<|im_end|>", TRUE, error)
      || !look_up (&found.image, tokenizer, "<image>", need_image, error)
      || !look_up (&found.image_start, tokenizer, "<|image_start|>", FALSE, error)
      || !look_up (&found.image_end, tokenizer, "<|image_end|>", FALSE, error)
      || !look_up (&found.thumbnail, tokenizer, "<|img_thumbnail|>", FALSE, error))
    return FALSE;
  *tokens = found;
  return TRUE;
}

static void
append_id (GArray *ids, gint id)
{
  gint32 value = id;

  g_array_append_val (ids, value);
}

static void
append_image_tokens (const VlmChatTokens *tokens, guint n, GArray *ids)
{
  guint i;

  for (i = 0; i < n; i++)
    append_id (ids, tokens->image);
}

/* A marker in front of a crop, where the model wants markers. */
static gboolean
append_marker (const VlmTokenizer *tokenizer, const VlmChatTokens *tokens, const gchar *text,
    GArray *ids, GError **error)
{
  gint id;

  if (!tokens->use_image_special_tokens)
    return TRUE;
  if (!look_up (&id, tokenizer, text, TRUE, error))
    return FALSE;
  append_id (ids, id);
  return TRUE;
}

static gboolean
append_tiles (const VlmTokenizer *tokenizer, const VlmChatTokens *tokens, const VlmLayout *image,
    GArray *ids, GError **error)
{
  gchar marker[64];
  guint row, column;

  for (row = 1; row <= image->grid_rows; row++) {
    for (column = 1; column <= image->grid_columns; column++) {
      g_snprintf (marker, sizeof marker, "<|img_row_%u_col_%u|>", row, column);
      if (!append_marker (tokenizer, tokens, marker, ids, error))
        return FALSE;
      append_image_tokens (tokens, image->tile_tokens, ids);
    }
  }
  if (image->has_thumbnail) {
    if (!append_marker (tokenizer, tokens, "<|img_thumbnail|>", ids, error))
      return FALSE;
    append_image_tokens (tokens, image->thumbnail_tokens, ids);
  }
  return TRUE;
}

static gboolean
append_image (const VlmTokenizer *tokenizer, const VlmChatTokens *tokens, const VlmLayout *image,
    GArray *ids, GError **error)
{
  if (!append_marker (tokenizer, tokens, "<|image_start|>", ids, error))
    return FALSE;
  if (!image->tiled)
    append_image_tokens (tokens, image->tile_tokens, ids);
  else if (!append_tiles (tokenizer, tokens, image, ids, error))
    return FALSE;
  return append_marker (tokenizer, tokens, "<|image_end|>", ids, error);
}

/* <|im_start|> and one run of text: the role's line and what follows it. */
static void
open_message (const VlmTokenizer *tokenizer, const VlmChatTokens *tokens, const gchar *role,
    const gchar *text, GArray *ids)
{
  g_autofree gchar *run = g_strconcat (role, "\n", text, NULL);

  append_id (ids, tokens->im_start);
  vlm_tokenizer_encode (tokenizer, run, -1, FALSE, ids);
}

static void
close_message (const VlmTokenizer *tokenizer, const VlmChatTokens *tokens, GArray *ids)
{
  append_id (ids, tokens->im_end);
  vlm_tokenizer_encode (tokenizer, "\n", 1, FALSE, ids);
}

gboolean
vlm_chat_build (const VlmTokenizer *tokenizer, const VlmChatTokens *tokens, const gchar *system,
    const gchar *prompt, const VlmLayout *images, guint n_images, GArray *ids, GError **error)
{
  guint old_length = ids->len, i;

  if (prompt == NULL)
    prompt = "";
  if (n_images > 0 && tokens->image < 0) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "the tokenizer has no token \"<image>\", but there are %u pictures", n_images);
    return FALSE;
  }
  append_id (ids, tokens->bos);
  if (system != NULL && *system != '\0') {
    open_message (tokenizer, tokens, "system", system, ids);
    close_message (tokenizer, tokens, ids);
  }
  open_message (tokenizer, tokens, "user", n_images > 0 ? "" : prompt, ids);
  for (i = 0; i < n_images; i++) {
    if (!append_image (tokenizer, tokens, &images[i], ids, error)) {
      g_array_set_size (ids, old_length);
      return FALSE;
    }
  }
  if (n_images > 0)
    vlm_tokenizer_encode (tokenizer, prompt, -1, FALSE, ids);
  close_message (tokenizer, tokens, ids);
  open_message (tokenizer, tokens, "assistant", "", ids);
  return TRUE;
}
