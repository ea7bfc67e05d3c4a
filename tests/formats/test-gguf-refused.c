/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Keys and tensors of a GGUF pair that contradict each other, or that no model can have. */

#include "engine/formats/gguf-settings.h"
#include "engine/formats/hf.h"
#include "gguf-pair.h"

/* The change to the key must make the file fail, with this in the message. */
typedef struct
{
  gboolean vision;
  const gchar *file, *key, *recipe;
  gint code;
  const gchar *found;
} Refusal;

static void
check_refusal (const GgufPair *pair, const Refusal *refusal, const gchar *name)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = vlm_gguf_make_file (pair->text, pair->mmproj, refusal->file, &error);

  if (bytes)
    g_error ("%s with %s: no error", name, refusal->recipe ? refusal->recipe : "(missing)");
  g_test_message ("%s", error->message);
  fixture_assert_message (error, refusal->code, name);
  if (refusal->found)
    fixture_assert_message (error, refusal->code, refusal->found);
  fixture_assert_message (error, refusal->code, ".gguf: ");
}

static void
refuse (const Refusal *refusals, guint n)
{
  guint i;

  for (i = 0; i < n; i++) {
    const Refusal *refusal = &refusals[i];
    GgufKey changes[] = { { refusal->key, refusal->recipe }, NO_MORE_KEYS };
    GgufPair pair;

    gguf_pair_open (
        &pair, refusal->vision ? NULL : changes, refusal->vision ? changes : NULL, NULL);
    check_refusal (&pair, refusal, refusal->key);
    gguf_pair_close (&pair);
  }
}

#define CONFIG FALSE, VLM_HF_CONFIG
#define TOWER TRUE, VLM_HF_CONFIG
#define IMAGES TRUE, VLM_HF_PROCESSOR
#define TOKENS FALSE, VLM_HF_TOKENIZER
#define SAMPLING FALSE, VLM_HF_GENERATION
#define FORMAT VLM_ERROR_FORMAT
#define UNSUPPORTED VLM_ERROR_UNSUPPORTED

