/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "slm-manifest.h"

#include "engine/vlm.h"
#include "json.h"
#include "slm.h"

#include <string.h>

static const gchar *const scheme_names[] = {
  [VLM_SLM_PLAIN] = NULL,
  [VLM_SLM_INT8_ROW] = "int8-row",
  [VLM_SLM_INT4_GROUP_64] = "int4-group-64",
  [VLM_SLM_SCHEME_INTEGERS] = "integers",
};

static void
clear_entry (gpointer data)
{
  VlmSlmEntry *entry = data;

  g_free (entry->name);
}

void
vlm_slm_manifest_init (VlmSlmManifest *manifest)
{
  memset (manifest, 0, sizeof (*manifest));
  manifest->entries = g_array_new (FALSE, TRUE, sizeof (VlmSlmEntry));
  g_array_set_clear_func (manifest->entries, clear_entry);
}

void
vlm_slm_manifest_clear (VlmSlmManifest *manifest)
{
  g_clear_pointer (&manifest->entries, g_array_unref);
}

VlmSlmEntry *
vlm_slm_manifest_nth (const VlmSlmManifest *manifest, guint i)
{
  return &g_array_index (manifest->entries, VlmSlmEntry, i);
}

void
vlm_slm_hash_print (XXH128_hash_t hash, gchar text[VLM_SLM_HASH_TEXT])
{
  g_snprintf (text, VLM_SLM_HASH_TEXT, "%016" G_GINT64_MODIFIER "x%016" G_GINT64_MODIFIER "x",
      (guint64) hash.high64, (guint64) hash.low64);
}

/* ---- Printing ----------------------------------------------------------------------------- */

static void
print_scheme (GString *text, const VlmSlmEntry *entry)
{
  const VlmIntFormat *format = &entry->format;

  g_string_append_printf (text,
      ",\"quantisation\":{\"scheme\":\"%s\",\"columns\":%" G_GUINT64_FORMAT,
      scheme_names[entry->scheme], entry->columns);
  if (entry->scheme == VLM_SLM_SCHEME_INTEGERS) {
    g_string_append_printf (text, ",\"bits\":%u,\"minimum\":%s,\"scale\":\"%s\"", format->bits,
        format->has_min ? "true" : "false", vlm_int_scale_names[format->scale]);
    if (format->scale != VLM_SCALE_ROW)
      g_string_append_printf (text, ",\"group\":%" G_GSIZE_FORMAT, format->group);
  }
  g_string_append_c (text, '}');
}

/* Names need no escapes: see vlm_slm_is_weight_name (). */
static void
print_entry (GString *text, const VlmSlmEntry *entry)
{
  g_autofree gchar *shape = vlm_tensor_shape_to_string (entry->shape, entry->rank);
  gchar hash[VLM_SLM_HASH_TEXT];

  vlm_slm_hash_print (entry->hash, hash);
  g_string_append_printf (text, "{\"name\":\"%s\",\"dtype\":\"%s\",\"shape\":%s", entry->name,
      vlm_safetensors_type_name (entry->type), shape);
  if (entry->scheme != VLM_SLM_PLAIN)
    print_scheme (text, entry);
  g_string_append_printf (text, ",\"xxh3\":\"%s\"}", hash);
}

gchar *
vlm_slm_manifest_print (const VlmSlmManifest *manifest)
{
  GString *text = g_string_new (NULL);
  guint i;

  g_string_append_printf (text, "{\"format_version\":%d,\"model_family\":\"%s\",\"layer_types\":[",
      VLM_SLM_VERSION, vlm_family_names[manifest->has_vision]);
  for (i = 0; i < manifest->n_layers; i++)
    g_string_append_printf (
        text, "%s\"%s\"", i ? "," : "", vlm_layer_kind_names[manifest->layers[i]]);
  g_string_append (text, "],\"tensors\":[");
  for (i = 0; i < manifest->entries->len; i++) {
    g_string_append (text, i ? "," : "");
    print_entry (text, vlm_slm_manifest_nth (manifest, i));
  }
  g_string_append (text, "]}");
  return g_string_free (text, FALSE);
}

