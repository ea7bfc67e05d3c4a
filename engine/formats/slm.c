/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "slm-private.h"

#include "engine/vlm.h"
#include "safetensors-file.h"

#include <string.h>

/* Bytes that are read and hashed at a time. */
#define CHUNK (256u << 10)

/* Bytes of an unknown file that a message shows. */
#define N_SHOWN 8

/* ---- Recognising -------------------------------------------------------------------------- */

static gboolean
fail_unknown (const gchar *path, const guint8 *bytes, gsize n, GError **error)
{
  g_autoptr (GString) shown = g_string_new (NULL);
  gsize i;

  for (i = 0; i < n; i++)
    g_string_append_printf (shown, "%s%02x", i ? " " : "", bytes[i]);
  g_string_append (shown, " \"");
  for (i = 0; i < n; i++)
    g_string_append_c (shown, g_ascii_isprint (bytes[i]) ? bytes[i] : '.');
  g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
      "%s: is neither a model directory nor a file of a known format: it %s%s%s", path,
      n ? "begins with " : "is empty", n ? shown->str : "", n ? "\"" : "");
  return FALSE;
}

/* Whether the file begins like safetensors: behind the length there is a JSON object. */
static gboolean
check_beginning (const VlmFile *file, GError **error)
{
  guint8 bytes[VLM_SAFETENSORS_PREFIX + 1];
  gsize n = MIN (sizeof (bytes), vlm_file_get_size (file));

  if (!vlm_file_read (file, 0, bytes, n, NULL, error))
    return FALSE;
  return (n == sizeof (bytes) && bytes[VLM_SAFETENSORS_PREFIX] == '{')
      || fail_unknown (vlm_file_get_path (file), bytes, MIN (n, N_SHOWN), error);
}

static const gchar *
find_metadata (const GPtrArray *metadata, const gchar *key)
{
  guint i;

  for (i = 0; i < metadata->len; i += 2) {
    if (!strcmp (metadata->pdata[i], key))
      return metadata->pdata[i + 1];
  }
  return NULL;
}

/* The manifest's text, once it is known to be what was written. NULL on error; borrowed. */
static const gchar *
find_manifest (const GPtrArray *metadata, const gchar *path, GError **error)
{
  const gchar *manifest = find_metadata (metadata, VLM_SLM_KEY_MANIFEST);
  const gchar *hash = find_metadata (metadata, VLM_SLM_KEY_HASH);
  gchar found[VLM_SLM_HASH_TEXT];

  if (!manifest) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
        "%s: is a safetensors file without a manifest, so no .slm file; weights in plain "
        "safetensors files are loaded by naming their directory",
        path);
    return NULL;
  }
  if (metadata->len != 6 || !hash
      || g_strcmp0 (find_metadata (metadata, VLM_SLM_KEY_FORMAT), VLM_SLM_FORMAT)) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: __metadata__ has %u keys, expected \"" VLM_SLM_KEY_FORMAT "\": \"" VLM_SLM_FORMAT
        "\", \"" VLM_SLM_KEY_MANIFEST "\" and \"" VLM_SLM_KEY_HASH "\"",
        path, metadata->len / 2);
    return NULL;
  }
  vlm_slm_hash_print (XXH3_128bits (manifest, strlen (manifest)), found);
  if (strcmp (found, hash)) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: the manifest is damaged: its XXH3-128 is %s, expected %.40s", path, found, hash);
    return NULL;
  }
  return manifest;
}

/* ---- Header against manifest -------------------------------------------------------------- */

static gboolean
has_name (const GArray *entries, const gchar *name)
{
  guint i;

  for (i = 0; i < entries->len; i++) {
    if (!strcmp (g_array_index (entries, VlmSafetensorsEntry, i).name, name))
      return TRUE;
  }
  return FALSE;
}

static gboolean
fail_name (const gchar *path, const gchar *name, gboolean in_header, GError **error)
{
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT, "%s: tensor %s is in the %s, but %s in the %s",
      path, name, in_header ? "header" : "manifest", in_header ? "has no place" : "missing",
      in_header ? "manifest" : "header");
  return FALSE;
}

static gchar *
describe_entry (const VlmSafetensorsEntry *entry)
{
  g_autofree gchar *shape = vlm_tensor_shape_to_string (entry->shape, entry->rank);

  return g_strdup_printf ("%s %s at byte %" G_GUINT64_FORMAT " of the data",
      vlm_safetensors_type_name (entry->type), shape, entry->offset);
}

