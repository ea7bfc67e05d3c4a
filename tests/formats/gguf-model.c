/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "gguf-model.h"

#include <string.h>

#include "gguf-tokenizer-fixture.h"
#include "tests/engine/test-text-toy.h"

/* Parts of names; the longest that fits is replaced. */
static const gchar *const replacements[][2] = {
  { "model.language_model.", "" },
  { "model.vision_tower.vision_model.", "v." },
  { "model.multi_modal_projector.layer_norm.", "mm.input_norm." },
  { "model.multi_modal_projector.linear_1.", "mm.1." },
  { "model.multi_modal_projector.linear_2.", "mm.2." },
  { "lm_head.", "output." },
  { "model.", "" },
  { "embed_tokens.", "token_embd." },
  { "embedding_norm.", "token_embd_norm." },
  { "encoder.", "" },
  { "layers.", "blk." },
  { "operator_norm.", "attn_norm." },
  { "feed_forward.w1.", "ffn_gate." },
  { "feed_forward.w2.", "ffn_down." },
  { "feed_forward.w3.", "ffn_up." },
  { "conv.in_proj.", "shortconv.in_proj." },
  { "conv.conv.", "shortconv.conv." },
  { "conv.out_proj.", "shortconv.out_proj." },
  { "self_attn.q_proj.", "attn_q." },
  { "self_attn.k_proj.", "attn_k." },
  { "self_attn.v_proj.", "attn_v." },
  { "self_attn.q_layernorm.", "attn_q_norm." },
  { "self_attn.k_layernorm.", "attn_k_norm." },
  { "embeddings.patch_embedding.", "patch_embd." },
  { "embeddings.position_embedding.", "position_embd." },
  { "layer_norm1.", "ln1." },
  { "layer_norm2.", "ln2." },
  { "mlp.fc1.", "ffn_up." },
  { "mlp.fc2.", "ffn_down." },
  { "post_layernorm.", "post_ln." },
};

gchar *
gguf_model_name (const gchar *name)
{
  g_autoptr (GString) text = g_string_new (NULL);
  gboolean vision = strstr (name, "vision_tower") != NULL;
  gsize i;

  while (*name) {
    for (i = 0; i < G_N_ELEMENTS (replacements); i++) {
      if (g_str_has_prefix (name, replacements[i][0]))
        break;
    }
    if (g_str_has_prefix (name, "self_attn.out_proj.")) {
      g_string_append (text, vision ? "attn_out." : "attn_output.");
      name += strlen ("self_attn.out_proj.");
    } else if (i < G_N_ELEMENTS (replacements)) {
      g_string_append (text, replacements[i][1]);
      name += strlen (replacements[i][0]);
    } else {
      g_string_append_c (text, *name++);
    }
  }
  return g_strdup (text->str);
}

/* Rows of pixels with colours side by side become rows with one colour behind the other. */
static void
separate_colours (GByteArray *bytes, guint64 n_rows, guint side, gsize size)
{
  g_autofree guint8 *from = g_memdup2 (bytes->data, bytes->len);
  gsize area = side * side, row, colour, pixel;
  guint8 *to = bytes->data;

  for (row = 0; row < n_rows; row++) {
    for (colour = 0; colour < 3; colour++) {
      for (pixel = 0; pixel < area; pixel++, to += size)
        memcpy (to, from + ((row * area + pixel) * 3 + colour) * size, size);
    }
  }
}

static void
put_tensor (GgufWriter *writer, const FixtureTensor *tensor)
{
  static const guint types[] = { [VLM_DTYPE_F32] = 0, [VLM_DTYPE_F16] = 1, [VLM_DTYPE_BF16] = 30 };
  g_autofree gchar *name = gguf_model_name (tensor->name);
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  guint64 dims[4];
  guint rank = 0, i;

  fixture_append_values (bytes, tensor);
  if (!strcmp (name, "v.patch_embd.weight")) {
    separate_colours (bytes, tensor->shape[0], 2, vlm_dtype_size (tensor->dtype));
    dims[0] = dims[1] = 2;
    dims[2] = 3;
    dims[3] = tensor->shape[0];
    rank = 4;
  } else {
    for (i = tensor->rank; i-- > 0;) {
      if (tensor->rank != 3 || i != 1)
        dims[rank++] = tensor->shape[i];
    }
  }
  gguf_add_tensor (writer, name, types[tensor->dtype], rank, dims, bytes->data, bytes->len);
}