static void
test_refused_text (void)
{
  static const Refusal refusals[] = {
    { CONFIG, "general.architecture", NULL, FORMAT, "missing" },
    { CONFIG, "general.architecture", STRING ("clip"), UNSUPPORTED, "\"clip\", expected \"lfm2\"" },
    { CONFIG, "general.architecture", U32 (1), FORMAT, NULL },
    { CONFIG, "lfm2.block_count", NULL, FORMAT, "missing, expected 1..256" },
    { CONFIG, "lfm2.block_count", U32 (0), FORMAT, "0, expected 1..256" },
    { CONFIG, "lfm2.block_count", U32 (257), FORMAT, "257, expected 1..256" },
    { CONFIG, "lfm2.block_count", F32 (0x40400000), FORMAT, "an f32" },
    { CONFIG, "lfm2.context_length", NULL, FORMAT, "missing" },
    { CONFIG, "lfm2.context_length", U32 (0), FORMAT, "0, expected 1.." },
    { CONFIG, "lfm2.embedding_length", NULL, FORMAT, "missing" },
    { CONFIG, "lfm2.embedding_length", U32 (65537), FORMAT, "65537, expected 1..65536" },
    { CONFIG, "lfm2.embedding_length", U32 (33), FORMAT, "33, expected a multiple of" },
    { CONFIG, "lfm2.embedding_length", STRING ("32"), FORMAT, "a string" },
    { CONFIG, "lfm2.feed_forward_length", STRING ("48"), FORMAT, "a string" },
    { CONFIG, "lfm2.attention.head_count", NULL, FORMAT, "missing" },
    { CONFIG, "lfm2.attention.head_count", U32 (0), FORMAT, "0, expected 1..1024" },
    { CONFIG, "lfm2.attention.key_length", U32 (0), FORMAT, "0, expected 1.." },
    { CONFIG, "lfm2.attention.value_length", U32 (8), UNSUPPORTED, "8, expected 16" },
    { CONFIG, "lfm2.rope.dimension_count", U32 (8), UNSUPPORTED, "8, expected 16" },
    { CONFIG, "lfm2.rope.scaling.type", STRING ("yarn"), UNSUPPORTED, "\"yarn\"" },
    { CONFIG, "lfm2.attention.sliding_window", U32 (128), UNSUPPORTED, "128, expected 0" },
    { CONFIG, "lfm2.attention.causal", BOOL (0), UNSUPPORTED, "false, expected true" },
    { CONFIG, "lfm2.embedding_length_out", U32 (64), UNSUPPORTED, "64, expected 32" },
    { CONFIG, "lfm2.attention.head_count_kv", NULL, FORMAT, "missing" },
    { CONFIG, "lfm2.attention.head_count_kv", U32 (0), FORMAT, "0, expected 1.." },
    { CONFIG, "lfm2.attention.head_count_kv", U32 (1), FORMAT, "blk.0.shortconv.conv.weight" },
    { CONFIG, "lfm2.attention.head_count_kv", "u32:9 u32:5 u64:2 u32:0 u32:1", FORMAT,
        "2 entries, expected 3" },
    { CONFIG, "lfm2.attention.head_count_kv", "u32:9 u32:5 u64:3 u32:0 u32:-1 u32:0", FORMAT,
        "[1] is -1, expected 0..1024" },
    { CONFIG, "lfm2.attention.head_count_kv", "u32:9 u32:5 u64:3 u32:1 u32:2 u32:0", UNSUPPORTED,
        "[1] is 2, expected 0 or 1" },
    { CONFIG, "lfm2.attention.head_count_kv", "u32:9 u32:5 u64:3 u32:0 u32:1 u32:1", FORMAT,
        "layer 2, expected 0" },
    { CONFIG, "lfm2.attention.head_count_kv", "u32:9 u32:6 u64:3 zeros:12", FORMAT, "f32" },
    { CONFIG, "lfm2.attention.layer_norm_rms_epsilon", NULL, FORMAT, "missing" },
    { CONFIG, "lfm2.attention.layer_norm_rms_epsilon", F32 (0), FORMAT, "0, expected 1e-12..0.1" },
    { CONFIG, "lfm2.attention.layer_norm_rms_epsilon", F32 (0x7fc00000), FORMAT, NULL },
    { CONFIG, "lfm2.rope.freq_base", NULL, FORMAT, "missing" },
    { CONFIG, "lfm2.rope.freq_base", F32 (0x3f000000), FORMAT, "0.5, expected 1..1e+12" },
    { CONFIG, "lfm2.rope.freq_base", STRING ("1e6"), FORMAT, "a string" },
    { CONFIG, "lfm2.vocab_size", U32 (9), FORMAT, "9, expected 8" },
    { CONFIG, "lfm2.shortconv.l_cache", NULL, FORMAT, "missing" },
    { CONFIG, "lfm2.shortconv.l_cache", U32 (1), FORMAT, "1, expected 2..16" },
    { CONFIG, "lfm2.shortconv.l_cache", U32 (4), FORMAT, "4, expected 3" },
    { CONFIG, "tokenizer.ggml.tokens", NULL, FORMAT, "missing" },
    { CONFIG, "tokenizer.ggml.tokens", "u32:9 u32:8 u64:2 s:a s:b", FORMAT,
        "2 entries, expected 8" },
    { CONFIG, "tokenizer.ggml.tokens", "u32:9 u32:8 u64:0", FORMAT, "0 entries" },
    { CONFIG, "tokenizer.ggml.tokens", "u32:9 u32:4 u64:1 u32:1", FORMAT, "u32" },
  };

  refuse (refusals, G_N_ELEMENTS (refusals));
}

