/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "db.h"

#include <string.h>

#include <sqlite3.h>

/* How long another program may hold the database, in ms. */
#define PATIENCE 30000

/* "vlmc", in the file's header: other databases are told from those of captions by it. */
#define APPLICATION_ID 0x766c6d63

#define SCHEMA                                                                                     \
  "BEGIN IMMEDIATE;"                                                                               \
  "CREATE TABLE inputs (id INTEGER PRIMARY KEY, file TEXT NOT NULL, uri TEXT NOT NULL UNIQUE,"     \
  " still INTEGER NOT NULL, \"end\" INTEGER, state INTEGER NOT NULL, message TEXT, options TEXT);" \
  "CREATE TABLE captions (id INTEGER PRIMARY KEY, input INTEGER NOT NULL REFERENCES inputs (id),"  \
  " pts INTEGER NOT NULL, utc INTEGER, text TEXT NOT NULL, tokens INTEGER NOT NULL,"               \
  " latency REAL NOT NULL, finish_reason TEXT, model TEXT, thumbnail BLOB, UNIQUE (input, pts));"  \
  "CREATE VIRTUAL TABLE captions_fts USING fts5 (text, content='captions', content_rowid='id',"    \
  " tokenize='porter unicode61');"                                                                 \
  "CREATE TRIGGER captions_added AFTER INSERT ON captions BEGIN"                                   \
  " INSERT INTO captions_fts (rowid, text) VALUES (new.id, new.text); END;"                        \
  "CREATE TRIGGER captions_removed AFTER DELETE ON captions BEGIN"                                 \
  " INSERT INTO captions_fts (captions_fts, rowid, text) VALUES ('delete', old.id, old.text);"     \
  " END;"                                                                                          \
  "PRAGMA application_id = 1986817379;"                                                            \
  "COMMIT;"

#define COLUMNS                                                                                    \
  "i.file, i.uri, i.still, c.pts, i.\"end\", c.utc, c.text, c.tokens, c.latency,"                  \
  " c.finish_reason, c.model"

struct _VlmDb
{
  gchar *path;
  sqlite3 *handle;
};

static gboolean
fail (const VlmDb *db, GError **error)
{
  g_set_error (
      error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "%s: %s", db->path, sqlite3_errmsg (db->handle));
  return FALSE;
}

static gboolean
execute (VlmDb *db, const gchar *sql, GError **error)
{
  return sqlite3_exec (db->handle, sql, NULL, NULL, NULL) == SQLITE_OK || fail (db, error);
}

/* NULL with an error. */
static sqlite3_stmt *
prepare (VlmDb *db, const gchar *sql, GError **error)
{
  sqlite3_stmt *statement = NULL;

  if (sqlite3_prepare_v2 (db->handle, sql, -1, &statement, NULL) != SQLITE_OK)
    fail (db, error);
  return statement;
}

/* Runs a statement without results and lets go of it. */
static gboolean
finish (VlmDb *db, sqlite3_stmt *statement, GError **error)
{
  gboolean done = sqlite3_step (statement) == SQLITE_DONE || fail (db, error);

  sqlite3_finalize (statement);
  return done;
}

/* ---- Opening ------------------------------------------------------------------------------- */

static gboolean
read_number (VlmDb *db, const gchar *sql, gint64 *number, GError **error)
{
  sqlite3_stmt *statement = prepare (db, sql, error);
  gboolean done = FALSE;

  if (statement == NULL)
    return FALSE;
  done = sqlite3_step (statement) == SQLITE_ROW || fail (db, error);
  if (done)
    *number = sqlite3_column_int64 (statement, 0);
  sqlite3_finalize (statement);
  return done;
}

/* Databases from before there were options get a place for them. */
static gboolean
add_options (VlmDb *db, GError **error)
{
  gint64 n;

  return read_number (db,
             "SELECT count(*) FROM pragma_table_info ('inputs') WHERE name = 'options'", &n, error)
      && (n > 0 || execute (db, "ALTER TABLE inputs ADD COLUMN options TEXT", error));
}

/* Makes the tables in a database that is empty; refuses one that is somebody else's. */
static gboolean
prepare_tables (VlmDb *db, gboolean create, GError **error)
{
  gint64 id, n_tables;

  if (!read_number (db, "PRAGMA application_id", &id, error)
      || !read_number (db, "SELECT count(*) FROM sqlite_master", &n_tables, error))
    return FALSE;
  if (id == APPLICATION_ID)
    return !create || add_options (db, error);
  if (create && n_tables == 0)
    return execute (db, SCHEMA, error);
  g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
      "%s: it is no database of captions (application id %" G_GINT64_FORMAT ", expected %d)",
      db->path, id, APPLICATION_ID);
  return FALSE;
}

