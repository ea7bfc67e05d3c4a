/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The blocks of integers that GGUF files keep weights in, as plain rows; see docs/formats.md. */

#ifndef VLM_GGUF_BLOCKS_H
#define VLM_GGUF_BLOCKS_H

#include "quant.h"

/*
 * How the weights are stored that blocks of a type hold, so that their values are those of ggml to
 * the last bit. FALSE for a type that is not of these: Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K,
 * Q6_K.
 */
gboolean vlm_gguf_blocks_get_format (guint type, VlmIntFormat *format);

/*
 * Unpacks n_rows rows of blocks to the start of rows, which was made for the type's format and for
 * whole blocks. Returns the number of blocks, or the index of the first one with a scale or minimum
 * that is NaN or infinite.
 */
gsize vlm_gguf_blocks_unpack (
    guint type, const guint8 *blocks, gsize n_rows, const VlmQuantRows *rows);

#endif
