/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "../caption.h"
#include "../output.h"
#include "db.h"
#include "jsonl.h"
#include "progress.h"
#include "remux.h"
#include "signals.h"
#include "times.h"

#define EXIT_USAGE 2

#define DEFAULT_LIMIT 20

#define SUMMARY                                                                                    \
  "Finds captions in a database that vlm-caption --db made: those that hold all WORDs, best\n"     \
  "first. Captions with the WORDs together come before others; WORD* stands for all that begin\n"  \
  "so. Exit status: 0 found, 1 nothing found or an error, 2 wrong command line."

typedef struct
{
  gchar **words; /* the database and what is sought */
  gchar *query;
  gboolean json, help;
  gint limit;
  gint clip;           /* number of the hit that is cut out; 0: none */
  const gchar *output; /* where to */
  gint signal;         /* that cutting was ended by; 0: none */
} Search;

/* ---- The command line ---------------------------------------------------------------------- */

/* Takes "--clip N OUT" out of the command line: no option of GLib's has two values. */
static gboolean
take_clip (Search *search, int *argc, char **argv, GError **error)
{
  int i;

  for (i = 1; i < *argc && strcmp (argv[i], "--") != 0; i++) {
    if (strcmp (argv[i], "--clip") != 0)
      continue;
    if (i + 2 >= *argc || (search->clip = atoi (argv[i + 1])) < 1) {
      g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
          "--clip is %s, expected the number of a hit and a file",
          i + 1 < *argc ? argv[i + 1] : "alone");
      return FALSE;
    }
    search->output = argv[i + 2];
    memmove (argv + i, argv + i + 3, (gsize) (*argc - i - 2) * sizeof (*argv));
    *argc -= 3;
    return TRUE;
  }
  return TRUE;
}

static gboolean
parse (Search *search, int argc, char **argv, GError **error)
{
  g_autoptr (GOptionContext) context = g_option_context_new ("DB WORD...");
  const GOptionEntry entries[] = {
    { "json", 0, 0, G_OPTION_ARG_NONE, &search->json, "Print an array of objects", NULL },
    { "limit", 0, 0, G_OPTION_ARG_INT, &search->limit, "Print that many hits (20); 0: all", "N" },
    { "help", 'h', 0, G_OPTION_ARG_NONE, &search->help, "Print this", NULL },
    { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &search->words, NULL, NULL },
    { NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL },
  };

  g_option_context_add_main_entries (context, entries, NULL);
  g_option_context_set_help_enabled (context, FALSE);
  g_option_context_set_summary (context, SUMMARY);
  g_option_context_set_description (
      context, "  --clip N OUT     Cut hit N out of its video, into the Matroska file OUT\n");
  g_set_prgname ("vlm-caption search");
  if (!take_clip (search, &argc, argv, error)
      || !g_option_context_parse (context, &argc, &argv, error))
    return FALSE;
  if (search->help) {
    g_autofree gchar *text = g_option_context_get_help (context, TRUE, NULL);

    fputs (text, stdout);
    return TRUE;
  }
  if (search->limit < 0 || search->words == NULL || search->words[0] == NULL
      || search->words[1] == NULL) {
    g_set_error_literal (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED,
        search->limit < 0 ? "--limit is negative, expected at least 0"
                          : "expected a database and words to look for");
    return FALSE;
  }
  search->query = g_strjoinv (" ", search->words + 1);
  return TRUE;
}

/* ---- Hits ---------------------------------------------------------------------------------- */

/* (transfer full) the cues of an input, from a cache. */
static const GPtrArray *
get_cues (VlmDb *db, GHashTable *cache, const gchar *uri, GError **error)
{
  GPtrArray *cues = g_hash_table_lookup (cache, uri);
  g_autoptr (GPtrArray) captions = NULL;

  if (cues != NULL)
    return cues;
  captions = g_ptr_array_new_with_free_func ((GDestroyNotify) vlm_caption_free);
  if (!vlm_db_load (db, uri, captions, error))
    return NULL;
  cues = vlm_cues_new (captions, 0, 0);
  g_hash_table_insert (cache, g_strdup (uri), cues);
  return cues;
}

static const VlmCaption *
find_cue (const GPtrArray *cues, gint64 time)
{
  guint i;

  for (i = 0; i < cues->len; i++) {
    const VlmCaption *cue = cues->pdata[i];

    if (cue->still || (cue->pts <= time && time < cue->end))
      return cue;
  }
  return NULL;
}

/*
 * (transfer container) the cues that the captions belong to, each once, in the order of its best
 * one. They are owned by cache.
 */
static GPtrArray *
find_hits (VlmDb *db, const GPtrArray *captions, GHashTable *cache, GError **error)
{
  g_autoptr (GPtrArray) hits = g_ptr_array_new ();
  g_autoptr (GHashTable) known = g_hash_table_new (NULL, NULL);
  guint i;

  for (i = 0; i < captions->len; i++) {
    const VlmCaption *caption = captions->pdata[i];
    const GPtrArray *cues = get_cues (db, cache, caption->uri, error);
    const VlmCaption *cue;

    if (cues == NULL)
      return NULL;
    cue = find_cue (cues, caption->pts);
    if (cue != NULL && g_hash_table_add (known, (gpointer) cue))
      g_ptr_array_add (hits, (gpointer) cue);
  }
  return g_steal_pointer (&hits);
}

/* ---- Output -------------------------------------------------------------------------------- */