VlmDb *
vlm_db_open (const gchar *path, gboolean create, GError **error)
{
  VlmDb *db = g_new0 (VlmDb, 1);
  /* Also to read: after a crash the last transaction has to be undone. */
  gint flags = SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0) | SQLITE_OPEN_FULLMUTEX;

  db->path = g_strdup (path);
  if (sqlite3_open_v2 (path, &db->handle, flags, NULL) != SQLITE_OK)
    fail (db, error);
  else if (sqlite3_busy_timeout (db->handle, PATIENCE) == SQLITE_OK
      && prepare_tables (db, create, error))
    return db;
  vlm_db_close (db);
  return NULL;
}

void
vlm_db_close (VlmDb *db)
{
  sqlite3_close (db->handle);
  g_free (db->path);
  g_free (db);
}

/* ---- Writing ------------------------------------------------------------------------------- */

static void
bind_time (sqlite3_stmt *statement, int column, gint64 time)
{
  if (time >= 0)
    sqlite3_bind_int64 (statement, column, time);
}

static void
bind_text (sqlite3_stmt *statement, int column, const gchar *text)
{
  sqlite3_bind_text (statement, column, text, -1, SQLITE_TRANSIENT);
}

gboolean
vlm_db_set_input (VlmDb *db, const VlmInput *input, GError **error)
{
  sqlite3_stmt *statement = prepare (db,
      "INSERT INTO inputs (file, uri, still, \"end\", state, message, options)"
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (uri) DO UPDATE"
      " SET file = ?1, still = ?3, \"end\" = ?4, state = ?5, message = ?6, options = ?7",
      error);

  if (statement == NULL)
    return FALSE;
  bind_text (statement, 1, input->name);
  bind_text (statement, 2, input->uri);
  sqlite3_bind_int (statement, 3, input->still);
  bind_time (statement, 4, input->end);
  sqlite3_bind_int (statement, 5, (int) input->state);
  bind_text (statement, 6, input->message);
  bind_text (statement, 7, input->settings);
  return finish (db, statement, error);
}

gboolean
vlm_db_add (VlmDb *db, const VlmCaption *caption, gboolean thumbnail, GError **error)
{
  sqlite3_stmt *statement = prepare (db,
      "INSERT INTO captions"
      " (input, pts, utc, text, tokens, latency, finish_reason, model, thumbnail)"
      " SELECT id, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM inputs WHERE uri = ?1",
      error);

  if (statement == NULL)
    return FALSE;
  bind_text (statement, 1, caption->uri);
  sqlite3_bind_int64 (statement, 2, caption->pts);
  bind_time (statement, 3, caption->utc);
  bind_text (statement, 4, caption->text);
  sqlite3_bind_int64 (statement, 5, caption->tokens);
  sqlite3_bind_double (statement, 6, caption->latency);
  bind_text (statement, 7, caption->finish_reason);
  bind_text (statement, 8, caption->model);
  if (thumbnail && caption->thumbnail != NULL)
    sqlite3_bind_blob64 (
        statement, 9, caption->thumbnail, caption->thumbnail_size, SQLITE_TRANSIENT);
  return finish (db, statement, error);
}

/* ---- Reading ------------------------------------------------------------------------------- */

/* (transfer full) the caption in a row of COLUMNS. */
static VlmCaption *
read_row (sqlite3_stmt *row)
{
  VlmCaption *caption = g_new0 (VlmCaption, 1);

  caption->input = g_strdup ((const gchar *) sqlite3_column_text (row, 0));
  caption->uri = g_strdup ((const gchar *) sqlite3_column_text (row, 1));
  caption->still = sqlite3_column_int (row, 2);
  caption->pts = sqlite3_column_int64 (row, 3);
  caption->end = sqlite3_column_type (row, 4) == SQLITE_NULL ? -1 : sqlite3_column_int64 (row, 4);
  caption->utc = sqlite3_column_type (row, 5) == SQLITE_NULL ? -1 : sqlite3_column_int64 (row, 5);
  caption->text = g_utf8_make_valid ((const gchar *) sqlite3_column_text (row, 6), -1);
  caption->tokens = (guint) sqlite3_column_int64 (row, 7);
  caption->latency = sqlite3_column_double (row, 8);
  caption->finish_reason = g_strdup ((const gchar *) sqlite3_column_text (row, 9));
  caption->model = g_strdup ((const gchar *) sqlite3_column_text (row, 10));
  return caption;
}

