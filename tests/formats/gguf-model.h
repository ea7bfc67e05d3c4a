/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The small model of fixture.h as a pair of GGUF files, written the way converters do. */

#ifndef TEST_FORMATS_GGUF_MODEL_H
#define TEST_FORMATS_GGUF_MODEL_H

#include "gguf-fixture.h"

#define GGUF_MODEL_TEXT "model.gguf"
#define GGUF_MODEL_VISION "mmproj-model.gguf"

/* What a tensor of the model is called in its GGUF file. (transfer full) */
gchar *gguf_model_name (const gchar *name);

/* Writers with all tensors of the part; with keys: all settings too. (transfer full) */
GgufWriter *gguf_model_text (FixtureModel *model, gboolean keys);
GgufWriter *gguf_model_vision (FixtureModel *model, gboolean keys);

#endif
