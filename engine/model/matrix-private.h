/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What loading and multiplying matrices share. */

#ifndef VLM_MATRIX_PRIVATE_H
#define VLM_MATRIX_PRIVATE_H

#include "matrix.h"

gsize vlm_matrix_get_n_panels (const VlmMatrix *matrix);

#endif
