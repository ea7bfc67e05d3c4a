/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A .cellm file beside a sound tokenizer.json. */

#include <string.h>

#include "fuzz.h"
#include "tests/formats/gguf-model.h"

/* Magic, version and length stand before the header. */
#define PREFIX 10

static FuzzFile file;
static FixtureModel *model;
static gchar *path;

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  fuzz_file_init (&file);
  model = gguf_model_new (TRUE);
  fixture_save (model);
  fuzz_file_link (&file, model->directory, "m.cellm");
  path = g_build_filename (model->directory, "m.cellm", NULL);
  return 0;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  fuzz_file_set (&file, data, size);
  fuzz_verify (path, NULL);
  fuzz_read_tensors (path, NULL);
  return 0;
}

/* The text of the header with one thing changed; longer ones are cut. */
static void
change_header (guint8 *header, gsize length, unsigned int *state)
{
  gsize room = length + 64, size, end;
  g_autofree guint8 *text = g_malloc (room);

  /* Blanks at its end are what it may grow into. */
  for (size = length; size > 0 && header[size - 1] == ' ';)
    size--;
  memcpy (text, header, size);
  end = size;
  if (fuzz_random (state, 3))
    end = fuzz_mutate_number (text, &size, room, 0, size, state);
  else
    end = fuzz_mutate_range (text, &size, room, 0, size);
  end = MIN (end, length);
  memcpy (header, text, end);
  memset (header + end, ' ', length - end);
}

/* The header keeps its length, so that tensors stay where it says that they are. */
size_t
LLVMFuzzerCustomMutator (uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
  unsigned int state = seed;
  guint32 length;

  if (size < PREFIX || fuzz_random (&state, 16) == 0)
    return LLVMFuzzerMutate (data, size, max_size);
  memcpy (&length, data + PREFIX - sizeof (length), sizeof (length));
  length = GUINT32_FROM_LE (length);
  if (length == 0 || length > size - PREFIX)
    return LLVMFuzzerMutate (data, size, max_size);
  if (fuzz_random (&state, 5) == 0)
    fuzz_mutate_range (data, &size, max_size, PREFIX + length, size);
  else
    change_header (data + PREFIX, length, &state);
  return size;
}
