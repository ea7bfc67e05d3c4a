/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "synth-private.h"

#include <errno.h>
#include <string.h>

#define BIT(n) (1u << (n))
#define ATTENTION_OF_30                                                                            \
  (BIT (2) | BIT (5) | BIT (9) | BIT (13) | BIT (17) | BIT (21) | BIT (24) | BIT (27))
#define ATTENTION_OF_16 (BIT (2) | BIT (5) | BIT (8) | BIT (10) | BIT (12) | BIT (14))

static const SynthPreset presets[] = {
  { .name = "lfm2.5-vl-450m",
      .vocab = 65536,
      .hidden = 1024,
      .n_layers = 16,
      .n_heads = 16,
      .n_kv_heads = 8,
      .ff_config = 6656,
      .ff_rows = 4608,
      .attention_layers = ATTENTION_OF_16,
      .vision_hidden = 768,
      .vision_ff = 3072,
      .n_vision_layers = 12,
      .n_vision_heads = 12,
      .projector_hidden = 2048,
      .projector_norm = FALSE,
      .resample = 2 },
  { .name = "lfm2-vl-450m",
      .vocab = 65536,
      .hidden = 1024,
      .n_layers = 16,
      .n_heads = 16,
      .n_kv_heads = 8,
      .ff_config = 6656,
      .ff_rows = 4608,
      .attention_layers = ATTENTION_OF_16,
      .vision_hidden = 768,
      .vision_ff = 3072,
      .n_vision_layers = 12,
      .n_vision_heads = 12,
      .projector_hidden = 2560,
      .projector_norm = TRUE,
      .resample = 3 },
  { .name = "lfm2.5-vl-1.6b",
      .vocab = 65536,
      .hidden = 2048,
      .n_layers = 16,
      .n_heads = 32,
      .n_kv_heads = 8,
      .ff_config = 12288,
      .ff_rows = 8192,
      .attention_layers = ATTENTION_OF_16,
      .vision_hidden = 1152,
      .vision_ff = 4304,
      .n_vision_layers = 27,
      .n_vision_heads = 16,
      .projector_hidden = 2048,
      .projector_norm = FALSE,
      .resample = 2 },
  { .name = "lfm2-vl-1.6b",
      .vocab = 65536,
      .hidden = 2048,
      .n_layers = 16,
      .n_heads = 32,
      .n_kv_heads = 8,
      .ff_config = 12288,
      .ff_rows = 8192,
      .attention_layers = ATTENTION_OF_16,
      .vision_hidden = 1152,
      .vision_ff = 4304,
      .n_vision_layers = 27,
      .n_vision_heads = 16,
      .projector_hidden = 2560,
      .projector_norm = TRUE,
      .resample = 3 },
  { .name = "lfm2-vl-3b",
      .vocab = 65536,
      .hidden = 2048,
      .n_layers = 30,
      .n_heads = 32,
      .n_kv_heads = 8,
      .ff_config = 10752,
      .ff_rows = 10752,
      .attention_layers = ATTENTION_OF_30,
      .vision_hidden = 1152,
      .vision_ff = 4304,
      .n_vision_layers = 27,
      .n_vision_heads = 16,
      .projector_hidden = 2048,
      .projector_norm = TRUE,
      .resample = 3 },
  { .name = "lfm2-350m",
      .vocab = 65536,
      .hidden = 1024,
      .n_layers = 16,
      .n_heads = 16,
      .n_kv_heads = 8,
      .ff_config = 6656,
      .ff_rows = 4608,
      .attention_layers = ATTENTION_OF_16 },
  /* No published shape: small enough for tests. */
  { .name = "tiny",
      .vocab = 2048,
      .hidden = 128,
      .n_layers = 4,
      .n_heads = 2,
      .n_kv_heads = 1,
      .ff_config = 384,
      .ff_rows = 256,
      .attention_layers = BIT (1) | BIT (3),
      .vision_hidden = 128,
      .vision_ff = 256,
      .n_vision_layers = 2,
      .n_vision_heads = 2,
      .projector_hidden = 192,
      .projector_norm = TRUE,
      .resample = 3 },
  /* Nor has this: deep and wide enough to judge what rounding does to a model. */
  { .name = "small",
      .vocab = 2048,
      .hidden = 512,
      .n_layers = 6,
      .n_heads = 8,
      .n_kv_heads = 4,
      .ff_config = 1920,
      .ff_rows = 1280,
      .attention_layers = BIT (2) | BIT (5),
      .vision_hidden = 256,
      .vision_ff = 1024,
      .n_vision_layers = 6,
      .n_vision_heads = 4,
      .projector_hidden = 512,
      .projector_norm = FALSE,
      .resample = 2 },
};

gchar *
synth_preset_names (void)
{
  GString *names = g_string_new (NULL);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (presets); i++)
    g_string_append_printf (names, i == 0 ? "%s" : ", %s", presets[i].name);
  return g_string_free (names, FALSE);
}

gboolean
synth_put_file (const gchar *folder, const gchar *name, const GString *text, GError **error)
{
  g_autofree gchar *path = g_build_filename (folder, name, NULL);

  return g_file_set_contents (path, text->str, text->len, error);
}

gboolean
synth_write (
    const gchar *preset, gint64 seed, guint n_outliers, const gchar *folder, GError **error)
{
  g_autofree gchar *names = NULL;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (presets); i++) {
    if (strcmp (presets[i].name, preset) == 0)
      break;
  }
  if (i == G_N_ELEMENTS (presets)) {
    names = synth_preset_names ();
    g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "there is no preset %s, only %s",
        preset, names);
    return FALSE;
  }
  if (g_mkdir_with_parents (folder, 0777) != 0) {
    gint code = errno;

    g_set_error (
        error, G_FILE_ERROR, g_file_error_from_errno (code), "%s: %s", folder, g_strerror (code));
    return FALSE;
  }
  return synth_write_settings (&presets[i], folder, error)
      && synth_write_tokenizer (&presets[i], folder, error)
      && synth_write_weights (&presets[i], (guint64) seed, n_outliers, folder, error);
}
