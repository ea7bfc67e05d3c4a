/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The container of .cellm files, version 1: an index in JSON, then the payloads. */

#ifndef VLM_CELLM_H
#define VLM_CELLM_H

#include "engine/text/tokenizer.h"
#include "file.h"
#include "json.h"
#include "tensors.h"

#define VLM_CELLM_VERSION 1

/* The types of payloads that are read. */
typedef enum
{
  VLM_CELLM_F16,
  VLM_CELLM_F32,
  VLM_CELLM_BF16,
  VLM_CELLM_I8,
  VLM_CELLM_I4, /* two a byte, the first in the low half, 8 added */
  VLM_CELLM_U32 /* eight unsigned 4-bit values a word, the first in the lowest bits */
} VlmCellmType;

/* A tensor as the index has it. */
typedef struct
{
  gchar *name;
  VlmCellmType type;
  guint rank;
  guint64 shape[VLM_MAX_RANK];
  guint64 offset, n_bytes; /* offset from the start of the file */
} VlmCellmEntry;

/* A tensor as the network has it. */
typedef struct
{
  VlmTensorInfo info; /* under the name that a Hugging Face directory has for it */
  const VlmCellmEntry *data;
  const VlmCellmEntry *scale; /* NULL for floats */
  const VlmCellmEntry *min;   /* NULL without minimums */
} VlmCellmTensor;

typedef struct
{
  gatomicrefcount references;
  VlmFile *file;
  json_t *header;
  GArray *entries; /* of VlmCellmEntry, in the order of the data */
  GArray *tensors; /* of VlmCellmTensor, in the order of the data */
  gboolean has_vision;
} VlmCellm;

/* "f16" */
const gchar *vlm_cellm_type_name (VlmCellmType type);

/* The dtype of a plain type; VLM_DTYPE_QUANTISED for integers. */
VlmDType vlm_cellm_type_dtype (VlmCellmType type);

/* Whether path is a file that begins as a .cellm file does. */
gboolean vlm_cellm_probe (const gchar *path);

/*
 * Reads the header and judges all of it: every payload lies within the file and behind the header,
 * has the size that its type and shape need, and overlaps no other; every integer matrix has its
 * scales. No payload is read. (transfer full)
 * VLM_ERROR_NOT_FOUND, VLM_ERROR_READ, VLM_ERROR_FORMAT, VLM_ERROR_UNSUPPORTED.
 */
VlmCellm *vlm_cellm_open (const gchar *path, GError **error);
VlmCellm *vlm_cellm_ref (VlmCellm *cellm);
void vlm_cellm_unref (VlmCellm *cellm);
const gchar *vlm_cellm_get_path (const VlmCellm *cellm);

/* The header as what the getters of json.h read. */
VlmJson vlm_cellm_get_header (const VlmCellm *cellm);

/* A tensor by its name in a Hugging Face directory, the parts being put together; NULL: none. */
const VlmCellmTensor *vlm_cellm_find (const VlmCellm *cellm, const gchar *part, const gchar *name);

/* The parts of a model, as vlm_cellm_find () takes them. */
const gchar *vlm_cellm_text_prefix (const VlmCellm *cellm);
#define VLM_CELLM_VISION_PREFIX "model.vision_tower.vision_model."
#define VLM_CELLM_PROJECTOR_PREFIX "model.multi_modal_projector."

/* ---- Steps of vlm_cellm_open () ------------------------------------------------------------ */

/* Reads the index into entries and header. */
gboolean vlm_cellm_read_index (VlmCellm *cellm, GError **error);

/* Makes tensors of entries: finds scales, and the names that a Hugging Face directory has. */
gboolean vlm_cellm_pair (VlmCellm *cellm, GError **error);

/* ---- Settings and weights ----------------------------------------------------------------- */

/*
 * The header as config.json would say it, with sizes from the tensors. VLM_ERROR_FORMAT when a
 * tensor is missing that tells one, or when the header contradicts the tensors. (transfer full)
 */
json_t *vlm_cellm_make_config (const VlmCellm *cellm, GError **error);

/* What the header says of pictures as preprocessor_config.json would; {} for a text model.
 * (transfer full) */
json_t *vlm_cellm_make_processor (const VlmCellm *cellm);

/* Fails with VLM_ERROR_FORMAT unless tokenizer can be the one that the model was made with. */
gboolean vlm_cellm_check_tokenizer (
    const VlmCellm *cellm, const VlmTokenizer *tokenizer, GError **error);

/* The weights; integers, scales and floats are checked while they are read. (transfer full) */
VlmTensorSource *vlm_cellm_get_tensors (VlmCellm *cellm, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmCellm, vlm_cellm_unref)

#endif