/* ---- Parsing ------------------------------------------------------------------------------ */

/* The object must have exactly these keys; n_optional of them, at the end, may be absent. */
static gboolean
check_keys (const VlmJson *json, const gchar *const *keys, guint n_optional, GError **error)
{
  guint n = g_strv_length ((gchar **) keys), i;
  const gchar *key;
  json_t *value;

  for (i = 0; i + n_optional < n; i++) {
    if (!json_object_get (json->object, keys[i])) {
      vlm_json_set_error (error, VLM_ERROR_FORMAT, json, keys[i], NULL, "a value");
      return FALSE;
    }
  }
  json_object_foreach ((json_t *) json->object, key, value) {
    if (!g_strv_contains (keys, key)) {
      vlm_json_set_error (error, VLM_ERROR_UNSUPPORTED, json, key, value, "no key of this name");
      return FALSE;
    }
  }
  return TRUE;
}

/* Which of n names the value of key is; entries of NULL are none. -1 with an error. */
static gint
find_name (const VlmJson *json, const gchar *key, const json_t *value, const gchar *const *names,
    guint n, GError **error)
{
  g_autoptr (GString) expected = g_string_new (NULL);
  guint i;

  for (i = 0; i < n; i++) {
    if (!names[i])
      continue;
    if (!g_strcmp0 (json_string_value (value), names[i]))
      return i;
    g_string_append_printf (expected, "%s\"%s\"", expected->len ? " or " : "", names[i]);
  }
  vlm_json_set_error (error, VLM_ERROR_UNSUPPORTED, json, key, value, expected->str);
  return -1;
}

static gboolean
parse_layers (VlmSlmManifest *manifest, const VlmJson *json, GError **error)
{
  const json_t *types = vlm_json_get (json, "layer_types");
  gsize i;

  if (!json_is_array (types) || json_array_size (types) < 1
      || json_array_size (types) > VLM_MAX_LAYERS) {
    g_autofree gchar *expected = g_strdup_printf ("a list of 1..%d names", VLM_MAX_LAYERS);

    vlm_json_set_error (error, VLM_ERROR_FORMAT, json, "layer_types", types, expected);
    return FALSE;
  }
  manifest->n_layers = json_array_size (types);
  for (i = 0; i < manifest->n_layers; i++) {
    g_autofree gchar *key = g_strdup_printf ("layer_types[%" G_GSIZE_FORMAT "]", i);
    gint kind = find_name (json, key, json_array_get (types, i), vlm_layer_kind_names,
        G_N_ELEMENTS (vlm_layer_kind_names), error);

    if (kind < 0)
      return FALSE;
    manifest->layers[i] = kind;
  }
  return TRUE;
}

static gboolean
parse_hash (const VlmJson *json, XXH128_hash_t *hash, GError **error)
{
  const json_t *value = vlm_json_get (json, "xxh3");
  const gchar *text = json_string_value (value);
  gchar printed[VLM_SLM_HASH_TEXT];

  if (text && strlen (text) == 32) {
    g_autofree gchar *high = g_strndup (text, 16);

    hash->high64 = g_ascii_strtoull (high, NULL, 16);
    hash->low64 = g_ascii_strtoull (text + 16, NULL, 16);
    vlm_slm_hash_print (*hash, printed);
    if (!strcmp (printed, text))
      return TRUE;
  }
  vlm_json_set_error (error, VLM_ERROR_FORMAT, json, "xxh3", value, "32 digits 0-9a-f");
  return FALSE;
}

