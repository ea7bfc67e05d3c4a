/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a GGUF pair says of itself, as the files of a directory. Each is made, written into a real
 * directory and read by the readers of such directories.
 */

#include <string.h>

#include "engine/formats/gguf-settings.h"
#include "engine/formats/hf.h"
#include "gguf-pair.h"

/* Everything that readers get to see of a pair. */
typedef struct
{
  VlmConfig config;
  VlmProcessor processor;
  VlmGeneration generation;
} Seen;

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmTokenizer, vlm_tokenizer_unref)

/* All files of the model go into directory. */
static void
write_files (const GgufPair *pair, gboolean vision, const gchar *directory)
{
  static const gchar *const names[] = { VLM_HF_CONFIG, VLM_HF_TOKENIZER, VLM_HF_TOKENIZER_CONFIG,
    VLM_HF_CHAT_TEMPLATE, VLM_HF_GENERATION, VLM_HF_PROCESSOR, VLM_HF_PREPROCESSOR };
  const VlmGguf *mmproj = vision ? pair->mmproj : NULL;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GBytes) bytes = NULL;
    gconstpointer data;
    gsize size;

    if (!vlm_gguf_has_file (pair->text, mmproj, names[i]))
      continue;
    bytes = vlm_gguf_make_file (pair->text, mmproj, names[i], &error);
    g_assert_no_error (error);
    data = g_bytes_get_data (bytes, &size);
    g_assert_cmpint (((const gchar *) data)[size], ==, '\0');
    fixture_write (directory, names[i], data, size);
  }
}

static void
read_files (Seen *seen, const gchar *directory)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (VlmModelFiles) files = vlm_model_files_open (directory, NULL, &error);
  g_autoptr (VlmTokenizer) tokenizer = NULL;
  g_autoptr (VlmJsonDocument) root = NULL;
  g_autofree gchar *file = NULL;
  VlmJson json;

  g_assert_no_error (error);
  root = vlm_json_load (files, VLM_HF_CONFIG, VLM_HF_MAX_SETTINGS, 0, &file, &error);
  g_assert_no_error (error);
  json = (VlmJson){ file, NULL, root };
  vlm_hf_read_config (&json, &seen->config, &error);
  g_assert_no_error (error);
  tokenizer = vlm_tokenizer_load (directory, &error);
  g_assert_no_error (error);
  vlm_hf_read_processor (files, &seen->processor, &error);
  g_assert_no_error (error);
  vlm_hf_read_generation (
      files, &json, tokenizer, seen->config.text.vocab_size, &seen->generation, &error);
  g_assert_no_error (error);
}

static void
seen_read (Seen *seen, const GgufPair *pair, gboolean vision)
{
  gchar *directory = fixture_directory_new ();

  write_files (pair, vision, directory);
  read_files (seen, directory);
  fixture_directory_remove (directory);
}

/* Opens a pair with these changes, reads all of it and closes it. */
static void
see (Seen *seen, const GgufKey *text, const GgufKey *vision, const GgufTensor *tensors)
{
  GgufPair pair;

  gguf_pair_open (&pair, text, vision, tensors);
  seen_read (seen, &pair, TRUE);
  gguf_pair_close (&pair);
}

static void
test_text (void)
{
  const VlmTextConfig *text;
  Seen seen;
  GgufPair pair;

  gguf_pair_open (&pair, NULL, NULL, NULL);
  seen_read (&seen, &pair, FALSE);
  text = &seen.config.text;
  g_assert_false (seen.config.has_vision);
  g_assert_cmpuint (text->vocab_size, ==, 8);
  g_assert_cmpuint (text->hidden_size, ==, 32);
  g_assert_cmpuint (text->n_layers, ==, 3);
  g_assert_cmpuint (text->n_heads, ==, 2);
  g_assert_cmpuint (text->n_kv_heads, ==, 1);
  g_assert_cmpuint (text->head_dim, ==, 16);
  g_assert_cmpuint (text->ff_size, ==, 48);
  g_assert_cmpuint (text->conv_taps, ==, 3);
  g_assert_false (text->conv_bias);
  g_assert_cmpuint (text->max_context, ==, 4096);
  g_assert_true (text->norm_eps == 1e-5f);
  g_assert_true (text->rope_theta == 1e6);
  g_assert_true (text->tied_head);
  g_assert_cmpint (text->layers[0], ==, VLM_LAYER_CONV);
  g_assert_cmpint (text->layers[1], ==, VLM_LAYER_ATTENTION);
  g_assert_cmpint (text->layers[2], ==, VLM_LAYER_CONV);
  g_assert_false (vlm_gguf_has_file (pair.text, NULL, VLM_HF_PROCESSOR));
  gguf_pair_close (&pair);
}

