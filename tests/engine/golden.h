/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reading tests/golden: JSON cases that point into files of float32 values. */

#ifndef GOLDEN_H
#define GOLDEN_H

#include <glib.h>
#include <jansson.h>

/*
 * Ends the program as skipped, saying why, when VLM_CPU names a level that this processor has not.
 * Call it first of all.
 */
void golden_skip_without_level (void);

/* A path below tests/golden. (transfer full) */
gchar *golden_path (const gchar *name);

/* Whether tests/golden has it. */
gboolean golden_exists (const gchar *name);

/* A JSON file below tests/golden; ends the program when it cannot be read. (transfer full) */
json_t *golden_json (const gchar *name);

/* The float32 values of a .gz file below tests/golden. (transfer full) */
GArray *golden_floats (const gchar *name);

/* Typed members; each ends the program when the member is missing or of another type. */
const gchar *golden_string (json_t *object, const gchar *key);
gint64 golden_int (json_t *object, const gchar *key);
gdouble golden_real (json_t *object, const gchar *key);
json_t *golden_array (json_t *object, const gchar *key);

/*
 * Converts the model that root, a file of cases, is about to the types that it names. The .slm file
 * lies in a temporary directory of its own; golden_remove_converted () removes both. (transfer full)
 */
gchar *golden_convert (json_t *root);
void golden_remove_converted (const gchar *path);

/*
 * Compares the rows that description points to with those of found [n_rows][n_cols]: the shape
 * exactly, every value within tolerance times the largest magnitude that the whole array has.
 * Returns the largest difference as a part of that magnitude.
 */
gdouble golden_compare_rows (json_t *description, const GArray *blob, const gfloat *found,
    gsize n_rows, gsize n_cols, gdouble tolerance, const gchar *what);

#endif
