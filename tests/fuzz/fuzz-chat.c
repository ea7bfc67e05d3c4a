/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Any words of a user and of a system prompt: they never become what only a chat may say. */

#include <string.h>

#include "engine/text/chat.h"
#include "fuzz.h"
#include "tests/engine/test-text-toy.h"

static VlmTokenizer *tokenizer;
static VlmChatTokens tokens;

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  static const gchar *const control[] = { "<|startoftext|>", "<|im_start|>", "<|im_end|>",
    "<image>", "<|image_start|>", "<|image_end|>", "<|img_thumbnail|>" };
  json_t *toy = toy_new (TOY_REGEX);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (control); i++)
    toy_add_token (toy, control[i], TRUE);
  tokenizer = toy_finish (toy);
  g_assert (vlm_chat_tokens_init (&tokens, tokenizer, TRUE, NULL));
  return 0;
}

static guint
count_special (const GArray *ids)
{
  guint i, n = 0;

  for (i = 0; i < ids->len; i++)
    n += vlm_tokenizer_is_special (tokenizer, g_array_index (ids, gint32, i));
  return n;
}

/* A chat of these words; those of the system may be NULL. */
static guint
count (const gchar *system, const gchar *prompt, const VlmLayout *layout)
{
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (gint32));

  g_assert (vlm_chat_build (tokenizer, &tokens, system, prompt, layout, 1, ids, NULL));
  return count_special (ids);
}

/* The words of the system end at the first zero byte, those of the user at the second. */
int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autofree gchar *words = g_strndup ((const gchar *) data, size);
  gsize first = strlen (words);
  g_autofree gchar *prompt =
      first < size ? g_strndup ((const gchar *) data + first + 1, size - first - 1) : g_strdup ("");
  VlmProcessor processor;
  VlmLayout layout;

  vlm_processor_init_defaults (&processor);
  g_assert (vlm_layout_plan (&layout, &processor, 256, 256, NULL));
  g_assert_cmpuint (count (NULL, prompt, &layout), ==, count (NULL, "x", &layout));
  if (*words)
    g_assert_cmpuint (count (words, prompt, &layout), ==, count ("x", "x", &layout));
  return 0;
}
