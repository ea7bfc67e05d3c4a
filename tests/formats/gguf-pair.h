/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A small text file and its vision part, all of whose keys and tensors can be changed. */

#ifndef TEST_FORMATS_GGUF_PAIR_H
#define TEST_FORMATS_GGUF_PAIR_H

#include "gguf-fixture.h"

/* recipe: type and value for gguf_put_raw (); NULL: there is no such key. */
typedef struct
{
  const gchar *key, *recipe;
} GgufKey;

/* rank 0: there is no such tensor. */
typedef struct
{
  const gchar *name;
  guint rank;
  guint64 dims[4];
} GgufTensor;

#define U32(value) "u32:4 u32:" #value
#define F32(bits) "u32:6 u32:" #bits
#define BOOL(value) "u32:7 u8:" #value
#define STRING(text) "u32:8 s:" text

#define NO_MORE_KEYS                                                                               \
  {                                                                                                \
    NULL, NULL                                                                                     \
  }
#define NO_MORE_TENSORS                                                                            \
  {                                                                                                \
    NULL, 0,                                                                                       \
    {                                                                                              \
      0                                                                                            \
    }                                                                                              \
  }

typedef struct
{
  gchar *directory;
  VlmGguf *text, *mmproj;
} GgufPair;

/*
 * Vocabulary 8, width 32, two heads with one KV head, three layers (attention in the middle),
 * feed-forward 48; tower 16 wide with two layers, patches of 4 pixels, 9 positions; projector 40
 * wide without norm. Each list of changes may be NULL; what is new comes last in the file.
 */
void gguf_pair_open (
    GgufPair *pair, const GgufKey *text, const GgufKey *vision, const GgufTensor *tensors);
void gguf_pair_close (GgufPair *pair);

#endif
