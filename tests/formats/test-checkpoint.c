/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A Hugging Face directory: every spelling of its settings, and what is refused. */

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/vlm.h"
#include "fixture.h"

static void
set (json_t *object, const gchar *key, json_t *value)
{
  g_assert_cmpint (json_object_set_new (object, key, value), ==, 0);
}

static void
test_vision_model (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autoptr (VlmCheckpoint) checkpoint = fixture_open (model);
  const VlmConfig *config = &checkpoint->config;

  g_assert_true (config->has_vision);
  g_assert_cmpuint (config->text.vocab_size, ==, 272);
  g_assert_cmpuint (config->text.hidden_size, ==, 16);
  g_assert_cmpuint (config->text.n_layers, ==, 2);
  g_assert_cmpuint (config->text.n_heads, ==, 2);
  g_assert_cmpuint (config->text.n_kv_heads, ==, 1);
  g_assert_cmpuint (config->text.head_dim, ==, 8);
  g_assert_cmpuint (config->text.ff_size, ==, 16);
  g_assert_cmpuint (config->text.conv_taps, ==, 3);
  g_assert_false (config->text.conv_bias);
  g_assert_cmpuint (config->text.max_context, ==, 128000);
  g_assert_cmpfloat (config->text.norm_eps, ==, 1e-6f);
  g_assert_cmpfloat (config->text.rope_theta, ==, 10000);
  g_assert_true (config->text.tied_head);
  g_assert_cmpint (config->text.layers[0], ==, VLM_LAYER_CONV);
  g_assert_cmpint (config->text.layers[1], ==, VLM_LAYER_ATTENTION);

  g_assert_cmpuint (config->vision.hidden_size, ==, 16);
  g_assert_cmpuint (config->vision.ff_size, ==, 24);
  g_assert_cmpuint (config->vision.n_layers, ==, 1);
  g_assert_cmpuint (config->vision.n_heads, ==, 2);
  g_assert_cmpuint (config->vision.head_dim, ==, 8);
  g_assert_cmpuint (config->vision.patch_size, ==, 2);
  g_assert_cmpuint (config->vision.n_positions, ==, 4);
  g_assert_cmpfloat (config->vision.norm_eps, ==, 1e-6f);

  g_assert_cmpuint (config->projector.hidden_size, ==, 12);
  g_assert_false (config->projector.layer_norm);
  g_assert_true (config->projector.bias);
  g_assert_cmpuint (config->projector.downsample_factor, ==, 2);
  g_assert_cmpint (config->image_token_id, ==, model->image_id);
}

/* What the reference's classes take for keys that a file leaves out. */
static void
test_defaults (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autoptr (VlmCheckpoint) checkpoint = NULL;
  const VlmConfig *config;

  json_decref (model->config);
  model->config = json_pack ("{s:s}", "model_type", "lfm2_vl");
  json_object_clear (model->image);
  checkpoint = fixture_open (model);
  config = &checkpoint->config;
  g_assert_cmpuint (config->text.vocab_size, ==, 65536);
  g_assert_cmpuint (config->text.hidden_size, ==, 2560);
  g_assert_cmpuint (config->text.n_layers, ==, 32);
  g_assert_cmpuint (config->text.n_heads, ==, 32);
  g_assert_cmpuint (config->text.n_kv_heads, ==, 8);
  g_assert_cmpuint (config->text.head_dim, ==, 80);
  g_assert_cmpuint (config->text.ff_size, ==, 8192);
  g_assert_cmpuint (config->text.conv_taps, ==, 3);
  g_assert_cmpuint (config->text.max_context, ==, 128000);
  g_assert_cmpfloat (config->text.norm_eps, ==, 1e-5f);
  g_assert_cmpfloat (config->text.rope_theta, ==, 1e6);
  g_assert_true (config->text.tied_head);
  g_assert_cmpint (config->text.layers[0], ==, VLM_LAYER_ATTENTION);
  g_assert_cmpint (config->text.layers[31], ==, VLM_LAYER_ATTENTION);
  g_assert_cmpuint (config->vision.hidden_size, ==, 768);
  g_assert_cmpuint (config->vision.ff_size, ==, 3072);
  g_assert_cmpuint (config->vision.n_layers, ==, 12);
  g_assert_cmpuint (config->vision.head_dim, ==, 64);
  g_assert_cmpuint (config->vision.patch_size, ==, 16);
  g_assert_cmpuint (config->vision.n_positions, ==, 256);
  g_assert_cmpuint (config->projector.hidden_size, ==, 2560);
  g_assert_true (config->projector.layer_norm);
  g_assert_true (config->projector.bias);
  g_assert_cmpuint (config->projector.downsample_factor, ==, 2);

  g_assert_cmpuint (checkpoint->processor.patch_size, ==, 16);
  g_assert_cmpuint (checkpoint->processor.tile_size, ==, 512);
  g_assert_cmpuint (checkpoint->processor.min_tiles, ==, 2);
  g_assert_cmpuint (checkpoint->processor.max_tiles, ==, 10);
  g_assert_cmpuint (checkpoint->processor.min_image_tokens, ==, 64);
  g_assert_cmpuint (checkpoint->processor.max_image_tokens, ==, 256);
  g_assert_cmpint (checkpoint->processor.filter, ==, VLM_FILTER_BILINEAR);
  g_assert_true (checkpoint->processor.use_thumbnail);
  g_assert_true (checkpoint->processor.do_image_splitting);
}

