/* SPDX-License-Identifier: LGPL-2.1-or-later */

#ifndef TOOLS_SYNTH_PRIVATE_H
#define TOOLS_SYNTH_PRIVATE_H

#include "synth.h"

/* What a published checkpoint looks like. */
typedef struct
{
  const gchar *name;
  guint vocab, hidden, n_layers, n_heads, n_kv_heads;
  guint ff_config, ff_rows; /* as the config says it, and as the tensors have it */
  guint32 attention_layers; /* bit n: layer n is attention, else short convolution */
  /* The rest is zero in a text-only model. */
  guint vision_hidden, vision_ff, n_vision_layers, n_vision_heads;
  guint projector_hidden;
  gboolean projector_norm;
  guint resample;
} SynthPreset;

#define SYNTH_CONV_TAPS 3
#define SYNTH_PATCH 16
#define SYNTH_POSITIONS 256
#define SYNTH_DOWNSAMPLE 2

/* Ids that every LFM2 vocabulary of 65536 entries has. */
#define SYNTH_BOS 1
#define SYNTH_EOS 7
#define SYNTH_PAD 0
#define SYNTH_IMAGE 396

/* Writes text to a file of the folder. */
gboolean synth_put_file (
    const gchar *folder, const gchar *name, const GString *text, GError **error);

/* config.json, the processor's files, generation_config.json, tokenizer_config.json, template. */
gboolean synth_write_settings (const SynthPreset *preset, const gchar *folder, GError **error);

/* tokenizer.json */
gboolean synth_write_tokenizer (const SynthPreset *preset, const gchar *folder, GError **error);

/* model.safetensors */
gboolean synth_write_weights (
    const SynthPreset *preset, guint64 seed, guint n_outliers, const gchar *folder, GError **error);

#endif
