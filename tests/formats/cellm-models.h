/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Whole models as .cellm files, made of Hugging Face directories, and what models answer. */

#ifndef TEST_FORMATS_CELLM_MODELS_H
#define TEST_FORMATS_CELLM_MODELS_H

#include "cellm-fixture.h"
#include "engine/vlm.h"

/* How the names of tensors begin, and what the header says of that. */
typedef enum
{
  CELLM_PUBLISHED, /* as in the published files: text "model", the others with a dot */
  CELLM_KEPT,      /* nothing is shortened */
  CELLM_NULL,      /* as published, but the header has nulls */
  CELLM_NO_LEVEL,  /* a tower without vision_model., a projector without model. */
  CELLM_BARE,      /* the text without any prefix */
  CELLM_LEVEL,     /* the text below model.text_model. */
  CELLM_N_SPELLINGS
} CellmSpelling;

/*
 * A .cellm file with the header that writers make of config.json in directory, and with the tensors
 * of source. kind is of the matrices of the text, CELLM_N_KINDS: all as they are in source.
 * Values, unless NULL, is filled with what the file has of each tensor: name -> gfloat *.
 */
CellmFixture *cellm_models_convert (const gchar *directory, VlmTensorSource *source,
    CellmSpelling spelling, CellmKind kind, GHashTable *values);

/* Every value of a tensor as f32. (transfer full) */
gfloat *cellm_models_read (VlmTensorSource *source, const VlmTensorInfo *info);

/* The tensors of the model at path. (transfer full) */
VlmTensorSource *cellm_models_open (const gchar *path);

/* A directory with the settings files of another one. (transfer full) */
gchar *cellm_models_copy_settings (const gchar *directory);

/* Weights as F32 into directory: the tensors of source, those of values with other numbers. */
void cellm_models_write_floats (
    const gchar *directory, VlmTensorSource *source, GHashTable *values);

/* What the model at path says greedily of a picture (none for a text model), and all logits. */
typedef struct
{
  gint32 *ids;
  gsize n_ids;
  GArray *logits; /* of gfloat */
} CellmAnswer;

CellmAnswer *cellm_models_ask (const gchar *path, VlmPrecision precision);
void cellm_answer_free (CellmAnswer *answer);
/* The same ids, and logits within tolerance, a part of the largest one. */
void cellm_answer_compare (const CellmAnswer *a, const CellmAnswer *b, gfloat tolerance);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (CellmAnswer, cellm_answer_free)

#endif
