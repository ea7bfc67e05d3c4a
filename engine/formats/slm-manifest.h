/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The manifest of a .slm file, and the layout that follows from it. */

#ifndef VLM_SLM_MANIFEST_H
#define VLM_SLM_MANIFEST_H

#include <xxhash.h>

#include "engine/model/config.h"
#include "safetensors-header.h"

/* Keys of __metadata__ in the header; there are no others. */
#define VLM_SLM_KEY_FORMAT "format"
#define VLM_SLM_FORMAT "pt"
#define VLM_SLM_KEY_MANIFEST "slm.manifest"
#define VLM_SLM_KEY_HASH "slm.manifest.xxh3"

#define VLM_SLM_FILES "files/"
#define VLM_SLM_PADDING "padding/"

/* Of the file, for the begin of every payload. */
#define VLM_SLM_ALIGNMENT 64
#define VLM_SLM_MAX_HEADER (8u << 20)
#define VLM_SLM_MAX_FILE (64u << 20)
/* Bytes of a tensor's name, without the suffix of a field. */
#define VLM_SLM_MAX_NAME 500
#define VLM_SLM_MAX_SUFFIX 12

/* Hexadecimal digits of a hash, and a zero byte. */
#define VLM_SLM_HASH_TEXT 33

typedef enum
{
  VLM_SLM_PLAIN, /* stored as it is */
  VLM_SLM_INT8_ROW,
  VLM_SLM_INT4_GROUP_64,
  VLM_SLM_SCHEME_INTEGERS /* of any format: the manifest describes it */
} VlmSlmScheme;

/* What a matrix of integers is stored as: a tensor for each of these that its format has. */
typedef enum
{
  VLM_SLM_VALUES,
  VLM_SLM_SCALE,
  VLM_SLM_MIN,
  VLM_SLM_SUPER_SCALE, /* halves, where scales are codes */
  VLM_SLM_SUPER_MIN,
  VLM_SLM_N_FIELDS
} VlmSlmField;

/* One tensor that is stored, padding excepted. */
typedef struct
{
  gchar *name;
  VlmSafetensorsType type;
  guint rank;
  guint64 shape[VLM_MAX_RANK]; /* as stored */
  VlmSlmScheme scheme;         /* an entry with one is followed by its other fields */
  VlmIntFormat format;         /* and so are the next two: where there is a scheme */
  guint64 columns;             /* logical ones */
  VlmSlmField field;
  guint64 n_bytes;
  guint64 offset; /* relative to the data, set by vlm_slm_lay_out () */
  XXH128_hash_t hash;
} VlmSlmEntry;

typedef struct
{
  gboolean has_vision; /* the family is lfm2_vl, else lfm2 */
  VlmLayerKind layers[VLM_MAX_LAYERS];
  guint n_layers;
  GArray *entries; /* of VlmSlmEntry, in the order of the file */
} VlmSlmManifest;

void vlm_slm_manifest_init (VlmSlmManifest *manifest);
void vlm_slm_manifest_clear (VlmSlmManifest *manifest);

/* The i-th entry. */
VlmSlmEntry *vlm_slm_manifest_nth (const VlmSlmManifest *manifest, guint i);
/* Whether entry i holds a file, and which. NULL if not. */
const gchar *vlm_slm_entry_file (const VlmSlmEntry *entry);

/*
 * Fills an initialised manifest from its JSON text and checks all that it says: versions, family,
 * kinds of layers, types, schemes and their scales, names, sizes. path is used in messages.
 * VLM_ERROR_FORMAT, VLM_ERROR_UNSUPPORTED.
 */
gboolean vlm_slm_manifest_parse (
    VlmSlmManifest *manifest, const gchar *text, const gchar *path, GError **error);

/* (transfer full) */
gchar *vlm_slm_manifest_print (const VlmSlmManifest *manifest);

/*
 * Gives every entry its offset, and lists all tensors of the file, padding included, in order.
 * Array of VlmSafetensorsEntry (transfer full). VLM_ERROR_FORMAT when a name is there twice, or
 * all together is more than 2^62 bytes.
 */
GArray *vlm_slm_lay_out (VlmSlmManifest *manifest, const gchar *path, GError **error);

/* Settles n_bytes of an entry from type and shape; FALSE when a side is 0 or it is too much. */
gboolean vlm_slm_entry_measure (VlmSlmEntry *entry);

/*
 * Fills entries with what a matrix of rows x columns is stored as in scheme, its values first, all
 * measured and without names. Returns how many there are, 0 when they are too large. format counts
 * for VLM_SLM_SCHEME_INTEGERS, and must be a valid one.
 */
guint vlm_slm_entry_init_matrix (VlmSlmEntry entries[VLM_SLM_N_FIELDS], VlmSlmScheme scheme,
    const VlmIntFormat *format, guint64 rows, guint64 columns);

/* Entries of the tensor whose first one is entry: 1 unless it has a scheme. */
guint vlm_slm_entry_count_fields (const VlmSlmEntry *entry);

/* What stands behind the name of a matrix in that of a field: "" for its values. */
const gchar *vlm_slm_field_suffix (VlmSlmField field);

/* The array of rows that a field is. */
gpointer vlm_slm_field_values (const VlmQuantRows *rows, VlmSlmField field);

/* Whether a tensor of weights may have the name. */
gboolean vlm_slm_is_weight_name (const gchar *name);
/* Whether name is one of vlm_slm_file_names. */
gboolean vlm_slm_is_file_name (const gchar *name);

void vlm_slm_hash_print (XXH128_hash_t hash, gchar text[VLM_SLM_HASH_TEXT]);

#endif
