/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Output files that are there whole or not at all. */

#ifndef TOOLS_CAPTION_WRITE_FILE_H
#define TOOLS_CAPTION_WRITE_FILE_H

#include <gio/gio.h>

/*
 * Puts the content into path: under a temporary name beside it, to the disk, and then under its name.
 * What a symbolic link points to is replaced, not the link; pipes and devices are written to as they
 * are. Error: of G_FILE_ERROR, naming path.
 */
gboolean vlm_write_file (const gchar *path, const gchar *content, gsize length, GError **error);

/*
 * For a file that something else writes: a new, empty file beside path under a temporary name.
 * (transfer full), NULL with an error. path is not touched.
 */
gchar *vlm_temporary_new (const gchar *path, GError **error);

/* Brings the temporary file to the disk and gives it its name. Otherwise it is removed. */
gboolean vlm_temporary_commit (const gchar *temporary, const gchar *path, GError **error);

#endif
