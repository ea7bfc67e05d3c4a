/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How much work the stages of an answer are: what their times are held against. */

#ifndef TOOLS_BENCH_WORK_H
#define TOOLS_BENCH_WORK_H

#include "engine/vlm.h"

/* What the amount of work depends on. */
typedef struct
{
  gdouble layer_weights;     /* of the decoder's matrices, the head left out */
  gdouble head_weights;      /* vocabulary times width */
  gdouble inputs;            /* values that the decoder's products take in for a token */
  guint n_attention, n_conv; /* layers of either kind */
  guint n_last_conv;         /* of those the ones after the last with attention */
  guint conv_past;           /* tokens before one that a convolution looks at */
  /* Of a layer with a convolution, and of one with attention from where it has looked: */
  gdouble conv_weights, conv_inputs, looked_weights, looked_inputs;
  gdouble query_width;   /* heads times their size */
  gdouble key_width;     /* the same of keys */
  gdouble conv_values;   /* taps times width */
  gdouble patch_weights; /* of the tower's matrices, for each patch */
  gdouble patch_values;  /* of the pixels of a patch, which come as floats */
  gdouble patch_inputs;  /* values that its other products take in for a patch */
  guint n_vision_layers;
  gdouble vision_width;
  guint patches_a_token;
  gdouble projector_weights; /* for each image token */
  gdouble projector_inputs;
  guint token_side, tile_side;                 /* pixels of an image token and of a tile */
  gdouble layer_bytes, head_bytes, crop_bytes; /* of weights, as VlmModelInfo has them */
  gdouble input_bytes, patch_input_bytes;      /* of a value that a product takes in */
} BenchShape;

/*
 * Operations, a product and its addition being two: those of matrices, attention and convolutions,
 * nothing element by element. Bytes that have to be read: every matrix once for each piece of text
 * or crop that passes through it, what each product takes in as it is multiplied (one byte a value
 * for integers, else four), and queries, keys and values in float32.
 */
typedef struct
{
  gdouble operations, bytes;
} BenchCost;

/* Of the model at path, loaded as info says. Errors: those of vlm_model_describe (). */
gboolean bench_shape_find (BenchShape *shape, const gchar *path, const gchar *mmproj,
    const VlmModelInfo *info, GError **error);

/* One crop of a picture through tower and projector. */
BenchCost bench_crop_cost (const BenchShape *shape, guint n_patches);

/*
 * A prompt of n_tokens, of which n_kept are there already, chunk of them at once, and the logits of its
 * last. What the last layers leave out, since neither that token nor later ones depend on it, does not
 * count.
 */
BenchCost bench_prefill_cost (const BenchShape *shape, guint n_kept, guint n_tokens, guint chunk);

/* One token behind n_tokens others, and its logits. */
BenchCost bench_token_cost (const BenchShape *shape, gdouble n_tokens);

#endif