static void
test_vision (void)
{
  const VlmVisionConfig *vision;
  Seen seen;
  guint i;

  see (&seen, NULL, NULL, NULL);
  vision = &seen.config.vision;
  g_assert_true (seen.config.has_vision);
  g_assert_cmpuint (seen.config.text.hidden_size, ==, 32);
  g_assert_true (seen.config.text.tied_head);
  g_assert_cmpint (seen.config.image_token_id, ==, 7);
  g_assert_cmpuint (vision->hidden_size, ==, 16);
  g_assert_cmpuint (vision->ff_size, ==, 24);
  g_assert_cmpuint (vision->n_layers, ==, 2);
  g_assert_cmpuint (vision->n_heads, ==, 2);
  g_assert_cmpuint (vision->patch_size, ==, 4);
  g_assert_cmpuint (vision->n_positions, ==, 9);
  g_assert_true (vision->norm_eps == 1e-6f);
  g_assert_cmpuint (seen.config.projector.hidden_size, ==, 40);
  g_assert_cmpuint (seen.config.projector.downsample_factor, ==, 2);
  g_assert_true (seen.config.projector.bias);
  g_assert_false (seen.config.projector.layer_norm);
  for (i = 0; i < 3; i++) {
    static const gfloat colours[] = { 0.5f, 0.25f, 0.1f };

    g_assert_true (seen.processor.mean[i] == colours[i]);
    g_assert_true (seen.processor.std[i] == colours[i]);
  }
}

/* What the pair does not say is as the reference has it for these models. */
static void
test_processor (void)
{
  static const GgufTensor norm[] = { { "mm.input_norm.weight", 1, { 64 } }, NO_MORE_TENSORS };
  static const GgufKey tiles[] = { { "clip.vision.preproc_min_tiles", U32 (1) },
    { "clip.vision.preproc_max_tiles", U32 (4) }, NO_MORE_KEYS };
  VlmProcessor defaults;
  Seen seen;

  vlm_processor_init_defaults (&defaults);
  see (&seen, NULL, NULL, NULL);
  g_assert_cmpuint (seen.processor.patch_size, ==, 4);
  g_assert_cmpuint (seen.processor.downsample_factor, ==, 2);
  g_assert_cmpuint (seen.processor.tile_size, ==, 512);
  g_assert_cmpuint (seen.processor.min_tiles, ==, 2);
  g_assert_cmpuint (seen.processor.max_tiles, ==, 10);
  g_assert_cmpuint (seen.processor.min_image_tokens, ==, 64);
  g_assert_cmpuint (seen.processor.max_image_tokens, ==, 256);
  g_assert_true (seen.processor.max_pixels_tolerance == 2.0);
  g_assert_true (seen.processor.rescale_factor == defaults.rescale_factor);
  g_assert_true (seen.processor.do_image_splitting && seen.processor.use_thumbnail
      && seen.processor.use_image_special_tokens);
  g_assert_cmpint (seen.processor.filter, ==, VLM_FILTER_BILINEAR);

  see (&seen, NULL, NULL, norm);
  g_assert_true (seen.config.projector.layer_norm);
  g_assert_cmpint (seen.processor.filter, ==, VLM_FILTER_BICUBIC);
  see (&seen, NULL, tiles, NULL);
  g_assert_cmpuint (seen.processor.min_tiles, ==, 1);
  g_assert_cmpuint (seen.processor.max_tiles, ==, 4);
}

