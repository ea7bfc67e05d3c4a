/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "published.h"

#include <gio/gio.h>

#define BIT(n) (1u << (n))
#define ATTENTION_OF_16 (BIT (2) | BIT (5) | BIT (8) | BIT (10) | BIT (12) | BIT (14))
#define ATTENTION_OF_30                                                                            \
  (BIT (2) | BIT (5) | BIT (9) | BIT (13) | BIT (17) | BIT (21) | BIT (24) | BIT (27))

/* What all publications have in common. */
#define KEY_HEADS 8
#define HEAD_DIM 64
#define CONV_TAPS 3
#define ROPE_THETA 1e6
#define PATCH_SIZE 16
#define POSITIONS 256
#define DOWNSAMPLE 2

typedef struct
{
  guint hidden, heads, layers, ff;
  guint n_attention;
  guint32 attention; /* bit n: layer n is attention; 0 when only their number is known */
  guint vocabulary;  /* 0 when unknown */
} TextShape;

typedef struct
{
  guint hidden, layers, ff;
  guint heads;
} VisionShape;

struct _VlmPublished
{
  const gchar *name, *twin;
  gboolean unverified;
  const TextShape *text;
  const VisionShape *vision; /* NULL: a text model */
  gboolean projector_norm;
  guint projector; /* 0 when unknown, and so are the parameters then */
  guint n_tensors;
  guint64 n_parameters;
};

static const TextShape text_230m = { 1024, 16, 14, 2560, 6, 0, 65536 };
static const TextShape text_350m = { 1024, 16, 16, 4608, 6, ATTENTION_OF_16, 65536 };
static const TextShape text_700m = { 1536, 24, 16, 6912, 6, ATTENTION_OF_16, 65536 };
static const TextShape text_1_2b = { 2048, 32, 16, 8192, 6, ATTENTION_OF_16, 65536 };
static const TextShape text_2_6b = { 2048, 32, 30, 10752, 8, ATTENTION_OF_30, 65536 };
/* With the vocabulary of some 125,000 ids. */
static const TextShape text_2_6b_128k = { 2048, 32, 30, 10752, 8, ATTENTION_OF_30, 0 };

static const VisionShape tower_small = { 768, 12, 3072, 12 };
static const VisionShape tower_large = { 1152, 27, 4304, 16 };

static const VlmPublished published_sizes[] = {
  { "LFM2.5-230M", NULL, TRUE, &text_230m, NULL, FALSE, 0, 132, 229693184 },
  { "LFM2-350M", "LFM2.5-350M", FALSE, &text_350m, NULL, FALSE, 0, 148, 354483968 },
  { "LFM2-700M", NULL, FALSE, &text_700m, NULL, FALSE, 0, 148, 742489344 },
  { "LFM2-1.2B", "LFM2.5-1.2B", FALSE, &text_1_2b, NULL, FALSE, 0, 148, 1170340608 },
  { "LFM2-2.6B", NULL, FALSE, &text_2_6b, NULL, FALSE, 0, 266, 2569272320 },
  { "LFM2-VL-450M", NULL, FALSE, &text_350m, &tower_small, TRUE, 2560, 351, 450822656 },
  { "LFM2.5-VL-450M", NULL, FALSE, &text_350m, &tower_small, FALSE, 2048, 349, 448718848 },
  { "LFM2-VL-1.6B", NULL, FALSE, &text_1_2b, &tower_large, TRUE, 0, 591, 0 },
  { "LFM2.5-VL-1.6B", NULL, FALSE, &text_1_2b, &tower_large, FALSE, 2048, 589, 1596625904 },
  { "LFM2-VL-3B", NULL, FALSE, &text_2_6b, &tower_large, TRUE, 2048, 709, 2995566832 },
  { "LFM2.5-VL-3B", NULL, TRUE, &text_2_6b_128k, &tower_large, FALSE, 0, 707, 0 },
};

static gboolean
has_text (const TextShape *shape, const VlmTextConfig *text)
{
  return shape->hidden == text->hidden_size && shape->layers == text->n_layers
      && shape->ff == text->ff_size;
}

static gboolean
has_vision (const VlmPublished *published, const VlmConfig *config)
{
  if (!published->vision || !config->has_vision)
    return !published->vision && !config->has_vision;
  return published->vision->hidden == config->vision.hidden_size
      && published->vision->layers == config->vision.n_layers
      && !published->projector_norm == !config->projector.layer_norm;
}

const VlmPublished *
vlm_published_find (const VlmConfig *config)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (published_sizes); i++) {
    const VlmPublished *published = &published_sizes[i];

    if (has_text (published->text, &config->text) && has_vision (published, config))
      return published;
  }
  return NULL;
}

const gchar *
vlm_published_get_name (const VlmPublished *published)
{
  return published->name;
}