/* Both lists are in the order of the data. */
static gboolean
compare_entries (const GArray *header, const GArray *manifest, const gchar *path, GError **error)
{
  guint i;

  for (i = 0; i < MIN (header->len, manifest->len); i++) {
    const VlmSafetensorsEntry *found = &g_array_index (header, VlmSafetensorsEntry, i);
    const VlmSafetensorsEntry *expected = &g_array_index (manifest, VlmSafetensorsEntry, i);
    g_autofree gchar *one = NULL, *other = NULL;

    if (strcmp (found->name, expected->name)) {
      gboolean surplus = !has_name (manifest, found->name);

      return fail_name (path, surplus ? found->name : expected->name, surplus, error);
    }
    if (found->type == expected->type && found->rank == expected->rank
        && !memcmp (found->shape, expected->shape, found->rank * sizeof (*found->shape))
        && found->offset == expected->offset)
      continue;
    one = describe_entry (found);
    other = describe_entry (expected);
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: tensor %s is %s in the header, expected %s by the manifest", path, found->name, one,
        other);
    return FALSE;
  }
  if (header->len > i)
    return fail_name (path, g_array_index (header, VlmSafetensorsEntry, i).name, TRUE, error);
  if (manifest->len > i)
    return fail_name (path, g_array_index (manifest, VlmSafetensorsEntry, i).name, FALSE, error);
  return TRUE;
}

/* ---- Opening ------------------------------------------------------------------------------ */

static gboolean
judge (VlmSlm *slm, GError **error)
{
  const gchar *path = vlm_file_get_path (slm->file);
  g_autoptr (GArray) found = vlm_safetensors_entries_new ();
  g_autoptr (GArray) expected = NULL;
  g_autoptr (GPtrArray) metadata = g_ptr_array_new_with_free_func (g_free);
  const gchar *manifest;

  if (!check_beginning (slm->file, error)
      || !vlm_safetensors_read_header (slm->file, VLM_SAFETENSORS_MAX_HEADER, VLM_SAFETENSORS_I8,
          found, metadata, &slm->data_start, error))
    return FALSE;
  manifest = find_manifest (metadata, path, error);
  if (!manifest)
    return FALSE;
  if (slm->data_start % VLM_SLM_ALIGNMENT
      || slm->data_start - VLM_SAFETENSORS_PREFIX > VLM_SLM_MAX_HEADER) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: the data begin at byte %" G_GUINT64_FORMAT
        ", expected a multiple of %d behind a header of at most %u bytes",
        path, slm->data_start, VLM_SLM_ALIGNMENT, VLM_SLM_MAX_HEADER);
    return FALSE;
  }
  if (!vlm_slm_manifest_parse (&slm->manifest, manifest, path, error))
    return FALSE;
  expected = vlm_slm_lay_out (&slm->manifest, path, error);
  return expected && compare_entries (found, expected, path, error);
}

VlmSlm *
vlm_slm_open (const gchar *path, GError **error)
{
  VlmFile *file = vlm_file_open (path, NULL, error);
  g_autoptr (VlmSlm) slm = NULL;

  if (!file)
    return NULL;
  slm = g_new0 (VlmSlm, 1);
  g_atomic_ref_count_init (&slm->references);
  slm->file = file;
  vlm_slm_manifest_init (&slm->manifest);
  return judge (slm, error) ? g_steal_pointer (&slm) : NULL;
}

VlmSlm *
vlm_slm_ref (VlmSlm *slm)
{
  g_atomic_ref_count_inc (&slm->references);
  return slm;
}

void
vlm_slm_unref (VlmSlm *slm)
{
  if (!slm || !g_atomic_ref_count_dec (&slm->references))
    return;
  vlm_slm_manifest_clear (&slm->manifest);
  vlm_file_unref (slm->file);
  g_free (slm);
}

const gchar *
vlm_slm_get_path (const VlmSlm *slm)
{
  return vlm_file_get_path (slm->file);
}

guint64
vlm_slm_get_size (const VlmSlm *slm)
{
  return vlm_file_get_size (slm->file);
}

gboolean
vlm_slm_check_config (const VlmSlm *slm, const VlmConfig *config, GError **error)
{
  const VlmSlmManifest *manifest = &slm->manifest;
  const gchar *path = vlm_slm_get_path (slm);
  guint i;

  if (manifest->has_vision != config->has_vision) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: model_family is %s in the manifest, model_type %s in config.json", path,
        vlm_family_names[manifest->has_vision], vlm_family_names[config->has_vision]);
    return FALSE;
  }
  if (manifest->n_layers != config->text.n_layers) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: layer_types has %u entries in the manifest, %u in config.json", path,
        manifest->n_layers, config->text.n_layers);
    return FALSE;
  }
  for (i = 0; i < manifest->n_layers; i++) {
    if (manifest->layers[i] == config->text.layers[i])
      continue;
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: layer_types[%u] is %s in the manifest, %s in config.json", path, i,
        vlm_layer_kind_names[manifest->layers[i]], vlm_layer_kind_names[config->text.layers[i]]);
    return FALSE;
  }
  return TRUE;
}

/* ---- Checksums ---------------------------------------------------------------------------- */

XXH3_state_t *
vlm_slm_hash_new (const VlmSlm *slm, GError **error)
{
  XXH3_state_t *hash = XXH3_createState ();

  if (hash && XXH3_128bits_reset (hash) == XXH_OK)
    return hash;
  if (hash)
    XXH3_freeState (hash);
  g_set_error (
      error, VLM_ERROR, VLM_ERROR_MEMORY, "%s: no memory for a checksum", vlm_slm_get_path (slm));
  return NULL;
}

