/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A writer of .cellm files that can lie. */

#ifndef TEST_FORMATS_CELLM_FIXTURE_H
#define TEST_FORMATS_CELLM_FIXTURE_H

#include <jansson.h>

#include "engine/formats/tensors.h"

typedef enum
{
  CELLM_F16,
  CELLM_F32,
  CELLM_BF16,
  CELLM_I8,
  CELLM_I4_ROW,
  CELLM_I4_64,
  CELLM_I4_128,
  CELLM_U32, /* groups of 64, scales and biases f32 */
  CELLM_N_KINDS
} CellmKind;

typedef struct
{
  gchar *name;
  const gchar *dtype; /* static */
  guint rank;
  guint64 shape[VLM_MAX_RANK];
  GByteArray *data;
} CellmPart;

typedef struct
{
  json_t *header;   /* all but tensors */
  GPtrArray *parts; /* of CellmPart, in the order of the file */
  guint alignment;  /* of tensors; 64. Scales follow their tensors unpadded where tight is set */
  gboolean tight;
  json_t *index; /* tensors, after cellm_fixture_lay_out () */
  guint64 start; /* where it puts the first of them */
  gchar *text;   /* of the whole header; where it is set, it is written */
} CellmFixture;

/* A header with the required keys, of a text model; no tensors. */
CellmFixture *cellm_fixture_new (void);
void cellm_fixture_free (CellmFixture *fixture);

/* A payload as it is given. */
void cellm_fixture_add (CellmFixture *fixture, const gchar *name, const gchar *dtype, guint rank,
    const guint64 *shape, gconstpointer data, gsize size);

/*
 * A tensor of values, rounded as writers do it, and its scales. stored, unless NULL, becomes what
 * they are in the file: q * scale with the scale as it is stored. Integers need rank 2.
 */
void cellm_fixture_add_values (CellmFixture *fixture, const gchar *name, CellmKind kind, guint rank,
    const guint64 *shape, const gfloat *values, gfloat *stored);

/* A tensor with the numbers of another file: integers and scales are copied, floats too. */
void cellm_fixture_add_copy (
    CellmFixture *fixture, VlmTensorSource *source, const VlmTensorInfo *info, const gchar *name);

/* The part, which must exist. */
CellmPart *cellm_fixture_find (CellmFixture *fixture, const gchar *name);
void cellm_fixture_drop (CellmFixture *fixture, const gchar *name);

/* The header that a writer makes of config.json, its sub-configurations included. */
void cellm_fixture_set_config (CellmFixture *fixture, const json_t *config);

/* Gives every part its place: makes index. What it says may then be changed. */
void cellm_fixture_lay_out (CellmFixture *fixture);
/* The entry of the index, which must have been made. (transfer none) */
json_t *cellm_fixture_entry (CellmFixture *fixture, const gchar *name);

/* The header as it will be written, index included. (g_free) */
gchar *cellm_fixture_print_header (CellmFixture *fixture);

/* The file as index says, or laid out now; payloads lie where they belong. (transfer full) */
GByteArray *cellm_fixture_print (CellmFixture *fixture);
void cellm_fixture_save (CellmFixture *fixture, const gchar *path);

/* A file called victim.cellm in directory; its path. (transfer full) */
gchar *cellm_fixture_save_in (const gchar *directory, CellmFixture *fixture);

typedef struct
{
  const gchar *name;
  CellmKind kind;
  guint rank;
  guint64 shape[3];
} CellmSample;

/* A tensor of every kind; no network has these. */
#define CELLM_N_SAMPLES 10
extern const CellmSample cellm_samples[CELLM_N_SAMPLES];

gsize cellm_sample_count (const CellmSample *sample);
/* stored as in cellm_fixture_add_values () */
void cellm_fixture_add_sample (CellmFixture *fixture, const CellmSample *sample, gfloat *stored);
/* All of them. */
CellmFixture *cellm_fixture_new_samples (void);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (CellmFixture, cellm_fixture_free)

#endif
