/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A GGUF pair with each bit of its headers flipped in turn. It may say something else then, or be
 * refused; but what is made of it is always text that the readers of such files can parse.
 */

#include <string.h>

#include "engine/formats/gguf-settings.h"
#include "engine/formats/hf.h"
#include "gguf-pair.h"

typedef struct
{
  guint n_closed, n_refused, n_made;
} Counts;

static void
check_tokenizer (GBytes *bytes)
{
  g_autoptr (GError) error = NULL;
  VlmTokenizer *tokenizer = vlm_tokenizer_new_from_json (bytes, "tokenizer.json", &error);

  /* A component that is not implemented would be no fault of the text. */
  if (tokenizer)
    vlm_tokenizer_unref (tokenizer);
  else
    g_assert_cmpint (error->code, ==, VLM_ERROR_UNSUPPORTED);
}

static void
check_json (GBytes *bytes, const gchar *name)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmJsonDocument) root = vlm_json_parse (bytes, name, 0, &error);
  VlmJson json = { name, NULL, root };
  VlmConfig config;

  g_assert_no_error (error);
  if (strcmp (name, VLM_HF_CONFIG) != 0)
    return;
  /* Numbers that do not go together may be refused, each for itself is within its range. */
  if (!vlm_hf_read_config (&json, &config, &error))
    g_assert_nonnull (strstr (error->message, "expected a multiple of")
            ? error->message
            : strstr (error->message, "expected a square number"));
}

/* The files that have to do with both parts come first. */
static void
check_files (const VlmGguf *text, const VlmGguf *mmproj, gboolean vision, Counts *counts)
{
  static const gchar *const names[] = { VLM_HF_CONFIG, VLM_HF_PROCESSOR, VLM_HF_TOKENIZER,
    VLM_HF_TOKENIZER_CONFIG, VLM_HF_CHAT_TEMPLATE, VLM_HF_GENERATION };
  guint n = vision ? 2 : G_N_ELEMENTS (names), i;

  for (i = 0; i < n; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GBytes) bytes = NULL;

    if (!vlm_gguf_has_file (text, mmproj, names[i]))
      continue;
    bytes = vlm_gguf_make_file (text, mmproj, names[i], &error);
    if (!bytes) {
      g_assert_nonnull (strstr (error->message, ".gguf: "));
      counts->n_refused++;
      continue;
    }
    counts->n_made++;
    if (!strcmp (names[i], VLM_HF_TOKENIZER))
      check_tokenizer (bytes);
    else if (strcmp (names[i], VLM_HF_CHAT_TEMPLATE) != 0)
      check_json (bytes, names[i]);
  }
}

/* Flips each bit before the first tensor's data in the file called name. */
static void
flip_all (GgufPair *pair, const gchar *name, gboolean vision)
{
  const VlmGguf *good = vision ? pair->mmproj : pair->text;
  gsize n_bytes = vlm_gguf_get_tensor (good, 0)->offset, length, i;
  g_autofree gchar *path = g_build_filename (pair->directory, name, NULL);
  g_autofree gchar *content = NULL;
  g_autoptr (GError) failure = NULL;
  Counts counts = { 0 };

  g_file_get_contents (path, &content, &length, &failure);
  g_assert_no_error (failure);
  for (i = 0; i < 8 * n_bytes; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (VlmGguf) flipped = NULL;

    content[i / 8] ^= (gchar) (1 << i % 8);
    fixture_write (pair->directory, name, content, length);
    content[i / 8] ^= (gchar) (1 << i % 8);
    flipped = vlm_gguf_open (path, &error);
    if (!flipped)
      counts.n_closed++;
    else if (vision)
      check_files (pair->text, flipped, TRUE, &counts);
    else
      check_files (flipped, pair->mmproj, FALSE, &counts);
  }
  g_test_message ("%s: %u no container, %u settings refused, %u made", name, counts.n_closed,
      counts.n_refused, counts.n_made);
  g_assert_cmpuint (counts.n_closed, >, 100);
  g_assert_cmpuint (counts.n_refused, >, 100);
  g_assert_cmpuint (counts.n_made, >, 100);
}

static void
test_text (void)
{
  GgufPair pair;

  gguf_pair_open (&pair, NULL, NULL, NULL);
  flip_all (&pair, "text.gguf", FALSE);
  gguf_pair_close (&pair);
}

static void
test_vision (void)
{
  GgufPair pair;

  gguf_pair_open (&pair, NULL, NULL, NULL);
  flip_all (&pair, "mmproj.gguf", TRUE);
  gguf_pair_close (&pair);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/gguf-flips/text", test_text);
  g_test_add_func ("/gguf-flips/vision", test_vision);
  return g_test_run ();
}