static void
test_first_spellings (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autoptr (VlmCheckpoint) checkpoint = NULL;
  json_t *text = fixture_text (model);

  set (model->config, "model_type", json_string ("lfm2-vl"));
  json_object_del (model->config, "image_token_id");
  set (model->config, "image_token_index", json_integer (396));
  set (model->config, "torch_dtype", json_string ("float16"));
  set (model->config, "unknown", json_pack ("{s:[i]}", "x", 1));
  json_object_del (text, "layer_types");
  set (text, "full_attn_idxs", json_pack ("[i]", 1));
  json_object_del (text, "rope_parameters");
  set (text, "rope_theta", json_real (500000));
  set (text, "sliding_window", json_null ());
  set (text, "rope_scaling", json_null ());
  checkpoint = fixture_open (model);
  g_assert_true (checkpoint->config.has_vision);
  g_assert_cmpfloat (checkpoint->config.text.rope_theta, ==, 500000);
  g_assert_cmpint (checkpoint->config.text.layers[0], ==, VLM_LAYER_CONV);
  g_assert_cmpint (checkpoint->config.text.layers[1], ==, VLM_LAYER_ATTENTION);
  /* The token's text decides. */
  g_assert_cmpint (checkpoint->config.image_token_id, ==, model->image_id);
}

static void
test_text_model (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (FALSE);
  g_autoptr (VlmCheckpoint) checkpoint = NULL;

  set (model->config, "tie_embedding", json_true ());
  set (model->config, "tie_word_embeddings", json_false ());
  set (model->config, "head_dim", json_integer (32));
  set (model->config, "conv_bias", json_true ());
  set (model->config, "conv_L_cache", json_integer (4));
  checkpoint = fixture_open (model);
  g_assert_false (checkpoint->config.has_vision);
  g_assert_cmpuint (checkpoint->config.text.hidden_size, ==, 16);
  g_assert_cmpuint (checkpoint->config.text.head_dim, ==, 32);
  g_assert_true (checkpoint->config.text.tied_head);
  g_assert_true (checkpoint->config.text.conv_bias);
  g_assert_cmpuint (checkpoint->config.text.conv_taps, ==, 4);
  g_assert_cmpint (checkpoint->generation.eos_ids[0], ==, model->im_end_id);
}

/* The rows that the published models have. */
static void
test_feed_forward_rule (void)
{
  g_assert_cmpuint (vlm_config_adjust_feed_forward (6656, 1, 256), ==, 4608);
  g_assert_cmpuint (vlm_config_adjust_feed_forward (10240, 1, 256), ==, 6912);
  g_assert_cmpuint (vlm_config_adjust_feed_forward (12288, 1, 256), ==, 8192);
  /* Without multiplier nothing is rounded. */
  g_assert_cmpuint (vlm_config_adjust_feed_forward (6656, NAN, 256), ==, 4437);
  g_assert_cmpuint (vlm_config_adjust_feed_forward (100, 1.3, 16), ==, 96);
  g_assert_cmpuint (vlm_config_adjust_feed_forward (12, 1, 8), ==, 8);
  g_assert_cmpuint (vlm_config_adjust_feed_forward (13, 1, 8), ==, 8);
  g_assert_cmpuint (vlm_config_adjust_feed_forward (14, 1, 8), ==, 16);
  g_assert_cmpuint (vlm_config_adjust_feed_forward (1, 1, 8), ==, 0);
  g_assert_cmpuint (vlm_config_adjust_feed_forward (100, 1e6, 8), ==, 0);
}

