/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Random integer weights, as rows and as the panels made of them, for the tests of products. */

#ifndef CHECK_WEIGHTS_H
#define CHECK_WEIGHTS_H

#include "check.h"

/* Slots from here on hold the weights. */
enum
{
  SLOT_PANEL = 7,
  SLOT_Q,
  SLOT_SCALES,
  SLOT_MINS,
  SLOT_SUPERS,
  SLOT_SUPER_MINS
};

typedef enum
{
  KIND_PLAIN,
  KIND_LOWEST,  /* weights all the lowest, activations all +-127 */
  KIND_HIGHEST, /* the same with the highest */
  KIND_ZEROS,   /* some groups of zeros */
  KIND_ENDS,    /* weights the lowest or the highest, activations 127 or -127 */
  N_KINDS
} CheckKind;

/* Those that files have; the first has a scale for each row. */
#define CHECK_N_INT_FORMATS 14
extern const VlmIntFormat check_int_formats[CHECK_N_INT_FORMATS];

/* One that no file has, with scales of that kind. */
VlmIntFormat check_random_format (unsigned bits, VlmIntScale scale);

/* n rows of k values */
typedef struct
{
  VlmIntFormat format;
  size_t k, n;
  VlmIntRows rows;
  uint8_t *panel; /* those of more rows follow */
  size_t panel_bytes;
} CheckWeights;

/* Makes rows of the format. */
void check_fill_weights (CheckWeights *w, CheckKind kind, size_t k, size_t n);

/* Makes panels of the rows. */
void check_pack_weights (CheckWeights *w, const VlmKernels *kernels);

/* The scale of group g of row j, and its minimum. */
float check_weight_scale (const CheckWeights *w, size_t j, size_t g);
float check_weight_min (const CheckWeights *w, size_t j, size_t g);

/* One of n values. */
size_t check_pick (const size_t *values, size_t n);

#endif
