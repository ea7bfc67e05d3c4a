/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The small model of fixture.h as a pair of GGUF files, written the way converters do. */

#ifndef TEST_FORMATS_GGUF_MODEL_H
#define TEST_FORMATS_GGUF_MODEL_H

#include "gguf-fixture.h"

#define GGUF_MODEL_TEXT "model.gguf"
#define GGUF_MODEL_VISION "mmproj-model.gguf"

/* What a tensor of the model is called in its GGUF file. (transfer full) */
gchar *gguf_model_name (const gchar *name);

/* Its tokens are those of a chat, and as many as there are rows of the embedding. */
FixtureModel *gguf_model_new (gboolean has_vision);

/* Writers with the settings and tensors of the text part, and of the vision part. (transfer full) */
GgufWriter *gguf_model_text (const FixtureModel *model);
GgufWriter *gguf_model_vision (const FixtureModel *model);

/* Only the tensors, of one part. */
void gguf_model_put_tensors (GgufWriter *writer, const FixtureModel *model, gboolean vision);

#endif