typedef struct
{
  const gchar *name;
  gboolean text_only;
  const gchar *settings; /* merged into the text settings */
  guint ff_size;
} FeedForwardCase;

static const FeedForwardCase feed_forward_cases[] = {
  { "block_ff_dim", FALSE, "{\"block_ff_dim\": 60, \"intermediate_size\": 1}", 40 },
  { "intermediate_size", FALSE, "{\"block_ff_dim\": null, \"intermediate_size\": 60}", 40 },
  { "no-adjust", TRUE, "{\"block_auto_adjust_ff_dim\": false}", 24 },
  { "multiplier", TRUE, "{\"block_ffn_dim_multiplier\": 2}", 32 },
  { "null-multiplier", TRUE, "{\"block_ffn_dim_multiplier\": null, \"block_ff_dim\": 20}", 13 },
  { "multiple-of", TRUE, "{\"block_multiple_of\": 100}", 100 },
};

static void
test_feed_forward (gconstpointer data)
{
  const FeedForwardCase *example = data;
  g_autoptr (FixtureModel) model = fixture_model_new (!example->text_only);
  g_autoptr (VlmCheckpoint) checkpoint = NULL;
  json_t *settings = json_loads (example->settings, 0, NULL);

  json_object_update (fixture_text (model), settings);
  json_decref (settings);
  checkpoint = fixture_open (model);
  g_assert_cmpuint (checkpoint->config.text.ff_size, ==, example->ff_size);
}

typedef struct
{
  const gchar *name;
  const gchar *settings; /* merged into config.json */
  const gchar *text;     /* merged into its text settings */
  const gchar *vision;
  gint code;
  const gchar *part;
} ConfigCase;

