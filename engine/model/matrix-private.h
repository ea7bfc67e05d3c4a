/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What loading and multiplying matrices share. */

#ifndef VLM_MATRIX_PRIVATE_H
#define VLM_MATRIX_PRIVATE_H

#include "matrix.h"

gsize vlm_matrix_get_n_panels (const VlmMatrix *matrix);

/* n values of a tensor of floats, as f32. */
void vlm_widen_floats (
    const VlmKernels *kernels, VlmDType dtype, gconstpointer src, gfloat *dst, gsize n);

#endif