/* The model of 3B is known by its shape: it has no norm, and is bicubic nevertheless. */
static void
test_processor_3b (void)
{
  static const GgufKey text[] = { { "lfm2.block_count", U32 (30) },
    { "lfm2.embedding_length", U32 (2048) }, { "lfm2.attention.head_count", U32 (32) },
    { "lfm2.attention.head_count_kv", U32 (8) }, NO_MORE_KEYS };
  static const GgufKey vision[] = { { "clip.vision.projection_dim", U32 (2048) }, NO_MORE_KEYS };
  static const GgufKey told[] = { { "clip.vision.projection_dim", U32 (2048) },
    { "clip.vision.preproc_min_tiles", U32 (3) }, NO_MORE_KEYS };
  static const GgufTensor tensors[] = { { "token_embd.weight", 2, { 2048, 8 } },
    { "blk.0.shortconv.conv.weight", 0, { 0 } }, { "blk.2.shortconv.conv.weight", 0, { 0 } },
    NO_MORE_TENSORS };
  static const GgufTensor first[] = { { "token_embd.weight", 2, { 2048, 8 } },
    { "blk.0.shortconv.conv.weight", 0, { 0 } }, { "blk.2.shortconv.conv.weight", 0, { 0 } },
    { "mm.input_norm.weight", 1, { 64 } }, NO_MORE_TENSORS };
  Seen seen;
  guint i;

  /* The first one of that size has a norm, and the tiles of all others. */
  see (&seen, text, vision, first);
  g_assert_cmpint (seen.processor.filter, ==, VLM_FILTER_BICUBIC);
  g_assert_cmpuint (seen.processor.min_tiles, ==, 2);
  see (&seen, text, told, tensors);
  g_assert_cmpuint (seen.processor.min_tiles, ==, 3);
  see (&seen, text, vision, tensors);
  g_assert_cmpint (seen.processor.filter, ==, VLM_FILTER_BICUBIC);
  g_assert_cmpuint (seen.processor.min_tiles, ==, 1);
  g_assert_cmpuint (seen.processor.max_tiles, ==, 10);
  /* One number of key and value heads stands for attention everywhere. */
  g_assert_cmpuint (seen.config.text.n_kv_heads, ==, 8);
  for (i = 0; i < 30; i++)
    g_assert_cmpint (seen.config.text.layers[i], ==, VLM_LAYER_ATTENTION);
}

/* Other ways to say what the usual files say. */
static void
test_variants (void)
{
  static const GgufKey text[] = { { "lfm2.vocab_size", NULL }, { "lfm2.feed_forward_length", NULL },
    { "lfm2.attention.key_length", U32 (24) }, { "lfm2.attention.value_length", U32 (24) },
    { "lfm2.rope.dimension_count", U32 (24) }, { "lfm2.rope.scaling.type", STRING ("none") },
    { "lfm2.attention.sliding_window", U32 (0) }, { "lfm2.attention.causal", BOOL (1) },
    { "lfm2.embedding_length_out", U32 (32) }, { "lfm2.block_count", "u32:10 u64:3" },
    { "lfm2.attention.layer_norm_rms_epsilon", "u32:12 u64:0x3ee4f8b588e368f1" }, /* 1e-5 */
    NO_MORE_KEYS };
  static const GgufKey vision[] = { { "clip.projector_type", NULL },
    { "clip.vision.projector_type", STRING ("lfm2") }, { "clip.has_vision_encoder", NULL },
    { "clip.vision.projector.scale_factor", NULL }, NO_MORE_KEYS };
  static const GgufTensor tensors[] = { { "output.weight", 2, { 32, 8 } },
    { "mm.1.bias", 0, { 0 } }, NO_MORE_TENSORS };
  Seen seen;

  see (&seen, text, vision, tensors);
  g_assert_cmpuint (seen.config.text.vocab_size, ==, 8);
  g_assert_cmpuint (seen.config.text.ff_size, ==, 48);
  g_assert_cmpuint (seen.config.text.head_dim, ==, 24);
  g_assert_cmpuint (seen.config.text.n_layers, ==, 3);
  g_assert_true (seen.config.text.norm_eps == 1e-5f);
  g_assert_false (seen.config.text.tied_head);
  g_assert_cmpuint (seen.config.projector.downsample_factor, ==, 2);
  g_assert_false (seen.config.projector.bias);
}

/* A width that is stated 1.5 times too large: the tensors count, and a note says so. */
static void
test_feed_forward (void)
{
  static const GgufKey text[] = { { "lfm2.feed_forward_length", U32 (72) }, NO_MORE_KEYS };
  Seen seen;

  if (g_test_subprocess ()) {
    g_setenv ("G_MESSAGES_DEBUG", "all", TRUE);
    see (&seen, text, NULL, NULL);
    g_assert_cmpuint (seen.config.text.ff_size, ==, 48);
    return;
  }
  g_test_trap_subprocess (NULL, 0, 0);
  g_test_trap_assert_passed ();
  g_test_trap_assert_stdout ("*lfm2.feed_forward_length is 72, but blk.0.ffn_gate.weight has 48*");
}