static const ConfigCase config_cases[] = {
  { "model-type", "{\"model_type\":\"llava\"}", NULL, NULL, VLM_ERROR_UNSUPPORTED,
      "config.json: model_type is \"llava\", expected \"lfm2_vl\", \"lfm2-vl\" or \"lfm2\"" },
  { "no-model-type", "{\"model_type\":null}", NULL, NULL, VLM_ERROR_UNSUPPORTED,
      "model_type is absent" },
  { "string", NULL, "{\"hidden_size\":\"x\"}", NULL, VLM_ERROR_FORMAT,
      "config.json: text_config.hidden_size is \"x\", expected an integer 1..65536" },
  { "real", NULL, "{\"hidden_size\":16.0}", NULL, VLM_ERROR_FORMAT, "hidden_size is 16.0" },
  { "zero", NULL, "{\"num_hidden_layers\":0}", NULL, VLM_ERROR_FORMAT,
      "num_hidden_layers is 0, expected an integer 1..256" },
  { "negative", NULL, "{\"vocab_size\":-5}", NULL, VLM_ERROR_FORMAT, "vocab_size is -5" },
  { "large", NULL, "{\"num_hidden_layers\":1000000000000}", NULL, VLM_ERROR_FORMAT,
      "num_hidden_layers is 1000000000000" },
  { "text-list", "{\"text_config\":[]}", NULL, NULL, VLM_ERROR_FORMAT,
      "text_config is [], expected an object" },
  { "text-model", NULL, "{\"model_type\":\"lfm2_moe\"}", NULL, VLM_ERROR_UNSUPPORTED,
      "text_config.model_type is \"lfm2_moe\", expected lfm2" },
  { "vision-model", NULL, NULL, "{\"model_type\":\"clip_vision_model\"}", VLM_ERROR_UNSUPPORTED,
      "vision_config.model_type is \"clip_vision_model\"" },
  { "text-act", NULL, "{\"hidden_act\":\"gelu\"}", NULL, VLM_ERROR_UNSUPPORTED,
      "text_config.hidden_act is \"gelu\", expected silu" },
  { "vision-act", NULL, NULL, "{\"hidden_act\":\"gelu\"}", VLM_ERROR_UNSUPPORTED,
      "vision_config.hidden_act is \"gelu\", expected gelu_pytorch_tanh" },
  { "projector-act", "{\"projector_hidden_act\":\"gelu_pytorch_tanh\"}", NULL, NULL,
      VLM_ERROR_UNSUPPORTED, "projector_hidden_act is \"gelu_pytorch_tanh\", expected gelu" },
  { "layer-types-short", NULL, "{\"layer_types\":[\"conv\"]}", NULL, VLM_ERROR_FORMAT,
      "layer_types is [\"conv\"], expected 2 entries" },
  { "layer-types-kind", NULL, "{\"layer_types\":[\"conv\",\"sliding_attention\"]}", NULL,
      VLM_ERROR_UNSUPPORTED, "layer_types[1] is \"sliding_attention\"" },
  { "attention-index", NULL, "{\"layer_types\":null,\"full_attn_idxs\":[2]}", NULL,
      VLM_ERROR_FORMAT, "full_attn_idxs[0] is 2, expected a layer 0..1" },
  { "sliding-window", NULL, "{\"sliding_window\":4096}", NULL, VLM_ERROR_UNSUPPORTED,
      "sliding_window is 4096, expected none" },
  { "rope-type", NULL, "{\"rope_parameters\":{\"rope_type\":\"yarn\"}}", NULL,
      VLM_ERROR_UNSUPPORTED, "rope_type is \"yarn\", expected default" },
  { "rope-scaling", NULL, "{\"rope_scaling\":{\"type\":\"linear\"}}", NULL, VLM_ERROR_UNSUPPORTED,
      "type is \"linear\"" },
  { "partial-rotary", NULL, "{\"partial_rotary_factor\":0.5}", NULL, VLM_ERROR_UNSUPPORTED,
      "partial_rotary_factor is 0.5" },
  { "heads", NULL, "{\"num_attention_heads\":3}", NULL, VLM_ERROR_FORMAT,
      "hidden_size is 16, expected a multiple of num_attention_heads, which is 3" },
  { "kv-heads", NULL, "{\"num_key_value_heads\":3}", NULL, VLM_ERROR_FORMAT,
      "num_attention_heads is 2, expected a multiple of num_key_value_heads, which is 3" },
  { "head-dim", NULL, "{\"head_dim\":12}", NULL, VLM_ERROR_UNSUPPORTED, "head_dim is 12" },
  { "vision-heads", NULL, NULL, "{\"num_attention_heads\":3}", VLM_ERROR_FORMAT,
      "vision_config.hidden_size is 16" },
  { "num-patches", NULL, NULL, "{\"num_patches\":5}", VLM_ERROR_FORMAT,
      "vision_config.num_patches is 5, expected a square" },
  { "channels", NULL, NULL, "{\"num_channels\":4}", VLM_ERROR_UNSUPPORTED, "num_channels is 4" },
  { "patch-size", NULL, NULL, "{\"patch_size\":4}", VLM_ERROR_FORMAT,
      "encoder_patch_size 2, config.json vision_config.patch_size 4" },
  { "downsample", "{\"downsample_factor\":4}", NULL, NULL, VLM_ERROR_FORMAT,
      "downsample_factor 2, config.json 4" },
  { "vocabulary", NULL, "{\"vocab_size\":258}", NULL, VLM_ERROR_FORMAT,
      "tokenizer.json has 259 ids, expected at most vocab_size 258" },
  { "eos", "{\"eos_token_id\":272}", NULL, NULL, VLM_ERROR_FORMAT,
      "eos_token_id is 272, expected an id 0..271" },
  { "eos-list", NULL, "{\"eos_token_id\":[7,\"x\"]}", NULL, VLM_ERROR_FORMAT,
      "eos_token_id is \"x\"" },
  { "norm-eps", NULL, "{\"norm_eps\":\"1e-5\"}", NULL, VLM_ERROR_FORMAT,
      "norm_eps is \"1e-5\", expected a number" },
  { "boolean", "{\"projector_use_layernorm\":1}", NULL, NULL, VLM_ERROR_FORMAT,
      "projector_use_layernorm is 1, expected true or false" },
};

static void
merge (json_t *object, const gchar *text)
{
  json_t *settings = text != NULL ? json_loads (text, 0, NULL) : NULL;

  if (settings != NULL)
    json_object_update (object, settings);
  json_decref (settings);
}

static void
test_config_fault (gconstpointer data)
{
  const ConfigCase *example = data;
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);

  merge (fixture_text (model), example->text);
  merge (fixture_vision (model), example->vision);
  merge (model->config, example->settings);
  fixture_expect (model, example->code, example->part, NULL);
}

