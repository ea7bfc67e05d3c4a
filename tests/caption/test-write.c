/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The text that stands in the files of cues. */

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "cue-list.h"
#include "tools/caption/write.h"

#define MS G_GINT64_CONSTANT (1000000)

typedef gboolean (*Writer) (const GPtrArray *cues, const gchar *path, GError **error);

static gchar *folder;

static gchar *
write_cues (Writer writer, const GPtrArray *cues)
{
  g_autofree gchar *path = g_build_filename (folder, "out", NULL);
  g_autoptr (GError) error = NULL;
  gchar *content = NULL;

  g_assert_true (writer (cues, path, &error));
  g_assert_no_error (error);
  g_assert_true (g_file_get_contents (path, &content, NULL, NULL));
  g_assert_true (g_utf8_validate (content, -1, NULL));
  g_remove (path);
  return content;
}

static void
check (Writer writer, const gchar *list, const gchar *expected)
{
  g_autoptr (GPtrArray) cues = cue_list_new (list, 1);
  g_autofree gchar *content = write_cues (writer, cues);

  g_assert_cmpstr (content, ==, expected);
}

static void
test_srt (void)
{
  check (vlm_write_srt, "0-1500000000 A red circle.|1500000000-3723004000000 Two\n\nlines.",
      "1\n00:00:00,000 --> 00:00:01,500\nA red circle.\n"
      "\n2\n00:00:01,500 --> 01:02:03,004\nTwo\nlines.\n");
  check (vlm_write_srt, "360000000000000-360001000000000 late",
      "1\n100:00:00,000 --> 100:00:01,000\nlate\n");
  check (vlm_write_srt,
      "0-1000000000 A sentence that is longer than what fits one line of subtitles.",
      "1\n00:00:00,000 --> 00:00:01,000\nA sentence that is longer than what fits\n"
      "one line of subtitles.\n");
  /* One without text does not count. */
  check (vlm_write_srt, "0-1000000000 \n|1000000000-2000000000 b",
      "1\n00:00:01,000 --> 00:00:02,000\nb\n");
}

static void
test_vtt (void)
{
  check (vlm_write_vtt, "0-1500000000 a & b <i> --> c|1500000000-3723004000000 Two\n\nlines.",
      "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\na &amp; b &lt;i&gt; --&gt; c\n"
      "\n00:00:01.500 --> 01:02:03.004\nTwo\nlines.\n");
}

static void
test_empty (void)
{
  g_autoptr (GPtrArray) cues = g_ptr_array_new ();
  g_autofree gchar *srt = write_cues (vlm_write_srt, cues);
  g_autofree gchar *vtt = write_cues (vlm_write_vtt, cues);

  g_assert_cmpstr (srt, ==, "");
  g_assert_cmpstr (vtt, ==, "WEBVTT\n");
}

static void
test_rounding (void)
{
  /* To the nearest; the end of one and the start of the next stay together. */
  check (vlm_write_srt, "499999-1499999 a|1499999-2500000 b",
      "1\n00:00:00,000 --> 00:00:00,001\na\n\n2\n00:00:00,001 --> 00:00:00,003\nb\n");
  /* None without length, and none over another. */
  check (vlm_write_srt, "0-100 a|100-200 b|200-3000000 c",
      "1\n00:00:00,000 --> 00:00:00,001\na\n\n2\n00:00:00,001 --> 00:00:00,002\nb\n"
      "\n3\n00:00:00,002 --> 00:00:00,003\nc\n");
}

/* A file that cannot be written is as it was. */
static void
test_failure (void)
{
  g_autoptr (GPtrArray) cues = cue_list_new ("0-1000000000 a", 1);
  g_autofree gchar *missing = g_build_filename (folder, "missing", "out.srt", NULL);
  g_autoptr (GError) error = NULL;

  g_assert_false (vlm_write_srt (cues, missing, &error));
  g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
  g_assert_nonnull (strstr (error->message, missing));
  g_clear_error (&error);

  g_assert_false (vlm_write_vtt (cues, folder, &error));
  g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_ISDIR);
  g_clear_error (&error);

  g_assert_false (vlm_write_srt (cues, "/dev/full", &error));
  g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC);
  g_assert_true (g_file_test ("/dev/full", G_FILE_TEST_EXISTS));
}

static void
test_replace (void)
{
  g_autoptr (GPtrArray) cues = cue_list_new ("0-1000000000 a", 1);
  g_autofree gchar *file = g_build_filename (folder, "file", NULL);
  g_autofree gchar *link = g_build_filename (folder, "link", NULL);
  g_autofree gchar *content = NULL;
  g_autoptr (GDir) dir = NULL;
  g_autoptr (GError) error = NULL;
  guint files = 0;

  g_assert_true (g_file_set_contents (file, "old", -1, NULL));
  g_assert_cmpint (symlink ("file", link), ==, 0);
  g_assert_true (vlm_write_srt (cues, link, &error));
  g_assert_true (g_file_test (link, G_FILE_TEST_IS_SYMLINK));
  g_assert_true (g_file_get_contents (file, &content, NULL, NULL));
  g_assert_true (g_str_has_prefix (content, "1\n"));
  dir = g_dir_open (folder, 0, NULL);
  while (g_dir_read_name (dir) != NULL)
    files++;
  g_assert_cmpuint (files, ==, 2);
  g_remove (link);
  g_remove (file);
}

int
main (int argc, char **argv)
{
  int result;

  g_test_init (&argc, &argv, NULL);
  folder = g_dir_make_tmp ("vlm-write-XXXXXX", NULL);
  g_test_add_func ("/caption/write/srt", test_srt);
  g_test_add_func ("/caption/write/vtt", test_vtt);
  g_test_add_func ("/caption/write/empty", test_empty);
  g_test_add_func ("/caption/write/rounding", test_rounding);
  g_test_add_func ("/caption/write/failure", test_failure);
  g_test_add_func ("/caption/write/replace", test_replace);
  result = g_test_run ();
  g_rmdir (folder);
  g_free (folder);
  return result;
}
