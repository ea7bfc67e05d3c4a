/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "gguf-pair.h"

#include <string.h>

#define COLOUR "u32:9 u32:6 u64:3 u32:0x3f000000 u32:0x3e800000 u32:0x3dcccccd" /* .5, .25, .1 */

static const GgufKey text_keys[] = {
  { "general.architecture", STRING ("lfm2") },
  { "lfm2.block_count", U32 (3) },
  { "lfm2.context_length", U32 (4096) },
  { "lfm2.embedding_length", U32 (32) },
  { "lfm2.feed_forward_length", U32 (48) },
  { "lfm2.attention.head_count", U32 (2) },
  { "lfm2.attention.head_count_kv", "u32:9 u32:5 u64:3 u32:0 u32:1 u32:0" },
  { "lfm2.attention.layer_norm_rms_epsilon", F32 (0x3727c5ac) }, /* 1e-5 */
  { "lfm2.rope.freq_base", F32 (0x49742400) },                   /* 1e6 */
  { "lfm2.vocab_size", U32 (8) },
  { "lfm2.shortconv.l_cache", U32 (3) },
  { "tokenizer.ggml.model", STRING ("gpt2") },
  { "tokenizer.ggml.pre", STRING ("lfm2") },
  { "tokenizer.ggml.tokens",
      "u32:9 u32:8 u64:8 s:<|pad|> s:<|startoftext|> s:<|endoftext|> "
      "s:<|im_end|> s:a s:b s:ab s:<image>" },
  { "tokenizer.ggml.token_type",
      "u32:9 u32:5 u64:8 u32:3 u32:3 u32:3 u32:3 u32:1 u32:1 u32:1 u32:3" },
  { "tokenizer.ggml.merges", "u32:9 u32:8 u64:1 u64:3 a u8:32 b" },
  { "tokenizer.ggml.bos_token_id", U32 (1) },
  { "tokenizer.ggml.eos_token_id", U32 (3) },
  { "tokenizer.ggml.eot_token_id", U32 (2) },
  { "tokenizer.ggml.padding_token_id", U32 (0) },
  { "tokenizer.chat_template", STRING ("{{bos_token}}") },
};

static const GgufTensor text_tensors[] = {
  { "token_embd.weight", 2, { 32, 8 } },
  { "blk.0.ffn_gate.weight", 2, { 32, 48 } },
  { "blk.0.shortconv.conv.weight", 2, { 3, 32 } },
  { "blk.2.shortconv.conv.weight", 2, { 3, 32 } },
};

static const GgufKey vision_keys[] = {
  { "general.architecture", STRING ("clip") },
  { "clip.projector_type", STRING ("lfm2") },
  { "clip.has_vision_encoder", BOOL (1) },
  { "clip.use_gelu", BOOL (1) },
  { "clip.vision.image_size", U32 (256) },
  { "clip.vision.patch_size", U32 (4) },
  { "clip.vision.embedding_length", U32 (16) },
  { "clip.vision.feed_forward_length", U32 (24) },
  { "clip.vision.block_count", U32 (2) },
  { "clip.vision.attention.head_count", U32 (2) },
  { "clip.vision.attention.layer_norm_epsilon", F32 (0x358637bd) }, /* 1e-6 */
  { "clip.vision.projection_dim", U32 (32) },
  { "clip.vision.projector.scale_factor", U32 (2) },
  { "clip.vision.image_mean", COLOUR },
  { "clip.vision.image_std", COLOUR },
};

static const GgufTensor vision_tensors[] = {
  { "v.patch_embd.weight", 4, { 4, 4, 3, 16 } },
  { "v.position_embd.weight", 2, { 16, 9 } },
  { "mm.1.weight", 2, { 64, 40 } },
  { "mm.1.bias", 1, { 40 } },
};

static void
put_key (GgufWriter *writer, const GgufKey *key)
{
  if (key->recipe)
    gguf_put_raw (writer, key->key, key->recipe);
}

static void
put_tensor (GgufWriter *writer, const GgufTensor *tensor)
{
  g_autofree gchar *zeros = NULL;
  gsize n_bytes = sizeof (gfloat);
  guint i;

  if (!tensor->rank)
    return;
  for (i = 0; i < tensor->rank; i++)
    n_bytes *= tensor->dims[i];
  zeros = g_malloc0 (n_bytes);
  gguf_add_tensor (writer, tensor->name, 0, tensor->rank, tensor->dims, zeros, n_bytes);
}

/* The keys with changes, a list that ends with NULL, made to them; what is new comes last. */
static void
put_keys (GgufWriter *writer, const GgufKey *keys, guint n, const GgufKey *changes)
{
  static const GgufKey none[] = { NO_MORE_KEYS };
  const GgufKey *change;
  guint i;

  changes = changes ? changes : none;
  for (i = 0; i < n; i++) {
    for (change = changes; change->key && strcmp (change->key, keys[i].key) != 0; change++)
      ;
    if (!change->key)
      put_key (writer, &keys[i]);
  }
  for (change = changes; change->key; change++)
    put_key (writer, change);
}

/* The same for tensors; only those that belong into this file. */
static void
put_tensors (GgufWriter *writer, const GgufTensor *tensors, guint n, const GgufTensor *changes,
    gboolean vision)
{
  static const GgufTensor none[] = { NO_MORE_TENSORS };
  const GgufTensor *change;
  guint i;

  changes = changes ? changes : none;
  for (i = 0; i < n; i++) {
    for (change = changes; change->name && strcmp (change->name, tensors[i].name) != 0; change++)
      ;
    if (!change->name)
      put_tensor (writer, &tensors[i]);
  }
  for (change = changes; change->name; change++) {
    if (vision == (g_str_has_prefix (change->name, "v.") || g_str_has_prefix (change->name, "mm.")))
      put_tensor (writer, change);
  }
}

static VlmGguf *
save (GgufWriter *writer, const gchar *directory, const gchar *name)
{
  g_autofree gchar *path = g_build_filename (directory, name, NULL);
  g_autoptr (GError) error = NULL;
  VlmGguf *gguf;

  gguf_writer_save (writer, directory, name);
  gguf_writer_free (writer);
  gguf = vlm_gguf_open (path, &error);
  g_assert_no_error (error);
  return gguf;
}

/* Any of the changes may be NULL. */
void
gguf_pair_open (
    GgufPair *pair, const GgufKey *text, const GgufKey *vision, const GgufTensor *tensors)
{
  GgufWriter *writer = gguf_writer_new ();

  pair->directory = fixture_directory_new ();
  put_keys (writer, text_keys, G_N_ELEMENTS (text_keys), text);
  put_tensors (writer, text_tensors, G_N_ELEMENTS (text_tensors), tensors, FALSE);
  pair->text = save (writer, pair->directory, "text.gguf");
  writer = gguf_writer_new ();
  put_keys (writer, vision_keys, G_N_ELEMENTS (vision_keys), vision);
  put_tensors (writer, vision_tensors, G_N_ELEMENTS (vision_tensors), tensors, TRUE);
  pair->mmproj = save (writer, pair->directory, "mmproj.gguf");
}

void
gguf_pair_close (GgufPair *pair)
{
  vlm_gguf_unref (pair->text);
  vlm_gguf_unref (pair->mmproj);
  fixture_directory_remove (pair->directory);
}