typedef struct
{
  const gchar *name;
  const gchar *text; /* of config.json */
  const gchar *part;
} DocumentCase;

static const DocumentCase document_cases[] = {
  { "empty", "", "config.json:1:" },
  { "list", "[]", "not a JSON object" },
  { "cut", "{\n\"model_type\": \"lfm2\"", "config.json:2:" },
  { "infinity", "{\"model_type\": \"lfm2\", \"rope_theta\": Infinity}", "Infinity" },
  { "nan", "{\"norm_eps\": NaN}", "NaN" },
  { "overflow", "{\"norm_eps\": 1e999}", "config.json:1:" },
  { "duplicate", "{\"hidden_size\": 1, \"hidden_size\": 2}", "duplicate" },
  { "invalid-utf8", "{\"a\": \"\377\"}", "unable to decode byte 0xff" },
};

static void
test_document (gconstpointer data)
{
  const DocumentCase *example = data;
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autoptr (GError) error = NULL;

  fixture_save (model);
  fixture_write (model->directory, "config.json", example->text, strlen (example->text));
  g_assert_null (vlm_checkpoint_open (model->directory, NULL, &error));
  fixture_assert_message (error, VLM_ERROR_FORMAT, example->part);
}

static void
test_deep_document (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autofree gchar *brackets = g_strnfill (100000, '[');
  g_autofree gchar *text = g_strconcat ("{\"a\":", brackets, NULL);
  g_autoptr (GError) error = NULL;

  fixture_save (model);
  fixture_write (model->directory, "config.json", text, strlen (text));
  g_assert_null (vlm_checkpoint_open (model->directory, NULL, &error));
  fixture_assert_message (error, VLM_ERROR_FORMAT, "depth");
}

/* A sparse file larger than any settings: refused by its size. */
static void
test_large_document (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autofree gchar *path = g_build_filename (model->directory, "config.json", NULL);
  g_autoptr (GError) error = NULL;

  fixture_save (model);
  g_assert_cmpint (truncate (path, (off_t) 1 << 40), ==, 0);
  g_assert_null (vlm_checkpoint_open (model->directory, NULL, &error));
  fixture_assert_message (
      error, VLM_ERROR_FORMAT, "config.json: has 1099511627776 bytes, expected at most");
}

static json_t *
new_image_settings (void)
{
  json_t *settings = json_object ();

  merge (settings,
      "{\"encoder_patch_size\": 2, \"downsample_factor\": 2, \"tile_size\": 16,"
      " \"min_tiles\": 1, \"max_tiles\": 6, \"min_image_tokens\": 4, \"max_image_tokens\": 64,"
      " \"max_pixels_tolerance\": 1.5, \"do_image_splitting\": false, \"use_thumbnail\": false,"
      " \"resample\": 3, \"rescale_factor\": 0.5, \"image_mean\": [0.1, 0, 1],"
      " \"image_std\": [1, 0.25, 2], \"do_resize\": false, \"size\": {\"height\": 1},"
      " \"max_num_patches\": 7, \"image_processor_type\": \"Lfm2VlImageProcessorFast\"}");
  return settings;
}

static void
assert_image_settings (const VlmProcessor *processor)
{
  g_assert_cmpuint (processor->patch_size, ==, 2);
  g_assert_cmpuint (processor->tile_size, ==, 16);
  g_assert_cmpuint (processor->min_tiles, ==, 1);
  g_assert_cmpuint (processor->max_tiles, ==, 6);
  g_assert_cmpuint (processor->min_image_tokens, ==, 4);
  g_assert_cmpuint (processor->max_image_tokens, ==, 64);
  g_assert_cmpfloat (processor->max_pixels_tolerance, ==, 1.5);
  g_assert_false (processor->do_image_splitting);
  g_assert_false (processor->use_thumbnail);
  g_assert_cmpint (processor->filter, ==, VLM_FILTER_BICUBIC);
  g_assert_cmpfloat (processor->rescale_factor, ==, 0.5);
  g_assert_cmpfloat (processor->mean[0], ==, 0.1f);
  g_assert_cmpfloat (processor->mean[2], ==, 1);
  g_assert_cmpfloat (processor->std[1], ==, 0.25f);
}

