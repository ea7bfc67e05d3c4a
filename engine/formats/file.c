/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "file.h"

#include "engine/builtin/builtin.h"
#include "engine/vlm.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESOURCE_SCHEME "resource://"

/* Between two looks at the cancellable. */
#define READ_CHUNK (8u << 20)

struct _VlmFile
{
  gatomicrefcount references;
  gchar *path;
  guint64 size;
  int fd;           /* -1 for a resource */
  GBytes *resource; /* NULL for a local file */
};

gboolean
vlm_path_is_resource (const gchar *path)
{
  return g_str_has_prefix (path, RESOURCE_SCHEME);
}

/* The path within the resource tree, without a slash at its end. */
static gchar *
resource_path (const gchar *uri)
{
  gchar *path = g_strdup (uri + strlen (RESOURCE_SCHEME));
  gsize length = strlen (path);

  vlm_builtin_register ();
  while (length > 1 && path[length - 1] == '/')
    path[--length] = '\0';
  return path;
}

static void
set_errno_error (GError **error, const gchar *path, int saved)
{
  VlmError code = saved == ENOENT || saved == ENOTDIR ? VLM_ERROR_NOT_FOUND : VLM_ERROR_READ;

  g_set_error (error, VLM_ERROR, code, "%s: %s", path, g_strerror (saved));
}

static gboolean
is_resource_directory (const gchar *uri)
{
  g_autofree gchar *path = resource_path (uri);
  g_auto (GStrv) children = g_resources_enumerate_children (path, 0, NULL);

  return children != NULL;
}

gboolean
vlm_path_is_directory (const gchar *path)
{
  struct stat status;

  if (vlm_path_is_resource (path))
    return is_resource_directory (path);
  return stat (path, &status) == 0 && S_ISDIR (status.st_mode);
}

static gboolean
check_resource_directory (const gchar *uri, GError **error)
{
  if (is_resource_directory (uri))
    return TRUE;
  g_set_error (error, VLM_ERROR, VLM_ERROR_NOT_FOUND, "%s: no such resource directory", uri);
  return FALSE;
}

gboolean
vlm_directory_check (const gchar *path, GError **error)
{
  struct stat status;

  if (vlm_path_is_resource (path))
    return check_resource_directory (path, error);
  if (stat (path, &status)) {
    set_errno_error (error, path, errno);
    return FALSE;
  }
  if (!S_ISDIR (status.st_mode)) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_NOT_FOUND, "%s: not a directory", path);
    return FALSE;
  }
  if (faccessat (AT_FDCWD, path, X_OK, AT_EACCESS)) {
    set_errno_error (error, path, errno);
    return FALSE;
  }
  return TRUE;
}

gchar *
vlm_path_join (const gchar *directory, const gchar *name)
{
  if (!name)
    return g_strdup (directory);
  if (vlm_path_is_resource (directory))
    return g_strconcat (directory, g_str_has_suffix (directory, "/") ? "" : "/", name, NULL);
  return g_build_filename (directory, name, NULL);
}

gboolean
vlm_file_exists (const gchar *directory, const gchar *name)
{
  g_autofree gchar *path = vlm_path_join (directory, name);
  g_autofree gchar *inner = NULL;
  struct stat status;

  if (!vlm_path_is_resource (path))
    return lstat (path, &status) == 0;
  inner = resource_path (path);
  return g_resources_get_info (inner, 0, NULL, NULL, NULL);
}

static gboolean
open_resource (VlmFile *file, GError **error)
{
  g_autofree gchar *path = resource_path (file->path);

  file->resource = g_resources_lookup_data (path, 0, NULL);
  if (!file->resource) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_NOT_FOUND, "%s: no such resource", file->path);
    return FALSE;
  }
  file->size = g_bytes_get_size (file->resource);
  return TRUE;
}

