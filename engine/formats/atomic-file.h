/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A file that comes into being whole, or not at all. */

#ifndef VLM_ATOMIC_FILE_H
#define VLM_ATOMIC_FILE_H

#include <gio/gio.h>

typedef struct _VlmAtomicFile VlmAtomicFile;

/*
 * Starts a file of size zero bytes beside path, without a name or with a temporary one, and reserves
 * the space where the file system can. path may exist; it must not be a directory. (transfer full)
 * All errors are of G_FILE_ERROR and name path.
 */
VlmAtomicFile *vlm_atomic_file_new (const gchar *path, guint64 size, GError **error);

/* Writes n bytes from offset on; within the size. */
gboolean vlm_atomic_file_write (
    VlmAtomicFile *file, guint64 offset, gconstpointer data, gsize n, GError **error);

/*
 * Brings the content to the disk, then gives the file its name, then that to the disk. When only the
 * last fails, the file is in its place: that is a warning in the log and TRUE.
 */
gboolean vlm_atomic_file_commit (VlmAtomicFile *file, GError **error);

/* Without a successful commit the temporary file is removed and path is as it was. */
void vlm_atomic_file_free (VlmAtomicFile *file);

#endif
