/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Sizes and names of the types of GGUF. */

#include "gguf-private.h"

/* A number of ggml's that has no entry here is one that was given up or is not known. */
static const struct
{
  const gchar *name;
  guint n_values, n_bytes; /* of a block */
} types[] = {
  [0] = { "F32", 1, 4 },
  [1] = { "F16", 1, 2 },
  [2] = { "Q4_0", 32, 18 },
  [3] = { "Q4_1", 32, 20 },
  [6] = { "Q5_0", 32, 22 },
  [7] = { "Q5_1", 32, 24 },
  [8] = { "Q8_0", 32, 34 },
  [10] = { "Q2_K", 256, 84 },
  [11] = { "Q3_K", 256, 110 },
  [12] = { "Q4_K", 256, 144 },
  [13] = { "Q5_K", 256, 176 },
  [14] = { "Q6_K", 256, 210 },
  [15] = { "Q8_K", 256, 292 },
  [16] = { "IQ2_XXS", 256, 66 },
  [17] = { "IQ2_XS", 256, 74 },
  [18] = { "IQ3_XXS", 256, 98 },
  [19] = { "IQ1_S", 256, 50 },
  [20] = { "IQ4_NL", 32, 18 },
  [21] = { "IQ3_S", 256, 110 },
  [22] = { "IQ2_S", 256, 82 },
  [23] = { "IQ4_XS", 256, 136 },
  [24] = { "I8", 1, 1 },
  [25] = { "I16", 1, 2 },
  [26] = { "I32", 1, 4 },
  [27] = { "I64", 1, 8 },
  [28] = { "F64", 1, 8 },
  [29] = { "IQ1_M", 256, 56 },
  [30] = { "BF16", 1, 2 },
  [34] = { "TQ1_0", 256, 54 },
  [35] = { "TQ2_0", 256, 66 },
  [39] = { "MXFP4", 32, 17 },
};

const gchar *
vlm_gguf_type_name (guint type)
{
  return type < G_N_ELEMENTS (types) ? types[type].name : NULL;
}

gboolean
vlm_gguf_type_block (guint type, guint *n_values, guint *n_bytes)
{
  if (!vlm_gguf_type_name (type))
    return FALSE;
  *n_values = types[type].n_values;
  *n_bytes = types[type].n_bytes;
  return TRUE;
}

gsize
vlm_gguf_value_size (VlmGgufType type)
{
  static const guint8 sizes[VLM_GGUF_N_TYPES] = {
    [VLM_GGUF_U8] = 1,
    [VLM_GGUF_I8] = 1,
    [VLM_GGUF_U16] = 2,
    [VLM_GGUF_I16] = 2,
    [VLM_GGUF_U32] = 4,
    [VLM_GGUF_I32] = 4,
    [VLM_GGUF_F32] = 4,
    [VLM_GGUF_BOOL] = 1,
    [VLM_GGUF_U64] = 8,
    [VLM_GGUF_I64] = 8,
    [VLM_GGUF_F64] = 8,
  };

  return sizes[type];
}
