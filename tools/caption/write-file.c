/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "write-file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static gboolean
fail (const gchar *path, const gchar *what, GError **error)
{
  int saved = errno;

  g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (saved), "%s: cannot %s: %s", path,
      what, g_strerror (saved));
  return FALSE;
}

/* What path leads to, if there is something; else path. */
static gchar *
resolve (const gchar *path)
{
  char *real = realpath (path, NULL);
  gchar *copy = g_strdup (real != NULL ? real : path);

  free (real);
  return copy;
}

static gboolean
is_special (const gchar *path)
{
  struct stat info;

  return stat (path, &info) == 0 && !S_ISREG (info.st_mode) && !S_ISDIR (info.st_mode);
}

static gboolean
refuse_directory (const gchar *path, GError **error)
{
  if (!g_str_has_suffix (path, "/") && !g_file_test (path, G_FILE_TEST_IS_DIR))
    return TRUE;
  g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_ISDIR,
      "%s: is a directory, expected the name of a file", path);
  return FALSE;
}

static gboolean
write_all (int fd, const gchar *content, gsize length)
{
  while (length > 0) {
    gssize written = write (fd, content, length);

    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return FALSE;
    content += written;
    length -= written;
  }
  return TRUE;
}

static gboolean
write_special (const gchar *path, const gchar *content, gsize length, GError **error)
{
  int fd = open (path, O_WRONLY | O_CLOEXEC);
  gboolean good;

  if (fd < 0)
    return fail (path, "open", error);
  good = write_all (fd, content, length) || fail (path, "write", error);
  if (close (fd) && good)
    good = fail (path, "write", error);
  return good;
}

gboolean
vlm_write_file (const gchar *path, const gchar *content, gsize length, GError **error)
{
  g_autofree gchar *temporary = NULL;
  int fd;
  gboolean good;

  if (is_special (path))
    return write_special (path, content, length, error);
  temporary = vlm_temporary_new (path, error);
  if (temporary == NULL)
    return FALSE;
  fd = open (temporary, O_WRONLY | O_CLOEXEC);
  good = fd >= 0 && write_all (fd, content, length);
  if (!good)
    fail (path, "write", error);
  if (fd >= 0 && close (fd) && good)
    good = fail (path, "write", error);
  if (good)
    return vlm_temporary_commit (temporary, path, error);
  g_unlink (temporary);
  return FALSE;
}

gchar *
vlm_temporary_new (const gchar *path, GError **error)
{
  g_autofree gchar *target = NULL;
  g_autofree gchar *directory = NULL;
  gchar *temporary;
  int fd;

  if (!refuse_directory (path, error))
    return NULL;
  if (is_special (path)) {
    g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
        "%s: is a device or a pipe, expected the name of a file", path);
    return NULL;
  }
  target = resolve (path);
  directory = g_path_get_dirname (target);
  temporary = g_build_filename (directory, ".new-XXXXXX.tmp", NULL);
  fd = g_mkstemp_full (temporary, O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0) {
    fail (path, "create a file beside it", error);
    g_free (temporary);
    return NULL;
  }
  close (fd);
  return temporary;
}

/* Whether the file's content, or a directory's entries, are on the disk; some systems cannot say. */
static gboolean
sync_path (const gchar *path, int flags)
{
  int fd = open (path, flags | O_CLOEXEC);
  gboolean good;

  if (fd < 0)
    return FALSE;
  good = fsync (fd) == 0 || errno == EINVAL || errno == ENOTSUP;
  close (fd);
  return good;
}

gboolean
vlm_temporary_commit (const gchar *temporary, const gchar *path, GError **error)
{
  g_autofree gchar *target = resolve (path);
  g_autofree gchar *directory = g_path_get_dirname (target);

  if (!sync_path (temporary, O_RDONLY)) {
    fail (path, "bring it to the disk", error);
  } else if (g_rename (temporary, target)) {
    fail (path, "give the new file its name", error);
  } else {
    /* The file is there and whole; that its name might not outlast a power cut is no failure. */
    sync_path (directory, O_RDONLY | O_DIRECTORY);
    return TRUE;
  }
  g_unlink (temporary);
  return FALSE;
}
