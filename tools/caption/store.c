/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "store.h"

#include <errno.h>
#include <string.h>

#include <glib/gstdio.h>

#include "db.h"
#include "jsonl.h"

struct _VlmStore
{
  VlmJsonl *jsonl; /* or NULL */
  VlmDb *db;       /* or NULL */
  gboolean jsonl_thumbnails, db_thumbnails;
};

/* Whether there is something at path that must not be lost. */
static gboolean
is_taken (const gchar *path)
{
  GStatBuf status;

  return strcmp (path, "-") != 0 && g_stat (path, &status) == 0 && status.st_size > 0;
}

/* Makes sure that a file may be written to. */
static gboolean
prepare_path (const gchar *path, VlmStoreMode mode, GError **error)
{
  g_autofree gchar *journal = NULL;

  if (path == NULL || mode == VLM_STORE_RESUME || !is_taken (path))
    return TRUE;
  if (mode == VLM_STORE_NEW) {
    g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_EXIST,
        "%s is there already: --resume goes on with it, --overwrite begins anew", path);
    return FALSE;
  }
  /* An interrupted transaction of the old database would be undone in the new one. */
  journal = g_strconcat (path, "-journal", NULL);
  g_unlink (journal);
  if (g_unlink (path) != 0) {
    gint code = errno;

    g_set_error (
        error, G_FILE_ERROR, g_file_error_from_errno (code), "%s: %s", path, g_strerror (code));
    return FALSE;
  }
  return TRUE;
}

VlmStore *
vlm_store_open (
    const gchar *jsonl, const gchar *db, VlmStoreMode mode, gboolean thumbnails, GError **error)
{
  VlmStore *store = g_new0 (VlmStore, 1);

  store->db_thumbnails = thumbnails && db != NULL;
  store->jsonl_thumbnails = thumbnails && db == NULL;
  if (prepare_path (jsonl, mode, error) && prepare_path (db, mode, error)
      && (jsonl == NULL || (store->jsonl = vlm_jsonl_open (jsonl, error)) != NULL)
      && (db == NULL || (store->db = vlm_db_open (db, TRUE, error)) != NULL))
    return store;
  vlm_store_close (store, NULL);
  return NULL;
}

gboolean
vlm_store_close (VlmStore *store, GError **error)
{
  gboolean done = TRUE;

  if (store->jsonl != NULL)
    done = vlm_jsonl_close (store->jsonl, error);
  if (store->db != NULL)
    vlm_db_close (store->db);
  g_free (store);
  return done;
}

static gboolean
add_to_jsonl (VlmStore *store, const VlmCaption *caption, GError **error)
{
  return store->jsonl == NULL
      || vlm_jsonl_add (store->jsonl, caption, store->jsonl_thumbnails, error);
}

gboolean
vlm_store_add (VlmStore *store, const VlmInput *input, const VlmCaption *caption, GError **error)
{
  /*
   * The database comes first: it has the thumbnail, and what a crash keeps from the JSON Lines can
   * be made up for. An input is known to it from its first caption on.
   */
  if (store->db != NULL
      && !((input->captions->len > 0 || vlm_db_set_input (store->db, input, error))
          && vlm_db_add (store->db, caption, store->db_thumbnails, error)))
    return FALSE;
  return add_to_jsonl (store, caption, error);
}

gboolean
vlm_store_set_input (VlmStore *store, const VlmInput *input, GError **error)
{
  return store->db == NULL || vlm_db_set_input (store->db, input, error);
}

/* ---- Going on ------------------------------------------------------------------------------ */

static gint
compare_times (gconstpointer a, gconstpointer b)
{
  const VlmCaption *first = *(VlmCaption *const *) a, *second = *(VlmCaption *const *) b;

  return first->pts < second->pts ? -1 : first->pts > second->pts;
}

/* (transfer full) the captions of the JSON Lines: an array for each URI, in order of time. */
static GHashTable *
load_jsonl (VlmStore *store, GError **error)
{
  g_autoptr (GHashTable) groups =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) g_ptr_array_unref);
  g_autoptr (GPtrArray) captions =
      g_ptr_array_new_with_free_func ((GDestroyNotify) vlm_caption_free);
  GHashTableIter iterator;
  gpointer group;

  if (store->jsonl != NULL && !vlm_jsonl_load (store->jsonl, captions, error))
    return NULL;
  while (captions->len > 0) {
    VlmCaption *caption = g_ptr_array_steal_index (captions, captions->len - 1);

    group = g_hash_table_lookup (groups, caption->uri);
    if (group == NULL) {
      group = g_ptr_array_new_with_free_func ((GDestroyNotify) vlm_caption_free);
      g_hash_table_insert (groups, g_strdup (caption->uri), group);
    }
    g_ptr_array_add (group, caption);
  }
  g_hash_table_iter_init (&iterator, groups);
  while (g_hash_table_iter_next (&iterator, NULL, &group))
    g_ptr_array_sort (group, compare_times);
  return g_steal_pointer (&groups);
}

