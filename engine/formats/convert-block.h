/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Rows of one tensor on their way into a .slm file, rounded by several threads. */

#ifndef VLM_CONVERT_BLOCK_H
#define VLM_CONVERT_BLOCK_H

#include "engine/runtime/team.h"
#include "slm.h"
#include "tensors.h"

typedef struct _VlmConvertBlock VlmConvertBlock;

/*
 * Room for some rows of a tensor of source that is to be stored as integers of format, or as halves
 * where that is NULL. Integers of this very format stay what they are; others can only become those
 * of vlm_quant_round (). VLM_ERROR_MEMORY. format and kernels are borrowed. (transfer full)
 */
VlmConvertBlock *vlm_convert_block_new (VlmTensorSource *source, const VlmTensorInfo *info,
    const VlmIntFormat *format, const VlmKernels *kernels, GError **error);
void vlm_convert_block_free (VlmConvertBlock *block);

/* Rows there are in the tensor, and room for in the block: both at least 1. */
guint64 vlm_convert_block_get_n_rows (const VlmConvertBlock *block);
gsize vlm_convert_block_get_capacity (const VlmConvertBlock *block);

/*
 * Reads rows first .. first + n_rows - 1, rounds them within a turn of team, and hands them to
 * writer. Rows must come in order.
 * VLM_ERROR_FORMAT naming tensor, position and value for one that cannot be stored; errors of
 * reading and writing; G_IO_ERROR_CANCELLED.
 */
gboolean vlm_convert_block_run (VlmConvertBlock *block, guint64 first, gsize n_rows, VlmTeam *team,
    VlmSlmWriter *writer, GCancellable *cancellable, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmConvertBlock, vlm_convert_block_free)

#endif
