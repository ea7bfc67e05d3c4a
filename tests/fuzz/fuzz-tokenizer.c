/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* tokenizer.json; one that is taken must also work. */

#include <string.h>

#include "engine/text/tokenizer.h"
#include "fuzz.h"

#define TEXT "<|im_start|>user\nI'm 12345  caf\xc3\xa9, \xff\xe4\xb8\xad!<|im_end|>\r\n"

static void
use (const VlmTokenizer *tokenizer)
{
  guint pass, i;

  for (pass = 0; pass < 2; pass++) {
    g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (gint32));
    g_autofree gchar *text = NULL;

    vlm_tokenizer_encode (tokenizer, TEXT, strlen (TEXT), pass == 1, ids);
    for (i = 0; i < ids->len; i++) {
      gint32 id = g_array_index (ids, gint32, i);

      g_assert (id >= 0 && (guint) id < vlm_tokenizer_get_size (tokenizer));
      g_assert (pass == 1 || !vlm_tokenizer_is_special (tokenizer, id));
    }
    text = vlm_tokenizer_decode (tokenizer, (const gint32 *) ids->data, ids->len, FALSE);
    g_assert (g_utf8_validate (text, -1, NULL));
  }
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  g_autoptr (GBytes) bytes = g_bytes_new (data, size);
  GError *error = NULL;
  VlmTokenizer *tokenizer = vlm_tokenizer_new_from_json (bytes, "tokenizer.json", &error);

  if (!tokenizer) {
    fuzz_expect_error (error);
    return 0;
  }
  use (tokenizer);
  vlm_tokenizer_unref (tokenizer);
  return 0;
}
