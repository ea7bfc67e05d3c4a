/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "input.h"

#include <errno.h>
#include <glob.h>
#include <string.h>

#include <glib/gstdio.h>
#include <gst/gst.h>

#include "content.h"
#include "cue.h"

/* A listing that is being made. */
typedef struct
{
  VlmInputs *inputs;
  GHashTable *known;   /* URIs of the list */
  GHashTable *outputs; /* URIs of files that are left out of folders */
} Listing;

void
vlm_input_free (VlmInput *input)
{
  g_free (input->name);
  g_free (input->uri);
  g_free (input->path);
  g_free (input->relative);
  g_free (input->message);
  g_free (input->settings);
  g_ptr_array_unref (input->captions);
  g_free (input);
}

void
vlm_input_fail (VlmInput *input, VlmInputState state, const gchar *message)
{
  input->state = state;
  if (input->message == NULL)
    input->message = g_strdup (message);
}

/* uri may be NULL for what has none. */
static VlmInput *
add_input (Listing *listing, const gchar *word, const gchar *uri)
{
  VlmInput *input = g_new0 (VlmInput, 1);

  input->name = g_filename_display_name (word);
  input->uri = g_strdup (uri != NULL ? uri : word);
  input->end = -1;
  input->captions = g_ptr_array_new_with_free_func ((GDestroyNotify) vlm_caption_free);
  g_ptr_array_add (listing->inputs->list, input);
  return input;
}

static void
add_failed (Listing *listing, const gchar *word, const gchar *message)
{
  vlm_input_fail (add_input (listing, word, NULL), VLM_INPUT_FAILED, message);
}

/* folder: that which the file was found in, or NULL if it was named itself. */
static void
add_file (Listing *listing, const gchar *path, const gchar *folder)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autofree gchar *uri = g_file_get_uri (file);
  g_autoptr (GError) error = NULL;
  gboolean exact_seeks;
  VlmContent content;
  VlmInput *input;

  if ((folder != NULL && g_hash_table_contains (listing->outputs, uri))
      || !g_hash_table_add (listing->known, g_strdup (uri)))
    return;
  content = vlm_content_find (path, &exact_seeks, &error);
  if (folder != NULL && content == VLM_CONTENT_OTHER && !vlm_content_is_called_media (path)) {
    g_ptr_array_add (listing->inputs->ignored, g_filename_display_name (path));
    return;
  }

  input = add_input (listing, path, uri);
  input->path = g_strdup (path);
  input->relative =
      folder != NULL ? g_strdup (path + strlen (folder) + 1) : g_path_get_basename (path);
  input->still = content == VLM_CONTENT_STILL;
  input->exact_seeks = exact_seeks;
  if (error != NULL)
    vlm_input_fail (input, VLM_INPUT_FAILED, error->message);
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const gchar *const *) a, *(const gchar *const *) b);
}

/* (transfer full) what is in the folder and not hidden, sorted. */
static GPtrArray *
read_folder (const gchar *path, GError **error)
{
  GDir *dir = g_dir_open (path, 0, error);
  GPtrArray *names;
  const gchar *name;

  if (dir == NULL)
    return NULL;
  names = g_ptr_array_new_with_free_func (g_free);
  while ((name = g_dir_read_name (dir)) != NULL) {
    if (name[0] != '.')
      g_ptr_array_add (names, g_strdup (name));
  }
  g_dir_close (dir);
  g_ptr_array_sort (names, compare_names);
  return names;
}

/* Folders behind symbolic links are left out: they may lead round in a circle. */
static void
add_folder (Listing *listing, const gchar *path, const gchar *top)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) names = read_folder (path, &error);
  guint i;

  if (names == NULL) {
    add_failed (listing, path, error->message);
    return;
  }
  if (names->len == 0 && strcmp (path, top) == 0)
    add_failed (listing, path, "there is nothing in this folder");
  for (i = 0; i < names->len; i++) {
    g_autofree gchar *child = g_build_filename (path, names->pdata[i], NULL);

    if (!g_file_test (child, G_FILE_TEST_IS_DIR))
      add_file (listing, child, top);
    else if (!g_file_test (child, G_FILE_TEST_IS_SYMLINK))
      add_folder (listing, child, top);
  }
}