const gchar *
vlm_published_get_twin (const VlmPublished *published)
{
  return published->twin;
}

gboolean
vlm_published_is_verified (const VlmPublished *published)
{
  return !published->unverified;
}

typedef struct
{
  const gchar *name;
  GPtrArray *deviations;
} Comparison;

/* An expected value of 0 is one that nobody knows. */
static void
compare_count (Comparison *comparison, const gchar *key, guint64 found, guint64 expected)
{
  if (expected != 0 && found != expected)
    g_ptr_array_add (comparison->deviations,
        g_strdup_printf ("%s is %" G_GUINT64_FORMAT ", %s has %" G_GUINT64_FORMAT, key, found,
            comparison->name, expected));
}

static void
compare_flag (Comparison *comparison, const gchar *key, gboolean found, gboolean expected)
{
  if (!found != !expected)
    g_ptr_array_add (comparison->deviations,
        g_strdup_printf ("%s is %s, %s has %s", key, found ? "true" : "false", comparison->name,
            expected ? "true" : "false"));
}

/* "2, 5, 8" */
static gchar *
list_layers (guint32 attention)
{
  GString *text = g_string_new (NULL);
  guint i;

  for (i = 0; i < 32; i++) {
    if (attention & BIT (i))
      g_string_append_printf (text, "%s%u", text->len ? ", " : "", i);
  }
  return g_string_free (text, FALSE);
}

/* Which layers are attention, or only how many where the order is not known. */
static void
compare_layers (Comparison *comparison, const VlmTextConfig *text, const TextShape *shape)
{
  g_autofree gchar *found = NULL;
  g_autofree gchar *expected = NULL;
  guint32 attention = 0;
  guint i, n = 0;

  for (i = 0; i < text->n_layers; i++) {
    if (text->layers[i] == VLM_LAYER_ATTENTION) {
      n++;
      attention |= BIT (i);
    }
  }
  if (shape->attention == 0) {
    compare_count (comparison, "number of attention layers", n, shape->n_attention);
    return;
  }
  if (attention == shape->attention)
    return;
  found = list_layers (attention);
  expected = list_layers (shape->attention);
  g_ptr_array_add (comparison->deviations,
      g_strdup_printf ("layers with attention are %s, %s has %s", n ? found : "none",
          comparison->name, expected));
}

static void
compare_text (Comparison *comparison, const VlmTextConfig *text, const TextShape *shape)
{
  compare_layers (comparison, text, shape);
  compare_count (comparison, "num_attention_heads", text->n_heads, shape->heads);
  compare_count (comparison, "num_key_value_heads", text->n_kv_heads, KEY_HEADS);
  compare_count (comparison, "head_dim", text->head_dim, HEAD_DIM);
  compare_count (comparison, "vocab_size", text->vocab_size, shape->vocabulary);
  compare_count (comparison, "conv_L_cache", text->conv_taps, CONV_TAPS);
  compare_flag (comparison, "conv_bias", text->conv_bias, FALSE);
  compare_flag (comparison, "tie_word_embeddings", text->tied_head, TRUE);
  if (text->rope_theta != ROPE_THETA)
    g_ptr_array_add (comparison->deviations,
        g_strdup_printf (
            "rope_theta is %g, %s has %g", text->rope_theta, comparison->name, ROPE_THETA));
}

static void
compare_vision (Comparison *comparison, const VlmConfig *config, const VlmPublished *published)
{
  const VlmVisionConfig *vision = &config->vision;
  const VlmProjectorConfig *projector = &config->projector;

  compare_count (
      comparison, "vision_config.intermediate_size", vision->ff_size, published->vision->ff);
  compare_count (
      comparison, "vision_config.num_attention_heads", vision->n_heads, published->vision->heads);
  compare_count (comparison, "vision_config.patch_size", vision->patch_size, PATCH_SIZE);
  compare_count (comparison, "vision_config.num_patches", vision->n_positions, POSITIONS);
  compare_count (comparison, "projector_hidden_size", projector->hidden_size, published->projector);
  compare_flag (comparison, "projector_bias", projector->bias, TRUE);
  compare_count (comparison, "downsample_factor", projector->downsample_factor, DOWNSAMPLE);
}

GPtrArray *
vlm_published_compare (
    const VlmPublished *published, const VlmConfig *config, guint n_tensors, guint64 n_parameters)
{
  Comparison comparison = { published->name, g_ptr_array_new_with_free_func (g_free) };

  compare_text (&comparison, &config->text, published->text);
  if (published->vision)
    compare_vision (&comparison, config, published);
  compare_count (&comparison, "number of tensors", n_tensors, published->n_tensors);
  compare_count (&comparison, "number of parameters", n_parameters, published->n_parameters);
  return comparison.deviations;
}