static void
test_refused_vision (void)
{
  static const Refusal refusals[] = {
    { TOWER, "general.architecture", STRING ("lfm2"), UNSUPPORTED, "\"lfm2\", expected \"clip\"" },
    { TOWER, "clip.projector_type", STRING ("mlp"), UNSUPPORTED, "\"mlp\", expected \"lfm2\"" },
    { TOWER, "clip.use_gelu", NULL, FORMAT, "missing" },
    { TOWER, "clip.use_gelu", BOOL (0), UNSUPPORTED, "false, expected true" },
    { TOWER, "clip.has_vision_encoder", BOOL (0), UNSUPPORTED, "false, expected true" },
    { TOWER, "clip.vision.patch_size", NULL, FORMAT, "missing" },
    { TOWER, "clip.vision.patch_size", U32 (65), FORMAT, "65, expected 1..64" },
    { TOWER, "clip.vision.patch_size", U32 (8), FORMAT, "8, but" },
    { TOWER, "clip.vision.embedding_length", NULL, FORMAT, "missing" },
    { TOWER, "clip.vision.embedding_length", U32 (32), FORMAT, "64 values, expected 128" },
    { TOWER, "clip.vision.feed_forward_length", NULL, FORMAT, "missing" },
    { TOWER, "clip.vision.feed_forward_length", U32 (0), FORMAT, "0, expected 1.." },
    { TOWER, "clip.vision.block_count", NULL, FORMAT, "missing" },
    { TOWER, "clip.vision.block_count", U32 (1000), FORMAT, "1000, expected 1..256" },
    { TOWER, "clip.vision.attention.head_count", NULL, FORMAT, "missing" },
    { TOWER, "clip.vision.attention.head_count", U32 (0), FORMAT, "0, expected 1.." },
    { TOWER, "clip.vision.attention.layer_norm_epsilon", NULL, FORMAT, "missing" },
    { TOWER, "clip.vision.attention.layer_norm_epsilon", F32 (0x3f800000), FORMAT,
        "1, expected 1e-12..0.1" },
    { TOWER, "clip.vision.projection_dim", NULL, FORMAT, "missing" },
    { TOWER, "clip.vision.projection_dim", U32 (64), FORMAT, "64, expected 32" },
    { TOWER, "clip.vision.projector.scale_factor", U32 (3), FORMAT, "64 values, expected 144" },
    { TOWER, "clip.vision.projector.scale_factor", U32 (9), FORMAT, "9, expected 1..8" },
    { IMAGES, "clip.vision.image_mean", NULL, FORMAT, "missing" },
    { IMAGES, "clip.vision.image_mean", "u32:9 u32:6 u64:2 zeros:8", FORMAT,
        "2 entries, expected 3" },
    { IMAGES, "clip.vision.image_mean", "u32:9 u32:6 u64:3 u32:0x7f800000 zeros:8", FORMAT,
        "[0] is inf" },
    { IMAGES, "clip.vision.image_mean", F32 (0x3f000000), FORMAT, "an f32" },
    { IMAGES, "clip.vision.image_std", NULL, FORMAT, "missing" },
    { IMAGES, "clip.vision.image_std", "u32:9 u32:6 u64:3 u32:0x3f000000 zeros:8", FORMAT,
        "[1] is 0" },
    { IMAGES, "clip.vision.preproc_min_tiles", U32 (0), FORMAT, "0, expected 1..100" },
    { IMAGES, "clip.vision.preproc_max_tiles", U32 (101), FORMAT, "101, expected 1..100" },
    { IMAGES, "clip.vision.patch_size", STRING ("4"), FORMAT, "a string" },
  };

  refuse (refusals, G_N_ELEMENTS (refusals));
}

