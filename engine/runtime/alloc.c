/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "alloc.h"

#include "engine/vlm.h"

static gpointer
check (gpointer memory, gsize n, gsize size, const gchar *what, GError **error)
{
  if (memory == NULL)
    g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
        "No memory for %s: %" G_GSIZE_FORMAT " times %" G_GSIZE_FORMAT " bytes", what, n, size);
  return memory;
}

gpointer
vlm_alloc (gsize n, gsize size, const gchar *what, GError **error)
{
  /* GLib gives NULL for nothing, which is no failure here. */
  return check (g_try_malloc_n (MAX (n, 1), size), n, size, what, error);
}

gpointer
vlm_alloc0 (gsize n, gsize size, const gchar *what, GError **error)
{
  return check (g_try_malloc0_n (MAX (n, 1), size), n, size, what, error);
}
