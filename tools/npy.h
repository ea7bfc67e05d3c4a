/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Writes arrays as NumPy files (format 1.0, little-endian, C order). */

#ifndef TOOLS_NPY_H
#define TOOLS_NPY_H

#include "engine/vlm.h"

/*
 * Writes the array of shape[0] x .. x shape[n_dims - 1] elements to path, which is replaced.
 * Error: from GLib's file functions, naming the file.
 */
gboolean npy_write (const gchar *path, VlmArrayType type, const gsize *shape, guint n_dims,
    gconstpointer data, GError **error);

#endif
