/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A GGUF model: the length of the text file (u32), that file, and the vision part, which may be
 * absent. The mutator takes files apart, so that what is behind lengths and offsets is reached.
 */

#include <string.h>

#include "fuzz.h"
#include "gguf-parts.h"
#include "tests/formats/fixture.h"

#define PREFIX sizeof (guint32)

static FuzzFile text, vision;
/* Paths of the text file: one beside a vision part, and one alone. */
static gchar *paired, *alone;

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  gchar *pair = fixture_directory_new (), *single = fixture_directory_new ();

  fuzz_file_init (&text);
  fuzz_file_init (&vision);
  fuzz_file_link (&text, pair, "text.gguf");
  fuzz_file_link (&vision, pair, "vision.gguf");
  fuzz_file_link (&text, single, "text.gguf");
  paired = g_build_filename (pair, "text.gguf", NULL);
  alone = g_build_filename (single, "text.gguf", NULL);
  g_free (pair);
  g_free (single);
  return 0;
}

/* Bytes of the text file, never more than there are. */
static gsize
text_size (const guint8 *data, gsize size)
{
  guint32 n;

  memcpy (&n, data, sizeof (n));
  return MIN (GUINT32_FROM_LE (n), size - PREFIX);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  gsize n;

  if (size < PREFIX)
    return 0;
  n = text_size (data, size);
  fuzz_file_set (&text, data + PREFIX, n);
  fuzz_file_set (&vision, data + PREFIX + n, size - PREFIX - n);
  fuzz_verify (size - PREFIX - n ? paired : alone, NULL);
  fuzz_read_tensors (size - PREFIX - n ? paired : alone, NULL);
  return 0;
}

/* Both files once more, one of them changed. FALSE if there is no room. */
static gboolean
replace (guint8 *data, gsize *size, gsize max_size, gboolean in_vision, const GByteArray *changed)
{
  gsize n = text_size (data, *size), rest = *size - PREFIX - n;
  g_autofree guint8 *other =
      g_memdup2 (in_vision ? data + PREFIX : data + PREFIX + n, in_vision ? n : rest);
  gsize n_text = in_vision ? n : changed->len, n_vision = in_vision ? changed->len : rest;
  guint32 stored = GUINT32_TO_LE ((guint32) n_text);

  if (PREFIX + n_text + n_vision > max_size)
    return FALSE;
  memcpy (data, &stored, sizeof (stored));
  if (n_text)
    memcpy (data + PREFIX, in_vision ? other : changed->data, n_text);
  if (n_vision)
    memcpy (data + PREFIX + n_text, in_vision ? changed->data : other, n_vision);
  *size = PREFIX + n_text + n_vision;
  return TRUE;
}

size_t
LLVMFuzzerCustomMutator (uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
  unsigned int state = seed;
  g_autoptr (GByteArray) changed = NULL;
  GgufParts *parts;
  gboolean in_vision;
  gsize n;

  if (size < PREFIX || fuzz_random (&state, 16) == 0)
    return LLVMFuzzerMutate (data, size, max_size);
  n = text_size (data, size);
  in_vision = size > PREFIX + n && fuzz_random (&state, 3) == 0;
  parts = in_vision ? gguf_parts_new (data + PREFIX + n, size - PREFIX - n)
                    : gguf_parts_new (data + PREFIX, n);
  if (!parts)
    return LLVMFuzzerMutate (data, size, max_size);
  gguf_parts_mutate (parts, &state);
  changed = gguf_parts_print (parts, fuzz_random (&state, 8) != 0);
  gguf_parts_free (parts);
  if (!replace (data, &size, max_size, in_vision, changed))
    return LLVMFuzzerMutate (data, size, max_size);
  return size;
}