static gboolean
parse_shape (const VlmJson *json, VlmSlmEntry *entry, GError **error)
{
  const json_t *shape = vlm_json_get (json, "shape");
  gsize i;

  if (!json_is_array (shape) || json_array_size (shape) > VLM_MAX_RANK)
    goto fault;
  entry->rank = json_array_size (shape);
  for (i = 0; i < entry->rank; i++) {
    const json_t *side = json_array_get (shape, i);

    if (!json_is_integer (side) || json_integer_value (side) < 1)
      goto fault;
    entry->shape[i] = json_integer_value (side);
  }
  if (vlm_slm_entry_measure (entry))
    return TRUE;
fault:
  vlm_json_set_error (
      error, VLM_ERROR_FORMAT, json, "shape", shape, "a list of at most 8 numbers from 1 on");
  return FALSE;
}

static gboolean
parse_integer (const VlmJson *json, const gchar *key, gint64 *number, GError **error)
{
  const json_t *value = vlm_json_get (json, key);

  *number = json_integer_value (value);
  if (json_is_integer (value) && *number >= 1)
    return TRUE;
  vlm_json_set_error (error, VLM_ERROR_FORMAT, json, key, value, "a number from 1 on");
  return FALSE;
}

/* The format of integers that the manifest describes. */
static gboolean
parse_format (const VlmJson *json, VlmIntFormat *format, GError **error)
{
  const json_t *group = vlm_json_get (json, "group");
  const json_t *minimum = vlm_json_get (json, "minimum");
  gint64 bits, length = 0;
  gint scale;

  scale = find_name (json, "scale", vlm_json_get (json, "scale"), vlm_int_scale_names,
      g_strv_length ((gchar **) vlm_int_scale_names), error);
  if (scale < 0 || !parse_integer (json, "bits", &bits, error)
      || (scale != VLM_SCALE_ROW && !parse_integer (json, "group", &length, error)))
    return FALSE;
  if (scale == VLM_SCALE_ROW && group) {
    vlm_json_set_error (
        error, VLM_ERROR_FORMAT, json, "group", group, "no key of this name beside a scale a row");
    return FALSE;
  }
  if (!json_is_boolean (minimum)) {
    vlm_json_set_error (error, VLM_ERROR_FORMAT, json, "minimum", minimum, "true or false");
    return FALSE;
  }
  *format = (VlmIntFormat){ .bits = (unsigned) MIN (bits, G_MAXINT),
    .scale = scale,
    .has_min = json_is_true (minimum),
    .group = (gsize) MIN (length, G_MAXINT) };
  if (vlm_int_format_is_valid (format))
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_UNSUPPORTED,
      "%s: %s: integers of %" G_GINT64_FORMAT " bits with scale %s, group %" G_GINT64_FORMAT
      " and minimum %s are not known",
      json->file, json->section, bits, vlm_int_scale_names[scale], length,
      format->has_min ? "true" : "false");
  return FALSE;
}

static gboolean
parse_scheme (const VlmJson *json, VlmSlmEntry *entry, GError **error)
{
  static const gchar *const keys[] = { "scheme", "columns", NULL };
  static const gchar *const more_keys[] = { "scheme", "columns", "bits", "minimum", "scale",
    "group", NULL };
  g_autofree gchar *section = g_strconcat (json->section, ".quantisation", NULL);
  VlmSlmEntry fields[VLM_SLM_N_FIELDS];
  VlmIntFormat format = { 0 };
  gboolean described;
  const json_t *columns;
  VlmJson child;
  gint scheme;

  if (!vlm_json_get_object (json, "quantisation", &child, error))
    return FALSE;
  child.section = section;
  if (!child.object)
    return TRUE;
  scheme = find_name (&child, "scheme", vlm_json_get (&child, "scheme"), scheme_names,
      G_N_ELEMENTS (scheme_names), error);
  described = scheme == VLM_SLM_SCHEME_INTEGERS;
  if (scheme < 0 || !check_keys (&child, described ? more_keys : keys, described ? 1 : 0, error)
      || (described && !parse_format (&child, &format, error)))
    return FALSE;
  columns = vlm_json_get (&child, "columns");
  if (json_is_integer (columns) && json_integer_value (columns) >= 1 && entry->rank == 2
      && vlm_slm_entry_init_matrix (
          fields, scheme, &format, entry->shape[0], json_integer_value (columns))
      && fields[0].type == entry->type && fields[0].shape[1] == entry->shape[1]) {
    entry->scheme = scheme;
    entry->format = fields[0].format;
    entry->columns = fields[0].columns;
    return TRUE;
  }
  vlm_json_set_error (error, VLM_ERROR_FORMAT, &child, "columns", columns,
      "a number that agrees with scheme, dtype and shape");
  return FALSE;
}