static void
test_generation (void)
{
  static const GgufKey sampling[] = { { "general.sampling.temp", F32 (0x3dcccccd) }, /* 0.1 */
    { "general.sampling.top_k", "u32:5 u32:50" },
    { "general.sampling.top_p", F32 (0x3f666666) },          /* 0.9 */
    { "general.sampling.min_p", F32 (0x3e19999a) },          /* 0.15 */
    { "general.sampling.penalty_repeat", F32 (0x3f866666) }, /* 1.05 */
    NO_MORE_KEYS };
  static const GgufKey cold[] = { { "general.sampling.temp", F32 (0) }, NO_MORE_KEYS };
  /* 0, and what is written for it elsewhere. */
  static const gchar *const off[] = { "u32:5 u32:0", "u32:5 u32:-1", "u32:1 u8:-1", "u32:3 u16:-40",
    "u32:11 u64:-1" };
  Seen seen;
  guint i;

  see (&seen, NULL, NULL, NULL);
  g_assert_cmpint (seen.generation.bos_id, ==, 1);
  g_assert_cmpint (seen.generation.pad_id, ==, 0);
  /* 2, the "end of turn" of these files, is <|endoftext|>: no end. */
  g_assert_cmpuint (seen.generation.n_eos, ==, 1);
  g_assert_cmpint (seen.generation.eos_ids[0], ==, 3);
  g_assert_false (seen.generation.do_sample);
  g_assert_true (seen.generation.temperature != seen.generation.temperature);
  g_assert_cmpint (seen.generation.top_k, ==, -1);

  see (&seen, sampling, NULL, NULL);
  g_assert_true (seen.generation.do_sample);
  g_assert_true (seen.generation.temperature == 0.1);
  g_assert_cmpint (seen.generation.top_k, ==, 50);
  g_assert_true (seen.generation.top_p == 0.9);
  g_assert_true (seen.generation.min_p == 0.15);
  g_assert_true (seen.generation.repetition_penalty == 1.05);
  see (&seen, cold, NULL, NULL);
  g_assert_false (seen.generation.do_sample);
  g_assert_true (seen.generation.temperature == 0);
  for (i = 0; i < G_N_ELEMENTS (off); i++) {
    const GgufKey some[] = { { "general.sampling.top_k", off[i] }, NO_MORE_KEYS };

    see (&seen, some, NULL, NULL);
    g_assert_false (seen.generation.do_sample);
    g_assert_cmpint (seen.generation.top_k, ==, 0);
  }
}

/* Ids that the keys leave open come from where they come from in a directory. */
static void
test_ids_missing (void)
{
  static const GgufKey text[] = { { "tokenizer.ggml.bos_token_id", NULL },
    { "tokenizer.ggml.eos_token_id", NULL }, { "tokenizer.ggml.eot_token_id", NULL },
    { "tokenizer.ggml.padding_token_id", NULL }, { "tokenizer.chat_template", NULL },
    NO_MORE_KEYS };
  Seen seen;
  GgufPair pair;

  gguf_pair_open (&pair, text, NULL, NULL);
  seen_read (&seen, &pair, TRUE);
  g_assert_cmpint (seen.generation.bos_id, ==, -1);
  g_assert_cmpuint (seen.generation.n_eos, ==, 1);
  g_assert_cmpint (seen.generation.eos_ids[0], ==, 3); /* <|im_end|> */
  g_assert_false (vlm_gguf_has_file (pair.text, NULL, VLM_HF_CHAT_TEMPLATE));
  gguf_pair_close (&pair);
}

static void
assert_content (const GgufPair *pair, const gchar *name, const gchar *part)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = vlm_gguf_make_file (pair->text, NULL, name, &error);

  g_assert_no_error (error);
  if (!strstr (g_bytes_get_data (bytes, NULL), part))
    g_error ("%s is %s, expected %s in it", name, (gchar *) g_bytes_get_data (bytes, NULL), part);
}

static void
test_texts (void)
{
  g_autoptr (GError) error = NULL;
  GgufPair pair;

  gguf_pair_open (&pair, NULL, NULL, NULL);
  assert_content (&pair, VLM_HF_CHAT_TEMPLATE, "{{bos_token}}");
  assert_content (&pair, VLM_HF_TOKENIZER_CONFIG, "\"bos_token\": \"<|startoftext|>\"");
  assert_content (&pair, VLM_HF_TOKENIZER_CONFIG, "\"eos_token\": \"<|im_end|>\"");
  g_assert_null (vlm_gguf_make_file (pair.text, NULL, "README.md", &error));
  g_assert_error (error, VLM_ERROR, VLM_ERROR_NOT_FOUND);
  gguf_pair_close (&pair);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/gguf-settings/text", test_text);
  g_test_add_func ("/gguf-settings/vision", test_vision);
  g_test_add_func ("/gguf-settings/processor", test_processor);
  g_test_add_func ("/gguf-settings/processor-3b", test_processor_3b);
  g_test_add_func ("/gguf-settings/variants", test_variants);
  g_test_add_func ("/gguf-settings/feed-forward", test_feed_forward);
  g_test_add_func ("/gguf-settings/generation", test_generation);
  g_test_add_func ("/gguf-settings/ids-missing", test_ids_missing);
  g_test_add_func ("/gguf-settings/texts", test_texts);
  return g_test_run ();
}