static VlmCaption *
first_of (GPtrArray *captions)
{
  return captions->len > 0 ? captions->pdata[0] : NULL;
}

/* The database gets what only the JSON Lines have. */
static gboolean
add_to_db (VlmStore *store, const VlmInput *input, const VlmCaption *caption, GError **error)
{
  return store->db == NULL
      || (vlm_db_set_input (store->db, input, error)
          && vlm_db_add (store->db, caption, store->db_thumbnails, error));
}

/*
 * Moves captions from both lists, which are in order of time, to the input's: of two with the same
 * time the database's, which has the thumbnail. What one of them lacks is written to it.
 */
static gboolean
unite (VlmStore *store, VlmInput *input, GPtrArray *lines, GPtrArray *rows, GError **error)
{
  while (lines->len > 0 || rows->len > 0) {
    const VlmCaption *line = first_of (lines), *row = first_of (rows);
    gboolean has_line = line != NULL && (row == NULL || line->pts <= row->pts);
    gboolean has_row = row != NULL && (line == NULL || row->pts <= line->pts);

    if (has_line && !has_row && !add_to_db (store, input, line, error))
      return FALSE;
    if (has_row && !has_line && !add_to_jsonl (store, row, error))
      return FALSE;
    g_ptr_array_add (input->captions, g_ptr_array_steal_index (has_row ? rows : lines, 0));
    if (has_row && has_line)
      g_ptr_array_remove_index (lines, 0);
    /* A line that is there twice. */
    while ((line = first_of (lines)) != NULL
        && line->pts <= ((VlmCaption *) input->captions->pdata[input->captions->len - 1])->pts)
      g_ptr_array_remove_index (lines, 0);
  }
  return TRUE;
}

/* What is known of the input; what failed may do better this time. */
static gboolean
load_input (VlmStore *store, VlmInput *input, GError **error)
{
  if (store->db != NULL && !vlm_db_load_input (store->db, input, error))
    return FALSE;
  if (input->state == VLM_INPUT_FAILED) {
    input->state = VLM_INPUT_WAITING;
    g_clear_pointer (&input->message, g_free);
  }
  return TRUE;
}

/* The database's captions; it knows of all of an input's together what they were made with. */
static gboolean
load_rows (VlmStore *store, const VlmInput *input, GPtrArray *rows, GError **error)
{
  if (!vlm_db_load (store->db, input->uri, rows, error))
    return FALSE;
  for (guint i = 0; i < rows->len; i++)
    ((VlmCaption *) rows->pdata[i])->settings = g_strdup (input->settings);
  return TRUE;
}

static gboolean
resume_input (VlmStore *store, VlmInput *input, GHashTable *groups, GError **error)
{
  GPtrArray *lines = g_hash_table_lookup (groups, input->uri);
  g_autoptr (GPtrArray) none = g_ptr_array_new ();
  g_autoptr (GPtrArray) rows = g_ptr_array_new_with_free_func ((GDestroyNotify) vlm_caption_free);
  guint i;

  if (!load_input (store, input, error)
      || (store->db != NULL && !load_rows (store, input, rows, error)))
    return FALSE;
  if (input->settings == NULL && lines != NULL && lines->len > 0)
    input->settings = g_strdup (first_of (lines)->settings);
  if (!unite (store, input, lines != NULL ? lines : none, rows, error))
    return FALSE;
  for (i = 0; i < input->captions->len; i++) {
    VlmCaption *caption = input->captions->pdata[i];

    /* It may be called otherwise this time; and the input's end is not that of each caption. */
    g_free (caption->input);
    caption->input = g_strdup (input->name);
    caption->end = input->still ? 0 : -1;
  }
  if (input->still && input->captions->len > 0) {
    input->state = VLM_INPUT_WHOLE;
    input->end = 0;
    /* The run may have ended between the caption and this. */
    return vlm_store_set_input (store, input, error);
  }
  return TRUE;
}

gboolean
vlm_store_resume (VlmStore *store, const GPtrArray *inputs, GError **error)
{
  g_autoptr (GHashTable) groups = load_jsonl (store, error);
  gboolean done = groups != NULL;
  guint i;

  for (i = 0; i < inputs->len && done; i++) {
    VlmInput *input = inputs->pdata[i];

    if (input->state == VLM_INPUT_WAITING)
      done = resume_input (store, input, groups, error);
  }
  return done;
}
