/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Files that come into being whole, when the disk does not do what it is told. */

#define _GNU_SOURCE

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/formats/atomic-file.h"
#include "fixture.h"

/* The kind of file, S_IFDIR or S_IFREG, that cannot be brought to the disk; 0: none. */
static mode_t stubborn;

/* Stands before the C library's. */
int
fsync (int fd)
{
  struct stat status;

  if (stubborn != 0 && fstat (fd, &status) == 0 && (status.st_mode & S_IFMT) == stubborn) {
    errno = EIO;
    return -1;
  }
  return (int) syscall (SYS_fsync, fd);
}

static gboolean
write_file (const gchar *path, GError **error)
{
  VlmAtomicFile *file = vlm_atomic_file_new (path, 3, error);
  gboolean done =
      vlm_atomic_file_write (file, 0, "new", 3, error) && vlm_atomic_file_commit (file, error);

  vlm_atomic_file_free (file);
  return done;
}

static void
assert_content (const gchar *path, const gchar *expected)
{
  g_autofree gchar *text = NULL;
  gsize size;

  g_assert_true (g_file_get_contents (path, &text, &size, NULL));
  g_assert_cmpmem (text, size, expected, strlen (expected));
}

static guint
count_files (const gchar *directory)
{
  g_autoptr (GDir) entries = g_dir_open (directory, 0, NULL);
  guint n = 0;

  while (g_dir_read_name (entries) != NULL)
    n++;
  return n;
}

static void
test_disks (void)
{
  gchar *directory = fixture_directory_new ();
  g_autofree gchar *path = g_build_filename (directory, "file", NULL);
  g_autoptr (GError) error = NULL;

  g_assert_true (write_file (path, &error));
  g_assert_no_error (error);
  assert_content (path, "new");

  /* Content that is not on the disk is no file. */
  fixture_write (directory, "file", "old", 3);
  stubborn = S_IFREG;
  g_assert_false (write_file (path, &error));
  g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_IO);
  g_assert_nonnull (strstr (error->message, path));
  g_clear_error (&error);
  assert_content (path, "old");
  g_assert_cmpuint (count_files (directory), ==, 1);

  /* A name that is not on the disk is one all the same. */
  stubborn = S_IFDIR;
  g_test_expect_message (
      "vlm", G_LOG_LEVEL_WARNING, "*file: is written, but cannot bring its directory to the disk*");
  g_assert_true (write_file (path, &error));
  g_test_assert_expected_messages ();
  g_assert_no_error (error);
  assert_content (path, "new");
  g_assert_cmpuint (count_files (directory), ==, 1);
  stubborn = 0;
  fixture_directory_remove (directory);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/atomic-file/disks", test_disks);
  return g_test_run ();
}
