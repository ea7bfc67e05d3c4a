/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* tokenizer.json as the keys of a GGUF file, the way converters write them. */

#ifndef TEST_FORMATS_GGUF_TOKENIZER_FIXTURE_H
#define TEST_FORMATS_GGUF_TOKENIZER_FIXTURE_H

#include "gguf-fixture.h"

/*
 * Adds the tokens, their types and the merges of tokenizer.json, and the names of its kind: special
 * tokens as control tokens, other added ones as user-defined, ids that are not used as such.
 */
void gguf_put_tokenizer (GgufWriter *writer, const json_t *tokenizer);

#endif
