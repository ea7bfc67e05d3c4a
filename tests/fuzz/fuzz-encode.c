/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Any text through a sound tokenizer: what comes back is what went in, if that was text. */

#include <string.h>

#include "engine/vlm.h"
#include "fuzz.h"
#include "tests/engine/test-text-toy.h"

static VlmTokenizer *tokenizers[2];

static VlmTokenizer *
make (const gchar *regex)
{
  json_t *toy = toy_new (regex);

  toy_add_merge (toy, "a", "b");
  toy_add_merge (toy, "ab", "ab");
  toy_add_merge (toy, "\xc4\xa0", "a");
  toy_add_token (toy, "<|im_start|>", TRUE);
  toy_add_token (toy, "<image>", TRUE);
  toy_add_token (toy, "plain", FALSE);
  return toy_finish (toy);
}

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  tokenizers[0] = make (TOY_REGEX);
  tokenizers[1] = make (TOY_REGEX_128K);
  return 0;
}

static void
check (const VlmTokenizer *tokenizer, const gchar *text, gsize length, gboolean added)
{
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (gint32));
  g_autofree gchar *back = NULL, *copy = g_strndup (text, length);

  vlm_tokenizer_encode (tokenizer, text, length, added, ids);
  g_assert (ids->len <= 3 * length + 1);
  back = vlm_tokenizer_decode (tokenizer, (const gint32 *) ids->data, ids->len, FALSE);
  g_assert (g_utf8_validate (back, -1, NULL));
  if (g_utf8_validate (text, length, NULL))
    g_assert_cmpstr (back, ==, copy);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  if (size > 0)
    check (tokenizers[data[0] & 1], (const gchar *) data + 1, size - 1, (data[0] & 2) != 0);
  return 0;
}
