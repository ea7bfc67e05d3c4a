/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a checkpoint's configuration says about the network, every alias resolved. */

#ifndef VLM_CONFIG_H
#define VLM_CONFIG_H

#include <glib.h>

#define VLM_MAX_LAYERS 256
#define VLM_MAX_EOS 8
#define VLM_MAX_FEED_FORWARD (1u << 20)
#define VLM_MIN_CONV_TAPS 2
#define VLM_MAX_CONV_TAPS 16
#define VLM_MAX_WIDTH 65536
#define VLM_MAX_VOCABULARY (1u << 24)
#define VLM_MAX_HEADS 1024
#define VLM_MAX_POSITIONS 65536
#define VLM_MAX_PATCH 64
#define VLM_MAX_DOWNSAMPLE 8
#define VLM_MAX_CONTEXT (1u << 30)
#define VLM_MIN_EPS 1e-12
#define VLM_MAX_EPS 0.1
#define VLM_MAX_THETA 1e12

typedef enum
{
  VLM_LAYER_CONV,
  VLM_LAYER_ATTENTION
} VlmLayerKind;

/* By VlmLayerKind, as config.json spells them. */
extern const gchar *const vlm_layer_kind_names[2];
/* By has_vision. */
extern const gchar *const vlm_family_names[2];

typedef struct
{
  guint vocab_size, hidden_size, n_layers;
  guint n_heads, n_kv_heads, head_dim;
  guint ff_size;       /* rows of w1 and w3, after the auto-adjust rule */
  guint ff_size_other; /* with the rule the other way: tensors exist made either way */
  guint conv_taps;     /* conv_L_cache, 3 */
  gboolean conv_bias;
  guint max_context; /* max_position_embeddings */
  gfloat norm_eps;
  gdouble rope_theta;
  gboolean tied_head;
  VlmLayerKind layers[VLM_MAX_LAYERS];
} VlmTextConfig;

typedef struct
{
  guint hidden_size, ff_size, n_layers, n_heads, head_dim;
  guint patch_size, n_positions; /* n_positions is a square, 16 x 16 */
  gfloat norm_eps;
} VlmVisionConfig;

typedef struct
{
  guint hidden_size; /* projector_hidden_size */
  gboolean layer_norm;
  gboolean bias;
  guint downsample_factor;
} VlmProjectorConfig;

typedef struct
{
  gboolean has_vision;
  VlmTextConfig text;
  VlmVisionConfig vision; /* the rest is meaningless without vision */
  VlmProjectorConfig projector;
  gint image_token_id; /* of the token <image>; what the file says before that is known */
} VlmConfig;

/* Sampling defaults of the model's files; NAN or -1 where they say nothing. */
typedef struct
{
  gint bos_id, pad_id;
  gint eos_ids[VLM_MAX_EOS];
  guint n_eos;
  gboolean do_sample;
  gdouble temperature, top_p, min_p, repetition_penalty;
  gint top_k;
} VlmGeneration;

/*
 * The feed-forward rule of LFM2: two thirds of plain, then times multiplier and up to the next
 * multiple_of. A multiplier that is NAN stands for one that the file sets to null: neither
 * multiplied nor rounded then. 0 when the result is 0 or out of all reason.
 */
guint vlm_config_adjust_feed_forward (guint plain, gdouble multiplier, guint multiple_of);

/*
 * Checks what single values cannot show: divisibility, head sizes that the kernels can take, the
 * square position table. The error (FORMAT or UNSUPPORTED) names the fields as config.json does.
 */
gboolean vlm_config_validate (const VlmConfig *config, GError **error);

#endif
