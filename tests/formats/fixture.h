/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A small Hugging Face directory made on the spot, to be damaged and read again. */

#ifndef TEST_FORMATS_FIXTURE_H
#define TEST_FORMATS_FIXTURE_H

#include <jansson.h>

#include "engine/formats/checkpoint.h"

/* An empty temporary directory. (transfer full) */
gchar *fixture_directory_new (void);
/* Removes it with its files and frees the name. */
void fixture_directory_remove (gchar *directory);

void fixture_write (const gchar *directory, const gchar *name, gconstpointer data, gsize length);
void fixture_write_json (const gchar *directory, const gchar *name, const json_t *value);
void fixture_remove (const gchar *directory, const gchar *name);

/* A safetensors file: its length field says length, then header, then n_data bytes of zeros. */
void fixture_write_raw (const gchar *directory, const gchar *name, guint64 length,
    const gchar *header, gsize header_size, gsize n_data);

typedef struct
{
  gchar *name;
  VlmDType dtype;
  guint rank;
  guint64 shape[VLM_MAX_RANK];
} FixtureTensor;

/*
 * Vocabulary 272, hidden 16, two layers (conv, attention), two heads of 8 with one KV head,
 * feed-forward 24 that the rule makes 16; tower 16 wide with one layer, patches of 2 pixels, 4
 * positions; projector 12 wide without norm.
 */
typedef struct
{
  gchar *directory;
  json_t *config;
  json_t *image;      /* settings for processor_config.json; NULL: no such file */
  json_t *generation; /* NULL: no file */
  json_t *tokenizer;
  gint image_id, im_end_id, bos_id;
  GPtrArray *tensors; /* of FixtureTensor, in the order of the file */
} FixtureModel;

/* has_vision: an lfm2_vl model, else an lfm2 one. Nothing is written yet. */
FixtureModel *fixture_model_new (gboolean has_vision);
void fixture_model_free (FixtureModel *model);

json_t *fixture_text (FixtureModel *model); /* the object with the text settings */
json_t *fixture_vision (FixtureModel *model);

void fixture_add (FixtureModel *model, const gchar *name, VlmDType dtype, guint rank, guint64 size0,
    guint64 size1, guint64 size2);
/* The tensor must exist. */
FixtureTensor *fixture_find (FixtureModel *model, const gchar *name);
void fixture_drop (FixtureModel *model, const gchar *name);
void fixture_rename (FixtureModel *model, const gchar *from, const gchar *to);

/* Value number index of the tensor: a multiple of 1/4 in -2..2, exact in every type. */
gfloat fixture_value (const gchar *name, gsize index);

/* All values of the tensor, as they stand in a file. */
void fixture_append_values (GByteArray *bytes, const FixtureTensor *tensor);

/* All files; the weights in one. */
void fixture_save (FixtureModel *model);
/* Some of the tensors, from first on, as one file. */
void fixture_save_tensors (FixtureModel *model, const gchar *file, guint first, guint n);

/* Saves and opens; any error is a failure of the test. */
VlmCheckpoint *fixture_open (FixtureModel *model);
/* Saves and opens, and expects an error of this code whose message has all the parts; NULL ends. */
void fixture_expect (FixtureModel *model, gint code, const gchar *part, ...) G_GNUC_NULL_TERMINATED;

/* The message has the part. */
void fixture_assert_message (const GError *error, gint code, const gchar *part);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (FixtureModel, fixture_model_free)

#endif
