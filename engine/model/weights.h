/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* All weights of a model, bound by tensor name and checked by shape. */

#ifndef VLM_WEIGHTS_H
#define VLM_WEIGHTS_H

#include "engine/formats/checkpoint.h"
#include "engine/vlm.h"
#include "matrix.h"

typedef struct
{
  VlmMatrix *matrix;
  gfloat *bias; /* NULL where the layer has none */
} VlmLinear;

typedef struct
{
  VlmLayerKind kind;
  VlmNorm operator_norm, ffn_norm;
  VlmLinear qkv, attention_out; /* attention: q, k, v rows stacked */
  VlmNorm q_norm, k_norm;
  VlmLinear conv_in, conv_out; /* convolution: rows in thirds B, C, x */
  gfloat *taps;                /* [conv_taps][hidden]: transposed from [hidden][1][taps] */
  gfloat *taps_bias;           /* [hidden]; NULL unless conv_bias */
  VlmMatrix *gate_up;          /* w1 rows, then w3 rows */
  VlmMatrix *down;             /* w2 */
} VlmDecoderLayer;

typedef struct
{
  VlmNorm norm1, norm2;
  VlmLinear qkv, out, fc1, fc2;
} VlmVisionLayer;

typedef struct
{
  VlmMatrix *embedding;    /* [vocab, hidden] */
  VlmMatrix *head;         /* same pointer as embedding when tied */
  VlmDecoderLayer *layers; /* [text.n_layers] */
  VlmNorm final_norm;

  VlmLinear patch;               /* [vision.hidden, patch * patch * 3] */
  gfloat *positions;             /* [n_positions][vision.hidden] */
  VlmVisionLayer *vision_layers; /* [vision.n_layers] */
  VlmNorm post_norm;

  VlmNorm projector_norm; /* weight NULL when the model has none */
  VlmLinear projector1, projector2;

  VlmSlab *slab; /* the packed matrices */
  guint64 n_parameters;
  guint64 n_bytes;     /* memory held */
  guint64 token_bytes; /* of matrices that every generated token reads */
  guint64 head_bytes;  /* of them, the head */
  guint64 crop_bytes;  /* of matrices that every crop of a picture reads */
} VlmWeights;

/*
 * Reads and packs all weights of the checkpoint. Widths of config that only tensors can tell
 * (feed-forward rows, tied head, projector norm) are cross-checked first.
 * Errors: VLM_ERROR_FORMAT naming the tensor with the expected and the found shape, for a missing,
 * surplus or misshapen tensor; those of reading. precision says what the matrices become, see
 * vlm_matrix_load (); n_threads pack them, 0: as many as CPUs may be used. progress may be NULL.
 * (transfer full)
 */
VlmWeights *vlm_weights_load (VlmCheckpoint *checkpoint, const VlmKernels *kernels,
    VlmPrecision precision, guint n_threads, VlmProgressFunc progress, gpointer user_data,
    GCancellable *cancellable, GError **error);

void vlm_weights_free (VlmWeights *weights, const VlmConfig *config);

#endif
