/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* model.safetensors in a directory whose other files are sound. */

#include <string.h>

#include "engine/formats/safetensors-file.h"
#include "fuzz.h"
#include "tests/formats/gguf-model.h"

static FuzzFile weights;
static FixtureModel *model;

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  model = gguf_model_new (TRUE);
  fixture_save (model);
  fuzz_file_init (&weights);
  fuzz_file_link (&weights, model->directory, "model.safetensors");
  return 0;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  fuzz_file_set (&weights, data, size);
  fuzz_verify (model->directory, NULL);
  return 0;
}

/* Keeps the length before the header right most of the time, so that the header is read. */
size_t
LLVMFuzzerCustomMutator (uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
  unsigned int state = seed;
  guint64 length;
  gsize end;

  if (size < VLM_SAFETENSORS_PREFIX || fuzz_random (&state, 16) == 0)
    return LLVMFuzzerMutate (data, size, max_size);
  memcpy (&length, data, sizeof (length));
  length = GUINT64_FROM_LE (length);
  end = length <= size - VLM_SAFETENSORS_PREFIX ? VLM_SAFETENSORS_PREFIX + length : size;
  if (fuzz_random (&state, 4) == 0)
    fuzz_mutate_range (data, &size, max_size, end, size);
  else if (fuzz_random (&state, 2))
    end = fuzz_mutate_number (data, &size, max_size, VLM_SAFETENSORS_PREFIX, end, &state);
  else
    end = fuzz_mutate_range (data, &size, max_size, VLM_SAFETENSORS_PREFIX, end);
  length = GUINT64_TO_LE ((guint64) (end - VLM_SAFETENSORS_PREFIX));
  memcpy (data, &length, sizeof (length));
  return size;
}
