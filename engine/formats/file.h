/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Files of a model: in a local directory, or in a resource:// tree. */

#ifndef VLM_FILE_H
#define VLM_FILE_H

#include <gio/gio.h>

typedef struct _VlmFile VlmFile;

/* Whether path names a compiled-in resource; every other string is a local path. */
gboolean vlm_path_is_resource (const gchar *path);

/* Whether path is a directory, local or of resources. FALSE also where nothing is. */
gboolean vlm_path_is_directory (const gchar *path);

/* Path of the entry called name in directory; NULL for name: directory itself. (transfer full) */
gchar *vlm_path_join (const gchar *directory, const gchar *name);

/*
 * Looks whether path is a directory that can be searched.
 * VLM_ERROR_NOT_FOUND when it is none, VLM_ERROR_READ when it may not be entered.
 */
gboolean vlm_directory_check (const gchar *path, GError **error);

/* Whether directory has an entry called name, whatever it is. */
gboolean vlm_file_exists (const gchar *directory, const gchar *name);

/*
 * Opens the file called name in directory; NULL for name opens directory itself as a file. Only
 * regular files are taken: a FIFO or a device is refused, never waited for. (transfer full)
 * VLM_ERROR_NOT_FOUND, VLM_ERROR_READ.
 */
VlmFile *vlm_file_open (const gchar *directory, const gchar *name, GError **error);
VlmFile *vlm_file_ref (VlmFile *file);
void vlm_file_unref (VlmFile *file);

/* Path or URI, for messages. */
const gchar *vlm_file_get_path (const VlmFile *file);
/* As it was when the file was opened. */
guint64 vlm_file_get_size (const VlmFile *file);

/*
 * Reads exactly length bytes from offset on. The cancellable (may be NULL) is looked at every few
 * megabytes. VLM_ERROR_READ, also when the file ends early; G_IO_ERROR_CANCELLED.
 */
gboolean vlm_file_read (const VlmFile *file, guint64 offset, gpointer buffer, gsize length,
    GCancellable *cancellable, GError **error);

/*
 * The whole content in private memory, which a zero byte follows that is not counted.
 * VLM_ERROR_FORMAT when it is larger than max_size. (transfer full)
 */
GBytes *vlm_file_read_all (const VlmFile *file, gsize max_size, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (VlmFile, vlm_file_unref)

#endif
