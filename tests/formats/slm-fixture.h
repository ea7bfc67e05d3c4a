/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Small .slm files, and the parts of one to be changed and put together again. */

#ifndef TEST_FORMATS_SLM_FIXTURE_H
#define TEST_FORMATS_SLM_FIXTURE_H

#include <jansson.h>

#include "engine/formats/slm.h"
#include "fixture.h"

typedef struct
{
  const gchar *name;
  VlmSlmType type;
  guint rank;
  guint64 shape[3];
  VlmIntFormat format; /* of integers of any format; type is F16 then. bits of 0: none */
} SlmFixtureTensor;

/* A few small tensors of every kind; SLM_FIXTURE_N of them. No network has these. */
extern const SlmFixtureTensor slm_fixture_tensors[];
#define SLM_FIXTURE_N 5

/* Small matrices that have all fields and types of fields; SLM_FIXTURE_N_INTEGERS of them. */
extern const SlmFixtureTensor slm_fixture_integers[];
#define SLM_FIXTURE_N_INTEGERS 4

/* lfm2, one layer of convolution and one of attention. */
void slm_fixture_init_config (VlmConfig *config);

/* A writer to path with two files and all tensors announced, and begun. */
VlmSlmWriter *slm_fixture_begin (const gchar *path);
/* All values of a tensor: fixture_value () of its name. */
void slm_fixture_put (VlmSlmWriter *writer, const SlmFixtureTensor *tensor);
/* The whole file. */
void slm_fixture_write (const gchar *path);
/* The same with the matrices of integers, of random values that are always the same. */
void slm_fixture_write_integers (const gchar *path);

/*
 * The whole of model as a .slm file at path: matrices of the text as text_type, those of the tower
 * as INT8, everything else F16. The directory must have been saved.
 */
void slm_fixture_convert (FixtureModel *model, const gchar *path, VlmSlmType text_type);
/* Matrices as random integers, each of another one of rows_fixture_formats; the rest F16. */
void slm_fixture_convert_mixed (FixtureModel *model, const gchar *path);
/* All as F16 but the tensor of this name, of rank 2, as INT8. */
void slm_fixture_convert_one (FixtureModel *model, const gchar *path, const gchar *name);

/* A .slm file taken apart. */
typedef struct
{
  json_t *header; /* without the manifest and its hash in __metadata__ */
  json_t *manifest;
  gchar *text; /* of the manifest; where it is set, it is written instead of manifest */
  GByteArray *data;
} SlmParts;

SlmParts *slm_parts_load (const gchar *path);
/* With a hash of the manifest that is right. */
void slm_parts_save (const SlmParts *parts, const gchar *path);
void slm_parts_free (SlmParts *parts);

/* The entry of a tensor in the manifest; it must exist. (transfer none) */
json_t *slm_parts_find (SlmParts *parts, const gchar *name);
/* The payload of a tensor, where the header says that it is. */
guint8 *slm_parts_payload (SlmParts *parts, const gchar *name);
/* Makes the manifest's hash of the tensor right. */
void slm_parts_rehash (SlmParts *parts, const gchar *name);

/* Opens, and reads every byte. FALSE with an error. */
gboolean slm_read_all (const gchar *path, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (SlmParts, slm_parts_free)

#endif
