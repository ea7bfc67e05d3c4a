/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tensors of random integers in any format, and of floats, that are in memory and in no file. */

#ifndef TEST_FORMATS_ROWS_FIXTURE_H
#define TEST_FORMATS_ROWS_FIXTURE_H

#include "engine/formats/tensors.h"

typedef struct
{
  const gchar *name;
  VlmDType dtype;
  VlmIntFormat format; /* of VLM_DTYPE_QUANTISED */
  guint64 rows, cols;
} RowsTensor;

/* A tensor of floats, and one of integers, that has no name and no sides yet. */
#define ROWS_FLOATS(TYPE)                                                                          \
  {                                                                                                \
    NULL, VLM_DTYPE_##TYPE, { 0 }, 0, 0                                                            \
  }
#define ROWS_INTEGERS(...)                                                                         \
  {                                                                                                \
    NULL, VLM_DTYPE_QUANTISED, { __VA_ARGS__ }, 0, 0                                               \
  }

/* The formats of the GGUF files that people have, and some that nobody has. */
extern const VlmIntFormat rows_fixture_formats[];
extern const guint rows_fixture_n_formats;

/* "int4 codes/32 min" (transfer full) */
gchar *rows_fixture_format_name (const VlmIntFormat *format);

/* n_rows random rows: every integer and code, scales that are small and of either sign. */
void rows_fixture_fill (VlmQuantRows *rows, gsize n_rows, GRand *random);

/*
 * The value of an element by the words of VlmIntFormat. size is the sum of the magnitudes that it
 * is made of, for bounds of rounding.
 */
gdouble rows_fixture_value (const VlmQuantRows *rows, gsize row, gsize column, gdouble *size);

/* A source of tensors with random values. (transfer full) */
VlmTensorSource *rows_fixture_new (const RowsTensor *tensors, guint n, guint32 seed);

/* The integers, or the floats, of tensor i: all its rows. */
const VlmQuantRows *rows_fixture_get_rows (VlmTensorSource *source, guint i);
const gfloat *rows_fixture_get_floats (VlmTensorSource *source, guint i);

#endif