static gboolean
parse_entry (VlmSlmManifest *manifest, const VlmJson *json, GError **error)
{
  static const gchar *const keys[] = { "name", "dtype", "shape", "xxh3", "quantisation", NULL };
  static const gchar *const types[] = {
    [VLM_SAFETENSORS_F32] = "F32",
    [VLM_SAFETENSORS_F16] = "F16",
    [VLM_SAFETENSORS_U8] = "U8",
    [VLM_SAFETENSORS_I8] = "I8",
  };
  VlmSlmEntry entry = { 0 };
  const gchar *name = NULL;
  gint type;

  if (!json_is_object (json->object)) {
    g_set_error (
        error, VLM_ERROR, VLM_ERROR_FORMAT, "%s: %s is no object", json->file, json->section);
    return FALSE;
  }
  if (!check_keys (json, keys, 1, error) || !vlm_json_get_string (json, "name", &name, error))
    return FALSE;
  if (!name || strlen (name) > VLM_SLM_MAX_NAME + VLM_SLM_MAX_SUFFIX) {
    vlm_json_set_error (error, VLM_ERROR_FORMAT, json, "name", vlm_json_get (json, "name"),
        "a name of at most 500 characters");
    return FALSE;
  }
  type =
      find_name (json, "dtype", vlm_json_get (json, "dtype"), types, G_N_ELEMENTS (types), error);
  if (type < 0)
    return FALSE;
  entry.type = type;
  if (!parse_shape (json, &entry, error) || !parse_hash (json, &entry.hash, error)
      || !parse_scheme (json, &entry, error))
    return FALSE;
  entry.name = g_strdup (name);
  g_array_append_val (manifest->entries, entry);
  return TRUE;
}

static gboolean
fail_entry (const VlmSlmEntry *entry, const gchar *path, const gchar *expected, GError **error)
{
  g_autofree gchar *shape = vlm_tensor_shape_to_string (entry->shape, entry->rank);

  g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
      "%s: tensor %s is %s %s in the manifest, expected %s", path, entry->name,
      vlm_safetensors_type_name (entry->type), shape, expected);
  return FALSE;
}

/* The other fields of entry number i must be next. */
static gboolean
check_fields (VlmSlmManifest *manifest, guint i, const gchar *path, GError **error)
{
  const VlmSlmEntry *entry = vlm_slm_manifest_nth (manifest, i);
  VlmSlmEntry fields[VLM_SLM_N_FIELDS];
  guint n = vlm_slm_entry_init_matrix (
      fields, entry->scheme, &entry->format, entry->shape[0], entry->columns);
  guint f;

  for (f = 1; f < n; f++) {
    VlmSlmEntry *next =
        i + f < manifest->entries->len ? vlm_slm_manifest_nth (manifest, i + f) : NULL;
    g_autofree gchar *name =
        g_strconcat (entry->name, vlm_slm_field_suffix (fields[f].field), NULL);
    g_autofree gchar *shape = NULL, *expected = NULL;

    if (!next || strcmp (next->name, name)) {
      g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
          "%s: tensor %s is followed by %s in the manifest, expected %s", path, entry[f - 1].name,
          next ? next->name : "nothing", name);
      return FALSE;
    }
    next->field = fields[f].field;
    if (next->type == fields[f].type && next->scheme == VLM_SLM_PLAIN
        && next->rank == fields[f].rank
        && !memcmp (next->shape, fields[f].shape, next->rank * sizeof (*next->shape)))
      continue;
    shape = vlm_tensor_shape_to_string (fields[f].shape, fields[f].rank);
    expected = g_strdup_printf ("%s %s", vlm_safetensors_type_name (fields[f].type), shape);
    return fail_entry (next, path, expected, error);
  }
  return TRUE;
}

