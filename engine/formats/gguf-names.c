/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "gguf-names.h"

#include <string.h>

#define TOWER "model.vision_tower."
#define PROJECTOR "model.multi_modal_projector."

/* More digits are no layer's. */
#define MAX_DIGITS 4

typedef struct
{
  const gchar *gguf, *published;
} Name;

static const Name text_names[] = {
  { "token_embd.weight", "embed_tokens.weight" },
  { VLM_GGUF_FINAL_NORM, "embedding_norm.weight" },
  { VLM_GGUF_FINAL_NORM_ALIAS, "embedding_norm.weight" },
};

static const Name text_layer_names[] = {
  { "attn_norm.weight", "operator_norm.weight" },
  { "ffn_norm.weight", "ffn_norm.weight" },
  { "ffn_gate.weight", "feed_forward.w1.weight" },
  { "ffn_up.weight", "feed_forward.w3.weight" },
  { "ffn_down.weight", "feed_forward.w2.weight" },
  { "attn_q.weight", "self_attn.q_proj.weight" },
  { "attn_k.weight", "self_attn.k_proj.weight" },
  { "attn_v.weight", "self_attn.v_proj.weight" },
  { "attn_output.weight", "self_attn.out_proj.weight" },
  { "attn_q_norm.weight", "self_attn.q_layernorm.weight" },
  { "attn_k_norm.weight", "self_attn.k_layernorm.weight" },
  { "shortconv.in_proj.weight", "conv.in_proj.weight" },
  { VLM_GGUF_CONV_KERNEL, "conv.conv.weight" },
  { "shortconv.out_proj.weight", "conv.out_proj.weight" },
};

static const Name vision_names[] = {
  { "v.patch_embd.weight", TOWER "embeddings.patch_embedding.weight" },
  { "v.patch_embd.bias", TOWER "embeddings.patch_embedding.bias" },
  { "v.position_embd.weight", TOWER "embeddings.position_embedding.weight" },
  { "v.post_ln.weight", TOWER "post_layernorm.weight" },
  { "v.post_ln.bias", TOWER "post_layernorm.bias" },
  { "mm.input_norm.weight", PROJECTOR "layer_norm.weight" },
  { "mm.input_norm.bias", PROJECTOR "layer_norm.bias" },
  { "mm.1.weight", PROJECTOR "linear_1.weight" },
  { "mm.1.bias", PROJECTOR "linear_1.bias" },
  { "mm.2.weight", PROJECTOR "linear_2.weight" },
  { "mm.2.bias", PROJECTOR "linear_2.bias" },
};

static const Name vision_layer_names[] = {
  { "attn_q.weight", "self_attn.q_proj.weight" },
  { "attn_q.bias", "self_attn.q_proj.bias" },
  { "attn_k.weight", "self_attn.k_proj.weight" },
  { "attn_k.bias", "self_attn.k_proj.bias" },
  { "attn_v.weight", "self_attn.v_proj.weight" },
  { "attn_v.bias", "self_attn.v_proj.bias" },
  { "attn_out.weight", "self_attn.out_proj.weight" },
  { "attn_out.bias", "self_attn.out_proj.bias" },
  { "ln1.weight", "layer_norm1.weight" },
  { "ln1.bias", "layer_norm1.bias" },
  { "ln2.weight", "layer_norm2.weight" },
  { "ln2.bias", "layer_norm2.bias" },
  { "ffn_up.weight", "mlp.fc1.weight" },
  { "ffn_up.bias", "mlp.fc1.bias" },
  { "ffn_down.weight", "mlp.fc2.weight" },
  { "ffn_down.bias", "mlp.fc2.bias" },
};

static const gchar *
find (const Name *names, gsize n, const gchar *name)
{
  gsize i;

  for (i = 0; i < n; i++) {
    if (!strcmp (names[i].gguf, name))
      return names[i].published;
  }
  return NULL;
}

gint
vlm_gguf_name_layer (const gchar *name, const gchar **rest)
{
  const gchar *digits = name + strlen ("blk."), *at = digits;
  gint layer = 0;

  if (!g_str_has_prefix (name, "blk."))
    return -1;
  for (; g_ascii_isdigit (*at); at++) {
    if (at - digits == MAX_DIGITS)
      return -1;
    layer = 10 * layer + (*at - '0');
  }
  /* One spelling for each number. */
  if (at == digits || *at != '.' || (*digits == '0' && at - digits > 1))
    return -1;
  *rest = at + 1;
  return layer;
}

gchar *
vlm_gguf_name_text (const gchar *name, const gchar *prefix)
{
  const gchar *rest, *found;
  gint layer = vlm_gguf_name_layer (name, &rest);

  if (!strcmp (name, "output.weight"))
    return g_strdup ("lm_head.weight");
  if (layer < 0) {
    found = find (text_names, G_N_ELEMENTS (text_names), name);
    return found ? g_strconcat (prefix, found, NULL) : NULL;
  }
  found = find (text_layer_names, G_N_ELEMENTS (text_layer_names), rest);
  return found ? g_strdup_printf ("%slayers.%d.%s", prefix, layer, found) : NULL;
}

gchar *
vlm_gguf_name_vision (const gchar *name)
{
  const gchar *rest, *found;
  gint layer = g_str_has_prefix (name, "v.") ? vlm_gguf_name_layer (name + 2, &rest) : -1;

  if (layer < 0)
    return g_strdup (find (vision_names, G_N_ELEMENTS (vision_names), name));
  found = find (vision_layer_names, G_N_ELEMENTS (vision_layer_names), rest);
  return found ? g_strdup_printf (TOWER "encoder.layers.%d.%s", layer, found) : NULL;
}