static void
test_refused_tokens (void)
{
  static const Refusal refusals[] = {
    { TOKENS, "tokenizer.ggml.model", NULL, FORMAT, "missing" },
    { TOKENS, "tokenizer.ggml.model", STRING ("llama"), UNSUPPORTED, "\"llama\"" },
    { TOKENS, "tokenizer.ggml.pre", NULL, FORMAT, "missing" },
    { TOKENS, "tokenizer.ggml.pre", STRING ("qwen2"), UNSUPPORTED, "\"qwen2\"" },
    { TOKENS, "tokenizer.ggml.tokens", NULL, FORMAT, "missing" },
    { TOKENS, "tokenizer.ggml.tokens", "u32:9 u32:8 u64:8 s:a s:b s:c s:d s:e s:f s:g s:b", FORMAT,
        "[7] is \"b\", as [1] is" },
    { TOKENS, "tokenizer.ggml.tokens", "u32:9 u32:8 u64:8 s:a s:b s: s:d s:e s:f s:g s:h", FORMAT,
        "[2] is \"\"" },
    { TOKENS, "tokenizer.ggml.tokens",
        "u32:9 u32:8 u64:8 s:a s:b u64:1 u8:0xc3 s:d s:e s:f s:g s:h", FORMAT, "[2] is \"\357" },
    { TOKENS, "tokenizer.ggml.tokens", "u32:9 u32:8 u64:8 s:a s:b u64:1 u8:0 s:d s:e s:f s:g s:h",
        FORMAT, "[2] is" },
    { TOKENS, "tokenizer.ggml.token_type", NULL, FORMAT, "missing" },
    { TOKENS, "tokenizer.ggml.token_type", "u32:9 u32:5 u64:7 zeros:28", FORMAT,
        "7 entries, expected 8" },
    { TOKENS, "tokenizer.ggml.token_type",
        "u32:9 u32:5 u64:8 u32:3 u32:3 u32:3 u32:6 u32:1 u32:1 u32:1 u32:3", UNSUPPORTED,
        "[3] is 6, expected 1..5" },
    { TOKENS, "tokenizer.ggml.token_type",
        "u32:9 u32:5 u64:8 u32:3 u32:3 u32:3 u32:-1 u32:1 u32:1 u32:1 u32:3", UNSUPPORTED,
        "[3] is -1, expected 1..5" },
    { TOKENS, "tokenizer.ggml.token_type", "u32:9 u32:8 u64:1 s:a", FORMAT, "a string" },
    { TOKENS, "tokenizer.ggml.merges", NULL, FORMAT, "missing" },
    { TOKENS, "tokenizer.ggml.merges", "u32:9 u32:8 u64:1 u64:3 a u8:32 x", FORMAT,
        "[0] is \"a x\", but \"x\"" },
    { TOKENS, "tokenizer.ggml.merges", "u32:9 u32:8 u64:1 u64:3 x u8:32 a", FORMAT,
        "[0] is \"x a\", but \"x\"" },
    { TOKENS, "tokenizer.ggml.merges", "u32:9 u32:8 u64:1 u64:3 b u8:32 a", FORMAT,
        "[0] is \"b a\", but \"ba\"" },
    { TOKENS, "tokenizer.ggml.merges", "u32:9 u32:8 u64:1 s:ab", FORMAT,
        "[0] is \"ab\", expected two" },
    { TOKENS, "tokenizer.ggml.merges", "u32:9 u32:8 u64:1 u64:2 a u8:32", FORMAT, "expected two" },
    { TOKENS, "tokenizer.ggml.merges", "u32:9 u32:8 u64:1 u64:2 u8:32 a", FORMAT, "expected two" },
    { TOKENS, "tokenizer.ggml.merges", "u32:9 u32:8 u64:1 u64:5 a u8:32 b u8:32 b", FORMAT,
        "expected two" },
    { TOKENS, "tokenizer.ggml.merges", "u32:9 u32:8 u64:1 s:", FORMAT, "expected two" },
  };

  refuse (refusals, G_N_ELEMENTS (refusals));
}

static void
test_refused_generation (void)
{
  static const Refusal refusals[] = {
    { SAMPLING, "tokenizer.ggml.bos_token_id", U32 (8), FORMAT, "8, expected 0..7" },
    { SAMPLING, "tokenizer.ggml.eos_token_id", U32 (8), FORMAT, "8, expected 0..7" },
    { SAMPLING, "tokenizer.ggml.eot_token_id", U32 (8), FORMAT, "8, expected 0..7" },
    { SAMPLING, "tokenizer.ggml.padding_token_id", "u32:5 u32:-1", FORMAT, "-1, expected 0..7" },
    { SAMPLING, "tokenizer.ggml.eos_token_id", STRING ("7"), FORMAT, "a string" },
    { SAMPLING, "general.sampling.temp", F32 (0xbf800000), FORMAT, "-1, expected 0..1000" },
    { SAMPLING, "general.sampling.temp", F32 (0x7fc00000), FORMAT, NULL },
    { SAMPLING, "general.sampling.temp", STRING ("hot"), FORMAT, "a string" },
    { SAMPLING, "general.sampling.top_k", "u32:4 u32:-1", FORMAT, "4294967295, expected 0.." },
    { SAMPLING, "general.sampling.top_k", F32 (0x42480000), FORMAT, "an f32" },
    { SAMPLING, "general.sampling.top_p", F32 (0x3fc00000), FORMAT, "1.5, expected 0..1" },
    { SAMPLING, "general.sampling.min_p", F32 (0x40000000), FORMAT, "2, expected 0..1" },
    { SAMPLING, "general.sampling.penalty_repeat", F32 (0), FORMAT, "0, expected 0.001..1000" },
    { FALSE, VLM_HF_TOKENIZER_CONFIG, "tokenizer.ggml.bos_token_id", U32 (8), FORMAT,
        "8, expected 0..7" },
    { FALSE, VLM_HF_CHAT_TEMPLATE, "tokenizer.chat_template", U32 (8), FORMAT, "a u32" },
  };

  refuse (refusals, G_N_ELEMENTS (refusals));
}

