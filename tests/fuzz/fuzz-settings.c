/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The small JSON files of a model, one at a time: the first byte says which one the rest is. */

#include "engine/formats/hf.h"
#include "fuzz.h"
#include "tests/formats/gguf-model.h"

static const gchar *const names[] = { VLM_HF_CONFIG, VLM_HF_PROCESSOR, VLM_HF_PREPROCESSOR,
  VLM_HF_GENERATION, VLM_HF_TOKENIZER_CONFIG };

static FuzzFile fuzzed;
/* One model for each name, in which that one is fuzzed. */
static FixtureModel *models[G_N_ELEMENTS (names)];

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  guint i;

  fuzz_file_init (&fuzzed);
  for (i = 0; i < G_N_ELEMENTS (names); i++) {
    models[i] = gguf_model_new (TRUE);
    /* Nested settings would win over flat ones. */
    if (g_str_equal (names[i], VLM_HF_PREPROCESSOR))
      g_clear_pointer (&models[i]->image, json_decref);
    fixture_save (models[i]);
    fuzz_file_link (&fuzzed, models[i]->directory, names[i]);
  }
  return 0;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  if (size == 0)
    return 0;
  fuzz_file_set (&fuzzed, data + 1, size - 1);
  fuzz_verify (models[data[0] % G_N_ELEMENTS (names)]->directory, NULL);
  return 0;
}

/* Numbers are what settings are about. */
size_t
LLVMFuzzerCustomMutator (uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
  unsigned int state = seed;

  if (size > 1 && fuzz_random (&state, 3))
    fuzz_mutate_number (data, &size, max_size, 1, size, &state);
  else
    size = LLVMFuzzerMutate (data, size, max_size);
  return size;
}