/* Adds all rows of the statement, which has COLUMNS and perhaps a thumbnail, and lets go of it. */
static gboolean
read_rows (VlmDb *db, sqlite3_stmt *statement, GPtrArray *captions, GError **error)
{
  gboolean done;
  int result;

  while ((result = sqlite3_step (statement)) == SQLITE_ROW) {
    VlmCaption *caption = read_row (statement);

    if (sqlite3_column_count (statement) > 11) {
      caption->thumbnail_size = (gsize) sqlite3_column_bytes (statement, 11);
      caption->thumbnail = g_memdup2 (sqlite3_column_blob (statement, 11), caption->thumbnail_size);
    }
    g_ptr_array_add (captions, caption);
  }
  done = result == SQLITE_DONE || fail (db, error);
  sqlite3_finalize (statement);
  return done;
}

gboolean
vlm_db_load (VlmDb *db, const gchar *uri, GPtrArray *captions, GError **error)
{
  sqlite3_stmt *statement = prepare (db,
      "SELECT " COLUMNS ", c.thumbnail FROM captions c JOIN inputs i ON i.id = c.input"
      " WHERE i.uri = ?1 ORDER BY c.pts",
      error);

  if (statement == NULL)
    return FALSE;
  bind_text (statement, 1, uri);
  return read_rows (db, statement, captions, error);
}

gboolean
vlm_db_load_input (VlmDb *db, VlmInput *input, GError **error)
{
  sqlite3_stmt *statement =
      prepare (db, "SELECT state, message, \"end\", options FROM inputs WHERE uri = ?1", error);
  gboolean done = TRUE;
  int result;

  if (statement == NULL)
    return FALSE;
  bind_text (statement, 1, input->uri);
  result = sqlite3_step (statement);
  if (result == SQLITE_ROW) {
    input->state = (VlmInputState) sqlite3_column_int (statement, 0);
    g_free (input->message);
    input->message = g_strdup ((const gchar *) sqlite3_column_text (statement, 1));
    input->end = sqlite3_column_type (statement, 2) == SQLITE_NULL
        ? -1
        : sqlite3_column_int64 (statement, 2);
    g_free (input->settings);
    input->settings = g_strdup ((const gchar *) sqlite3_column_text (statement, 3));
  } else if (result != SQLITE_DONE) {
    done = fail (db, error);
  }
  sqlite3_finalize (statement);
  return done;
}

/* ---- Searching ----------------------------------------------------------------------------- */

/* Adds a word in the quotes of FTS5, in which nothing has a meaning of its own. */
static void
add_word (GString *query, const gchar *word)
{
  gsize length = strlen (word);
  gboolean prefix = length > 1 && word[length - 1] == '*';
  gsize i;

  g_string_append_c (query, '"');
  for (i = 0; i < length - (prefix ? 1 : 0); i++) {
    if (word[i] == '"')
      g_string_append_c (query, '"');
    g_string_append_c (query, word[i]);
  }
  g_string_append (query, prefix ? "\" * " : "\" ");
}

/*
 * (transfer full) what is asked, as FTS5 wants it: all of the words, or better all of them together
 * ("a b" OR ("a" "b")), which is what makes captions with a phrase stand first. NULL: no words.
 */
static gchar *
make_query (const gchar *text)
{
  g_auto (GStrv) words = g_strsplit_set (text, " \t\n", -1);
  g_autoptr (GString) all = g_string_new (NULL);
  g_autoptr (GString) phrase = g_string_new (NULL);
  guint i, n = 0;

  for (i = 0; words[i] != NULL; i++) {
    if (words[i][0] == '\0')
      continue;
    add_word (all, words[i]);
    if (n++ > 0)
      g_string_append (phrase, "+ ");
    add_word (phrase, words[i]);
  }
  if (n == 0)
    return NULL;
  return g_strdup_printf ("(%s) OR (%s)", phrase->str, all->str);
}

GPtrArray *
vlm_db_search (VlmDb *db, const gchar *query, GError **error)
{
  g_autofree gchar *match = make_query (query);
  GPtrArray *found = g_ptr_array_new_with_free_func ((GDestroyNotify) vlm_caption_free);
  sqlite3_stmt *statement;

  if (match == NULL)
    return found;
  statement = prepare (db,
      "SELECT " COLUMNS " FROM captions_fts f JOIN captions c ON c.id = f.rowid"
      " JOIN inputs i ON i.id = c.input WHERE captions_fts MATCH ?1"
      " ORDER BY f.rank, i.id, c.pts",
      error);
  if (statement != NULL) {
    bind_text (statement, 1, match);
    if (read_rows (db, statement, found, error))
      return found;
  }
  g_ptr_array_unref (found);
  return NULL;
}
