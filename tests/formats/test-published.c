/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The published sizes are told by their shapes, and every way of being different is told too. */

#include <string.h>

#include "engine/formats/published.h"

/* Parameters counted from shapes here, independently of the table. */
typedef struct
{
  const gchar *name;
  guint hidden, heads, layers, ff;
  const gchar *attention; /* "2 5 8" */
  guint vision_hidden, vision_ff, vision_layers, vision_heads, projector;
  gboolean projector_norm;
  guint n_tensors;
  guint vocabulary; /* 0: 65536 */
} Size;

static const Size sizes[] = {
  { "LFM2.5-230M", 1024, 16, 14, 2560, "2 5 8 10 12 13", .n_tensors = 132 },
  { "LFM2-350M", 1024, 16, 16, 4608, "2 5 8 10 12 14", .n_tensors = 148 },
  { "LFM2-700M", 1536, 24, 16, 6912, "2 5 8 10 12 14", .n_tensors = 148 },
  { "LFM2-1.2B", 2048, 32, 16, 8192, "2 5 8 10 12 14", .n_tensors = 148 },
  { "LFM2-2.6B", 2048, 32, 30, 10752, "2 5 9 13 17 21 24 27", .n_tensors = 266 },
  { "LFM2-VL-450M", 1024, 16, 16, 4608, "2 5 8 10 12 14", 768, 3072, 12, 12, 2560, TRUE, 351,
      65536 },
  { "LFM2.5-VL-450M", 1024, 16, 16, 4608, "2 5 8 10 12 14", 768, 3072, 12, 12, 2048, FALSE, 349,
      65536 },
  { "LFM2-VL-1.6B", 2048, 32, 16, 8192, "2 5 8 10 12 14", 1152, 4304, 27, 16, 2560, TRUE, 591,
      65536 },
  { "LFM2.5-VL-1.6B", 2048, 32, 16, 8192, "2 5 8 10 12 14", 1152, 4304, 27, 16, 2048, FALSE, 589,
      65536 },
  { "LFM2-VL-3B", 2048, 32, 30, 10752, "2 5 9 13 17 21 24 27", 1152, 4304, 27, 16, 2048, TRUE, 709,
      65536 },
  { "LFM2.5-VL-3B", 2048, 32, 30, 10752, "2 5 9 13 17 21 24 27", 1152, 4304, 27, 16, 2048, FALSE,
      707, 125056 },
};

static void
fill_text (VlmTextConfig *text, const Size *size)
{
  g_auto (GStrv) attention = g_strsplit (size->attention, " ", -1);
  guint i;

  text->vocab_size = size->vocabulary ? size->vocabulary : 65536;
  text->hidden_size = size->hidden;
  text->n_layers = size->layers;
  text->n_heads = size->heads;
  text->n_kv_heads = 8;
  text->head_dim = 64;
  text->ff_size = size->ff;
  text->conv_taps = 3;
  text->rope_theta = 1e6;
  text->tied_head = TRUE;
  for (i = 0; attention[i] != NULL; i++)
    text->layers[g_ascii_strtoull (attention[i], NULL, 10)] = VLM_LAYER_ATTENTION;
}

static VlmConfig
make_config (const Size *size)
{
  VlmConfig config;

  memset (&config, 0, sizeof (config));
  config.has_vision = size->vision_hidden > 0;
  fill_text (&config.text, size);
  config.vision.hidden_size = size->vision_hidden;
  config.vision.ff_size = size->vision_ff;
  config.vision.n_layers = size->vision_layers;
  config.vision.n_heads = size->vision_heads;
  config.vision.patch_size = 16;
  config.vision.n_positions = 256;
  config.projector.hidden_size = size->projector;
  config.projector.layer_norm = size->projector_norm;
  config.projector.bias = TRUE;
  config.projector.downsample_factor = 2;
  return config;
}

static guint64
count_text (const VlmTextConfig *text)
{
  guint64 h = text->hidden_size, queries = text->n_heads * text->head_dim;
  guint64 keys = text->n_kv_heads * text->head_dim;
  guint64 sum = text->vocab_size * h + h;
  guint i;

  for (i = 0; i < text->n_layers; i++) {
    sum += 2 * h + 3 * h * text->ff_size;
    sum += text->layers[i] == VLM_LAYER_CONV ? 4 * h * h + text->conv_taps * h
                                             : 2 * h * (queries + keys) + 2 * text->head_dim;
  }
  return sum;
}

static guint64
count_parameters (const VlmConfig *config)
{
  guint64 d = config->vision.hidden_size, ff = config->vision.ff_size;
  guint64 p = config->projector.hidden_size, h = config->text.hidden_size;
  guint64 sum = count_text (&config->text);

  if (!config->has_vision)
    return sum;
  sum += 768 * d + d + config->vision.n_positions * d + 2 * d;
  sum += config->vision.n_layers * (4 * d + 4 * (d * d + d) + 2 * d * ff + ff + d);
  sum += config->projector.layer_norm ? 8 * d : 0;
  return sum + 4 * d * p + p + p * h + h;
}

static GPtrArray *
compare (const VlmConfig *config, guint n_tensors)
{
  const VlmPublished *published = vlm_published_find (config);

  g_assert_nonnull (published);
  return vlm_published_compare (published, config, n_tensors, count_parameters (config));
}

static void
test_names (void)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (sizes); i++) {
    VlmConfig config = make_config (&sizes[i]);
    const VlmPublished *published = vlm_published_find (&config);
    g_autoptr (GPtrArray) deviations = compare (&config, sizes[i].n_tensors);

    g_assert_cmpstr (vlm_published_get_name (published), ==, sizes[i].name);
    if (deviations->len > 0)
      g_error ("%s: %s", sizes[i].name, (gchar *) deviations->pdata[0]);
    g_assert_true (vlm_published_is_verified (published) == (i != 0 && i != 10));
    g_assert_cmpstr (vlm_published_get_twin (published), ==,
        i == 1       ? "LFM2.5-350M"
            : i == 3 ? "LFM2.5-1.2B"
                     : NULL);
  }
}