static void
test_refused_tensors (void)
{
  static const struct
  {
    Refusal refusal;
    GgufTensor tensor;
  } cases[] = {
    { { CONFIG, NULL, NULL, FORMAT, "missing" }, { "token_embd.weight", 0, { 0 } } },
    { { CONFIG, NULL, NULL, FORMAT, "8 entries, expected 9" },
        { "token_embd.weight", 2, { 32, 9 } } },
    { { CONFIG, NULL, NULL, FORMAT, "missing" }, { "blk.0.ffn_gate.weight", 0, { 0 } } },
    { { CONFIG, NULL, NULL, FORMAT, "1048577 rows, expected at most 1048576" },
        { "blk.0.ffn_gate.weight", 2, { 1, 1048577 } } },
    { { CONFIG, NULL, NULL, FORMAT, "3 sides, expected 2" },
        { "blk.0.ffn_gate.weight", 3, { 32, 48, 2 } } },
    { { CONFIG, NULL, NULL, FORMAT, "missing" }, { "blk.2.shortconv.conv.weight", 0, { 0 } } },
    /* A kernel twice as wide as is said. */
    { { CONFIG, NULL, NULL, FORMAT, "is 3, expected 6" },
        { "blk.2.shortconv.conv.weight", 2, { 6, 32 } } },
    { { CONFIG, NULL, NULL, FORMAT, "says 1 for layer 1" },
        { "blk.1.shortconv.conv.weight", 2, { 3, 32 } } },
    { { TOWER, NULL, NULL, FORMAT, "missing" }, { "v.patch_embd.weight", 0, { 0 } } },
    { { TOWER, NULL, NULL, FORMAT, "4 x 5 pixels" },
        { "v.patch_embd.weight", 4, { 4, 5, 3, 16 } } },
    { { TOWER, NULL, NULL, FORMAT, "missing" }, { "v.position_embd.weight", 0, { 0 } } },
    { { TOWER, NULL, NULL, FORMAT, "65537 rows, expected at most 65536" },
        { "v.position_embd.weight", 2, { 1, 65537 } } },
    { { TOWER, NULL, NULL, FORMAT, "missing" }, { "mm.1.weight", 0, { 0 } } },
    { { TOWER, NULL, NULL, FORMAT, "63 values, expected 64" }, { "mm.1.weight", 2, { 63, 40 } } },
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++) {
    GgufTensor changes[] = { cases[i].tensor, NO_MORE_TENSORS };
    GgufPair pair;

    gguf_pair_open (&pair, NULL, NULL, changes);
    check_refusal (&pair, &cases[i].refusal, cases[i].tensor.name);
    gguf_pair_close (&pair);
  }
}

/* Text and vision part given in each other's place. */
static void
test_refused_swapped (void)
{
  static const Refusal refusal = { CONFIG, NULL, NULL, UNSUPPORTED,
    "is \"clip\", expected \"lfm2\"" };
  GgufPair pair, swapped;

  gguf_pair_open (&pair, NULL, NULL, NULL);
  swapped = (GgufPair){ NULL, pair.mmproj, pair.text };
  check_refusal (&swapped, &refusal, "mmproj.gguf: general.architecture");
  gguf_pair_close (&pair);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/gguf-refused/text", test_refused_text);
  g_test_add_func ("/gguf-refused/vision", test_refused_vision);
  g_test_add_func ("/gguf-refused/tokens", test_refused_tokens);
  g_test_add_func ("/gguf-refused/generation", test_refused_generation);
  g_test_add_func ("/gguf-refused/tensors", test_refused_tensors);
  g_test_add_func ("/gguf-refused/swapped", test_refused_swapped);
  return g_test_run ();
}
