/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Typed, bounded access to JSON settings, with errors that name file, key and both values. */

#ifndef VLM_JSON_H
#define VLM_JSON_H

#include <gio/gio.h>
#include <jansson.h>

#include "model-files.h"

/*
 * One object of a document. Borrowed: it lives as long as the document that it was taken from.
 * object may be NULL: every getter then finds nothing.
 */
typedef struct
{
  const gchar *file;    /* for messages */
  const gchar *section; /* "text_config", or NULL at the top */
  const json_t *object;
} VlmJson;

/*
 * Parses a document that must be one object. Duplicate keys, NaN and infinities, zero bytes in
 * strings and nesting of more than 2048 levels are errors of VLM_ERROR_FORMAT that name file, line
 * and column. flags are further decoding flags of jansson. (transfer full)
 */
json_t *vlm_json_parse (GBytes *bytes, const gchar *file, gsize flags, GError **error);

/*
 * The file called name of a model, parsed; its path, for messages, goes to file (transfer full).
 */
json_t *vlm_json_load (const VlmModelFiles *files, const gchar *name, gsize max_size, gsize flags,
    gchar **file, GError **error);

/* The value of key, NULL when it is absent or null. */
const json_t *vlm_json_get (const VlmJson *json, const gchar *key);

/*
 * The getters leave *value alone when the key is absent or null, and fail with VLM_ERROR_FORMAT
 * when it is of another type or out of range (bounds included).
 */
gboolean vlm_json_get_uint (
    const VlmJson *json, const gchar *key, guint min, guint max, guint *value, GError **error);
gboolean vlm_json_get_int (
    const VlmJson *json, const gchar *key, gint min, gint max, gint *value, GError **error);
/* Integers and reals. */
gboolean vlm_json_get_double (const VlmJson *json, const gchar *key, gdouble min, gdouble max,
    gdouble *value, GError **error);
gboolean vlm_json_get_float (
    const VlmJson *json, const gchar *key, gdouble min, gdouble max, gfloat *value, GError **error);
gboolean vlm_json_get_boolean (
    const VlmJson *json, const gchar *key, gboolean *value, GError **error);
/* value is borrowed. */
gboolean vlm_json_get_string (
    const VlmJson *json, const gchar *key, const gchar **value, GError **error);
/* Fills child with the object under key, or with an empty VlmJson. */
gboolean vlm_json_get_object (
    const VlmJson *json, const gchar *key, VlmJson *child, GError **error);
/* The same for an array. */
gboolean vlm_json_get_array (
    const VlmJson *json, const gchar *key, const json_t **value, GError **error);

/* Fails with code: "FILE: SECTION.KEY is FOUND, expected EXPECTED". found may be NULL. */
void vlm_json_set_error (GError **error, gint code, const VlmJson *json, const gchar *key,
    const json_t *found, const gchar *expected);

static inline void
vlm_json_release (json_t *json)
{
  json_decref (json);
}

typedef json_t VlmJsonDocument;
G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmJsonDocument, vlm_json_release)

#endif