/* The order of the smallest one's layers is whatever the file says, their number is not. */
static void
test_layer_order (void)
{
  VlmConfig config = make_config (&sizes[0]);
  g_autoptr (GPtrArray) moved = NULL;
  g_autoptr (GPtrArray) fewer = NULL;

  config.text.layers[2] = VLM_LAYER_CONV;
  config.text.layers[3] = VLM_LAYER_ATTENTION;
  moved = compare (&config, 132);
  g_assert_cmpuint (moved->len, ==, 0);
  config.text.layers[3] = VLM_LAYER_CONV;
  fewer = compare (&config, 132);
  g_assert_cmpuint (fewer->len, ==, 2);
  g_assert_cmpstr (fewer->pdata[0], ==, "number of attention layers is 5, LFM2.5-230M has 6");
  g_assert_nonnull (strstr (fewer->pdata[1], "number of parameters is "));
}

typedef struct
{
  gsize offset; /* of a guint in the configuration */
  guint value;
  const gchar *message;
} Change;

#define TEXT(field) offsetof (VlmConfig, text.field)
#define VISION(field) offsetof (VlmConfig, vision.field)
#define PROJECTOR(field) offsetof (VlmConfig, projector.field)

static void
test_deviations (void)
{
  static const Change changes[] = {
    { TEXT (vocab_size), 64400, "vocab_size is 64400, LFM2.5-VL-450M has 65536" },
    { TEXT (n_heads), 32, "num_attention_heads is 32, LFM2.5-VL-450M has 16" },
    { TEXT (n_kv_heads), 4, "num_key_value_heads is 4, LFM2.5-VL-450M has 8" },
    { TEXT (head_dim), 128, "head_dim is 128, LFM2.5-VL-450M has 64" },
    { TEXT (conv_taps), 4, "conv_L_cache is 4, LFM2.5-VL-450M has 3" },
    { TEXT (conv_bias), TRUE, "conv_bias is true, LFM2.5-VL-450M has false" },
    { TEXT (tied_head), FALSE, "tie_word_embeddings is false, LFM2.5-VL-450M has true" },
    { TEXT (layers[15]), VLM_LAYER_ATTENTION,
        "layers with attention are 2, 5, 8, 10, 12, 14, 15, LFM2.5-VL-450M has 2, 5, 8, 10, 12, "
        "14" },
    { VISION (ff_size), 3000, "vision_config.intermediate_size is 3000, LFM2.5-VL-450M has 3072" },
    { VISION (n_heads), 8, "vision_config.num_attention_heads is 8, LFM2.5-VL-450M has 12" },
    { VISION (patch_size), 14, "vision_config.patch_size is 14, LFM2.5-VL-450M has 16" },
    { VISION (n_positions), 1024, "vision_config.num_patches is 1024, LFM2.5-VL-450M has 256" },
    { PROJECTOR (hidden_size), 2560, "projector_hidden_size is 2560, LFM2.5-VL-450M has 2048" },
    { PROJECTOR (bias), FALSE, "projector_bias is false, LFM2.5-VL-450M has true" },
    { PROJECTOR (downsample_factor), 4, "downsample_factor is 4, LFM2.5-VL-450M has 2" },
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (changes); i++) {
    VlmConfig config = make_config (&sizes[6]);
    g_autoptr (GPtrArray) deviations = NULL;

    memcpy ((guint8 *) &config + changes[i].offset, &changes[i].value, sizeof (guint));
    deviations = compare (&config, 349);
    g_assert_cmpuint (deviations->len, >=, 1);
    g_assert_cmpstr (deviations->pdata[0], ==, changes[i].message);
  }
}

static void
test_counts (void)
{
  VlmConfig config = make_config (&sizes[6]);
  g_autoptr (GPtrArray) deviations = vlm_published_compare (
      vlm_published_find (&config), &config, 348, count_parameters (&config) - 1);

  g_assert_cmpuint (deviations->len, ==, 2);
  g_assert_cmpstr (deviations->pdata[0], ==, "number of tensors is 348, LFM2.5-VL-450M has 349");
  g_assert_cmpstr (
      deviations->pdata[1], ==, "number of parameters is 448718847, LFM2.5-VL-450M has 448718848");
}

static void
test_theta (void)
{
  VlmConfig config = make_config (&sizes[1]);
  g_autoptr (GPtrArray) deviations = NULL;

  config.text.rope_theta = 5e5;
  deviations = compare (&config, 148);
  g_assert_cmpuint (deviations->len, ==, 1);
  g_assert_cmpstr (deviations->pdata[0], ==, "rope_theta is 500000, LFM2-350M has 1e+06");
}

/* Width, depth and feed-forward rows make a size; so do those of a tower. */
static void
test_not_published (void)
{
  static const gsize fields[] = { TEXT (hidden_size), TEXT (n_layers), TEXT (ff_size),
    VISION (hidden_size), VISION (n_layers) };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (fields); i++) {
    VlmConfig config = make_config (&sizes[6]);

    (*(guint *) ((guint8 *) &config + fields[i]))++;
    g_assert_null (vlm_published_find (&config));
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/published/names", test_names);
  g_test_add_func ("/published/layer-order", test_layer_order);
  g_test_add_func ("/published/deviations", test_deviations);
  g_test_add_func ("/published/counts", test_counts);
  g_test_add_func ("/published/theta", test_theta);
  g_test_add_func ("/published/not-published", test_not_published);
  return g_test_run ();
}
