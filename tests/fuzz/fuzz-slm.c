/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A whole .slm file. The mutator makes its checksums right again, so that lies get past them. */

#include <jansson.h>
#include <string.h>
#include <xxhash.h>

#include "engine/formats/safetensors-file.h"
#include "engine/formats/slm-manifest.h"
#include "fuzz.h"

static FuzzFile file;

int
LLVMFuzzerInitialize (int *argc, char ***argv)
{
  fuzz_file_init (&file);
  return 0;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  fuzz_file_set (&file, data, size);
  fuzz_verify (file.path, NULL);
  fuzz_read_tensors (file.path, NULL);
  return 0;
}

/* Where the header says that the tensor lies, if that is within the data. */
static gboolean
find_payload (json_t *header, const gchar *name, gsize n_data, gsize *begin, gsize *n)
{
  json_t *offsets = json_object_get (json_object_get (header, name), "data_offsets");
  json_int_t first = json_integer_value (json_array_get (offsets, 0));
  json_int_t last = json_integer_value (json_array_get (offsets, 1));

  if (first < 0 || last < first || (guint64) last > n_data)
    return FALSE;
  *begin = first;
  *n = last - first;
  return TRUE;
}

/* Gives every tensor of the manifest the checksum of what is there. */
static void
rehash (json_t *header, json_t *manifest, const guint8 *payloads, gsize n_data)
{
  gsize i, begin, n;
  json_t *entry;

  json_array_foreach (json_object_get (manifest, "tensors"), i, entry) {
    const gchar *name = json_string_value (json_object_get (entry, "name"));
    gchar hash[VLM_SLM_HASH_TEXT];

    if (!name || !find_payload (header, name, n_data, &begin, &n))
      continue;
    vlm_slm_hash_print (XXH3_128bits (payloads + begin, n), hash);
    json_object_set_new (entry, "xxh3", json_string (hash));
  }
}

/* The manifest's text with one of its parts changed, or the same with new checksums. */
static gchar *
change_manifest (json_t *header, const gchar *text, const guint8 *payloads, gsize n_data,
    gsize max_size, unsigned int *state)
{
  gsize size = strlen (text), room = MIN (max_size, size + 256);
  g_autofree guint8 *changed = g_malloc (room + 1);
  json_t *manifest;
  char *printed;
  gchar *copy;

  memcpy (changed, text, size);
  if (fuzz_random (state, 3) == 0)
    fuzz_mutate_number (changed, &size, room, 0, size, state);
  else if (fuzz_random (state, 3) == 0)
    fuzz_mutate_range (changed, &size, room, 0, size);
  changed[size] = 0;
  manifest = json_loads ((const char *) changed, 0, NULL);
  if (!manifest)
    return g_utf8_make_valid ((const gchar *) changed, -1);
  rehash (header, manifest, payloads, n_data);
  printed = json_dumps (manifest, JSON_COMPACT);
  copy = g_strdup (printed);
  free (printed);
  json_decref (manifest);
  return copy;
}

static void
set_manifest (json_t *header, const gchar *text)
{
  json_t *metadata = json_object_get (header, "__metadata__");
  gchar hash[VLM_SLM_HASH_TEXT];

  vlm_slm_hash_print (XXH3_128bits (text, strlen (text)), hash);
  json_object_set_new (metadata, VLM_SLM_KEY_MANIFEST, json_string (text));
  json_object_set_new (metadata, VLM_SLM_KEY_HASH, json_string (hash));
}

/* Header and data become the file, the header padded as the writer does. FALSE if there's no room. */
static gboolean
assemble (json_t *header, guint8 *data, gsize *size, gsize max_size, gsize data_start)
{
  g_autofree guint8 *payloads = g_memdup2 (data + data_start, *size - data_start);
  char *text = json_dumps (header, JSON_COMPACT);
  gsize length = text ? strlen (text) : 0, n_data = *size - data_start;
  gsize padded = (VLM_SAFETENSORS_PREFIX + length + VLM_SLM_ALIGNMENT - 1) / VLM_SLM_ALIGNMENT
      * VLM_SLM_ALIGNMENT;
  guint64 stored = GUINT64_TO_LE ((guint64) (padded - VLM_SAFETENSORS_PREFIX));
  gboolean fits = text && padded + n_data <= max_size;

  if (fits) {
    memcpy (data, &stored, sizeof (stored));
    memcpy (data + VLM_SAFETENSORS_PREFIX, text, length);
    memset (data + VLM_SAFETENSORS_PREFIX + length, ' ', padded - VLM_SAFETENSORS_PREFIX - length);
    if (n_data)
      memcpy (data + padded, payloads, n_data);
    *size = padded + n_data;
  }
  free (text);
  return fits;
}

/* The header of a file that has one; its end goes to data_start. */
static json_t *
parse_header (const guint8 *data, gsize size, gsize *data_start)
{
  guint64 length;

  if (size < VLM_SAFETENSORS_PREFIX)
    return NULL;
  memcpy (&length, data, sizeof (length));
  length = GUINT64_FROM_LE (length);
  if (length > size - VLM_SAFETENSORS_PREFIX)
    return NULL;
  *data_start = VLM_SAFETENSORS_PREFIX + length;
  return json_loadb ((const char *) data + VLM_SAFETENSORS_PREFIX, length, 0, NULL);
}

size_t
LLVMFuzzerCustomMutator (uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
  unsigned int state = seed;
  gsize data_start = 0;
  json_t *header = parse_header (data, size, &data_start);
  const gchar *text = json_string_value (
      json_object_get (json_object_get (header, "__metadata__"), VLM_SLM_KEY_MANIFEST));

  if (text && fuzz_random (&state, 16)) {
    g_autofree gchar *changed = NULL;

    if (fuzz_random (&state, 3) == 0)
      fuzz_mutate_range (data, &size, max_size, data_start, size);
    changed =
        change_manifest (header, text, data + data_start, size - data_start, max_size, &state);
    set_manifest (header, changed);
    assemble (header, data, &size, max_size, data_start);
  } else {
    size = LLVMFuzzerMutate (data, size, max_size);
  }
  json_decref (header);
  return size;
}