/* The nested object wins as a whole; without it the flat file counts. */
static void
test_processor_files (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autoptr (VlmCheckpoint) nested = NULL, flat = NULL;
  g_autoptr (GError) error = NULL;
  json_t *settings = new_image_settings (),
         *decoy =
             json_pack ("{s:i, s:i, s:i}", "encoder_patch_size", 2, "tile_size", 8, "max_tiles", 3);

  json_decref (model->image);
  model->image = settings;
  fixture_save (model);
  fixture_write_json (model->directory, "preprocessor_config.json", decoy);
  nested = vlm_checkpoint_open (model->directory, NULL, &error);
  g_assert_no_error (error);
  assert_image_settings (&nested->processor);
  g_assert_true (nested->processor.use_image_special_tokens);

  fixture_write_json (model->directory, "preprocessor_config.json", settings);
  json_object_clear (decoy);
  set (decoy, "processor_class", json_string ("Lfm2VlProcessor"));
  set (decoy, "use_image_special_tokens", json_false ());
  fixture_write_json (model->directory, "processor_config.json", decoy);
  flat = vlm_checkpoint_open (model->directory, NULL, &error);
  g_assert_no_error (error);
  assert_image_settings (&flat->processor);
  g_assert_false (flat->processor.use_image_special_tokens);
  json_decref (decoy);
}

static void
test_pixel_steps_off (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autoptr (VlmCheckpoint) checkpoint = NULL;

  set (model->image, "do_rescale", json_false ());
  set (model->image, "do_normalize", json_false ());
  set (model->image, "image_mean", json_null ());
  checkpoint = fixture_open (model);
  g_assert_cmpfloat (checkpoint->processor.rescale_factor, ==, 1);
  g_assert_cmpfloat (checkpoint->processor.mean[1], ==, 0);
  g_assert_cmpfloat (checkpoint->processor.std[1], ==, 1);
}

static void
expect_image_fault (const gchar *settings, const gchar *part)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);

  merge (model->image, settings);
  fixture_expect (model, VLM_ERROR_FORMAT, "processor_config.json: ", part, NULL);
}

static void
test_processor_faults (void)
{
  expect_image_fault (
      "{\"resample\": 0}", "image_processor.resample is 0, expected an integer 2..3");
  expect_image_fault ("{\"image_mean\": [0.5]}", "image_mean is [0.5], expected three numbers");
  expect_image_fault ("{\"image_std\": [1, 1, \"1\"]}", "image_std is [1,1,\"1\"]");
  expect_image_fault ("{\"image_std\": [1, 0, 1]}", "image_std");
  expect_image_fault ("{\"min_tiles\": 9, \"max_tiles\": 3}", "min_tiles 9 is above max_tiles 3");
  expect_image_fault ("{\"tile_size\": \"512\"}", "tile_size is \"512\"");
}

static void
test_generation (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autoptr (VlmCheckpoint) checkpoint = NULL;

  model->generation = json_object ();
  merge (model->generation,
      "{\"bos_token_id\": 1, \"eos_token_id\": [7, 9], \"do_sample\": true,"
      " \"temperature\": 0.1, \"min_p\": 0.15, \"top_k\": 50, \"repetition_penalty\": 1.05}");
  set (model->config, "eos_token_id", json_integer (3));
  set (fixture_text (model), "pad_token_id", json_integer (4));
  set (fixture_text (model), "bos_token_id", json_integer (6));
  checkpoint = fixture_open (model);
  g_assert_cmpint (checkpoint->generation.bos_id, ==, 1);
  g_assert_cmpint (checkpoint->generation.pad_id, ==, 4);
  g_assert_cmpuint (checkpoint->generation.n_eos, ==, 2);
  g_assert_cmpint (checkpoint->generation.eos_ids[0], ==, 7);
  g_assert_cmpint (checkpoint->generation.eos_ids[1], ==, 9);
  g_assert_true (checkpoint->generation.do_sample);
  g_assert_cmpfloat (checkpoint->generation.temperature, ==, 0.1);
  g_assert_cmpfloat (checkpoint->generation.min_p, ==, 0.15);
  g_assert_cmpfloat (checkpoint->generation.repetition_penalty, ==, 1.05);
  g_assert_cmpint (checkpoint->generation.top_k, ==, 50);
  g_assert_true (isnan (checkpoint->generation.top_p));
}

