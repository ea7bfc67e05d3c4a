/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* fallocate (), O_TMPFILE */
#define _GNU_SOURCE

#include "atomic-file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Names that are tried before giving up. */
#define MAX_TRIES 100

/* Where an open file has a path even without a name. */
#define DESCRIPTORS "/proc/self/fd"

struct _VlmAtomicFile
{
  gchar *path, *directory;
  gchar *temporary; /* NULL while the file has no name, and once it has its last */
  int fd;
};

static gboolean
fail (const VlmAtomicFile *file, const gchar *what, GError **error)
{
  int saved = errno;

  g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (saved), "%s: cannot %s: %s",
      file->path, what, g_strerror (saved));
  return FALSE;
}

/*
 * Tries names until one is new: name_it returns 0 or -1 with errno, as system calls do. The one
 * that was taken goes to temporary.
 */
static gboolean
take_name (
    VlmAtomicFile *file, int (*name_it) (VlmAtomicFile *file, const gchar *name), GError **error)
{
  guint i;

  for (i = 0; i < MAX_TRIES; i++) {
    g_autofree gchar *name = g_strdup_printf ("%s/.new-%08x.tmp", file->directory, g_random_int ());

    if (name_it (file, name) == 0) {
      file->temporary = g_steal_pointer (&name);
      return TRUE;
    }
    if (errno != EEXIST)
      break;
  }
  return fail (file, "create a file beside it", error);
}

static int
create_named (VlmAtomicFile *file, const gchar *name)
{
  file->fd = open (name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  return file->fd < 0 ? -1 : 0;
}

static int
link_to (VlmAtomicFile *file, const gchar *name)
{
  g_autofree gchar *link = g_strdup_printf (DESCRIPTORS "/%d", file->fd);

  return linkat (AT_FDCWD, link, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/*
 * Without a name where that is possible: then even a process that is killed leaves nothing behind.
 * Like any file that a program makes, it gets the permissions that the umask leaves.
 */
static gboolean
create (VlmAtomicFile *file, GError **error)
{
  if (access (DESCRIPTORS, X_OK) == 0)
    file->fd = open (file->directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  return file->fd >= 0 || take_name (file, create_named, error);
}

static gboolean
reserve (VlmAtomicFile *file, guint64 size, GError **error)
{
  int result;

  if (ftruncate (file->fd, size))
    return fail (file, "make room", error);
  do {
    result = fallocate (file->fd, 0, 0, size);
  } while (result && errno == EINTR);
  /* Where it is not possible, writing will tell. */
  if (result && errno != EOPNOTSUPP && errno != ENOSYS)
    return fail (file, "make room", error);
  return TRUE;
}

VlmAtomicFile *
vlm_atomic_file_new (const gchar *path, guint64 size, GError **error)
{
  VlmAtomicFile *file = g_new0 (VlmAtomicFile, 1);

  file->path = g_strdup (path);
  file->directory = g_path_get_dirname (path);
  file->fd = -1;
  if (g_str_has_suffix (path, "/") || g_file_test (path, G_FILE_TEST_IS_DIR)) {
    g_set_error (
        error, G_FILE_ERROR, G_FILE_ERROR_ISDIR, "%s: is a directory, expected a file name", path);
  } else if (size > G_MAXINT64) {
    errno = EFBIG;
    fail (file, "make room", error);
  } else if (create (file, error) && reserve (file, size, error)) {
    return file;
  }
  vlm_atomic_file_free (file);
  return NULL;
}

gboolean
vlm_atomic_file_write (
    VlmAtomicFile *file, guint64 offset, gconstpointer data, gsize n, GError **error)
{
  const guint8 *from = data;

  while (n > 0) {
    gssize written = pwrite (file->fd, from, n, offset);

    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0) {
      if (written == 0)
        errno = ENOSPC;
      return fail (file, "write", error);
    }
    from += written;
    offset += written;
    n -= written;
  }
  return TRUE;
}

/*
 * The name is safe only when its directory is on the disk; some file systems cannot say so. By then
 * the file is there and whole: whoever asked for it has it, and what could not be done is worth a
 * warning and no failure that would have them look for the old one.
 */
static void
sync_directory (const VlmAtomicFile *file)
{
  int fd = open (file->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  gboolean good = fd < 0 ? errno == EACCES : !fsync (fd) || errno == EINVAL || errno == ENOTSUP;

  if (!good)
    g_warning ("%s: is written, but cannot bring its directory to the disk: %s: after a loss of "
               "power it may be gone again",
        file->path, g_strerror (errno));
  if (fd >= 0)
    close (fd);
}

gboolean
vlm_atomic_file_commit (VlmAtomicFile *file, GError **error)
{
  int fd = file->fd;

  if (fsync (fd))
    return fail (file, "bring it to the disk", error);
  if (!file->temporary && !take_name (file, link_to, error))
    return FALSE;
  file->fd = -1;
  /* Some file systems report errors of writing only here. */
  if (close (fd))
    return fail (file, "close", error);
  if (g_rename (file->temporary, file->path))
    return fail (file, "give the new file its name", error);
  g_clear_pointer (&file->temporary, g_free);
  sync_directory (file);
  return TRUE;
}

void
vlm_atomic_file_free (VlmAtomicFile *file)
{
  if (file->fd >= 0)
    close (file->fd);
  if (file->temporary)
    g_unlink (file->temporary);
  g_free (file->temporary);
  g_free (file->directory);
  g_free (file->path);
  g_free (file);
}
