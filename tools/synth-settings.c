/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The small files of a synthetic checkpoint. */

#include "synth-private.h"

#define CHAT_TEMPLATE                                                                              \
  "{{- bos_token -}}\n"                                                                            \
  "{%- for message in messages -%}\n"                                                              \
  "{{- \"<|im_start|>\" + message[\"role\"] + \"\\n\" -}}\n"                                       \
  "{%- if message[\"content\"] is string -%}\n"                                                    \
  "{{- message[\"content\"] -}}\n"                                                                 \
  "{%- else -%}\n"                                                                                 \
  "{%- for part in message[\"content\"] -%}\n"                                                     \
  "{{- \"<image>\" if part[\"type\"] == \"image\" else part[\"text\"] -}}\n"                       \
  "{%- endfor -%}\n"                                                                               \
  "{%- endif -%}\n"                                                                                \
  "{{- \"<|im_end|>\\n\" -}}\n"                                                                    \
  "{%- endfor -%}\n"                                                                               \
  "{%- if add_generation_prompt -%}\n"                                                             \
  "{{- \"<|im_start|>assistant\\n\" -}}\n"                                                         \
  "{%- endif -%}\n"

#define GENERATION_CONFIG                                                                          \
  "{\n"                                                                                            \
  "  \"_from_model_config\": true,\n"                                                              \
  "  \"bos_token_id\": 1,\n"                                                                       \
  "  \"eos_token_id\": 7,\n"                                                                       \
  "  \"pad_token_id\": 0\n"                                                                        \
  "}\n"

static void
append_text_config (GString *json, const SynthPreset *preset, const gchar *indent)
{
  guint i;

  g_string_append_printf (json,
      "%s\"block_auto_adjust_ff_dim\": %s,\n"
      "%s\"block_ff_dim\": %u,\n"
      "%s\"block_ffn_dim_multiplier\": 1.0,\n"
      "%s\"block_multiple_of\": 256,\n"
      "%s\"conv_L_cache\": %d,\n"
      "%s\"conv_bias\": false,\n"
      "%s\"eos_token_id\": %d,\n"
      "%s\"hidden_size\": %u,\n"
      "%s\"intermediate_size\": %u,\n",
      indent, preset->ff_rows == preset->ff_config ? "false" : "true", indent, preset->ff_config,
      indent, indent, indent, SYNTH_CONV_TAPS, indent, indent, SYNTH_EOS, indent, preset->hidden,
      indent, preset->ff_config);
  g_string_append_printf (json, "%s\"layer_types\": [", indent);
  for (i = 0; i < preset->n_layers; i++)
    g_string_append_printf (json, "%s\"%s\"", i == 0 ? "" : ", ",
        (preset->attention_layers >> i & 1) != 0 ? "full_attention" : "conv");
  g_string_append_printf (json,
      "],\n"
      "%s\"max_position_embeddings\": 128000,\n"
      "%s\"model_type\": \"lfm2\",\n"
      "%s\"norm_eps\": 1e-05,\n"
      "%s\"num_attention_heads\": %u,\n"
      "%s\"num_hidden_layers\": %u,\n"
      "%s\"num_key_value_heads\": %u,\n"
      "%s\"rope_theta\": 1000000.0,\n"
      "%s\"vocab_size\": %u",
      indent, indent, indent, indent, preset->n_heads, indent, preset->n_layers, indent,
      preset->n_kv_heads, indent, indent, preset->vocab);
}

static void
append_vision_config (GString *json, const SynthPreset *preset)
{
  g_string_append_printf (json,
      "  \"vision_config\": {\n"
      "    \"hidden_act\": \"gelu_pytorch_tanh\",\n"
      "    \"hidden_size\": %u,\n"
      "    \"intermediate_size\": %u,\n"
      "    \"layer_norm_eps\": 1e-06,\n"
      "    \"model_type\": \"siglip2_vision_model\",\n"
      "    \"num_attention_heads\": %u,\n"
      "    \"num_channels\": 3,\n"
      "    \"num_hidden_layers\": %u,\n"
      "    \"num_patches\": %d,\n"
      "    \"patch_size\": %d,\n"
      "    \"vision_use_head\": false\n"
      "  }\n",
      preset->vision_hidden, preset->vision_ff, preset->n_vision_heads, preset->n_vision_layers,
      SYNTH_POSITIONS, SYNTH_PATCH);
}