static void
test_generation_absent (void)
{
  static const gchar config[] =
      "{\"model_max_length\": 1000000000000000019884624838656,"
      " \"bos_token\": \"<|startoftext|>\", \"eos_token\": {\"content\": \"<image>\"}}";
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autoptr (VlmCheckpoint) by_config = NULL, by_text = NULL, by_name = NULL;
  g_autoptr (GError) error = NULL;

  set (fixture_text (model), "eos_token_id", json_integer (5));
  by_config = fixture_open (model);
  g_assert_cmpint (by_config->generation.eos_ids[0], ==, 5);
  g_assert_cmpint (by_config->generation.bos_id, ==, -1);
  g_assert_false (by_config->generation.do_sample);
  g_assert_true (isnan (by_config->generation.temperature));
  g_assert_true (isnan (by_config->generation.repetition_penalty));
  g_assert_cmpint (by_config->generation.top_k, ==, -1);

  json_object_del (fixture_text (model), "eos_token_id");
  by_name = fixture_open (model);
  g_assert_cmpuint (by_name->generation.n_eos, ==, 1);
  g_assert_cmpint (by_name->generation.eos_ids[0], ==, model->im_end_id);

  fixture_write (model->directory, "tokenizer_config.json", config, strlen (config));
  by_text = vlm_checkpoint_open (model->directory, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint (by_text->generation.eos_ids[0], ==, model->image_id);
  g_assert_cmpint (by_text->generation.bos_id, ==, model->bos_id);
}

/* Ids are found by text, and pictures need the token. */
static void
test_image_token (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);

  json_object_set_new (json_array_get (json_object_get (model->tokenizer, "added_tokens"), 2),
      "content", json_string ("<picture>"));
  fixture_expect (model, VLM_ERROR_FORMAT, "tokenizer.json has no token <image>", NULL);
}

static void
expect_path_error (const gchar *path, gint code, const gchar *part)
{
  g_autoptr (GError) checked = NULL, opened = NULL;

  g_assert_false (vlm_model_check_path (path, NULL, &checked));
  fixture_assert_message (checked, code, part);
  g_assert_null (vlm_checkpoint_open (path, NULL, &opened));
  fixture_assert_message (opened, code, part);
}

static void
test_missing_files (void)
{
  static const gchar *const names[] = { "config.json", "tokenizer.json", "model.safetensors" };
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autoptr (GError) error = NULL;
  gsize i;

  for (i = 0; i < G_N_ELEMENTS (names); i++) {
    fixture_save (model);
    g_assert_true (vlm_model_check_path (model->directory, NULL, &error));
    fixture_remove (model->directory, names[i]);
    expect_path_error (model->directory, VLM_ERROR_NOT_FOUND, names[i]);
  }
  expect_path_error ("/nonexistent/model", VLM_ERROR_NOT_FOUND, "/nonexistent/model");
  expect_path_error ("", VLM_ERROR_NOT_FOUND, "");
  expect_path_error ("/dev/null", VLM_ERROR_READ, "not a regular file");
  expect_path_error ("resource:///org/nothing", VLM_ERROR_NOT_FOUND, "resource:///org/nothing");
  /* Only resource:// is a URI; all else is a name. */
  expect_path_error ("file:///tmp", VLM_ERROR_NOT_FOUND, "file:///tmp");
}

static void
test_fifo (void)
{
  static const gchar *const names[] = { "config.json", "tokenizer.json", "model.safetensors" };
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  gsize i;

  for (i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree gchar *path = g_build_filename (model->directory, names[i], NULL);

    fixture_save (model);
    fixture_remove (model->directory, names[i]);
    g_assert_cmpint (mkfifo (path, 0600), ==, 0);
    expect_path_error (model->directory, VLM_ERROR_READ, names[i]);
    fixture_remove (model->directory, names[i]);
  }
}

static void
test_unreadable (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autofree gchar *path = g_build_filename (model->directory, "config.json", NULL);
  uid_t user = geteuid ();

  fixture_save (model);
  /* Root may read everything, so somebody else has to try. */
  if (user == 0 && seteuid (65534) != 0) {
    g_test_skip ("cannot become an ordinary user");
    return;
  }
  if (user == 0)
    expect_path_error (model->directory, VLM_ERROR_READ, model->directory);
  g_assert_cmpint (seteuid (user), ==, 0);
  g_assert_cmpint (g_chmod (model->directory, 0755), ==, 0);
  g_assert_cmpint (g_chmod (path, 0), ==, 0);
  if (user == 0)
    g_assert_cmpint (seteuid (65534), ==, 0);
  expect_path_error (model->directory, VLM_ERROR_READ, "config.json");
  g_assert_cmpint (seteuid (user), ==, 0);
}