static void
add_path (Listing *listing, const gchar *path)
{
  gsize length = strlen (path);

  if (!g_file_test (path, G_FILE_TEST_IS_DIR)) {
    add_file (listing, path, NULL);
  } else {
    g_autofree gchar *folder = g_strdup (path);

    while (length > 1 && folder[length - 1] == '/')
      folder[--length] = '\0';
    add_folder (listing, folder, folder);
  }
}

static void
add_uri (Listing *listing, const gchar *uri)
{
  g_autofree gchar *path = g_filename_from_uri (uri, NULL, NULL);
  g_autofree gchar *base = NULL;
  VlmInput *input;

  if (path != NULL) {
    add_path (listing, path);
  } else if (g_hash_table_add (listing->known, g_strdup (uri))) {
    input = add_input (listing, uri, uri);
    base = g_path_get_basename (uri);
    input->relative = g_strdelimit (g_steal_pointer (&base), "?&:", '_');
  }
}

/* Adds what the pattern matches; FALSE if that is nothing. */
static gboolean
add_matches (Listing *listing, const gchar *pattern)
{
  glob_t found;
  gsize i;

  if (strpbrk (pattern, "*?[{") == NULL)
    return FALSE;
  if (glob (pattern, GLOB_BRACE, NULL, &found) != 0)
    return FALSE;
  for (i = 0; i < found.gl_pathc; i++)
    add_path (listing, found.gl_pathv[i]);
  globfree (&found);
  return TRUE;
}

static void
add_word (Listing *listing, const gchar *word)
{
  GStatBuf status;
  gint code;

  if (g_lstat (word, &status) == 0) {
    add_path (listing, word);
    return;
  }
  code = errno;
  if (gst_uri_is_valid (word) && strstr (word, ":/") != NULL)
    add_uri (listing, word);
  else if (!add_matches (listing, word))
    add_failed (listing, word, g_strerror (code));
}

static gboolean
add_list (Listing *listing, GError **error)
{
  GIOChannel *channel = g_io_channel_unix_new (0);
  GIOStatus status;
  gchar *line;
  gsize end;

  /* File names are bytes. */
  g_io_channel_set_encoding (channel, NULL, NULL);
  while (
      (status = g_io_channel_read_line (channel, &line, NULL, &end, error)) == G_IO_STATUS_NORMAL) {
    line[end] = '\0';
    if (line[0] != '\0')
      add_word (listing, line);
    g_free (line);
  }
  g_io_channel_unref (channel);
  g_prefix_error (error, "standard input: ");
  return status == G_IO_STATUS_EOF;
}

gboolean
vlm_inputs_collect (VlmInputs *inputs, gchar **words, const gchar *const *outputs, GError **error)
{
  Listing listing = { inputs, g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
    g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL) };
  gboolean done = TRUE;
  guint i;

  inputs->list = g_ptr_array_new_with_free_func ((GDestroyNotify) vlm_input_free);
  inputs->ignored = g_ptr_array_new_with_free_func (g_free);
  for (i = 0; outputs[i] != NULL; i++) {
    g_autoptr (GFile) file = g_file_new_for_path (outputs[i]);

    g_hash_table_add (listing.outputs, g_file_get_uri (file));
  }
  for (i = 0; words[i] != NULL && done; i++) {
    if (strcmp (words[i], "-") == 0)
      done = add_list (&listing, error);
    else
      add_word (&listing, words[i]);
  }
  g_hash_table_unref (listing.known);
  g_hash_table_unref (listing.outputs);
  return done;
}

void
vlm_inputs_clear (VlmInputs *inputs)
{
  g_clear_pointer (&inputs->list, g_ptr_array_unref);
  g_clear_pointer (&inputs->ignored, g_ptr_array_unref);
}
