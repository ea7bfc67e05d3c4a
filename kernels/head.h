/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Private to kernels/: what all levels of attend_head have in common, see kernels.h. */

#ifndef VLM_KERNELS_HEAD_H
#define VLM_KERNELS_HEAD_H

#define HEAD_MAX_DIM 256

/* Keys whose weights share a scale, the largest of them. Their sum of products with values is below
 * 2^31: 128 * 2^13 * 2047. */
#define HEAD_BLOCK 128
#define HEAD_WEIGHT_MAX 0x1p13f
#define HEAD_VALUE_MAX 2047

#define HEAD_LOG2_E 1.44269504f
#define HEAD_LN_2 0.693147181f

/* 2^r = 1 + r (c1 + r (c2 + r c3)) for |r| <= 1/2, with a relative error of 2^-13. */
#define HEAD_EXP2_1 0x1.62f5fap-1f
#define HEAD_EXP2_2 0x1.f00c4ep-3f
#define HEAD_EXP2_3 0x1.c2a216p-5f

/* The maximum of no scores: finite, so that zero times it is zero. */
#define HEAD_NO_MAX -0x1p127f

#endif
