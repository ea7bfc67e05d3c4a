/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* GGUF files made on the spot: byte by byte for those that lie, and by a small writer. */

#ifndef TEST_FORMATS_GGUF_FIXTURE_H
#define TEST_FORMATS_GGUF_FIXTURE_H

#include "engine/formats/gguf.h"
#include "fixture.h"

/*
 * Bytes by a recipe, words with blanks between them:
 *   u8:N u16:N u32:N u64:N   a number, in C's notation (negative ones too)
 *   s:TEXT                   a string with its length; "s:" is the empty one
 *   zeros:N                  N bytes
 *   pad:N                    zeros up to a multiple of N bytes
 *   TEXT                     anything else: itself
 * (transfer full)
 */
GByteArray *gguf_bytes_new (const gchar *recipe);

/* A GGUF file in the making. */
typedef struct
{
  guint version;
  GByteArray *keys, *tensors, *data;
  guint64 n_keys, n_tensors, alignment;
} GgufWriter;

GgufWriter *gguf_writer_new (void);
void gguf_writer_free (GgufWriter *writer);

void gguf_put_u32 (GgufWriter *writer, const gchar *key, guint32 value);
void gguf_put_u16 (GgufWriter *writer, const gchar *key, guint16 value);
void gguf_put_f32 (GgufWriter *writer, const gchar *key, gfloat value);
void gguf_put_bool (GgufWriter *writer, const gchar *key, gboolean value);
void gguf_put_string (GgufWriter *writer, const gchar *key, const gchar *value);
void gguf_put_i32s (GgufWriter *writer, const gchar *key, const gint32 *values, guint64 n);
void gguf_put_f32s (GgufWriter *writer, const gchar *key, const gfloat *values, guint64 n);
void gguf_put_strings (GgufWriter *writer, const gchar *key, const gchar *const *values, guint64 n);
/* A key whose type and value are those bytes. */
void gguf_put_raw (GgufWriter *writer, const gchar *key, const gchar *recipe);

/* dims as in the file, fastest first. data is padded in the file. */
void gguf_add_tensor (GgufWriter *writer, const gchar *name, guint type, guint rank,
    const guint64 *dims, gconstpointer data, gsize n_bytes);

/* The whole file. (transfer full) */
GByteArray *gguf_writer_get_bytes (const GgufWriter *writer);
void gguf_writer_save (const GgufWriter *writer, const gchar *directory, const gchar *name);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (GgufWriter, gguf_writer_free)

#endif
