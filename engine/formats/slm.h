/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * .slm, version 2: a whole model in one safetensors file. Weights and settings are tensors, a
 * manifest with checksums is in its metadata. docs/formats.md has the layout.
 */

#ifndef VLM_SLM_H
#define VLM_SLM_H

#include "engine/model/config.h"
#include "tensors.h"

#define VLM_SLM_VERSION 2

/* The settings files that a .slm may hold, by their plain names; ends with NULL. */
extern const gchar *const vlm_slm_file_names[];

/* ---- Writing ------------------------------------------------------------------------------ */

/* How the writer stores a tensor. */
typedef enum
{
  VLM_SLM_F16,  /* halves, any rank */
  VLM_SLM_INT8, /* vlm_quant_int8, rank 2 */
  VLM_SLM_INT4  /* vlm_quant_int4, rank 2 */
} VlmSlmType;

/*
 * A file being written, in this order: new, add_file and add_tensor for all there will be, begin,
 * then the values of every tensor in the order in which they were added, finish. One thread at a
 * time. The same calls with the same values give the same bytes.
 *
 * The file grows beside path, with a temporary name or none, and takes its place only in finish:
 * whatever goes wrong before leaves path as it was and nothing else behind. After an error only
 * free is allowed.
 */
typedef struct _VlmSlmWriter VlmSlmWriter;

/* Family and kinds of layers are those of config. Nothing is written yet. (transfer full) */
VlmSlmWriter *vlm_slm_writer_new (const gchar *path, const VlmConfig *config, GError **error);

/*
 * A settings file; name is one of vlm_slm_file_names. Bytes are stored as they are; the writer
 * holds a reference until free. VLM_ERROR_FORMAT when it is empty or larger than a reader takes.
 */
gboolean vlm_slm_writer_add_file (
    VlmSlmWriter *writer, const gchar *name, GBytes *bytes, GError **error);

/*
 * Announces a tensor under its Hugging Face name; shape is the logical one, without sides of 0.
 * VLM_ERROR_FORMAT when the name is not plain ASCII, or the shape is out of all bounds.
 */
gboolean vlm_slm_writer_add_tensor (VlmSlmWriter *writer, const gchar *name, VlmSlmType type,
    const guint64 *shape, guint rank, GError **error);

/* Announces integers that exist already: a matrix [2] of any valid format. The same errors. */
gboolean vlm_slm_writer_add_integers (VlmSlmWriter *writer, const gchar *name,
    const VlmIntFormat *format, const guint64 *shape, GError **error);

/*
 * Lays the file out, creates it, reserves its space, and writes the settings files.
 * VLM_ERROR_FORMAT when a name is there twice. Errors of writing (no such directory, no space, ...)
 * are of G_FILE_ERROR and name the path.
 */
gboolean vlm_slm_writer_begin (VlmSlmWriter *writer, GError **error);

/* Bytes of the whole file, after begin. */
guint64 vlm_slm_writer_get_size (const VlmSlmWriter *writer);

/*
 * The next n_rows >= 1 rows of the tensor that is being written; a row is what the first index
 * counts (rank 0: one row of one value). The writer goes on to the next tensor by itself after the
 * last row; n_rows must not reach beyond it.
 *
 * put_floats rounds f32 to the type of the tensor (F16, INT8 or INT4), in the calling thread.
 * put_halves takes rows of an F16 tensor, put_quantised rows first .. first + n_rows - 1 of rows
 * whose format is that of the tensor, as vlm_quant_round () and vlm_tensor_source_read_rows () make
 * them.
 *
 * VLM_ERROR_FORMAT for values that have no place in the type (NaN, infinities, beyond the halves; in
 * INT8 and INT4 the lowest integer, and scales that are no halves or below 0), naming tensor,
 * position and value; G_FILE_ERROR.
 */
gboolean vlm_slm_writer_put_floats (
    VlmSlmWriter *writer, const gfloat *values, gsize n_rows, GError **error);
gboolean vlm_slm_writer_put_halves (
    VlmSlmWriter *writer, const guint16 *values, gsize n_rows, GError **error);
gboolean vlm_slm_writer_put_quantised (
    VlmSlmWriter *writer, const VlmQuantRows *rows, gsize first, gsize n_rows, GError **error);

/*
 * After the last row of the last tensor: writes the header, and puts the file in its place, on
 * disk before the name is. G_FILE_ERROR.
 */
gboolean vlm_slm_writer_finish (VlmSlmWriter *writer, GError **error);

/* Removes the temporary file unless finish has succeeded. NULL is fine. */
void vlm_slm_writer_free (VlmSlmWriter *writer);

/* ---- Reading ------------------------------------------------------------------------------ */

/* An open file whose header and manifest have been judged. */
typedef struct _VlmSlm VlmSlm;

/*
 * Opens path, a local file or a resource:// URI, and judges header and manifest; nothing else is
 * read. (transfer full)
 * VLM_ERROR_NOT_FOUND, VLM_ERROR_READ; VLM_ERROR_FORMAT (damaged); VLM_ERROR_UNSUPPORTED (not a
 * .slm file; a version, family, kind of layers or quantisation that is not known).
 */
VlmSlm *vlm_slm_open (const gchar *path, GError **error);
VlmSlm *vlm_slm_ref (VlmSlm *slm);
void vlm_slm_unref (VlmSlm *slm);

const gchar *vlm_slm_get_path (const VlmSlm *slm);
guint64 vlm_slm_get_size (const VlmSlm *slm);

gboolean vlm_slm_has_file (const VlmSlm *slm, const gchar *name);
/*
 * A settings file, its checksum verified; a zero byte follows that is not counted. (transfer full)
 * VLM_ERROR_NOT_FOUND, VLM_ERROR_FORMAT (larger than max_size, damaged), VLM_ERROR_READ.
 */
GBytes *vlm_slm_read_file (VlmSlm *slm, const gchar *name, gsize max_size, GError **error);

/* Verifies all settings files and the padding: what is not part of the weights. */
gboolean vlm_slm_verify_files (VlmSlm *slm, GCancellable *cancellable, GError **error);

/* Fails with VLM_ERROR_FORMAT unless the manifest says what config says. */
gboolean vlm_slm_check_config (const VlmSlm *slm, const VlmConfig *config, GError **error);

/* The weights. The source holds a reference on slm. (transfer full) */
VlmTensorSource *vlm_slm_get_tensors (VlmSlm *slm, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmSlmWriter, vlm_slm_writer_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmSlm, vlm_slm_unref)

#endif