/* What every entry is: a file, a weight, or a quantised weight with its other fields. */
static gboolean
check_entries (VlmSlmManifest *manifest, const gchar *path, GError **error)
{
  guint n = manifest->entries->len, i;

  for (i = 0; i < n; i++) {
    const VlmSlmEntry *entry = vlm_slm_manifest_nth (manifest, i);

    if (g_str_has_prefix (entry->name, VLM_SLM_FILES)) {
      if (!vlm_slm_is_file_name (entry->name + strlen (VLM_SLM_FILES)))
        return fail_entry (entry, path, "no file of this name", error);
      if (entry->type != VLM_SAFETENSORS_U8 || entry->rank != 1 || entry->scheme != VLM_SLM_PLAIN
          || entry->n_bytes > VLM_SLM_MAX_FILE)
        return fail_entry (entry, path, "U8 [n] of at most 64 MB for a file", error);
      continue;
    }
    if (!vlm_slm_is_weight_name (entry->name))
      return fail_entry (entry, path, "a name of plain characters", error);
    if (entry->scheme == VLM_SLM_PLAIN && entry->type != VLM_SAFETENSORS_F16)
      return fail_entry (entry, path, "F16 where there is no quantisation", error);
    if (entry->scheme == VLM_SLM_PLAIN)
      continue;
    if (!check_fields (manifest, i, path, error))
      return FALSE;
    i += vlm_slm_entry_count_fields (entry) - 1;
  }
  return TRUE;
}

static gboolean
parse_root (VlmSlmManifest *manifest, const VlmJson *json, GError **error)
{
  const json_t *version = vlm_json_get (json, "format_version");
  const json_t *tensors;
  gsize i;
  gint family;
  static const gchar *const keys[] = { "format_version", "model_family", "layer_types", "tensors",
    NULL };

  /* First of all: another version may have other keys. */
  if (!json_is_integer (version) || json_integer_value (version) != VLM_SLM_VERSION) {
    vlm_json_set_error (error, VLM_ERROR_UNSUPPORTED, json, "format_version", version, "2");
    return FALSE;
  }
  family = find_name (json, "model_family", vlm_json_get (json, "model_family"), vlm_family_names,
      G_N_ELEMENTS (vlm_family_names), error);
  if (family < 0 || !check_keys (json, keys, 0, error) || !parse_layers (manifest, json, error))
    return FALSE;
  manifest->has_vision = family;
  tensors = vlm_json_get (json, "tensors");
  if (!json_is_array (tensors)) {
    vlm_json_set_error (error, VLM_ERROR_FORMAT, json, "tensors", tensors, "a list");
    return FALSE;
  }
  for (i = 0; i < json_array_size (tensors); i++) {
    const json_t *object = json_array_get (tensors, i);
    const gchar *name = json_string_value (json_object_get (object, "name"));
    gboolean usable = name && vlm_slm_is_weight_name (name);
    g_autofree gchar *section = g_strdup_printf ("tensors[%" G_GSIZE_FORMAT "]%s%s%s", i,
        usable ? " (" : "", usable ? name : "", usable ? ")" : "");
    VlmJson entry = { json->file, section, object };

    if (!parse_entry (manifest, &entry, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
vlm_slm_manifest_parse (
    VlmSlmManifest *manifest, const gchar *text, const gchar *path, GError **error)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static (text, strlen (text));
  g_autofree gchar *file = g_strconcat (path, ": manifest", NULL);
  g_autoptr (VlmJsonDocument) root = vlm_json_parse (bytes, file, 0, error);
  VlmJson json = { file, NULL, root };

  return root && parse_root (manifest, &json, error) && check_entries (manifest, path, error);
}
