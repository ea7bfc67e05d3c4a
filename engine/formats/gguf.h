/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * GGUF, versions 2 and 3: the container alone, read and judged. What keys and tensors mean is not
 * its business. docs/formats.md has the layout and the limits.
 */

#ifndef VLM_GGUF_H
#define VLM_GGUF_H

#include "file.h"

/* The first bytes of a file. */
#define VLM_GGUF_MAGIC "GGUF"

#define VLM_GGUF_MAX_RANK 4

/* Numbers of the format. */
typedef enum
{
  VLM_GGUF_U8,
  VLM_GGUF_I8,
  VLM_GGUF_U16,
  VLM_GGUF_I16,
  VLM_GGUF_U32,
  VLM_GGUF_I32,
  VLM_GGUF_F32,
  VLM_GGUF_BOOL,
  VLM_GGUF_STRING,
  VLM_GGUF_ARRAY,
  VLM_GGUF_U64,
  VLM_GGUF_I64,
  VLM_GGUF_F64,
  VLM_GGUF_N_TYPES
} VlmGgufType;

/* A value in the private copy of the header. */
typedef struct
{
  VlmGgufType type;    /* of the value; VLM_GGUF_ARRAY for arrays */
  VlmGgufType element; /* of an array's elements, which are never arrays; else the same as type */
  guint64 n;           /* elements; 1 when it is no array */
  const guint8 *data;  /* as in the file: little-endian, strings with their lengths before them */
  gsize n_bytes;       /* of all elements */
} VlmGgufValue;

/* A tensor, sizes checked against type, block size and file. */
typedef struct
{
  const gchar *name;
  guint type;                      /* ggml's number, one that has a known size */
  guint rank;                      /* 1 .. VLM_GGUF_MAX_RANK */
  guint64 dims[VLM_GGUF_MAX_RANK]; /* fastest first, none of them 0 */
  guint64 offset;                  /* absolute in its file */
  guint64 n_bytes;
  guint file; /* of a model in several files, which */
} VlmGgufTensor;

typedef struct _VlmGguf VlmGguf;

/* What a file is a part of ("lfm2", "clip"), and which part ("model", "mmproj", "adapter"). */
#define VLM_GGUF_ARCHITECTURE_KEY "general.architecture"
#define VLM_GGUF_TYPE_KEY "general.type"

/* Whether path is a regular file that begins as these files do. */
gboolean vlm_gguf_probe (const gchar *path);

/*
 * Reads those two keys of one file and, as far as they stand before those of the tokenizer, nothing
 * else; NULL for one that is not there, or is a type that stands behind them. (transfer full)
 * Errors as vlm_gguf_open (), for what is read.
 */
gboolean vlm_gguf_peek (const gchar *path, gchar **architecture, gchar **type, GError **error);

/*
 * Opens a local file and, when its keys say that it is the first of several
 * (NAME-00001-of-0000N.gguf), the others. Copies the headers and judges them as a whole; nothing of
 * the data is read. (transfer full)
 * VLM_ERROR_NOT_FOUND, VLM_ERROR_READ; VLM_ERROR_FORMAT naming key or tensor, what was found and
 * what may be; VLM_ERROR_UNSUPPORTED (another version, big-endian, a type of tensors that is not
 * known).
 */
VlmGguf *vlm_gguf_open (const gchar *path, GError **error);
VlmGguf *vlm_gguf_ref (VlmGguf *gguf);
void vlm_gguf_unref (VlmGguf *gguf);

/* Of the first file. */
const gchar *vlm_gguf_get_path (const VlmGguf *gguf);
guint vlm_gguf_get_version (const VlmGguf *gguf);
guint vlm_gguf_get_n_files (const VlmGguf *gguf);
/* (transfer none) */
VlmFile *vlm_gguf_get_file (const VlmGguf *gguf, guint i);

/* ---- Keys, those of the first file -------------------------------------------------------- */

/* NULL when there is none of that name. */
const VlmGgufValue *vlm_gguf_find (const VlmGguf *gguf, const gchar *key);

/*
 * The getters leave *value alone when the key is absent, and fail with VLM_ERROR_FORMAT when it is
 * of another type or out of range (bounds included). Every integer type will do for an integer;
 * every number, if finite, for a double. A string must be UTF-8 without zero bytes; (transfer full)
 */
gboolean vlm_gguf_get_uint (const VlmGguf *gguf, const gchar *key, guint64 min, guint64 max,
    guint64 *value, GError **error);
gboolean vlm_gguf_get_double (const VlmGguf *gguf, const gchar *key, gdouble min, gdouble max,
    gdouble *value, GError **error);
gboolean vlm_gguf_get_boolean (
    const VlmGguf *gguf, const gchar *key, gboolean *value, GError **error);
gboolean vlm_gguf_get_string (const VlmGguf *gguf, const gchar *key, gchar **value, GError **error);
/* An array of integers (of any type), of numbers (integers or floats), or of strings. */
gboolean vlm_gguf_get_integers (
    const VlmGguf *gguf, const gchar *key, const VlmGgufValue **value, GError **error);
gboolean vlm_gguf_get_numbers (
    const VlmGguf *gguf, const gchar *key, const VlmGgufValue **value, GError **error);
gboolean vlm_gguf_get_strings (
    const VlmGguf *gguf, const gchar *key, const VlmGgufValue **value, GError **error);

/* Element i of integers; of a U64 beyond G_MAXINT64: G_MAXINT64. */
gint64 vlm_gguf_value_get_integer (const VlmGgufValue *value, guint64 i);
gdouble vlm_gguf_value_get_number (const VlmGgufValue *value, guint64 i);

/* Walks along the strings of a value: position starts at 0 and is moved to the next one. Their
 * bytes may be anything. FALSE at the end. */
gboolean vlm_gguf_value_next_string (
    const VlmGgufValue *value, gsize *position, const gchar **bytes, gsize *length);

/* ---- Tensors, of all files ---------------------------------------------------------------- */

guint vlm_gguf_get_n_tensors (const VlmGguf *gguf);
const VlmGgufTensor *vlm_gguf_get_tensor (const VlmGguf *gguf, guint i);
/* NULL when there is none of that name. */
const VlmGgufTensor *vlm_gguf_find_tensor (const VlmGguf *gguf, const gchar *name);

/* "Q4_K", or NULL for a number that is not known. */
const gchar *vlm_gguf_type_name (guint type);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmGguf, vlm_gguf_unref)

#endif
