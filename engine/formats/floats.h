/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Float tensors as they stand in files: f32 of them, and the search for what is no finite number. */

#ifndef VLM_FLOATS_H
#define VLM_FLOATS_H

#include "tensors.h"

/* n values as f32, exactly. */
void vlm_floats_widen (
    const VlmKernels *kernels, VlmDType dtype, gconstpointer raw, gfloat *values, gsize n);

/* How many of n values are NaN or infinite. */
gsize vlm_floats_count_special (VlmDType dtype, gconstpointer raw, gsize n);

/* The index of the first NaN or infinity among n values, n when there is none. */
gsize vlm_floats_find_special (VlmDType dtype, gconstpointer raw, gsize n);

/* "NaN", "Inf" or "-Inf": what the value at index, one that was found, is. */
const gchar *vlm_floats_special_name (VlmDType dtype, gconstpointer raw, gsize index);

/* "[3, 17]": where in the tensor the value at index, counted row by row, is. (transfer full) */
gchar *vlm_floats_position (const VlmTensorInfo *info, guint64 index);

#endif