static gboolean
open_local (VlmFile *file, GError **error)
{
  struct stat status;

  /* O_NONBLOCK: opening a FIFO must not wait for a writer. It means nothing to regular files. */
  file->fd = open (file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file->fd < 0 || fstat (file->fd, &status)) {
    set_errno_error (error, file->path, errno);
    return FALSE;
  }
  if (!S_ISREG (status.st_mode)) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_READ, "%s: not a regular file", file->path);
    return FALSE;
  }
  file->size = status.st_size;
  return TRUE;
}

VlmFile *
vlm_file_open (const gchar *directory, const gchar *name, GError **error)
{
  g_autoptr (VlmFile) file = g_new0 (VlmFile, 1);

  g_atomic_ref_count_init (&file->references);
  file->fd = -1;
  file->path = vlm_path_join (directory, name);
  if (vlm_path_is_resource (directory) ? !open_resource (file, error) : !open_local (file, error))
    return NULL;
  return g_steal_pointer (&file);
}

VlmFile *
vlm_file_ref (VlmFile *file)
{
  g_atomic_ref_count_inc (&file->references);
  return file;
}

void
vlm_file_unref (VlmFile *file)
{
  if (!file || !g_atomic_ref_count_dec (&file->references))
    return;
  if (file->fd >= 0)
    close (file->fd);
  g_clear_pointer (&file->resource, g_bytes_unref);
  g_free (file->path);
  g_free (file);
}

const gchar *
vlm_file_get_path (const VlmFile *file)
{
  return file->path;
}

guint64
vlm_file_get_size (const VlmFile *file)
{
  return file->size;
}

/* Bytes read, 0 at the end of the file, -1 with errno. */
static gssize
read_some (const VlmFile *file, guint64 offset, gpointer buffer, gsize length)
{
  gssize n;

  if (file->resource) {
    const guint8 *data = g_bytes_get_data (file->resource, NULL);

    if (offset >= file->size)
      return 0;
    length = MIN (length, file->size - offset);
    memcpy (buffer, data + offset, length);
    return length;
  }
  do {
    n = pread (file->fd, buffer, length, offset);
  } while (n < 0 && errno == EINTR);
  return n;
}

gboolean
vlm_file_read (const VlmFile *file, guint64 offset, gpointer buffer, gsize length,
    GCancellable *cancellable, GError **error)
{
  guint8 *to = buffer;

  while (length > 0) {
    gssize n;

    if (g_cancellable_set_error_if_cancelled (cancellable, error))
      return FALSE;
    n = read_some (file, offset, to, MIN (length, READ_CHUNK));
    if (n < 0) {
      int saved = errno;

      g_set_error (error, VLM_ERROR, VLM_ERROR_READ,
          "%s: cannot read at byte %" G_GUINT64_FORMAT ": %s", file->path, offset,
          g_strerror (saved));
      return FALSE;
    }
    if (n == 0) {
      g_set_error (error, VLM_ERROR, VLM_ERROR_READ,
          "%s: ends at byte %" G_GUINT64_FORMAT ", %" G_GSIZE_FORMAT " bytes early", file->path,
          offset, length);
      return FALSE;
    }
    to += n;
    offset += n;
    length -= n;
  }
  return TRUE;
}

GBytes *
vlm_file_read_all (const VlmFile *file, gsize max_size, GError **error)
{
  g_autofree guint8 *data = NULL;

  if (file->size > max_size) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_FORMAT,
        "%s: has %" G_GUINT64_FORMAT " bytes, expected at most %" G_GSIZE_FORMAT, file->path,
        file->size, max_size);
    return NULL;
  }
  data = g_try_malloc (file->size + 1);
  if (!data) {
    g_set_error (error, VLM_ERROR, VLM_ERROR_MEMORY,
        "%s: no memory for %" G_GUINT64_FORMAT " bytes", file->path, file->size);
    return NULL;
  }
  if (!vlm_file_read (file, 0, data, file->size, NULL, error))
    return NULL;
  data[file->size] = 0;
  return g_bytes_new_take (g_steal_pointer (&data), file->size);
}