static void
print_line (guint number, const VlmCaption *hit)
{
  g_autofree gchar *name = vlm_make_line (hit->input);
  g_autofree gchar *text = vlm_make_line (hit->text);
  g_autofree gchar *start = vlm_time_to_text (hit->pts);
  g_autofree gchar *end = vlm_time_to_text (hit->end);

  if (hit->still)
    printf ("%u  %s  %s\n", number, name, text);
  else
    printf ("%u  %s  %s-%s  %s\n", number, name, start, end, text);
}

/* (transfer full) */
static json_t *
make_object (guint number, const VlmCaption *hit)
{
  g_autofree gchar *utc = hit->utc >= 0 ? vlm_utc_to_text (hit->utc) : NULL;

  return json_pack ("{s:i, s:s, s:s, s:f, s:f, s:s?, s:s, s:s?, s:b}", "hit", (int) number, "file",
      hit->input, "uri", hit->uri, "start", hit->pts / 1e9, "end", hit->end / 1e9, "utc", utc,
      "text", hit->text, "model", hit->model, "still", hit->still);
}

static gboolean
print_hits (const Search *search, const GPtrArray *hits, GError **error)
{
  guint n = search->limit > 0 ? MIN (hits->len, (guint) search->limit) : hits->len;
  json_t *array = search->json ? json_array () : NULL;
  guint i;

  for (i = 0; i < n; i++) {
    if (search->json)
      json_array_append_new (array, make_object (i + 1, hits->pdata[i]));
    else
      print_line (i + 1, hits->pdata[i]);
  }
  if (search->json) {
    json_dumpf (array, stdout, JSON_INDENT (2) | JSON_REAL_PRECISION (15));
    putchar ('\n');
    json_decref (array);
  }
  return output_flush (error);
}

/* ---- Cutting ------------------------------------------------------------------------------- */

typedef struct
{
  const VlmCaption *hit;
  const gchar *output;
  GMainLoop *loop;
  GCancellable *cancellable;
  gint signal;
  GError *error;
} Cut;

static gboolean
end_loop (gpointer loop)
{
  g_main_loop_quit (loop);
  return G_SOURCE_REMOVE;
}

static gpointer
cut (gpointer data)
{
  Cut *self = data;
  const VlmCaption *hit = self->hit;

  vlm_cut_clip (hit->uri, hit->pts, hit->end, self->output, self->cancellable, &self->error);
  g_idle_add (end_loop, self->loop);
  return NULL;
}

static void
stop_by (gint number, gpointer data)
{
  Cut *self = data;

  self->signal = number;
  g_cancellable_cancel (self->cancellable);
}

/* In a thread, while this one listens to signals, so that they leave no half file behind. */
static gboolean
cut_clip (Search *search, const VlmCaption *hit, GError **error)
{
  Cut self = { hit, search->output, g_main_loop_new (NULL, FALSE), g_cancellable_new (), 0, NULL };
  VlmSignals *signals = vlm_signals_new (stop_by, &self);
  GThread *thread = g_thread_new ("cut", cut, &self);

  g_main_loop_run (self.loop);
  g_thread_join (thread);
  vlm_signals_free (signals);
  g_main_loop_unref (self.loop);
  g_object_unref (self.cancellable);
  search->signal = self.signal;
  if (self.error == NULL)
    return TRUE;
  g_propagate_error (error, self.error);
  return FALSE;
}

static gboolean
cut_hit (Search *search, const GPtrArray *hits, GError **error)
{
  const VlmCaption *hit;

  if (search->clip == 0)
    return TRUE;
  if ((guint) search->clip > hits->len) {
    g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
        "--clip is %d, expected at most %u, the number of hits", search->clip, hits->len);
    return FALSE;
  }
  hit = hits->pdata[search->clip - 1];
  if (hit->still) {
    g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
        "--clip is %d, which is a picture: %s", search->clip, hit->input);
    return FALSE;
  }
  return cut_clip (search, hit, error);
}

/* Returns the number of hits, or -1 with an error. */
static gint
run (Search *search, GError **error)
{
  g_autoptr (GHashTable) cache =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) g_ptr_array_unref);
  VlmDb *db = vlm_db_open (search->words[0], FALSE, error);
  g_autoptr (GPtrArray) captions = NULL;
  g_autoptr (GPtrArray) hits = NULL;

  if (db == NULL)
    return -1;
  captions = vlm_db_search (db, search->query, error);
  if (captions != NULL)
    hits = find_hits (db, captions, cache, error);
  vlm_db_close (db);
  if (hits == NULL || !print_hits (search, hits, error) || !cut_hit (search, hits, error))
    return -1;
  return (gint) hits->len;
}

int
vlm_search (int argc, char **argv)
{
  Search search = { .limit = DEFAULT_LIMIT };
  g_autoptr (GError) error = NULL;
  int exit_code = 0;

  if (!parse (&search, argc, argv, &error)) {
    exit_code = EXIT_USAGE;
  } else if (!search.help) {
    gint n = run (&search, &error);

    if (n == 0)
      caption_fail ("search", "nothing found");
    exit_code = search.signal > 0 ? 128 + search.signal : n > 0 ? 0 : 1;
  }
  if (error != NULL) {
    if (error->domain == G_OPTION_ERROR)
      exit_code = EXIT_USAGE;
    caption_fail ("search", error->message);
  }
  g_strfreev (search.words);
  g_free (search.query);
  return exit_code;
}