void
gguf_model_put_tensors (GgufWriter *writer, const FixtureModel *model, gboolean vision)
{
  guint i;

  for (i = 0; i < model->tensors->len; i++) {
    const FixtureTensor *tensor = g_ptr_array_index (model->tensors, i);
    gboolean of_vision =
        strstr (tensor->name, "vision_tower") || strstr (tensor->name, "multi_modal_projector");

    if (!of_vision == !vision)
      put_tensor (writer, tensor);
  }
}

FixtureModel *
gguf_model_new (gboolean has_vision)
{
  static const gchar *const tokens[] = { "<|im_start|>", "<|image_start|>", "<|image_end|>" };
  FixtureModel *model = fixture_model_new (has_vision);
  g_autofree gchar *embedding =
      g_strdup_printf ("model.%sembed_tokens.weight", has_vision ? "language_model." : "");
  gint last = 0;
  gsize i;

  for (i = 0; i < G_N_ELEMENTS (tokens); i++)
    last = toy_add_token (model->tokenizer, tokens[i], TRUE);
  json_object_set_new (fixture_text (model), "vocab_size", json_integer (last + 1));
  fixture_find (model, embedding)->shape[0] = last + 1;
  return model;
}

static void
put_text_keys (GgufWriter *writer, const FixtureModel *model)
{
  static const gint32 kv_heads[] = { 0, 1 };

  gguf_put_string (writer, "general.architecture", "lfm2");
  gguf_put_string (writer, "general.type", "model");
  gguf_put_u32 (writer, "lfm2.block_count", 2);
  gguf_put_u32 (writer, "lfm2.context_length", 128000);
  gguf_put_u32 (writer, "lfm2.embedding_length", 16);
  gguf_put_u32 (writer, "lfm2.feed_forward_length", 16);
  gguf_put_u32 (writer, "lfm2.attention.head_count", 2);
  gguf_put_i32s (writer, "lfm2.attention.head_count_kv", kv_heads, 2);
  gguf_put_f32 (writer, "lfm2.attention.layer_norm_rms_epsilon", 1e-6f);
  gguf_put_f32 (writer, "lfm2.rope.freq_base", 10000);
  gguf_put_u32 (writer, "lfm2.shortconv.l_cache", 3);
  gguf_put_tokenizer (writer, model->tokenizer);
  gguf_put_u32 (writer, "tokenizer.ggml.bos_token_id", model->bos_id);
  gguf_put_u32 (writer, "tokenizer.ggml.eos_token_id", model->im_end_id);
}

GgufWriter *
gguf_model_text (const FixtureModel *model)
{
  GgufWriter *writer = gguf_writer_new ();

  put_text_keys (writer, model);
  gguf_model_put_tensors (writer, model, FALSE);
  return writer;
}

GgufWriter *
gguf_model_vision (const FixtureModel *model)
{
  static const gfloat half[] = { 0.5f, 0.5f, 0.5f };
  GgufWriter *writer = gguf_writer_new ();

  gguf_put_string (writer, "general.architecture", "clip");
  gguf_put_string (writer, "general.type", "mmproj");
  gguf_put_bool (writer, "clip.has_vision_encoder", TRUE);
  gguf_put_string (writer, "clip.projector_type", "lfm2");
  gguf_put_bool (writer, "clip.use_gelu", TRUE);
  gguf_put_u32 (writer, "clip.vision.image_size", 256);
  gguf_put_u32 (writer, "clip.vision.patch_size", 2);
  gguf_put_u32 (writer, "clip.vision.embedding_length", 16);
  gguf_put_u32 (writer, "clip.vision.feed_forward_length", 24);
  gguf_put_u32 (writer, "clip.vision.block_count", 1);
  gguf_put_u32 (writer, "clip.vision.attention.head_count", 2);
  gguf_put_f32 (writer, "clip.vision.attention.layer_norm_epsilon", 1e-6f);
  gguf_put_u32 (writer, "clip.vision.projection_dim", 16);
  gguf_put_f32s (writer, "clip.vision.image_mean", half, 3);
  gguf_put_f32s (writer, "clip.vision.image_std", half, 3);
  gguf_put_u32 (writer, "clip.vision.projector.scale_factor", 2);
  gguf_model_put_tensors (writer, model, TRUE);
  return writer;
}
