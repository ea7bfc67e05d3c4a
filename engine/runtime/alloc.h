/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Memory whose size depends on a model, a picture or a request: too much of it is an error. */

#ifndef VLM_ALLOC_H
#define VLM_ALLOC_H

#include <gio/gio.h>

/*
 * n_bytes with contents undefined, or NULL when there are none. From a megabyte on they are in large
 * pages where the system has such. Free with g_free ().
 */
gpointer vlm_alloc_block (gsize n_bytes);

/*
 * n elements of size bytes, contents undefined; what is named in the message ("%s" of "No memory
 * for %s"). NULL with VLM_ERROR_MEMORY when the product overflows or there is none. Free with
 * g_free ().
 */
gpointer vlm_alloc (gsize n, gsize size, const gchar *what, GError **error);

/* The same, filled with zeros. */
gpointer vlm_alloc0 (gsize n, gsize size, const gchar *what, GError **error);

#endif