/* (transfer full) */
static GString *
make_config (const SynthPreset *preset)
{
  GString *json = g_string_new ("{\n");

  if (preset->n_vision_layers == 0) {
    g_string_append (json,
        "  \"architectures\": [\"Lfm2ForCausalLM\"],\n"
        "  \"bos_token_id\": 1,\n  \"pad_token_id\": 0,\n"
        "  \"dtype\": \"bfloat16\",\n  \"tie_word_embeddings\": true,\n");
    append_text_config (json, preset, "  ");
    g_string_append (json, "\n}\n");
    return json;
  }
  g_string_append_printf (json,
      "  \"architectures\": [\"Lfm2VlForConditionalGeneration\"],\n"
      "  \"downsample_factor\": %d,\n"
      "  \"dtype\": \"bfloat16\",\n"
      "  \"image_token_id\": %d,\n"
      "  \"model_type\": \"lfm2_vl\",\n"
      "  \"projector_bias\": true,\n"
      "  \"projector_hidden_act\": \"gelu\",\n"
      "  \"projector_hidden_size\": %u,\n"
      "  \"projector_use_layernorm\": %s,\n"
      "  \"tie_word_embeddings\": true,\n"
      "  \"text_config\": {\n",
      SYNTH_DOWNSAMPLE, SYNTH_IMAGE, preset->projector_hidden,
      preset->projector_norm ? "true" : "false");
  append_text_config (json, preset, "    ");
  g_string_append (json, "\n  },\n");
  append_vision_config (json, preset);
  g_string_append (json, "}\n");
  return json;
}

static void
append_image_settings (GString *json, const SynthPreset *preset, const gchar *indent)
{
  static const gchar *const fixed[] = {
    "\"do_image_splitting\": true",
    "\"do_normalize\": true",
    "\"do_pad\": true",
    "\"do_rescale\": true",
    "\"do_resize\": true",
    "\"downsample_factor\": 2",
    "\"encoder_patch_size\": 16",
    "\"image_mean\": [0.5, 0.5, 0.5]",
    "\"image_processor_type\": \"Lfm2VlImageProcessorFast\"",
    "\"image_std\": [0.5, 0.5, 0.5]",
    "\"max_image_tokens\": 256",
    "\"max_num_patches\": 1024",
    "\"max_pixels_tolerance\": 2.0",
    "\"max_tiles\": 10",
    "\"min_image_tokens\": 64",
    "\"min_tiles\": 2",
    "\"rescale_factor\": 0.00392156862745098",
    "\"return_row_col_info\": true",
    "\"size\": {\"height\": 512, \"width\": 512}",
    "\"tile_size\": 512",
    "\"use_thumbnail\": true",
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (fixed); i++)
    g_string_append_printf (json, "%s%s,\n", indent, fixed[i]);
  g_string_append_printf (json, "%s\"resample\": %u", indent, preset->resample);
}

/* transformers 5 reads the nested file, transformers 4 the flat one. */
static gboolean
write_processor (const SynthPreset *preset, const gchar *folder, GError **error)
{
  g_autoptr (GString) nested = g_string_new ("{\n  \"image_processor\": {\n");
  g_autoptr (GString) flat = g_string_new ("{\n");

  append_image_settings (nested, preset, "    ");
  g_string_append (nested,
      "\n  },\n  \"processor_class\": \"Lfm2VlProcessor\",\n"
      "  \"use_image_special_tokens\": true\n}\n");
  append_image_settings (flat, preset, "  ");
  g_string_append (flat, ",\n  \"processor_class\": \"Lfm2VlProcessor\"\n}\n");
  return synth_put_file (folder, "processor_config.json", nested, error)
      && synth_put_file (folder, "preprocessor_config.json", flat, error);
}

/* (transfer full) */
static GString *
make_tokenizer_config (const SynthPreset *preset)
{
  GString *json = g_string_new ("{\n"
                                "  \"bos_token\": \"<|startoftext|>\",\n"
                                "  \"clean_up_tokenization_spaces\": true,\n"
                                "  \"eos_token\": \"<|im_end|>\",\n");

  if (preset->n_vision_layers > 0)
    g_string_append (json,
        "  \"image_end_token\": \"<|image_end|>\",\n"
        "  \"image_start_token\": \"<|image_start|>\",\n"
        "  \"image_thumbnail\": \"<|img_thumbnail|>\",\n"
        "  \"image_token\": \"<image>\",\n"
        "  \"processor_class\": \"Lfm2VlProcessor\",\n");
  g_string_append (json,
      "  \"legacy\": false,\n"
      "  \"model_max_length\": 128000,\n"
      "  \"pad_token\": \"<|pad|>\",\n"
      "  \"tokenizer_class\": \"PreTrainedTokenizerFast\"\n"
      "}\n");
  return json;
}

gboolean
synth_write_settings (const SynthPreset *preset, const gchar *folder, GError **error)
{
  g_autoptr (GString) config = make_config (preset);
  g_autoptr (GString) tokenizer_config = make_tokenizer_config (preset);
  g_autoptr (GString) generation = g_string_new (GENERATION_CONFIG);
  g_autoptr (GString) chat = g_string_new (CHAT_TEMPLATE);

  return synth_put_file (folder, "config.json", config, error)
      && synth_put_file (folder, "tokenizer_config.json", tokenizer_config, error)
      && synth_put_file (folder, "generation_config.json", generation, error)
      && synth_put_file (folder, "chat_template.jinja", chat, error)
      && (preset->n_vision_layers == 0 || write_processor (preset, folder, error));
}