static void
test_tokenizer_load (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autofree gchar *path = g_build_filename (model->directory, "tokenizer.json", NULL);
  g_autoptr (GError) error = NULL;
  VlmTokenizer *tokenizer;

  fixture_write_json (model->directory, "tokenizer.json", model->tokenizer);
  tokenizer = vlm_tokenizer_load (model->directory, &error);
  g_assert_no_error (error);
  g_assert_cmpint (vlm_tokenizer_lookup (tokenizer, "<image>"), ==, model->image_id);
  vlm_tokenizer_unref (tokenizer);
  tokenizer = vlm_tokenizer_load (path, &error);
  g_assert_no_error (error);
  g_assert_cmpint (vlm_tokenizer_lookup (tokenizer, "<image>"), ==, model->image_id);
  vlm_tokenizer_unref (tokenizer);

  fixture_remove (model->directory, "tokenizer.json");
  g_assert_null (vlm_tokenizer_load (model->directory, &error));
  fixture_assert_message (error, VLM_ERROR_NOT_FOUND, "tokenizer.json");
  g_clear_error (&error);
  g_assert_null (vlm_tokenizer_load ("/nonexistent", &error));
  g_assert_error (error, VLM_ERROR, VLM_ERROR_NOT_FOUND);
}

/* The text half of a model whose weights are cut or missing. */
static void
test_cut_weights (void)
{
  g_autoptr (FixtureModel) model = fixture_model_new (TRUE);
  g_autofree gchar *path = g_build_filename (model->directory, "model.safetensors", NULL);
  g_autoptr (GError) error = NULL;
  GStatBuf status;

  fixture_save (model);
  g_assert_cmpint (g_stat (path, &status), ==, 0);
  g_assert_cmpint (truncate (path, status.st_size - 1), ==, 0);
  g_assert_null (vlm_checkpoint_open (model->directory, NULL, &error));
  fixture_assert_message (error, VLM_ERROR_FORMAT, "model.safetensors: tensor ");
}

static void
add_cases (void)
{
  gsize i;

  for (i = 0; i < G_N_ELEMENTS (feed_forward_cases); i++) {
    g_autofree gchar *path =
        g_strconcat ("/checkpoint/feed-forward/", feed_forward_cases[i].name, NULL);

    g_test_add_data_func (path, &feed_forward_cases[i], test_feed_forward);
  }
  for (i = 0; i < G_N_ELEMENTS (config_cases); i++) {
    g_autofree gchar *path = g_strconcat ("/checkpoint/config/", config_cases[i].name, NULL);

    g_test_add_data_func (path, &config_cases[i], test_config_fault);
  }
  for (i = 0; i < G_N_ELEMENTS (document_cases); i++) {
    g_autofree gchar *path = g_strconcat ("/checkpoint/document/", document_cases[i].name, NULL);

    g_test_add_data_func (path, &document_cases[i], test_document);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/checkpoint/vision-model", test_vision_model);
  g_test_add_func ("/checkpoint/defaults", test_defaults);
  g_test_add_func ("/checkpoint/first-spellings", test_first_spellings);
  g_test_add_func ("/checkpoint/text-model", test_text_model);
  g_test_add_func ("/checkpoint/feed-forward-rule", test_feed_forward_rule);
  add_cases ();
  g_test_add_func ("/checkpoint/deep-document", test_deep_document);
  g_test_add_func ("/checkpoint/large-document", test_large_document);
  g_test_add_func ("/checkpoint/processor-files", test_processor_files);
  g_test_add_func ("/checkpoint/pixel-steps-off", test_pixel_steps_off);
  g_test_add_func ("/checkpoint/processor-faults", test_processor_faults);
  g_test_add_func ("/checkpoint/generation", test_generation);
  g_test_add_func ("/checkpoint/generation-absent", test_generation_absent);
  g_test_add_func ("/checkpoint/image-token", test_image_token);
  g_test_add_func ("/checkpoint/missing-files", test_missing_files);
  g_test_add_func ("/checkpoint/fifo", test_fifo);
  g_test_add_func ("/checkpoint/unreadable", test_unreadable);
  g_test_add_func ("/checkpoint/tokenizer-load", test_tokenizer_load);
  g_test_add_func ("/checkpoint/cut-weights", test_cut_weights);
  return g_test_run ();
}