gboolean
vlm_slm_read_hashed (const VlmSlm *slm, const VlmSlmEntry *entry, XXH3_state_t *hash,
    guint64 offset, gpointer buffer, gsize n, GCancellable *cancellable, GError **error)
{
  guint8 *to = buffer;
  gsize done, part;

  for (done = 0; done < n; done += part) {
    part = MIN (CHUNK, n - done);
    if (!vlm_file_read (slm->file, slm->data_start + entry->offset + offset + done, to + done, part,
            cancellable, error)) {
      g_prefix_error (error, "tensor %s: ", entry->name);
      return FALSE;
    }
    XXH3_128bits_update (hash, to + done, part);
  }
  return TRUE;
}

gboolean
vlm_slm_check_hash (
    const VlmSlm *slm, const VlmSlmEntry *entry, const XXH3_state_t *hash, GError **error)
{
  XXH128_hash_t found = XXH3_128bits_digest (hash);
  gchar one[VLM_SLM_HASH_TEXT], other[VLM_SLM_HASH_TEXT];

  if (XXH128_isEqual (found, entry->hash))
    return TRUE;
  vlm_slm_hash_print (found, one);
  vlm_slm_hash_print (entry->hash, other);
  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: tensor %s is damaged: its XXH3-128 is %s, expected %s", vlm_slm_get_path (slm),
      entry->name, one, other);
  return FALSE;
}

/* ---- Settings files and padding ----------------------------------------------------------- */

static const VlmSlmEntry *
find_file (const VlmSlm *slm, const gchar *name)
{
  guint i;

  for (i = 0; i < slm->manifest.entries->len; i++) {
    const VlmSlmEntry *entry = vlm_slm_manifest_nth (&slm->manifest, i);

    if (!g_strcmp0 (vlm_slm_entry_file (entry), name))
      return entry;
  }
  return NULL;
}

gboolean
vlm_slm_has_file (const VlmSlm *slm, const gchar *name)
{
  return find_file (slm, name) != NULL;
}

static GBytes *
read_entry (VlmSlm *slm, const VlmSlmEntry *entry, GError **error)
{
  g_autofree guint8 *data = g_try_malloc (entry->n_bytes + 1);
  g_autoptr (VlmSlmHash) hash = vlm_slm_hash_new (slm, error);

  if (!hash)
    return NULL;
  if (!data) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
        "%s: no memory for %s of %" G_GUINT64_FORMAT " bytes", vlm_slm_get_path (slm), entry->name,
        entry->n_bytes);
    return NULL;
  }
  if (!vlm_slm_read_hashed (slm, entry, hash, 0, data, entry->n_bytes, NULL, error)
      || !vlm_slm_check_hash (slm, entry, hash, error))
    return NULL;
  data[entry->n_bytes] = 0;
  return g_bytes_new_take (g_steal_pointer (&data), entry->n_bytes);
}

GBytes *
vlm_slm_read_file (VlmSlm *slm, const gchar *name, gsize max_size, GError **error)
{
  const VlmSlmEntry *entry = find_file (slm, name);

  if (!entry) {
    g_set_error (
        error, VLM_ERROR, VLM_ERROR_NOT_FOUND, "%s: holds no %s", vlm_slm_get_path (slm), name);
    return NULL;
  }
  if (entry->n_bytes > max_size) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: %s has %" G_GUINT64_FORMAT " bytes, expected at most %" G_GSIZE_FORMAT,
        vlm_slm_get_path (slm), name, entry->n_bytes, max_size);
    return NULL;
  }
  return read_entry (slm, entry, error);
}

/* The bytes from end up to the next place where a payload may begin. */
static gboolean
check_padding (const VlmSlm *slm, guint64 end, guint number, GError **error)
{
  guint8 bytes[VLM_SLM_ALIGNMENT];
  gsize n = -end % VLM_SLM_ALIGNMENT, i;

  if (!vlm_file_read (slm->file, slm->data_start + end, bytes, n, NULL, error))
    return FALSE;
  for (i = 0; i < n; i++) {
    if (bytes[i] == 0)
      continue;
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: tensor " VLM_SLM_PADDING "%u is damaged: byte %" G_GSIZE_FORMAT " is %u, expected 0",
        vlm_slm_get_path (slm), number, i, bytes[i]);
    return FALSE;
  }
  return TRUE;
}

gboolean
vlm_slm_verify_files (VlmSlm *slm, GCancellable *cancellable, GError **error)
{
  guint n = slm->manifest.entries->len, n_paddings = 0, i;

  for (i = 0; i < n; i++) {
    const VlmSlmEntry *entry = vlm_slm_manifest_nth (&slm->manifest, i);
    guint64 end = entry->offset + entry->n_bytes;

    if (g_cancellable_set_error_if_cancelled (cancellable, error))
      return FALSE;
    if (vlm_slm_entry_file (entry)) {
      g_autoptr (GBytes) bytes = read_entry (slm, entry, error);

      if (!bytes)
        return FALSE;
    }
    /* Nothing stands behind the last one. */
    if (i + 1 < n && end % VLM_SLM_ALIGNMENT && !check_padding (slm, end, n_paddings++, error))
      return FALSE;
  }
  return TRUE;
}
